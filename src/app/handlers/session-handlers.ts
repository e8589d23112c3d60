import type { TaskState } from '../../a2a/model.ts';
import { TERMINAL_STATES } from '../../a2a/model.ts';
import type { SessionView } from '../../api/session.ts';
import { isLooserCap } from '../../core/budget/node-state.ts';
import { parseCapUsd, toUsd } from '../../core/money.ts';
import { invalidField, invalidState, notFound, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { actorOf } from '../caller.ts';
import type { CallContext, HandlerCall, Handlers } from '../handler.ts';
import { type PlanIndexRow, type SessionRecord, StorageUnavailable } from '../ports.ts';
import type { Services } from '../services.ts';

/** Plans asked about at once; a page of the index. */
const PLANS_PER_PAGE = 100;

/** Sessions: conversations of a principal, the same as A2A contexts. */
export const sessionHandlers = {
  /**
   * With a session_id that exists it answers that one, whoever made it. The default actor is recorded as it is named (source:
   * "Session Create"): whether it exists matters when a plan needs it. It is answered once its cap is in force.
   */
  'session.create': async (params, call, services) => {
    const refused = params.max_cost === undefined ? null : await announceCap(params.session_id, params.max_cost, call, services);
    if (refused !== null) return err(refused);
    const session = await services.sessions.ensure({
      org: call.principal.org,
      id: params.session_id ?? services.ids.ulid(),
      actorName: params.actor_name ?? null,
      status: 'open',
      createdAt: nowOf(services),
      closedAt: null,
      createdBy: call.principal.keyId,
    });
    if (session.status !== 'open') return err(isClosed(session));
    const capped = params.max_cost === undefined ? ok(null) : await capSession(session.id, params.max_cost, call, services);
    return capped.ok ? ok({ session_id: session.id, status: 'created' }) : capped;
  },

  'session.list': async (_params, call, services) =>
    ok({ sessions: (await services.sessions.list(call.principal.org)).map(sessionViewOf), next_page_token: '' }),

  'session.show': async (params, call, services) => {
    const session = await services.sessions.get(call.principal.org, params.session_id);
    if (session === null) return err(notFound('session', params.session_id));
    const total = await totalCapOf(session.id, call, services);
    return ok({ ...sessionViewOf(session), max_cost: total === null ? null : toUsd(total) });
  },

  /** Closed first, so that no plan begins in it while its plans are cancelled. */
  'session.close': async (params, call, services) => {
    const isKnown = await services.sessions.close(call.principal.org, params.session_id, nowOf(services));
    if (!isKnown) return err(notFound('session', params.session_id));
    if (params.cancel_plans !== true) return ok({ status: 'closed' });
    return ok({ status: 'closed', cancelled_plans: await cancelPlans(params.session_id, call, services) });
  },
} satisfies Pick<Handlers, 'session.create' | 'session.list' | 'session.show' | 'session.close'>;

const isClosed = ({ id }: SessionRecord): Refusal => invalidState('the session is closed; use another session_id', { session_id: id });

/** Before the session is made, so that there is none without its cap where the cap cannot be recorded. */
async function announceCap(
  sessionId: string | undefined,
  maxCostUsd: number,
  call: HandlerCall,
  services: Services,
): Promise<Refusal | null> {
  const cap = parseCapUsd(maxCostUsd);
  if (!cap.ok) return invalidField('max_cost', cap.error);
  const known = sessionId === undefined ? null : await services.sessions.get(call.principal.org, sessionId);
  if (known !== null) {
    if (known.status !== 'open') return isClosed(known);
    const total = await totalCapOf(known.id, call, services);
    if (total === cap.value) return null;
    if (isLooserCap(cap.value, total)) return hasLowerCap(known.id);
  }
  await call.changing();
  return null;
}

async function totalCapOf(sessionId: string, call: CallContext, services: Services): Promise<number | null> {
  const { caps } = await services.budgets.node(call.principal.org, { kind: 'session', id: sessionId }).show(null);
  return caps.find(({ window }) => window === 'total')?.capMicroUsd ?? null;
}

const hasLowerCap = (sessionId: string): Refusal =>
  invalidState('the session exists with a lower cap; _cleveragents/budget/set raises it, for those who may approve', {
    session_id: sessionId,
  });

/** Whoever opens a session may cap it; raising the cap of one that exists is for those who may approve (`budget/set`). */
async function capSession(sessionId: string, maxCostUsd: number, call: HandlerCall, services: Services): Promise<Result<null, Refusal>> {
  const cap = parseCapUsd(maxCostUsd);
  if (!cap.ok) return err(invalidField('max_cost', cap.error));
  const node = services.budgets.node(call.principal.org, { kind: 'session', id: sessionId });
  const total = await totalCapOf(sessionId, call, services);
  if (total === cap.value) return ok(null);
  await call.changing();
  const set = await node.setCaps({ total: cap.value }, { mayLoosen: false });
  return set.ok ? ok(null) : err(hasLowerCap(sessionId));
}

/**
 * Best effort (source: "Session Close"): answers the plans that are cancelled now by this call. One that has ended meanwhile or cannot
 * be reached is left out; closing again tries those again.
 */
async function cancelPlans(sessionId: string, call: CallContext, services: Services): Promise<string[]> {
  const { org } = call.principal;
  const cancelled: string[] = [];
  for (let pageToken = ''; ; ) {
    const page = await services.planIndex.list({ org, sessionId, pageSize: PLANS_PER_PAGE, pageToken });
    // Only a token that expired on the way refuses here, an hour after the first page.
    if (!page.ok) return cancelled;
    const live = page.value.rows.filter((row) => !TERMINAL_STATES.has(row.taskState as TaskState));
    const outcomes = await Promise.all(live.map((row) => cancelPlan(row, call, services)));
    cancelled.push(...live.filter((_row, index) => outcomes[index] === true).map((row) => row.planId));
    if (page.value.nextPageToken === '') return cancelled;
    pageToken = page.value.nextPageToken;
  }
}

async function cancelPlan({ org, planId }: PlanIndexRow, call: CallContext, services: Services): Promise<boolean> {
  try {
    const command = { type: 'cancel', by: actorOf(call.principal), reason: 'The session was closed' } as const;
    return (await services.plans.plan(org, planId).command(command))?.ok === true;
  } catch (error) {
    if (error instanceof StorageUnavailable) return false;
    throw error;
  }
}

function sessionViewOf({ id, actorName, status, createdAt, closedAt }: SessionRecord): SessionView {
  return { session_id: id, actor_name: actorName, status, created_at: createdAt, closed_at: closedAt };
}

const nowOf = (services: Services): string => new Date(services.clock.nowMs()).toISOString();
