/** Approvals that are none: whatever is wrong with one, nothing runs and exactly one refusal is in the log. */
import { expect, it } from 'vitest';
import type { Approval } from '../../../src/core/plan/plan.ts';
import { AGENT, ASKER, BOSS, call, OPERATOR, PlanDriver, refusalOf, type Script } from './plan-driver.ts';

const SCRIPT: Script = { execute: [{ calls: [call('files.write', { path: 'a' })] }, { calls: [call('files.write', { path: 'b' })] }] };
const WEEK_MS = 7 * 86_400_000;

/** The plan at its second call, with the approval of the first one used up. */
function atSecond(): { readonly driver: PlanDriver; readonly used: Approval; readonly approval: Approval } {
  const driver = PlanDriver.run({ guardrails: { tool_denylist: ['files.write'] } }, SCRIPT);
  const used = driver.only;
  driver.approve();
  driver.run();
  return { driver, used, approval: driver.only };
}

const PROOFS: readonly (readonly [string, (state: ReturnType<typeof atSecond>) => ReturnType<PlanDriver['approve']>])[] = [
  ['with a digest that was made up', ({ driver, approval }) => driver.approve(approval, { digest: 'f'.repeat(64) })],
  ['without a digest', ({ driver, approval }) => driver.approve(approval, { digest: null })],
  [
    'under an id that was never given out',
    ({ driver, approval }) => driver.answer(`${driver.plan.id}.99999`, 'approve', { digest: approval.digest }),
  ],
  ['that is played again', ({ driver, used }) => driver.approve(used)],
  ['that has expired', ({ driver, approval }) => driver.wait(WEEK_MS).approve(approval)],
  ['of another step', ({ driver, used, approval }) => driver.approve(approval, { digest: used.digest })],
  [
    'of the same call with other arguments',
    ({ driver, approval }) => {
      const other = PlanDriver.run(
        { guardrails: { tool_denylist: ['files.write'] } },
        { execute: [{ calls: [call('files.write', { path: 'c' })] }] },
      );
      return driver.approve(approval, { digest: other.only.digest });
    },
  ],
  [
    'from before the policy was changed',
    ({ driver, approval }) => {
      driver.set({ max_steps: 9 });
      return driver.approve(approval);
    },
  ],
  ['of somebody who has lost the right', ({ driver, approval }) => driver.approve(approval, { by: { ...BOSS, mayApprove: false } })],
  ['of an operator', ({ driver, approval }) => driver.approve(approval, { by: OPERATOR })],
  ['of an agent', ({ driver, approval }) => driver.approve(approval, { by: AGENT })],
  [
    'of whoever started the plan, where they are separate',
    ({ driver, approval }) => driver.approve(approval, { by: { ...ASKER, separateRequester: true } }),
  ],
];

it.each(PROOFS)('an approval %s runs nothing and is one refused entry', (_name, give) => {
  const state = atSecond();
  const { driver } = state;
  const ran = [...driver.tools];
  expect(refusalOf(give(state))).toBeDefined();
  driver.run();
  expect(driver.tools).toEqual(ran);
  expect(driver.rowsOf('approval_refused')).toHaveLength(1);
  expect(driver.trail.filter(({ eventType }) => eventType === 'approval_refused')).toHaveLength(1);
  expect(driver.callStates()).not.toContain('authorised');
});

it('of two approvals at the same instant the first runs the call once, the second is one refused entry', () => {
  const { driver, approval } = atSecond();
  expect(driver.approve(approval).ok).toBe(true);
  expect(refusalOf(driver.approve(approval, { by: ASKER })).details).toMatchObject({ status: 'approved' });
  driver.run();
  expect(driver.tools).toEqual(['files.write', 'files.write']);
  expect(driver.rowsOf('approval_refused')).toHaveLength(1);
  expect(driver.rowsOf('approval_decided')).toHaveLength(2);
});
