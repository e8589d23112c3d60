import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import { SYSTEM, type Work } from '../work.ts';

/** Lets a plan that failed, was denied or was given guidance go on from where that makes sense (design section 8, table). */
export function restart(work: Work, reason: string, head: string | null): Result<null, Refusal> {
  const plan = work.plan();
  const aim = plan.state === 'waiting' ? plan.resumeState : plan.state;
  const again = (cursor: typeof plan.cursor, phase: 'strategize' | 'execute', isFresh: boolean): Result<null, Refusal> => {
    work.emit('plan_restarted', SYSTEM, { reason, cursor, fresh_attempt: isFresh, to: { phase, state: 'running' } });
    return ok(null);
  };
  switch (`${plan.phase}/${aim}`) {
    case 'strategize/complete':
      return again(null, 'strategize', false);
    case 'strategize/errored':
      return again(null, 'strategize', true);
    case 'execute/running':
      return plan.step?.kind === 'calls' ? again(plan.step.startCursor, 'execute', false) : ok(null);
    case 'execute/complete':
      return again(plan.cursor, 'execute', false);
    case 'execute/errored':
    case 'execute/constrained':
      return again(plan.step?.startCursor ?? plan.cursor, 'execute', true);
    case 'apply/errored':
      work.emit('plan_restarted', SYSTEM, { reason, cursor: plan.cursor, fresh_attempt: false, to: { phase: 'execute', state: 'complete' } });
      return ok(null);
    case 'apply/constrained':
      if (plan.project === null || head === null) return err(invalidState('the head of the project is not known', { phase: plan.phase, state: plan.state }));
      work.emit('plan_restarted', SYSTEM, {
        reason,
        cursor: null,
        fresh_attempt: true,
        rebase: { ...plan.project, base: head },
        to: { phase: 'strategize', state: 'running' },
      });
      return ok(null);
    default:
      return ok(null);
  }
}
