import type { JsonValue } from '../../json.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Plan } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';

/**
 * Lets a plan that failed, was denied or was given guidance go on from where that makes sense (design section 8, table). Never while
 * calls are open: those are answered or settled in their step, so that nothing runs twice and no reservation is forgotten.
 */
export function restart(work: Work, reason: string, head: string | null): Result<null, Refusal> {
  const plan = work.plan();
  const aim = plan.state === 'waiting' ? plan.resumeState : plan.state;
  const again = (cursor: JsonValue, phase: 'strategize' | 'execute', isFresh: boolean): Result<null, Refusal> => {
    work.emit('plan_restarted', SYSTEM, { reason, cursor, fresh_attempt: isFresh, to: { phase, state: 'running' } });
    return ok(null);
  };
  switch (`${plan.phase}/${aim}`) {
    case 'strategize/running':
    case 'execute/running':
      // A question that got no answer is asked again; without it the actor would go on as if it had one.
      if (plan.step?.kind !== 'ask') return ok(null);
      return again(plan.step.startCursor, plan.phase === 'strategize' ? 'strategize' : 'execute', false);
    case 'strategize/complete':
      return again(null, 'strategize', false);
    case 'strategize/errored':
      return again(null, 'strategize', true);
    case 'execute/complete':
      return again(plan.cursor, 'execute', false);
    case 'execute/errored':
    case 'execute/constrained':
      return again(retryCursor(plan), 'execute', true);
    case 'apply/errored':
      work.emit('plan_restarted', SYSTEM, {
        reason,
        cursor: plan.cursor,
        fresh_attempt: false,
        to: { phase: 'execute', state: 'complete' },
      });
      return ok(null);
    case 'apply/constrained': {
      const base = head ?? lastKnownHead(plan);
      if (plan.project === null || base === null)
        return err(invalidState('the head of the project is not known', { phase: plan.phase, state: plan.state }));
      work.emit('plan_restarted', SYSTEM, {
        reason,
        cursor: null,
        fresh_attempt: true,
        rebase: { ...plan.project, base },
        to: { phase: 'strategize', state: 'running' },
      });
      return ok(null);
    }
    default:
      return ok(null);
  }
}

/** A step that failed or was refused is done again from its start; after one that went well the actor goes on. */
function retryCursor({ step, cursor, results }: Plan): JsonValue {
  if (step === null) return cursor;
  const result = results.find((each) => each.stepId === step.id);
  const isDone = step.kind === 'other' && (step.callIds.length === 0 || result?.status === 'succeeded');
  return isDone ? cursor : step.startCursor;
}

/** The head that a moved project was found at, as the gate about going back has kept it. If it has moved on, the next apply says so. */
export function lastKnownHead(plan: Plan): string | null {
  const asked = plan.approvals.findLast((each) => each.gate === 'access_network');
  const head = asked?.subject.details?.['head'];
  return typeof head === 'string' ? head : null;
}
