import type { HaltView } from '../../api/halt.ts';
import { maskText } from '../../core/audit/mask.ts';
import { commandOfWord, newestWords } from '../../core/halt-word.ts';
import type { Caller } from '../../core/plan/commands.ts';
import type { HaltLevel, HaltWord } from '../../core/plan/plan.ts';
import type { PlanSnapshot } from '../../core/plan/snapshot.ts';
import { hasRole } from '../../core/principal.ts';
import { invalidField, notFound, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { actorOf, approvingCaller } from '../caller.ts';
import type { CallContext, HandlerCall, Handlers } from '../handler.ts';
import type { HaltRef } from '../ports.ts';
import { type Pushed, pushToPlans } from '../push-to-plans.ts';
import type { Services } from '../services.ts';
import { commandPlan, readPlan } from './plan-handlers.ts';

/**
 * The kill switch (design section 7). A plan's own counts for itself. That of a session or the org is a durable word of its node; the answer
 * says that it is done only when every live plan has acknowledged it, names the others, and the node tells those until they have.
 */
export const haltHandlers = {
  '_cleveragents/halt/set': async (params, call, services) => {
    const { reason } = params;
    if (reason.trim() === '') return err(invalidField('reason', 'must not be blank'));
    const target = await targetOf(params, call, services);
    if (!target.ok) return target;
    const of = target.value;
    const by = actorOf(call.principal);
    if (of.kind === 'plan') {
      const announced = await announceOfPlan(of.id, true, call, services);
      if (!announced.ok) return announced;
      const halted = await commandPlan(of.id, call, services, { type: 'halt', by, level: 'plan', epoch: null, reason });
      return halted.ok ? ok({ ...planViewOf(halted.value, []), ...ALONE }) : halted;
    }
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    if (of.kind === 'org' && !caller.value.mayApprove) return err(needs('approver', 'halting the org'));
    return change(of, { reason, by }, call, services);
  },

  '_cleveragents/halt/clear': async (params, call, services) => {
    const target = await targetOf(params, call, services);
    if (!target.ok) return target;
    const of = target.value;
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    if (of.kind === 'plan') {
      if (!caller.value.mayApprove) return err(needs('approver', 'clearing a halt of the plan'));
      const announced = await announceOfPlan(of.id, false, call, services);
      if (!announced.ok) return announced;
      const cleared = await commandPlan(of.id, call, services, { type: 'clear_halt', by: caller.value, level: 'plan', epoch: null });
      return cleared.ok ? ok({ ...planViewOf(cleared.value, []), ...ALONE }) : cleared;
    }
    const refused = clearingIssue(of, caller.value, call);
    return refused === null ? change(of, { reason: null, by: caller.value.actor }, call, services) : err(refused);
  },

  '_cleveragents/halt/show': async (params, call, services) => {
    const target = await targetOf(params, call, services);
    if (!target.ok) return target;
    const of = target.value;
    if (of.kind !== 'plan') return ok(viewOf(of, await wordsOf(of, call, services)));
    const read = await readPlan(of.id, call, services);
    if (!read.ok) return read;
    // What was said above and the plan has not heard yet holds for it as well.
    return ok(planViewOf(read.value, await services.halts.current(call.principal.org, read.value.plan.sessionId)));
  },
} satisfies Partial<Handlers>;

type Target = HaltRef | { readonly kind: 'plan'; readonly id: string };

interface TargetParams {
  readonly level: HaltLevel;
  readonly plan_id?: string;
  readonly session_id?: string;
}

/** Exactly the id that the level goes by. */
async function targetOf(params: TargetParams, call: CallContext, services: Services): Promise<Result<Target, Refusal>> {
  const { level, plan_id: planId, session_id: sessionId } = params;
  if (level !== 'plan' && planId !== undefined) return err(invalidField('plan_id', `does not go with the level ${level}`));
  if (level !== 'session' && sessionId !== undefined) return err(invalidField('session_id', `does not go with the level ${level}`));
  switch (level) {
    case 'org':
      return ok({ kind: 'org' });
    case 'plan':
      return planId === undefined ? err(invalidField('plan_id', 'is required at the level plan')) : ok({ kind: 'plan', id: planId });
    case 'session':
      if (sessionId === undefined) return err(invalidField('session_id', 'is required at the level session'));
      return (await services.sessions.get(call.principal.org, sessionId)) === null
        ? err(notFound('session', sessionId))
        : ok({ kind: 'session', id: sessionId });
  }
}

/** What stops everything in the org is lifted by those who run it; what stops a session, by those who decide in it. */
function clearingIssue({ kind }: HaltRef, caller: Caller, { principal }: CallContext): Refusal | null {
  if (!caller.mayApprove) return needs('approver', `clearing a halt of the ${kind}`);
  return kind === 'org' && !hasRole(principal.roles, 'admin') ? needs('admin', 'clearing a halt of the org') : null;
}

function needs(role: 'approver' | 'admin', what: string): Refusal {
  const message = `${what} is for keys of kind human with the role ${role}`;
  return { kind: 'forbidden', message, details: { needed_role: role, needed_kind: 'human' } };
}

/** The word first, then the plans. Repeating it tells them again. */
async function change(
  of: HaltRef,
  { reason, by }: Pick<HaltWord, 'reason' | 'by'>,
  call: HandlerCall,
  services: Services,
): Promise<Result<HaltView, Refusal>> {
  const { org } = call.principal;
  const at = new Date(services.clock.nowMs()).toISOString();
  const sets = reason !== null;
  let word = await services.halts.change(org, of, { reason, by, at, again: true });
  if (isSet(word) !== sets) {
    await call.changing();
    word = await services.halts.change(org, of, { reason, by, at });
  }
  const sessionId = of.kind === 'org' ? null : of.id;
  const pushed: Pushed =
    word === null ? { reached: 0, unreached: [] } : await pushToPlans({ org, sessionId }, commandOfWord(word, sessionId), services);
  const done = pushed.unreached.length === 0;
  if (word !== null && done) await services.halts.told(org, of, word.epoch);
  return ok({
    ...viewOf(of, await wordsOf(of, call, services)),
    done,
    reached: pushed.reached,
    unreached: [...pushed.unreached],
  });
}

const isSet = (word: HaltWord | null): boolean => word !== null && word.reason !== null;

/** A plan that has ended refuses, and one that is halted (or is not) already stays as it is. What it does is in its own log as well. */
async function announceOfPlan(id: string, sets: boolean, call: HandlerCall, services: Services): Promise<Result<null, Refusal>> {
  const read = await readPlan(id, call, services);
  if (!read.ok) return read;
  const { terminal, halts } = read.value.plan;
  const holds = isSet(halts.find(({ level }) => level === 'plan') ?? null) === sets;
  if (!terminal && !holds) await call.changing();
  return ok(null);
}

/** The newest words of the node and of what is above it. */
async function wordsOf(of: HaltRef, call: CallContext, services: Services): Promise<readonly HaltWord[]> {
  const { org } = call.principal;
  if (of.kind === 'session') return services.halts.current(org, of.id);
  const word = await services.halts.show(org, of);
  return word === null ? [] : [word];
}

/** A plan that has answered has been told. */
const ALONE = { done: true, reached: 1, unreached: [] };

function planViewOf({ plan }: PlanSnapshot, above: readonly HaltWord[]): HaltView {
  const { halted, halts } = haltsOf(newestWords([...plan.halts, ...above]));
  return { level: 'plan', plan_id: plan.id, halted, halts };
}

function viewOf(of: HaltRef, words: readonly HaltWord[]): HaltView {
  return { level: of.kind, ...(of.kind === 'session' ? { session_id: of.id } : {}), ...haltsOf(words) };
}

function haltsOf(words: readonly HaltWord[]): Pick<HaltView, 'halted' | 'halts'> {
  const halts = words.flatMap(({ level, epoch, reason, by, at }) =>
    reason === null ? [] : [{ level, reason: maskText(reason), epoch, halted_by: by.id, halted_at: at }],
  );
  return { halted: halts.length > 0, halts };
}
