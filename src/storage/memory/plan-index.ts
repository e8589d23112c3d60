import type { PlanIndex, PlanIndexRow, PlanListQuery } from '../../app/ports.ts';
import { ok } from '../../core/result.ts';
import { decodePageToken, encodePageToken } from '../page-token.ts';
import { LIVE_TASK_STATES, WAITING_TASK_STATES } from '../waiting-task-states.ts';
import { compareText, Documents } from './documents.ts';
import { MemorySpend } from './plan-spend.ts';

/** The index of plans in memory. It keeps every earlier state, so its page tokens do not expire; else it promises what plan-list.ts of D1 does. */
export function makeMemoryPlanIndex(): PlanIndex {
  const plans = new Documents<PlanIndexRow>();
  const spending = new MemorySpend();
  /** What each change replaced; null when the plan was not listed before. */
  const moves: { readonly org: string; readonly planId: string; readonly before: PlanIndexRow | null }[] = [];

  /** The listed plans as they were after the first `lastMove` changes. */
  const listedAt = (org: string, lastMove: number): PlanIndexRow[] => {
    const earlier = new Map<string, PlanIndexRow | null>();
    for (const move of moves.slice(lastMove)) if (move.org === org && !earlier.has(move.planId)) earlier.set(move.planId, move.before);
    const unmoved = plans.where((row) => row.org === org && row.seq > 0 && !earlier.has(row.planId));
    return [...unmoved, ...[...earlier.values()].filter((row) => row !== null)];
  };

  return {
    async reserve(row) {
      return plans.add(row, row.org, row.planId);
    },
    async upsert(row, spend) {
      const before = plans.get(row.org, row.planId);
      if (before !== null && before.seq > row.seq) return false;
      if (row.seq > 0) moves.push({ org: row.org, planId: row.planId, before: before !== null && before.seq > 0 ? before : null });
      plans.set(row, row.org, row.planId);
      if (spend !== undefined) spending.tell(row, spend);
      return true;
    },
    async closeSpending(row, spend) {
      spending.close(row, spend);
    },
    async spending(query) {
      return spending.read(query);
    },
    async get(org, planId) {
      return plans.get(org, planId);
    },
    async list(query) {
      const token = query.pageToken === undefined || query.pageToken === '' ? null : decodePageToken(query.pageToken, query);
      if (token !== null && !token.ok) return token;
      const at = token === null ? null : token.value;
      const lastMove = at?.lastMove ?? moves.length;
      const all = listedAt(query.org, lastMove).filter(matching(query)).sort(newestFirst);
      const rest = at === null ? all : all.filter((row) => newestFirst(row, at) > 0);
      const rows = rest.slice(0, Math.max(1, Math.floor(query.pageSize)));
      const last = rows.at(-1);
      const position = { lastMove, takenAtSeconds: 0, totalSize: all.length };
      const nextPageToken =
        rest.length > rows.length && last !== undefined
          ? encodePageToken({ ...position, statusAt: last.statusAt, planId: last.planId }, query)
          : '';
      return ok({ rows, nextPageToken, totalSize: all.length });
    },
    async listWaiting(org, sessionId, limit) {
      const isWaiting = (row: PlanIndexRow) => WAITING_TASK_STATES.some((state) => state === row.taskState);
      return plans
        .where((row) => row.org === org && row.sessionId === sessionId && row.seq > 0 && isWaiting(row))
        .sort(newestFirst)
        .slice(0, limit);
    },
    async listOverdue(before, limit) {
      return plans
        .where((row) => row.wakeAt !== null && row.wakeAt < before)
        .sort((a, b) => compareText(a.wakeAt ?? '', b.wakeAt ?? ''))
        .slice(0, limit);
    },
    async listLive({ org, sessionId, afterPlanId, limit }) {
      const isLive = (row: PlanIndexRow) => LIVE_TASK_STATES.some((state) => state === row.taskState);
      return plans
        .where((row) => row.org === org && (sessionId === null || row.sessionId === sessionId) && row.planId > afterPlanId && isLive(row))
        .map((row) => row.planId)
        .sort(compareText)
        .slice(0, limit);
    },
  };
}

type Place = Pick<PlanIndexRow, 'statusAt' | 'planId'>;

function newestFirst(a: Place, b: Place): number {
  return compareText(b.statusAt, a.statusAt) || compareText(a.planId, b.planId);
}

function matching(query: PlanListQuery): (row: PlanIndexRow) => boolean {
  return (row) =>
    (query.sessionId === undefined || row.sessionId === query.sessionId) &&
    (query.actionName === undefined || row.actionName === query.actionName) &&
    (query.project === undefined || row.project === query.project) &&
    (query.phase === undefined || row.phase === query.phase) &&
    (query.state === undefined || row.state === query.state) &&
    (query.taskState === undefined || row.taskState === query.taskState) &&
    (query.statusAtOrAfter === undefined || row.statusAt >= query.statusAtOrAfter) &&
    (query.withPendingApprovals !== true || row.pendingApprovals > 0);
}
