/**
 * The kill switch as a plan sees it (design section 7): from the row on that records it, no effect is authorised, free ones included. What
 * was sent settles, what was asked stays asked; with the last switch cleared the plan goes on where it stood.
 */
import { maskText } from '../../audit/mask.ts';
import { haltRefusal } from '../../halt-word.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Answer, Command, CreateCommand } from '../commands.ts';
import { findApproval, type HaltLevel, haltOf, type Plan, pendingApprovals } from '../plan.ts';
import type { Work } from '../work.ts';
import { openGateIfDue, redecide } from './calls.ts';

/** Sets a level's switch. Setting it again keeps the first reason; a plan that has ended has nothing left to halt. */
export function haltPlan(work: Work, command: Extract<Command, { type: 'halt' }>): Result<null, Refusal> {
  const plan = work.plan();
  const { level, reason } = command;
  if (isOfAnotherSession(plan, command)) return ok(null);
  if (plan.terminal) return level === 'plan' ? err(ended(plan)) : ok(null);
  if (reason.trim() === '') return err(invalidField('reason', 'must not be blank'));
  const epoch = nextEpoch(plan, level, command.epoch, true);
  // A secret in it would be shown wherever the halt is.
  if (epoch !== null) work.emit('halted', command.by, { level, epoch, reason: maskText(reason), ...whose(plan, level) });
  return ok(null);
}

/** Clears a level's switch. Other levels may still be set. */
export function clearHalt(work: Work, command: Extract<Command, { type: 'clear_halt' }>): Result<null, Refusal> {
  const plan = work.plan();
  const { by, level } = command;
  if (isOfAnotherSession(plan, command)) return ok(null);
  if (plan.terminal) return level === 'plan' ? err(ended(plan)) : ok(null);
  // A node above has checked who may clear its switch.
  if (level === 'plan' && !by.mayApprove)
    return err({ kind: 'forbidden', message: 'only a human with the role approver can clear a halt' });
  const epoch = nextEpoch(plan, level, command.epoch, false);
  if (epoch === null) return ok(null);
  work.emit('halt_cleared', by.actor, { level, epoch, ...whose(plan, level) });
  if (haltOf(work.plan()) === null) resume(work);
  return ok(null);
}

/** The plan was moved while the word was on its way. It reads that of its new session before it acts. */
function isOfAnotherSession(plan: Plan, { level, sessionId }: Extract<Command, { type: 'halt' | 'clear_halt' }>): boolean {
  return level === 'session' && sessionId !== undefined && sessionId !== plan.sessionId;
}

function whose(plan: Plan, level: HaltLevel): { readonly session_id?: string } {
  return level === 'session' ? { session_id: plan.sessionId } : {};
}

/** The epoch to record, or null where the word is old or says what holds already. */
function nextEpoch({ halts }: Plan, level: HaltLevel, given: number | null, sets: boolean): number | null {
  const known = halts.find((each) => each.level === level);
  const isSet = known !== undefined && known.reason !== null;
  // A clearing that overtook its setting is kept too, so that the setting comes too late.
  if (given !== null) return known === undefined || given > known.epoch ? given : null;
  return isSet === sets ? null : (known?.epoch ?? 0) + 1;
}

/** Calls of which nobody is asked anything, since nothing could be decided: their turn is now. */
function resume(work: Work): void {
  const plan = work.plan();
  const pending = pendingApprovals(plan);
  if (pending.some((each) => each.kind === 'next_step')) return;
  const asked = new Set(pending.flatMap((each) => each.callIds));
  const waits = Object.values(plan.calls).filter(
    (call) => !asked.has(call.id) && (call.status === 'asked' || (call.status === 'retrying' && call.retryAt === null)),
  );
  redecide(
    work,
    waits.map((call) => call.id),
  );
  openGateIfDue(work);
}

/** Why a halted plan does not take a command, or null. What ends, answers without effect, or narrows is taken. */
export function haltIssue(plan: Plan, command: Exclude<Command, CreateCommand>): Refusal | null {
  const halt = haltOf(plan);
  if (halt === null || plan.terminal || !wouldAct(plan, command)) return null;
  return haltRefusal(halt, { plan_id: plan.id, phase: plan.phase, state: plan.state });
}

/** Whether a command lets the plan act, if nothing halts it. */
export function wouldAct(plan: Plan, command: Exclude<Command, CreateCommand>): boolean {
  switch (command.type) {
    case 'advance':
    case 'propose':
    case 'retry_call':
    case 'mark_sent':
    case 'execute':
    case 'apply':
      return true;
    case 'answer':
      return isGoAhead(plan, command.answer);
    case 'message':
      // A text beside the data decides nothing by itself, and takes nothing from what the data says.
      return (
        command.answers.some((each) => isGoAhead(plan, each)) ||
        (command.plain?.decision === 'approve' && pendingApprovals(plan).some((each) => each.kind === 'gate'))
      );
    default:
      return false;
  }
}

/** What lets a gate, a call or more of a limit pass. A no, words for the actor and what became of a call that was sent are taken. */
function isGoAhead(plan: Plan, { approvalId, decision }: Pick<Answer, 'approvalId' | 'decision'>): boolean {
  const approval = findApproval(plan, approvalId);
  return (
    decision === 'approve' &&
    approval?.status === 'pending' &&
    (approval.kind === 'gate' || approval.kind === 'call' || approval.kind === 'limit')
  );
}

function ended(plan: Plan): Refusal {
  return invalidState(`the plan is ${plan.state}; there is nothing to halt`, { plan_id: plan.id, phase: plan.phase, state: plan.state });
}
