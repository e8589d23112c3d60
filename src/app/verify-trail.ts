/**
 * Verification over everything that the service has of a plan: the chain in the plan's object, the signed heads beside it, and the entries
 * in D1, which were written from the same rows. Whoever changes one of them is contradicted by the others.
 */
import { headText, type SignedHead } from '../core/audit/head.ts';
import { canonicalJson } from '../core/json.ts';
import { auditEntryOf } from '../core/plan/audit.ts';
import type { ChainProblem } from '../core/plan/chain.ts';
import type { LogRow } from '../core/plan/events.ts';
import type { AuditRow } from './ports.ts';
import type { Services } from './services.ts';

export type TrailProblem =
  | ChainProblem['problem']
  /** The state that the plan acts on is not what its log says. */
  | 'state_differs'
  /** The log ends before a row that was signed, or that D1 has an entry of. */
  | 'truncated'
  /** The log has rows that the plan does not know of. */
  | 'added'
  /** A row is not the one that was signed, though the chain holds: all of it was made again. */
  | 'rewritten'
  /** The whole log is gone. */
  | 'deleted'
  /** A signature beside the log does not fit what it stands for. */
  | 'bad_signature'
  /** The entry in D1 is not what the row of the log says, or one is missing. */
  | 'trail_changed';

export interface TrailVerdict {
  readonly valid: boolean;
  readonly entries: number;
  readonly head: string;
  /** Of the newest signed head: `missing` = none was signed yet; `off` = the deployment does not sign. */
  readonly headSignature: 'valid' | 'invalid' | 'unknown_key' | 'missing' | 'off';
  readonly signedSeq: number | null;
  /** `behind`: the newest rows are not in D1 yet. */
  readonly trail: 'complete' | 'behind' | 'changed';
  readonly problem: { readonly seq: number; readonly problem: TrailProblem } | null;
}

/** Rows that are read at once. */
const PAGE = 500;

/** Null: the org never had such a plan. */
export async function verifyTrail(org: string, planId: string, services: Services): Promise<TrailVerdict | null> {
  const port = services.plans.plan(org, planId);
  const [chain, heads] = [await port.verify(), await port.heads({ sign: false })];
  const base = { entries: 0, head: '', headSignature: 'missing', signedSeq: null, trail: 'changed' } as const;
  if (chain === null || heads === null) {
    const index = await services.planIndex.get(org, planId);
    const [entry] = await services.audit.list(org, planId, 0, 1);
    const existed = (index !== null && index.seq > 0) || entry !== undefined;
    return existed ? { ...base, valid: false, problem: { seq: 1, problem: 'deleted' } } : null;
  }
  const signature = await judgeSignatures(heads.signed, { org, planId }, services);
  const signedHashes = new Map(heads.signed.map((head) => [head.seq, head.hash]));
  const compared = await compareRows(org, planId, signedHashes, services);
  const { lastSeq, rewrittenSeq, changedSeq } = compared;
  // The state in memory, the signatures and D1 all know how far the log went.
  const knownSeq = Math.max(heads.seq, ...heads.signed.map((head) => head.seq), compared.trailSeq);
  // Asked again, since the plan may have gone on while its log was read.
  const endSeq = (await port.heads({ sign: false }))?.seq ?? heads.seq;
  const differs = !chain.valid && chain.problem === 'state_differs';
  // What the log says against itself comes first, then what others say against it.
  const problem = firstOf([
    [lastSeq === 0, 'deleted', 1],
    [!chain.valid && !differs, chain.valid ? 'changed' : chain.problem, chain.valid ? 0 : chain.seq],
    [rewrittenSeq !== null, 'rewritten', rewrittenSeq ?? 0],
    [lastSeq < knownSeq, 'truncated', lastSeq + 1],
    [lastSeq > endSeq, 'added', endSeq + 1],
    [signature.badSeq !== null, 'bad_signature', signature.badSeq ?? 0],
    [changedSeq !== null, 'trail_changed', changedSeq ?? 0],
    // Last: whatever changed the log also makes the state differ from it, and has a name of its own.
    [differs, 'state_differs', heads.seq],
  ]);
  const newest = heads.signed.at(-1);
  return {
    valid: problem === null,
    entries: chain.entries,
    head: chain.head,
    headSignature: newest === undefined ? (services.auditKeys.signs ? 'missing' : 'off') : signature.newest,
    signedSeq: newest?.seq ?? null,
    trail: compared.trail,
    problem,
  };
}

function firstOf(rows: readonly (readonly [isSo: boolean, problem: TrailProblem, seq: number])[]): TrailVerdict['problem'] {
  const found = rows.find(([isSo]) => isSo);
  return found === undefined ? null : { seq: found[2], problem: found[1] };
}

async function judgeSignatures(
  heads: readonly SignedHead[],
  plan: { readonly org: string; readonly planId: string },
  { auditKeys }: Services,
) {
  let badSeq: number | null = null;
  let newest: 'valid' | 'invalid' | 'unknown_key' = 'valid';
  for (const head of heads) {
    const isOurs = head.org === plan.org && head.plan_id === plan.planId;
    newest = isOurs ? await auditKeys.verify(headText(head), head) : 'invalid';
    if (newest === 'invalid') badSeq ??= head.seq;
  }
  return { badSeq, newest };
}

/** Walks the log and D1's entries side by side. */
async function compareRows(org: string, planId: string, signed: ReadonlyMap<number, string>, services: Services) {
  const port = services.plans.plan(org, planId);
  const flushedSeq = (await services.planIndex.get(org, planId))?.seq ?? 0;
  const entries = entriesOf(org, planId, services);
  let entry = await entries.next();
  let trailSeq = 0;
  let lastSeq = 0;
  let isBehind = false;
  let rewrittenSeq: number | null = null;
  let changedSeq: number | null = null;
  const differs = (seq: number): void => {
    changedSeq ??= seq;
  };
  for (;;) {
    const rows = (await port.log(lastSeq, PAGE)) ?? [];
    for (const row of rows) {
      const hash = signed.get(row.seq);
      if (hash !== undefined && hash !== row.hash) rewrittenSeq ??= row.seq;
      // Entries of D1 for which the log has no row between this one and the one before.
      for (; !entry.done && entry.value.seq < row.seq; entry = await entries.next()) differs(entry.value.seq);
      const due = auditEntryOf(row);
      if (!entry.done && entry.value.seq === row.seq) {
        trailSeq = row.seq;
        if (!isEntryOf(entry.value, row)) differs(row.seq);
        entry = await entries.next();
      } else if (due !== null) {
        if (row.seq <= flushedSeq) differs(row.seq);
        else isBehind = true;
      }
      lastSeq = row.seq;
    }
    if (rows.length < PAGE) break;
  }
  // Entries behind the last row: the log was cut.
  for (; !entry.done; entry = await entries.next()) trailSeq = entry.value.seq;
  const trail: TrailVerdict['trail'] = changedSeq !== null ? 'changed' : isBehind ? 'behind' : 'complete';
  return { lastSeq, trailSeq: Math.max(trailSeq, flushedSeq), trail, rewrittenSeq, changedSeq };
}

async function* entriesOf(org: string, planId: string, { audit }: Services): AsyncGenerator<AuditRow, undefined> {
  for (let after = 0; ; ) {
    const page = await audit.list(org, planId, after, PAGE);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.seq;
  }
}

function isEntryOf(stored: AuditRow, row: LogRow): boolean {
  const due = auditEntryOf(row);
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
