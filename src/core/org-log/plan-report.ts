import type { OrgFact, OrgLogRow, PlanPosition } from './org-event.ts';

/** What a plan says of its log: it has begun (with this first row), it has come this far, it has ended here. */
export interface PlanReport extends PlanPosition {
  readonly kind: 'created' | 'head' | 'ended';
  /** Of an end: whether the whole log held then. */
  readonly verified?: boolean;
}

/** The last that the org's log has heard of a plan's. */
export interface KnownPlan extends PlanPosition {
  readonly ended: boolean;
  /** Hash of its first row: a plan that was made again has another. */
  readonly createdHash: string | null;
  /** The row that told it; null: recorded before that was kept. */
  readonly rowSeq: number | null;
}

/** With the word of the log's own rows on it. */
export interface ListedPlan extends KnownPlan {
  /** False: no row says what is known of the plan. */
  readonly isRecorded: boolean;
}

const TYPES = { created: 'plan_created', head: 'plan_head', ended: 'plan_ended' } as const;

/**
 * What is recorded of a report; null: nothing new (reports are repeated until they are known to have arrived). A log that contradicts
 * what was reported before is a `trail_problem`, and what was reported before stays what is known.
 */
export function factOfReport(known: KnownPlan | null, report: PlanReport): OrgFact | null {
  const { kind, plan_id, seq, hash } = report;
  const actor = { kind: 'system', id: 'plan' } as const;
  const { verified } = report;
  const position = { plan_id, seq, hash };
  if (known !== null) {
    const contradicts = (problem: 'made_again' | 'shorter' | 'rewritten'): OrgFact => ({
      type: 'trail_problem',
      actor,
      data: { ...position, problem, known_seq: known.seq, known_hash: known.hash },
    });
    if (kind === 'created') return known.createdHash === null || known.createdHash === hash ? null : contradicts('made_again');
    if (seq === known.seq && hash !== known.hash) return contradicts('rewritten');
    if (kind === 'ended' && seq < known.seq) return contradicts('shorter');
    // Late, or said before.
    if (seq < known.seq || (seq === known.seq && (kind === 'head' || known.ended))) return null;
  }
  return { type: TYPES[kind], actor, data: { ...position, ...(kind === 'ended' && verified !== undefined ? { verified } : {}) } };
}

/** What is known after a row. */
export function knownAfter(known: KnownPlan | null, row: OrgLogRow): KnownPlan | null {
  if (row.type !== 'plan_created' && row.type !== 'plan_head' && row.type !== 'plan_ended') return known;
  const { plan_id, seq, hash } = row.data;
  const position = { plan_id, seq, hash, rowSeq: row.seq };
  if (row.type === 'plan_created') return { ...position, ended: false, createdHash: hash };
  return { ...position, ended: row.type === 'plan_ended' || known?.ended === true, createdHash: known?.createdHash ?? null };
}
