/**
 * Verification over everything that the service has of a log, a plan's or the org's own: the chain in the object, the signed heads beside
 * it, and the entries in D1, which were written from the same rows. Whoever changes one of them is contradicted by the others.
 */
import { headText, type SignedHead } from '../core/audit/head.ts';
import { canonicalJson } from '../core/json.ts';
import { type AuditEntry, readEntryOf } from '../core/plan/audit.ts';
import type { ChainedRow, LogPosition, LogProblem, LogStretch } from '../core/plan/chain.ts';
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

/** Entries that are read from D1 at once, and rows at most: an object answers fewer where they are long. */
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
  /** What the object says of the rows behind a position; null: there is no log here. */
  verify(from: LogPosition | null): Promise<LogStretch | null>;
  /** The first signed heads behind a row; absent: the newest few. */
  heads(after?: number): Promise<Pick<PlanHeads, 'seq' | 'signed' | 'damage'> | null>;
  /** None: there are no more. */
  rows(afterSeq: number, limit: number): Promise<readonly R[]>;
  /** The entry that D1 must have of a row; null: none. */
  entryOf(row: R): AuditEntry | null;
  /** Up to which row D1 is known to be, since when, and whether all of that must be signed by now. Null: nothing is known. */
  flushed(): Promise<{ readonly seq: number; readonly at: string; readonly isAtRest: boolean } | null>;
}

/** Null: the org never had such a plan. */
export async function verifyTrail(org: string, planId: string, services: Services): Promise<TrailVerdict | null> {
  const port = services.plans.plan(org, planId);
  const source: LogSource<LogRow> = {
    org,
    logId: planId,
    verify: async () => {
      const verdict = await port.verify();
      return verdict === null ? null : { ...verdict, isEnd: true };
    },
    heads: (after) => port.heads({ sign: false, ...(after === undefined ? {} : { after }) }),
    rows: async (afterSeq, limit) => (await port.log(afterSeq, limit)) ?? [],
    entryOf: readEntryOf,
    flushed: async () => {
      const index = await services.planIndex.get(org, planId);
      return index === null ? null : { seq: index.seq, at: index.updatedAt, isAtRest: index.state !== 'running' };
    },
  };
  const verified = await verifyLog(source, services);
  return verified === null ? null : verified.verdict;
}

/** Of the rows behind a position, and of all before them only how they are linked. */
export interface VerifiedRows {
  readonly verdict: TrailVerdict;
  /** Where the next part begins; null: this was the last one. */
  readonly next: LogPosition | null;
}

/**
 * Verifies the rows behind a position (null: from the beginning), with what others know of them; of `maxRows` and not many more, so that
 * the work of one call is bounded. Null: there never was such a log.
 */
export async function verifyLog<R extends ChainedRow>(
  source: LogSource<R>,
  services: Services,
  { from = null, maxRows = Number.MAX_SAFE_INTEGER }: { readonly from?: LogPosition | null; readonly maxRows?: number } = {},
): Promise<VerifiedRows | null> {
  const fromSeq = from?.seq ?? 0;
  const chain = await verifyStretches(source, from, maxRows);
  const heads = await source.heads();
  if (chain === null || heads === null) {
    const flushed = await source.flushed();
    const [entry] = await services.audit.list(source.org, source.logId, 0, 1);
    const existed = (flushed !== null && flushed.seq > 0) || entry !== undefined || fromSeq > 0;
    const problem = { seq: 1, problem: 'deleted' } as const;
    const nothing = { valid: false, entries: 0, head: '', headSignature: 'missing', signedSeq: null, trail: 'changed' } as const;
    return existed ? { verdict: { ...nothing, problem, findings: [problem] }, next: null } : null;
  }
  const next = chain.isEnd ? null : { seq: chain.entries, head: chain.head };
  const toSeq = next?.seq ?? (chain.valid ? Number.MAX_SAFE_INTEGER : fromSeq + maxRows);
  const newest = heads.signed.at(-1);
  const signature = await judgeSignatures(await headsWithin(source, fromSeq, toSeq), source, services);
  // A head whose signature does not fit proves nothing but that somebody was there.
  const signedHashes = new Map(signature.proven.map((head) => [head.seq, head.hash]));
  const compared = await compareRows(source, { fromSeq, toSeq }, signedHashes, services);
  const { lastSeq, rewrittenSeq } = compared;
  const isEnd = next === null && compared.isEnd;
  // The state in memory, the signatures and D1 all know how far the log went.
  const knownSeq = Math.max(heads.seq, ...signature.proven.map((head) => head.seq), compared.trailSeq);
  // Asked again, since the plan may have gone on while its log was read.
  const endSeq = isEnd ? ((await source.heads())?.seq ?? heads.seq) : Number.MAX_SAFE_INTEGER;
  const own = chain.valid ? null : { seq: chain.seq, problem: chain.problem };
  // What follows from another change of the log is named after it.
  const isConsequence = own?.problem === 'state_differs' || own?.problem === 'truncated' || own?.problem === 'rewritten';
  const unsignedSeq = isEnd ? unsignedFrom(await source.flushed(), newest?.seq ?? 0, services) : null;
  const findings = distinct([
    ...(isEnd && lastSeq === 0 && heads.damage?.problem !== 'changed' ? [{ seq: 1, problem: 'deleted' } as const] : []),
    ...(own === null || isConsequence ? [] : [own]),
    ...(rewrittenSeq === null ? [] : [{ seq: rewrittenSeq, problem: 'rewritten' } as const]),
    // Rows behind one that cannot be read are not missing.
    ...(isEnd && lastSeq < knownSeq && !(own?.problem === 'changed' && lastSeq < own.seq)
      ? [{ seq: lastSeq + 1, problem: 'truncated' } as const]
      : []),
    ...(heads.damage === null && lastSeq > endSeq ? [{ seq: endSeq + 1, problem: 'added' } as const] : []),
    ...signature.badSeqs.map((seq) => ({ seq, problem: 'bad_signature' }) as const),
    ...compared.trailFindings,
    ...(unsignedSeq === null ? [] : [{ seq: unsignedSeq, problem: 'unsigned' } as const]),
    ...(own !== null && isConsequence ? [own] : []),
  ]).slice(0, MAX_FINDINGS);
  const judged = newest === undefined ? null : (await judgeSignatures([newest], source, services)).newest;
  return {
    verdict: {
      valid: findings.length === 0,
      entries: chain.entries,
      head: chain.head,
      headSignature: judged ?? (services.auditKeys.signs ? 'missing' : 'off'),
      signedSeq: newest?.seq ?? null,
      trail: compared.trail,
      problem: findings[0] ?? null,
      findings,
    },
    next,
  };
}

/** What the object says of its rows, one stretch after another, until there are enough of them, none is left, or one is wrong. */
async function verifyStretches(
  source: Pick<LogSource<ChainedRow>, 'verify'>,
  from: LogPosition | null,
  maxRows: number,
): Promise<LogStretch | null> {
  for (let at = from; ; ) {
    const stretch = await source.verify(at);
    if (stretch === null || stretch.isEnd || stretch.entries - (from?.seq ?? 0) >= maxRows) return stretch;
    at = { seq: stretch.entries, head: stretch.head };
  }
}

async function headsWithin(source: Pick<LogSource<ChainedRow>, 'heads'>, fromSeq: number, toSeq: number): Promise<readonly SignedHead[]> {
  const heads: SignedHead[] = [];
  for (let after = fromSeq; ; ) {
    const { signed = [] } = (await source.heads(after)) ?? {};
    heads.push(...signed.filter(({ seq }) => seq <= toSeq));
    const last = signed.at(-1);
    if (last === undefined || last.seq <= after || last.seq >= toSeq) return heads;
    after = last.seq;
  }
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

/** Walks the log and D1's entries side by side: the rows behind one up to another. */
async function compareRows<R extends ChainedRow>(
  source: LogSource<R>,
  { fromSeq, toSeq }: { readonly fromSeq: number; readonly toSeq: number },
  signed: ReadonlyMap<number, string>,
  services: Services,
) {
  const flushedSeq = (await source.flushed())?.seq ?? 0;
  const entries = entriesOf(source, fromSeq, services);
  let entry = await entries.next();
  let trailSeq = 0;
  let lastSeq = fromSeq;
  let isBehind = false;
  let isEnd = false;
  let rewrittenSeq: number | null = null;
  const trailFindings: TrailFinding[] = [];
  const found = (seq: number, problem: TrailProblem): void => {
    if (trailFindings.length < MAX_FINDINGS) trailFindings.push({ seq, problem });
  };
  while (lastSeq < toSeq) {
    const rows = await source.rows(lastSeq, Math.min(PAGE, toSeq - lastSeq));
    // A row of a number that was read already stands in another's place: there is nothing new behind it.
    isEnd = (rows[0]?.seq ?? 0) <= lastSeq;
    if (isEnd) break;
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
  }
  // Entries behind the last row: the log was cut. They end with what was read of it, however many there are.
  if (isEnd) for (; !entry.done; entry = await entries.next()) trailSeq = entry.value.seq;
  const trail: TrailVerdict['trail'] = trailFindings.length > 0 ? 'changed' : isBehind ? 'behind' : 'complete';
  return { lastSeq, trailSeq: isEnd ? Math.max(trailSeq, flushedSeq) : trailSeq, trail, rewrittenSeq, trailFindings, isEnd };
}

async function* entriesOf(
  { org, logId }: { readonly org: string; readonly logId: string },
  afterSeq: number,
  { audit }: Services,
): AsyncGenerator<AuditRow, undefined> {
  for (let after = afterSeq; ; ) {
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
