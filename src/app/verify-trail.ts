/**
 * Verification over everything that the service has of a log, a plan's or the org's own: the chain in the object, the signed heads beside
 * it, and the entries in D1, which were written from the same rows. Whoever changes one of them is contradicted by the others.
 */
import { headText, type SignedHead } from '../core/audit/head.ts';
import { canonicalJson } from '../core/json.ts';
import { type AuditEntry, readEntryOf } from '../core/plan/audit.ts';
import type { ChainedRow, LogProblem, LogVerdict } from '../core/plan/chain.ts';
import type { LogRow } from '../core/plan/events.ts';
import type { AuditRow, PlanHeads } from './ports.ts';
import type { Services } from './services.ts';

export type TrailProblem =
  | LogProblem
  /** The log has rows that the plan does not know of. */
  | 'added'
  /** The whole log is gone. */
  | 'deleted'
  /** A signature beside the log does not fit what it stands for. */
  | 'bad_signature'
  /** Rows that were flushed long ago, when they must have been signed, have no signed head behind them. */
  | 'unsigned'
  /** D1 has no entry of a row that was flushed, has one of which there is no row, or has another than the row says. */
  | 'trail_missing'
  | 'trail_extra'
  | 'trail_changed';

export interface TrailFinding {
  readonly seq: number;
  readonly problem: TrailProblem;
}

export interface TrailVerdict {
  readonly valid: boolean;
  readonly entries: number;
  readonly head: string;
  /** Of the newest signed head: `missing` = none was signed yet; `off` = the deployment does not sign. */
  readonly headSignature: 'valid' | 'invalid' | 'unknown_key' | 'missing' | 'off';
  readonly signedSeq: number | null;
  /** `behind`: the newest rows are not in D1 yet. */
  readonly trail: 'complete' | 'behind' | 'changed';
  /** The first of the findings. */
  readonly problem: TrailFinding | null;
  /** What the log says against itself comes first, then what others say against it. */
  readonly findings: readonly TrailFinding[];
}

/** Rows that are read at once. */
const PAGE = 500;

/** Findings that are named at most; one is enough to know that nothing can be relied on. */
const MAX_FINDINGS = 100;

/** A plan at work signs after so many rows at the latest, one at rest at once; both soon after the rows are in D1. */
const SIGNED_WITHIN_ROWS = 64;
const SIGNED_WITHIN_MS = 10 * 60_000;

/** A log with what stands beside it: a plan's, or the org's own. */
export interface LogSource<R extends ChainedRow> {
  readonly org: string;
  /** Names it in signed heads and in D1. */
  readonly logId: string;
  /** What the object says of it; null: there is none here. */
  verify(): Promise<LogVerdict | null>;
  heads(): Promise<Pick<PlanHeads, 'seq' | 'signed' | 'damage'> | null>;
  rows(afterSeq: number, limit: number): Promise<readonly R[]>;
  /** The entry that D1 must have of a row; null: none. */
  entryOf(row: R): AuditEntry | null;
  /** Up to which row D1 is known to be, since when, and whether all of that must be signed by now. Null: nothing is known. */
  flushed(): Promise<{ readonly seq: number; readonly at: string; readonly isAtRest: boolean } | null>;
}

/** Null: the org never had such a plan. */
export function verifyTrail(org: string, planId: string, services: Services): Promise<TrailVerdict | null> {
  const port = services.plans.plan(org, planId);
  const source: LogSource<LogRow> = {
    org,
    logId: planId,
    verify: () => port.verify(),
    heads: () => port.heads({ sign: false }),
    rows: async (afterSeq, limit) => (await port.log(afterSeq, limit)) ?? [],
    entryOf: readEntryOf,
    flushed: async () => {
      const index = await services.planIndex.get(org, planId);
      return index === null ? null : { seq: index.seq, at: index.updatedAt, isAtRest: index.state !== 'running' };
    },
  };
  return verifyLog(source, services);
}

/** Null: there never was such a log. */
export async function verifyLog<R extends ChainedRow>(source: LogSource<R>, services: Services): Promise<TrailVerdict | null> {
  const [chain, heads] = [await source.verify(), await source.heads()];
  if (chain === null || heads === null) {
    const flushed = await source.flushed();
    const [entry] = await services.audit.list(source.org, source.logId, 0, 1);
    const existed = (flushed !== null && flushed.seq > 0) || entry !== undefined;
    const problem = { seq: 1, problem: 'deleted' } as const;
    const nothing = { valid: false, entries: 0, head: '', headSignature: 'missing', signedSeq: null, trail: 'changed' } as const;
    return existed ? { ...nothing, problem, findings: [problem] } : null;
  }
  const signature = await judgeSignatures(heads.signed, source, services);
  // A head whose signature does not fit proves nothing but that somebody was there.
  const signedHashes = new Map(signature.proven.map((head) => [head.seq, head.hash]));
  const compared = await compareRows(source, signedHashes, services);
  const { lastSeq, rewrittenSeq } = compared;
  // The state in memory, the signatures and D1 all know how far the log went.
  const knownSeq = Math.max(heads.seq, ...signature.proven.map((head) => head.seq), compared.trailSeq);
  // Asked again, since the plan may have gone on while its log was read.
  const endSeq = (await source.heads())?.seq ?? heads.seq;
  const own = chain.valid ? null : { seq: chain.seq, problem: chain.problem };
  // What follows from another change of the log is named after it.
  const isConsequence = own?.problem === 'state_differs' || own?.problem === 'truncated' || own?.problem === 'rewritten';
  const unsignedSeq = unsignedFrom(await source.flushed(), heads.signed.at(-1)?.seq ?? 0, services);
  const findings = distinct([
    ...(lastSeq === 0 && heads.damage?.problem !== 'changed' ? [{ seq: 1, problem: 'deleted' } as const] : []),
    ...(own === null || isConsequence ? [] : [own]),
    ...(rewrittenSeq === null ? [] : [{ seq: rewrittenSeq, problem: 'rewritten' } as const]),
    // Rows behind one that cannot be read are not missing.
    ...(lastSeq < knownSeq && !(own?.problem === 'changed' && lastSeq < own.seq)
      ? [{ seq: lastSeq + 1, problem: 'truncated' } as const]
      : []),
    ...(heads.damage === null && lastSeq > endSeq ? [{ seq: endSeq + 1, problem: 'added' } as const] : []),
    ...signature.badSeqs.map((seq) => ({ seq, problem: 'bad_signature' }) as const),
    ...compared.trailFindings,
    ...(unsignedSeq === null ? [] : [{ seq: unsignedSeq, problem: 'unsigned' } as const]),
    ...(own !== null && isConsequence ? [own] : []),
  ]).slice(0, MAX_FINDINGS);
  const newest = heads.signed.at(-1);
  return {
    valid: findings.length === 0,
    entries: chain.entries,
    head: chain.head,
    headSignature: newest === undefined ? (services.auditKeys.signs ? 'missing' : 'off') : signature.newest,
    signedSeq: newest?.seq ?? null,
    trail: compared.trail,
    problem: findings[0] ?? null,
    findings,
  };
}

/** A row has one problem of each kind at most, whoever found it. */
function distinct(findings: readonly TrailFinding[]): readonly TrailFinding[] {
  return [...new Map(findings.map((found) => [`${found.problem} ${found.seq}`, found])).values()];
}

/**
 * The first row that is in D1 for a while and has no signed head behind it though it must have one: heads are signed before the plan takes
 * rows as flushed. Null: none, or the deployment does not sign.
 */
function unsignedFrom(
  flushed: Awaited<ReturnType<LogSource<ChainedRow>['flushed']>>,
  signedSeq: number,
  { auditKeys, clock }: Services,
): number | null {
  if (!auditKeys.signs || flushed === null || flushed.seq <= signedSeq) return null;
  const isLongAgo = clock.nowMs() - Date.parse(flushed.at) > SIGNED_WITHIN_MS;
  const isDue = flushed.isAtRest || flushed.seq - signedSeq >= SIGNED_WITHIN_ROWS;
  return isLongAgo && isDue ? signedSeq + 1 : null;
}

async function judgeSignatures(
  heads: readonly SignedHead[],
  of: { readonly org: string; readonly logId: string },
  { auditKeys }: Services,
) {
  const badSeqs: number[] = [];
  const proven: SignedHead[] = [];
  let newest: 'valid' | 'invalid' | 'unknown_key' = 'valid';
  for (const head of heads) {
    const isOurs = head.org === of.org && head.plan_id === of.logId;
    newest = isOurs ? await auditKeys.verify(headText(head), head) : 'invalid';
    if (newest === 'invalid') badSeqs.push(head.seq);
    else proven.push(head);
  }
  return { badSeqs, proven, newest };
}

/** Walks the log and D1's entries side by side. */
async function compareRows<R extends ChainedRow>(source: LogSource<R>, signed: ReadonlyMap<number, string>, services: Services) {
  const flushedSeq = (await source.flushed())?.seq ?? 0;
  const entries = entriesOf(source.org, source.logId, services);
  let entry = await entries.next();
  let trailSeq = 0;
  let lastSeq = 0;
  let isBehind = false;
  let rewrittenSeq: number | null = null;
  const trailFindings: TrailFinding[] = [];
  const found = (seq: number, problem: TrailProblem): void => {
    if (trailFindings.length < MAX_FINDINGS) trailFindings.push({ seq, problem });
  };
  for (;;) {
    const rows = await source.rows(lastSeq, PAGE);
    for (const row of rows) {
      const hash = signed.get(row.seq);
      if (hash !== undefined && hash !== row.hash) rewrittenSeq ??= row.seq;
      // Entries of D1 for which the log has no row between this one and the one before.
      for (; !entry.done && entry.value.seq < row.seq; entry = await entries.next()) found(entry.value.seq, 'trail_extra');
      const due = source.entryOf(row);
      if (!entry.done && entry.value.seq === row.seq) {
        trailSeq = row.seq;
        if (!isEntryOf(entry.value, due)) found(row.seq, due === null ? 'trail_extra' : 'trail_changed');
        entry = await entries.next();
      } else if (due !== null) {
        if (row.seq <= flushedSeq) found(row.seq, 'trail_missing');
        else isBehind = true;
      }
      lastSeq = row.seq;
    }
    if (rows.length < PAGE) break;
  }
  // Entries behind the last row: the log was cut.
  for (; !entry.done; entry = await entries.next()) trailSeq = entry.value.seq;
  const trail: TrailVerdict['trail'] = trailFindings.length > 0 ? 'changed' : isBehind ? 'behind' : 'complete';
  return { lastSeq, trailSeq: Math.max(trailSeq, flushedSeq), trail, rewrittenSeq, trailFindings };
}

async function* entriesOf(org: string, logId: string, { audit }: Services): AsyncGenerator<AuditRow, undefined> {
  for (let after = 0; ; ) {
    const page = await audit.list(org, logId, after, PAGE);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.seq;
  }
}

function isEntryOf(stored: AuditRow, due: AuditEntry | null): boolean {
  if (due === null) return false;
  const shape = [due.timestamp, due.eventType, due.guardName, due.result, due.reason, due.actor.kind, due.actor.id, due.context, due.hash];
  const kept = [
    stored.at,
    stored.eventType,
    stored.guardName,
    stored.result,
    stored.reason,
    stored.actorKind,
    stored.actorId,
    stored.context,
    stored.hash,
  ];
  return canonicalJson(shape) === canonicalJson(kept);
}
