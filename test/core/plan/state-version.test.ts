import { expect, it } from 'vitest';
import { PLAN_STATE_VERSION } from '../../../src/core/plan/plan.ts';
import { call, PlanDriver, sha256 } from './plan-driver.ts';

/** Every member of a value with the members inside it; lists by what is in them. */
function pathsOf(value: unknown, at = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => pathsOf(each, `${at}[]`));
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, `${at}.${name}`));
}

/**
 * A stored state is only read by the version that wrote it. Where this fails the shape of the state has changed: raise
 * PLAN_STATE_VERSION, then write the new version and digest here.
 */
it('the version of the stored state changes with its shape', () => {
  const driver = PlanDriver.run(
    { guardrails: { tool_budget: 1 } },
    { execute: [{ calls: [call('model.ask'), call('files.read')] }, { calls: [call('model.ask', { n: 1 })] }] },
  );
  driver.halt();
  const shape = [...new Set(pathsOf(driver.plan))].sort();
  expect({ version: PLAN_STATE_VERSION, shape: sha256(shape.join('\n')).slice(0, 16) }).toEqual({ version: 2, shape: '50f5c66c2955a1bc' });
});
