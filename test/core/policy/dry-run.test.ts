import { describe, expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import { type DryRun, dryRun, NO_PLAN_FACTS } from '../../../src/core/guards/dry-run.ts';
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
    about: null,
    isStrategy: false,
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

describe('what the arguments say', () => {
  const asked = (about: DryRun['about'], rest: Partial<DryRun> = {}, guardrails: Guardrails = {}) =>
    dryRun(PlanDriver.make({ guardrails }).plan.policy, {
      toolName: 'files.write',
      catalogue: CATALOGUE,
      unknownTools: 'refuse',
      isWrite: null,
      writesAtOnce: false,
      costMicroUsd: 0,
      operation: null,
      about,
      isStrategy: false,
      facts: { ...NO_PLAN_FACTS, callsInStep: 0, spentMicroUsd: 0, grants: NO_GRANTS },
      scope: 'plan',
      gate: null,
      ...rest,
    });
  const FIT = { issues: [], protectedPaths: [] };

  it('is judged: protected paths ask, and what does not fit the schema is refused for good', () => {
    expect(asked(FIT)).toMatchObject({ allowed: true });
    expect(asked({ ...FIT, protectedPaths: ['.env'] })).toMatchObject({ allowed: false, requiresApproval: true });
    const unfit = asked({ ...FIT, issues: [{ field: 'path', message: 'is required' }] });
    expect(unfit).toMatchObject({ allowed: false, requiresApproval: false, reason: 'Invalid arguments: path: is required' });
    expect(unfit.guards[0]).toMatchObject({ guard: 'arguments', allowed: false });
  });

  it('a write that would be in the project at once is refused while the strategy is made', () => {
    expect(asked(FIT, { writesAtOnce: true })).toMatchObject({ allowed: true });
    expect(asked(FIT, { writesAtOnce: true, isStrategy: true })).toMatchObject({
      allowed: false,
      requiresApproval: false,
      reason: expect.stringContaining('while the strategy is made'),
    });
  });
});
