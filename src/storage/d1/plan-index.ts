import { and, asc, desc, eq, gt, inArray, lt, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { PlanIndex } from '../../app/ports.ts';
import { LIVE_TASK_STATES, WAITING_TASK_STATES } from '../waiting-task-states.ts';
import { d1Call } from './d1-call.ts';
import { listPlans } from './plan-list.ts';
import { replacePlan } from './plan-moves.ts';
import { closingStatements, readSpending } from './plan-spend.ts';
import { plans } from './schema.ts';

/** The index of plans in D1. How lists keep still while plans move: plan-list.ts. */
export function makePlanIndex(db: D1Database): PlanIndex {
  const orm = drizzle(db);
  return {
    async reserve(row) {
      const result = await d1Call('plans.reserve', () => orm.insert(plans).values(row).onConflictDoNothing().run());
      return result.meta.changes > 0;
    },

    async upsert(row, spend) {
      return d1Call('plans.upsert', () => replacePlan(db, row, spend));
    },

    async closeSpending(row, spend) {
      await d1Call('plans.closeSpending', () => db.batch([...closingStatements(db, row, spend)]));
    },

    async spending(query) {
      return d1Call('plans.spending', () => readSpending(db, query));
    },

    async get(org, planId) {
      const row = await d1Call('plans.get', () =>
        orm
          .select()
          .from(plans)
          .where(and(eq(plans.org, org), eq(plans.planId, planId)))
          .get(),
      );
      return row ?? null;
    },

    list(query) {
      return listPlans(db, query);
    },

    listWaiting(org, sessionId, limit) {
      return d1Call('plans.listWaiting', () =>
        orm
          .select()
          .from(plans)
          .where(
            and(
              eq(plans.org, org),
              eq(plans.sessionId, sessionId),
              sql`${plans.seq} > 0`,
              inArray(plans.taskState, [...WAITING_TASK_STATES]),
            ),
          )
          .orderBy(desc(plans.statusAt), asc(plans.planId))
          .limit(limit)
          .all(),
      );
    },

    listOverdue(before, limit) {
      return d1Call('plans.listOverdue', () =>
        orm.select().from(plans).where(lt(plans.wakeAt, before)).orderBy(asc(plans.wakeAt)).limit(limit).all(),
      );
    },

    async listLive({ org, sessionId, afterPlanId, limit }) {
      const rows = await d1Call('plans.listLive', () =>
        orm
          .select({ planId: plans.planId })
          .from(plans)
          .where(
            and(
              eq(plans.org, org),
              ...(sessionId === null ? [] : [eq(plans.sessionId, sessionId)]),
              inArray(plans.taskState, [...LIVE_TASK_STATES]),
              gt(plans.planId, afterPlanId),
            ),
          )
          .orderBy(asc(plans.planId))
          .limit(limit)
          .all(),
      );
      return rows.map((row) => row.planId);
    },
  };
}
