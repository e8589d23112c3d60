import { invalidField, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { TrailFinding } from './verify-trail.ts';

/**
 * Where a verification of the org's log stands: behind a row of the log itself, or (`afterPlanId`) behind a plan. What was found before
 * goes with it, so that the last page has the word on all of them.
 */
export interface VerifyToken {
  readonly at: { readonly seq: number; readonly head: string } | { readonly afterPlanId: string };
  /** Of the pages before; null: nothing was wrong with the log. */
  readonly problem: TrailFinding | null;
  readonly isValid: boolean;
}

/** Opaque to callers. It carries no authority: whoever alters it has a verdict on something else than the log, and only he. */
export function encodeVerifyToken({ at, problem, isValid }: VerifyToken): string {
  const place = 'seq' in at ? `r.${at.seq}.${at.head}` : `p.${at.afterPlanId}`;
  return `1.${isValid ? 1 : 0}.${problem === null ? '-' : `${problem.problem}:${problem.seq}`}.${place}`;
}

/** Refused (`invalid`, naming `page_token`): text that was not made here. */
export function decodeVerifyToken(text: string): Result<VerifyToken, Refusal> {
  const pattern = /^1\.([01])\.(?:-|([a-z_]{1,30}):([0-9]{1,15}))\.(?:r\.([0-9]{1,15})\.([0-9a-f]{64})|p\.([0-9A-HJKMNP-TV-Z]{26}))$/;
  const [all, isValid, problem, problemSeq, seq, head, afterPlanId] = pattern.exec(text) ?? [];
  if (all === undefined)
    return err(invalidField('page_token', 'is not a token of this verification; use next_page_token of the page before'));
  return ok({
    at: afterPlanId === undefined ? { seq: Number(seq), head: head ?? '' } : { afterPlanId },
    problem: problem === undefined ? null : ({ seq: Number(problemSeq), problem } as TrailFinding),
    isValid: isValid === '1',
  });
}
