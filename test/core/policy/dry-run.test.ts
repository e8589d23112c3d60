import { describe, expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import { dryRun, NO_PLAN_FACTS } from '../../../src/core/guards/dry-run.ts';
import { NO_GRANTS } from '../../../src/core/guards/guard.ts';
import { CATALOGUE, PlanDriver } from '../plan/plan-driver.ts';

const deniedBy = (guardrails: Guardrails, writesAtOnce: boolean, tainted = false, toolName = 'write_file'): string | null => {
  const { policy } = PlanDriver.make({ guardrails }).plan;
  const { guards } = dryRun(policy, {
    toolName,
    catalogue: CATALOGUE,
    unknownTools: 'refuse',
    isWrite: null,
    writesAtOnce,
    costMicroUsd: 0,
    operation: null,
    facts: { ...NO_PLAN_FACTS, callsInStep: 0, spentMicroUsd: 0, grants: NO_GRANTS, tainted },
    scope: 'plan',
    gate: null,
  });
  return guards.find(({ allowed }) => !allowed)?.guard ?? null;
};

describe('what all guards would say of a write that goes to the project at once', () => {
  it('is what they say of an apply: it needs a person where an apply does, and leaves the plan', () => {
    expect(deniedBy({ require_approval_for_apply: true }, true)).toBe('write_approval');
    expect(deniedBy({ require_approval_for_apply: true }, false)).toBeNull();
    expect(deniedBy({}, true, true)).toBe('taint');
    expect(deniedBy({}, false, true)).toBeNull();
  });

  it('concerns no call that only reads', () => {
    expect(deniedBy({ require_approval_for_apply: true }, true, true, 'files.read')).toBeNull();
  });
});
