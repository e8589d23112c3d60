/**
 * The decider: `decide(plan, command, context)` gives the rows to commit and the plan after them, or says why not. Pure: the same
 * plan, command and context give the same rows. Some refusals leave a row of their own (an answer that may not be given).
 */
import type { Refusal } from '../refusal.ts';
import { invalidState, notFound } from '../refusal.ts';
import { err, ok, type Result } from '../result.ts';
import type { Command, CreateCommand, Traced } from './commands.ts';
import { advance } from './decide/advance.ts';
import { answerApproval } from './decide/answer.ts';
import { redecide, retryBudget } from './decide/calls.ts';
import { decideExternal, isExternalCommand, wrongExecutor } from './decide/external.ts';
import { bindFloor, reviseGuard } from './decide/guard.ts';
import { clearHalt, haltIssue, haltPlan } from './decide/halt.ts';
import { applyPlan, cancelPlan, createDigest, createPlan, executePlan, finishApply } from './decide/lifecycle.ts';
import { takeMessage } from './decide/message.ts';
import { propose } from './decide/propose.ts';
import { asJson, settleCall } from './decide/settle.ts';
import { extendApproval, tick } from './decide/tick.ts';
import type { LogRow } from './events.ts';
import type { ExternalAnswer, ExternalCommand } from './external/commands.ts';
import type { Plan } from './plan.ts';
import { beginWork, type DecideContext, type Lack, SYSTEM, type Work } from './work.ts';

export interface Decided {
  readonly rows: readonly LogRow[];
  readonly blobs: ReadonlyMap<string, Uint8Array>;
  readonly plan: Plan | null;
  readonly result: Result<null, Refusal>;
  /** What a command of an executor outside is answered, where it was not refused. */
  readonly answer?: ExternalAnswer;
  /** Nothing was decided for want of this; to be made again with it (`DecideContext.money`). */
  readonly lack?: Lack;
}

export function decide(plan: Plan | null, command: Command & Traced, context: DecideContext): Decided {
  if (command.type === 'create') return decideCreate(plan, command, context);
  if (plan === null) return { rows: [], blobs: new Map(), plan, result: err(notFound('plan', '')) };
  const misdirected = wrongExecutor(plan, command);
  if (misdirected !== null) return { rows: [], blobs: new Map(), plan, result: err(misdirected) };
  const work = beginWork(plan, { org: plan.org, planId: plan.id }, context, command);
  if (isExternalCommand(command)) {
    const answer = decideExternal(work, command);
    const lacking = lackOf(work, plan);
    if (lacking !== null) return lacking;
    const decided = { rows: work.rows, blobs: work.blobs, plan: work.plan() };
    return answer.ok ? { ...decided, result: ok(null), answer: answer.value } : { ...decided, result: answer };
  }
  const result = run(work, command);
  const lacking = lackOf(work, plan);
  if (lacking !== null) return lacking;
  // Several answers in one message count together or not at all: only that they were refused is kept.
  if (!result.ok && command.type === 'message' && command.answers.length > 1) {
    const instead = beginWork(plan, { org: plan.org, planId: plan.id }, context, command);
    const ids = command.answers.map((answer) => answer.approvalId).join(', ');
    if (!plan.terminal)
      instead.emit('approval_refused', command.by.actor, { approval_id: ids, decision: 'several', reason: result.error.message });
    return { rows: instead.rows, blobs: instead.blobs, plan: instead.plan(), result };
  }
  return { rows: work.rows, blobs: work.blobs, plan: work.plan(), result };
}

/** A decision that lacks money changes nothing. Whoever cannot wait for it is told to come again. */
function lackOf(work: Work, plan: Plan): Decided | null {
  const lack = work.lack();
  return lack === null ? null : { rows: [], blobs: new Map(), plan, result: err(budgetBusy(plan)), lack };
}

/** "Budget busy": says nothing of whether a budget is used up. */
function budgetBusy(plan: Plan): Refusal {
  return {
    kind: 'unavailable',
    message: 'the budgets above the plan are busy; try again',
    retryAfterSeconds: 1,
    details: { plan_id: plan.id },
  };
}

/** Creating is done once: the same again answers the plan that is there. */
function decideCreate(plan: Plan | null, command: CreateCommand & Traced, context: DecideContext): Decided {
  const work = beginWork(plan, { org: command.org, planId: command.planId }, context, command);
  if (plan !== null) {
    const isSame = plan.createDigest === createDigest(work, command);
    const result = isSame
      ? ok(null)
      : err<Refusal>({
          kind: 'already_exists',
          message: 'a plan with this id exists',
          entity: 'plan',
          id: plan.id,
          details: { plan_id: plan.id },
        });
    return { rows: [], blobs: new Map(), plan, result };
  }
  const result = createPlan(work, command);
  return { rows: work.rows, blobs: work.blobs, plan: work.plan(), result };
}

function run(work: Work, command: Exclude<Command, CreateCommand | ExternalCommand>): Result<null, Refusal> {
  const halted = haltIssue(work.plan(), command);
  if (halted !== null) return err(halted);
  switch (command.type) {
    case 'advance':
      advance(work, command.diff, command.head, command.outputs);
      return ok(null);
    case 'propose':
      return propose(work, command);
    case 'retry_call':
      return retryCall(work, command.callId);
    case 'mark_sent':
      return markSent(work, command);
    case 'settle':
      return settleCall(work, command.callId, command.attempt, command.outcome);
    case 'finish_apply':
      return finishApply(work, command);
    case 'tick':
      tick(work);
      return ok(null);
    case 'execute':
      return executePlan(work, command);
    case 'apply':
      return applyPlan(work, command);
    case 'cancel':
      return cancelPlan(work, command);
    case 'answer':
      return answerApproval(work, command.by, command.answer);
    case 'extend':
      return extendApproval(work, command);
    case 'message':
      return takeMessage(work, command);
    case 'revise_guard':
      return reviseGuard(work, command);
    case 'apply_floor':
      return bindFloor(work, command);
    case 'halt':
      return haltPlan(work, command);
    case 'clear_halt':
      return clearHalt(work, command);
    case 'record_push':
      work.emit('push_config_changed', command.by, command.change);
      return ok(null);
    case 'retry_budget':
      retryBudget(work);
      return ok(null);
  }
}

/** A retry whose time has come goes through all guards again. */
function retryCall(work: Work, callId: string): Result<null, Refusal> {
  const plan = work.plan();
  const call = plan.calls[callId];
  const isDue = call?.status === 'retrying' && call.retryAt !== null && call.retryAt <= work.context.now && !plan.terminal;
  if (!isDue) return err(invalidState(`call ${callId} is not due`));
  redecide(work, [callId]);
  return ok(null);
}

/**
 * The marker before an effect outside: once, and only for a live plan. A write at once is marked with all that is sent, and anew for
 * another head, after the project has said that nothing was done for the one before.
 */
function markSent(work: Work, { callId, attempt, write }: Extract<Command, { type: 'mark_sent' }>): Result<null, Refusal> {
  const plan = work.plan();
  const call = plan.calls[callId];
  const atOnce = call?.atOnce === true;
  const isDue = call?.status === 'authorised' || (atOnce && call?.status === 'sent');
  if (plan.terminal || call === undefined || !isDue || call.attempt !== attempt || atOnce !== (write !== undefined))
    return err(invalidState(`call ${callId} may not be sent`));
  if (write === undefined) {
    work.emit('call_sent', SYSTEM, { call_id: callId, attempt });
    return ok(null);
  }
  const { head, changes, before, taint, reportedUsd, result, blobs } = write;
  for (const bytes of blobs.values()) work.storeBytes(bytes);
  work.emit('call_sent', SYSTEM, {
    call_id: callId,
    attempt,
    write: { commit_id: call.idempotencyKey, head, changes, before, result: work.store(result), reported: asJson(reportedUsd), taint },
  });
  return ok(null);
}
