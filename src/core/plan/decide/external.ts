/** What only external plans take: their calls, their checks, and their end. */
import { digestOf } from '../../digest.ts';
import { effectiveLimit, type Guardrails } from '../../guard-policy.ts';
import { withRevision } from '../../guard-revision.ts';
import { spentMicroUsd } from '../../ledger.ts';
import { addMicroUsd } from '../../money.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Command } from '../commands.ts';
import type { EventBodies } from '../events.ts';
import { elapsedMs } from '../evolve.ts';
import type { ExternalAnswer, ExternalAnswers, ExternalCommand, ExternalCommands } from '../external/commands.ts';
import { isExternal, openAuthorizations } from '../external/external.ts';
import { importCounters } from '../external/import-issue.ts';
import { haltOf, lockedPolicyOf, type Plan } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { report } from './advance.ts';
import { authorize } from './authorize.ts';
import { warnOnce } from './calls.ts';
import { checkGuard } from './check.ts';
import { endRetention, expireAuthorizations, settleExternal } from './settle-external.ts';

const EXTERNAL_COMMANDS: Readonly<Record<keyof ExternalCommands, true>> = {
  authorize: true,
  settle_external: true,
  check: true,
  associate: true,
  import_state: true,
  complete: true,
};

export function isExternalCommand(command: Command): command is ExternalCommand {
  return Object.hasOwn(EXTERNAL_COMMANDS, command.type);
}

/** What the loop asks of a plan that it runs itself; nobody asks it of a plan whose executor is outside. */
const OF_THE_LOOP: ReadonlySet<Command['type']> = new Set(['advance', 'propose', 'retry_call', 'mark_sent', 'settle', 'finish_apply']);

/** Why this command is not for this plan, whoever asks. */
export function wrongExecutor(plan: Plan, command: Command): Refusal | null {
  if (isExternalCommand(command)) {
    return isExternal(plan)
      ? null
      : invalidState('the plan is run here, so its calls are decided as they are made; this is for plans whose executor is outside', {
          plan_id: plan.id,
        });
  }
  const isForLoop =
    OF_THE_LOOP.has(command.type) || (command.type === 'message' && command.answers.length === 0 && !plan.terminal && !isAsking(plan));
  if (!isExternal(plan) || !isForLoop) return null;
  return invalidState('the executor of this plan is outside: nobody here proposes, performs or takes guidance', {
    plan_id: plan.id,
    phase: plan.phase,
    state: plan.state,
  });
}

function isAsking(plan: Plan): boolean {
  return plan.state === 'waiting';
}

export function decideExternal(work: Work, command: ExternalCommand): Result<ExternalAnswer, Refusal> {
  endRetention(work);
  const plan = work.plan();
  if (command.type === 'settle_external') return settleExternal(work, command);
  if (plan.terminal) {
    return err(invalidState(`the plan is ${plan.state}; open a new one`, { plan_id: plan.id, phase: plan.phase, state: plan.state }));
  }
  expireAuthorizations(work);
  switch (command.type) {
    case 'authorize':
      return authorize(work, command);
    case 'check':
      return checkGuard(work, command);
    case 'associate':
      return associate(work, command);
    case 'import_state':
      return importState(work, command);
    case 'complete':
      return complete(work, command);
  }
}

/** The session whose budget the plan spends from; what is spent already belongs to the one it was spent in. */
function associate(work: Work, { by, sessionId }: ExternalCommands['associate']): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.sessionId === sessionId) return ok(null);
  // Else whoever is halted would walk out of the halt.
  const halt = haltOf(plan);
  if (halt !== null)
    return err(
      invalidState(`the ${halt.level} is halted: ${halt.reason}. Clear the halt first.`, {
        plan_id: plan.id,
        halted: { level: halt.level },
      }),
    );
  if (spentMicroUsd(plan.ledger) > 0 || plan.ledger.reservations.length > 0) {
    return err(
      invalidState(`the plan has spent money in session '${plan.sessionId}' and stays there`, {
        plan_id: plan.id,
        session_id: plan.sessionId,
      }),
    );
  }
  work.emit('session_associated', by, { session_id: sessionId, previous: plan.sessionId });
  return ok(null);
}

/** Takes over what another service has kept of the plan, if nothing has happened in it here. */
function importState(work: Work, { by, state }: ExternalCommands['import_state']): Result<ExternalAnswers['import_state'], Refusal> {
  const plan = work.plan();
  if (plan.seq > 1)
    return err(
      invalidState('something has happened in this plan already; load into one that was just opened', { plan_id: plan.id, seq: plan.seq }),
    );
  const taken = importCounters(state, work.context.now);
  if ('issue' in taken) return err(invalidField(`metadata.${taken.issue.field}`, taken.issue.message, { plan_id: plan.id }));
  const { allowed, denied, stepCount, spentMicroUsd, maxEntries } = taken.counters;
  const guards = tightened(work, plan, state.guardrails);
  const policy = guards?.policy ?? plan.policy;
  const capMicroUsd = effectiveLimit(policy.planCapMicroUsd, plan.ledger.grantedMicroUsd) ?? Number.MAX_SAFE_INTEGER;
  const settledMicroUsd = Math.min(spentMicroUsd, capMicroUsd);
  work.emit('imported', by, {
    step_count: stepCount,
    worked_ms: state.startTime === null ? 0 : elapsedMs(state.startTime, plan.createdAt),
    start_time: state.startTime,
    settled_micro_usd: settledMicroUsd,
    overrun_micro_usd: addMicroUsd(spentMicroUsd, -settledMicroUsd),
    trail: work.store(state.entries),
    entries: state.entries.length,
    allowed,
    denied,
    ...(maxEntries === null ? {} : { max_entries: maxEntries }),
    ...(guards === null ? {} : { guards }),
  });
  warnOnce(work);
  return ok({ entries: state.entries.length, stepCount, spentMicroUsd });
}

/** The strictest of what is locked into the plan and what came with the state; null where that changes nothing. */
function tightened(work: Work, plan: Plan, own: Guardrails): NonNullable<EventBodies['imported']['guards']> | null {
  const locked = lockedPolicyOf(plan);
  const policy = withRevision(locked, own);
  const digest = digestOf(work.context.sha256, policy);
  return digest === plan.policyDigest ? null : { own, locked, policy, policy_digest: digest };
}

/** The executor says that it is done. What is still asked is withdrawn; what is still open has to be settled first, or the end would be no end. */
function complete(work: Work, { by }: ExternalCommands['complete']): Result<null, Refusal> {
  const plan = work.plan();
  const open = openAuthorizations(plan).map((call) => `${plan.id}.${call.id}`);
  if (open.length > 0) {
    const message = `${open.length} authorisation(s) are open; settle them first, or cancel the plan`;
    return err(invalidState(message, { plan_id: plan.id, open: open.slice(0, 20) }));
  }
  work.emit('execution_completed', by, { steps: plan.stepsUsed, to: { phase: 'execute', state: 'complete' } });
  work.emit('plan_applied', SYSTEM, {
    head: null,
    previous: null,
    report: report(work, null),
    to: { phase: 'apply', state: 'applied', terminal: true },
  });
  return ok(null);
}
