/**
 * The file that `audit/export` and `org/log/export` make (the org's log has `org` for its `plan_id`), and how it is verified without the
 * service (verify-audit-file.ts). One JSON object in a line:
 *
 *   { "kind": "export", "v": 1, "org", "plan_id", "genesis" }            first
 *   { "kind": "row", "row": { v, seq, at, type, actor, data, prev, hash } }   the row of the log as it is: anybody can recompute its hash
 *   { "kind": "masked_row", "row": { … }, "content_sha256" }              a row whose text held a secret (core/audit/mask.ts)
 *   { "kind": "head", "head": { v, org, plan_id, seq, hash, at, kid, signature } }   signed heads, with the page of their row
 *   { "kind": "seal", "v": 1, "org", "plan_id", "from_seq", "to_seq", "last", "sha256", "at", "kid", "signature" }   ends a page
 *
 * What each proves: hashes, that nothing between the first and the last row was changed, left out, added or moved; a signed head, that
 * the log had that row; the seal, that every byte of its page is as the service wrote it, masked rows included, and with `last` that the
 * export was complete. A file that was cut has no last seal, wherever it was cut.
 */

import type { AuditKeys } from '../core/audit/ed25519.ts';
import type { SignedHead } from '../core/audit/head.ts';
import { maskJson } from '../core/audit/mask.ts';
import type { Sha256 } from '../core/digest.ts';
import { canonicalJson, type JsonValue } from '../core/json.ts';
import { type ChainedRow, genesisHash, verifyChain } from '../core/plan/chain.ts';

/** What a page says of itself. */
export interface SealClaim {
  readonly v: 1;
  readonly org: string;
  readonly plan_id: string;
  readonly from_seq: number;
  readonly to_seq: number;
  readonly last: boolean;
  /** Of all bytes of the page before the seal. */
  readonly sha256: string;
  readonly at: string;
}

export interface AuditPage {
  readonly org: string;
  /** `ORG_LOG_ID` for the log of the org. */
  readonly planId: string;
  /** Only in the first page of a file. */
  readonly isFirst: boolean;
  readonly rows: readonly ChainedRow[];
  /** Signed heads of its rows, oldest first; in the last page those behind its last row too, which show that the log was cut. */
  readonly heads: readonly SignedHead[];
  /** Whether no more pages follow. */
  readonly isLast: boolean;
  /** Row before the first one of this page; 0 at the beginning. */
  readonly afterSeq: number;
  readonly at: string;
}

/** The text of one page. Pages in their order, put together, are a file. */
export async function writeAuditPage(
  page: AuditPage,
  { sha256, keys }: { readonly sha256: Sha256; readonly keys: AuditKeys },
): Promise<string> {
  const { org, planId, rows, heads } = page;
  const lines: object[] = [
    ...(page.isFirst ? [{ kind: 'export', v: 1, org, plan_id: planId, genesis: genesisHash(sha256, org, planId) }] : []),
    ...rows.map((row) => rowLine(row, sha256)),
    ...heads.map((head) => ({ kind: 'head', head })),
  ];
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const claim: SealClaim = {
    v: 1,
    org,
    plan_id: planId,
    from_seq: rows[0]?.seq ?? page.afterSeq + 1,
    to_seq: rows.at(-1)?.seq ?? page.afterSeq,
    last: page.isLast,
    sha256: sha256(body),
    at: page.at,
  };
  const signature = (await keys.sign(sealText(claim))) ?? { kid: null, signature: null };
  return `${body}${JSON.stringify({ kind: 'seal', ...claim, ...signature })}\n`;
}

function rowLine(row: ChainedRow, sha256: Sha256): object {
  const data = maskJson(row.data as unknown as JsonValue);
  if (data === (row.data as unknown)) return { kind: 'row', row };
  const masked = { ...row, data };
  // The signature of the page stands for what is hidden, so the row has to be the one that was hashed; one that is not shows as changed.
  const { seq, prev } = row;
  if (!verifyChain(sha256, prev, [row], { seq: seq - 1, head: prev }).valid) return { kind: 'row', row: masked };
  return { kind: 'masked_row', row: masked, content_sha256: sha256(canonicalJson(masked)) };
}

/** The text under the signature of a page. Its first line keeps the signature from meaning anything else. */
export function sealText(claim: SealClaim): string {
  const { v, org, plan_id, from_seq, to_seq, last, sha256, at } = claim;
  return `cleveragents audit export page\n${canonicalJson({ v, org, plan_id, from_seq, to_seq, last, sha256, at })}`;
}
