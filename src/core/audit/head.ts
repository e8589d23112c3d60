/**
 * Signed heads. A chain alone proves that nothing inside it was changed; that its end is still there is proven by a signature over the
 * position and hash of a row, made outside the commit and kept beside the chain (design section 3).
 */
import { canonicalJson } from '../json.ts';
import type { AuditKeys, Signature } from './ed25519.ts';

/** What is signed: this plan's log had a row of this number and hash at that time. */
export interface HeadClaim {
  readonly v: 1;
  readonly org: string;
  readonly plan_id: string;
  readonly seq: number;
  readonly hash: string;
  /** When it was signed. */
  readonly at: string;
}

export interface SignedHead extends HeadClaim, Signature {}

/** The text under the signature. Its first line keeps the signature from meaning anything else. */
export function headText({ v, org, plan_id, seq, hash, at }: HeadClaim): string {
  return `cleveragents audit head\n${canonicalJson({ v, org, plan_id, seq, hash, at })}`;
}

/** Null: the deployment does not sign. */
export async function signHead(keys: AuditKeys, claim: HeadClaim): Promise<SignedHead | null> {
  const signature = await keys.sign(headText(claim));
  return signature === null ? null : { ...claim, ...signature };
}
