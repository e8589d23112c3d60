/** What a plan gets when it is made: its profile by level, and the policy that everything above it combines to. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ParamsInputOf } from '../../src/api/operations.ts';
import { type StartRequest, startPlan } from '../../src/app/start-plan.ts';
import { BUILTIN_PROFILE_NAMES, PROFILE_LEVELS } from '../../src/core/profile.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const LEVELS = PROFILE_LEVELS.filter((level) => level !== 'default');
type SetLevel = (typeof LEVELS)[number];
const BY_LEVEL: Readonly<Record<SetLevel, string>> = {
  plan: 'supervised',
  action: 'cautious',
  project: 'acme/project',
  global: 'trusted',
  environment: 'review',
};

/** An action and a project that name the profiles given, and the request of a plan. Names are stored as they are: nothing checks them on the way. */
async function arrange(names: { readonly [level in SetLevel]?: string }): Promise<Parameters<typeof use>[0]> {
  const { config, actions } = service.services;
  await admin.call('_cleveragents/project/create', { name: 'web' });
  const at = '2026-01-01T00:00:00.000Z';
  const body = {
    ...{ name: 'go', description: 'Goes', actor: 'scripted/steps', apply: 'project', execute: [{ say: 'Hello' }] },
    ...(names.action === undefined ? {} : { automation_profile: names.action }),
  };
  await actions.add({ org: 'acme', name: 'go', version: 1, body, createdAt: at, updatedAt: at });
  if (names.project !== undefined) await config.set('acme', 'project:web', 'core.automation-profile', names.project);
  if (names.global !== undefined) await config.set('acme', 'org', 'core.automation-profile', names.global);
  return {
    ...{ action_name: 'go', project: 'web' },
    ...(names.plan === undefined ? {} : { automation_profile: names.plan }),
    ...(names.environment === undefined ? {} : { environment_profile: names.environment }),
  };
}
const use = (params: ParamsInputOf<'_cleveragents/plan/use'>) => admin.call('_cleveragents/plan/use', params);
const planCount = async () => (await admin.call('_cleveragents/plan/list', {})).plans.length;

describe('the profile of a plan', () => {
  const combinations = Array.from({ length: 2 ** LEVELS.length }, (_, mask) =>
    LEVELS.filter((_level, index) => (mask & (1 << index)) !== 0),
  );

  it.each(combinations.map((set) => [set.join(', ') || 'nothing', set] as const))(
    'with %s set is that of the first level',
    async (_text, set) => {
      await admin.call('_cleveragents/profile/add', { profile: { name: 'acme/project', extends: 'auto', edit_code: 0.25 } });
      const params = await arrange(Object.fromEntries(set.map((level) => [level, BY_LEVEL[level]])));
      const request: StartRequest = {
        ...{ actionName: 'go', arguments: undefined, project: 'web', input: '', message: null, idempotency: null, fieldPrefix: '' },
        ...{ automationProfile: params.automation_profile, environmentProfile: params.environment_profile },
      };
      const started = await startPlan(request, admin.principal, service.services);
      if (!started.ok) throw new Error(started.error.message);
      const winner = set[0];
      const expected = winner === undefined ? { name: 'manual', level: 'default' } : { name: BY_LEVEL[winner], level: winner };
      const { digest } = await admin.call('_cleveragents/profile/show', { name: expected.name });
      expect(started.value.plan.profile).toMatchObject({ ...expected, digest, document: { name: expected.name } });

      // The same in every answer that shows it.
      const plan_id = started.value.plan.id;
      expect((await admin.call('_cleveragents/plan/status', { plan_id })).profile).toEqual({ ...expected, digest });
      expect(await admin.call('_cleveragents/plan/profile/show', { plan_id })).toMatchObject({ ...expected, digest });
    },
  );

  it.each(LEVELS)('that level %s names and nobody has is refused with the names there are, and no plan is made', async (level) => {
    await admin.call('_cleveragents/profile/add', { profile: { name: 'acme/own' } });
    const other = await service.caller('other');
    await other.call('_cleveragents/profile/add', { profile: { name: 'balancd' } });
    const params = await arrange({ [level]: 'balancd' });
    const refusal = await admin.refused('_cleveragents/plan/use', params);
    const field = level === 'environment' ? 'environment_profile' : 'automation_profile';
    expect(refusal).toMatchObject({
      ...{ kind: 'invalid', issues: [{ field }] },
      details: { profile: 'balancd', level, valid_names: [...BUILTIN_PROFILE_NAMES, 'acme/own'] },
    });
    for (const name of [...BUILTIN_PROFILE_NAMES, 'acme/own', `level ${level}`]) expect(refusal.message).toContain(name);
    expect(await planCount()).toBe(0);
    expect((await admin.call('session.list', {})).sessions).toEqual([]);
  });

  it.each(['Manual', ' auto', '__proto__', 'constructor', 'acme/own '])('is not guessed from %j', async (name) => {
    expect(await admin.refused('_cleveragents/plan/use', { ...(await arrange({})), automation_profile: name })).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'automation_profile' }],
    });
  });

  it('stays locked: updates and deletion of the profile and changed settings reach new plans only', async () => {
    await admin.call('_cleveragents/profile/add', { profile: { name: 'own', extends: 'auto', edit_code: 0.5 } });
    const params = await arrange({ project: 'own' });
    const { plan_id } = await use(params);
    const before = await admin.call('_cleveragents/plan/profile/show', { plan_id });
    await admin.call('_cleveragents/profile/update', { name: 'own', profile: { edit_code: 1 } });
    const { plan_id: second } = await use(params);
    expect((await admin.call('_cleveragents/plan/profile/show', { plan_id: second })).document).toMatchObject({ edit_code: 1 });
    await admin.call('_cleveragents/config/set', { scope: 'project', project: 'web', key: 'core.automation-profile', value: null });
    await admin.call('_cleveragents/profile/delete', { name: 'own' });
    expect(await admin.call('_cleveragents/plan/profile/show', { plan_id })).toEqual(before);
    expect(before.document).toMatchObject({ name: 'own', edit_code: 0.5 });
    // What names a profile that is not there makes no plans, however it came to name it; it does not fall back.
    await service.services.config.set('acme', 'project:web', 'core.automation-profile', 'own');
    expect(await admin.refused('_cleveragents/plan/use', params)).toMatchObject({ kind: 'invalid', details: { level: 'project' } });
  });

  it("is shown with what binds beside it: the action's where an agent chose another, and the policy floor; a preflight says the same", async () => {
    const agent = await service.caller('acme', { kind: 'agent', roles: ['operator'] });
    await admin.call('_cleveragents/org/policy/set', { policy: { threshold_minima: { select_tool: 0.9 } } });
    const params = { ...(await arrange({ action: 'cautious' })), automation_profile: 'full-auto' };
    const thresholdsOf = (shown: { readonly thresholds: readonly { readonly name: string }[] | null }) =>
      Object.fromEntries((shown.thresholds ?? []).map(({ name, ...rest }) => [name, rest]));
    const asked = await agent.call('_cleveragents/plan/preflight', params);
    const { plan_id } = await agent.call('_cleveragents/plan/use', params);
    const shown = await agent.call('_cleveragents/plan/profile/show', { plan_id });
    expect(shown.name).toBe('full-auto');
    expect(thresholdsOf(shown)).toMatchObject({
      edit_code: { value: 0, effective: 0.7, tightened: true },
      select_tool: { value: 0, effective: 0.9, tightened: true },
    });
    const { policy } = await agent.call('_cleveragents/plan/guard/show', { plan_id });
    expect(shown.effective).toEqual(policy);
    expect(shown.effective).toMatchObject({ safety: { require_sandbox: true, allow_unsafe_tools: false } });
    expect(asked).toMatchObject({ thresholds: shown.thresholds, effective: shown.effective });
    // A person's choice counts as it is, and only the floor binds beside it.
    const own = await admin.call('_cleveragents/plan/use', params);
    expect(thresholdsOf(await admin.call('_cleveragents/plan/profile/show', { plan_id: own.plan_id }))).toMatchObject({
      edit_code: { value: 0, effective: 0, tightened: false },
      select_tool: { value: 0, effective: 0.9, tightened: true },
    });
  });

  it('that no longer reads is refused, not repaired', async () => {
    const at = '2026-01-01T00:00:00.000Z';
    const old = {
      org: 'acme',
      name: 'old',
      version: 1,
      document: { name: 'old' },
      defaulted: [],
      createdAt: at,
      savedAt: at,
      savedBy: 'k',
    };
    await service.services.profiles.save(old);
    expect((await admin.refused('_cleveragents/plan/use', await arrange({ plan: 'old' }))).message).toContain("stored profile 'old'");
    expect(await planCount()).toBe(0);
  });

  it('of an action is checked when the action is added, own profiles included', async () => {
    const action = { name: 'a', description: 'A', actor: 'scripted/steps', execute: [{ say: 'Hello' }], automation_profile: 'own' };
    const refusal = await admin.refused('_cleveragents/action/add', { action });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'action.automation_profile' }] });
    await admin.call('_cleveragents/profile/add', { profile: { name: 'own' } });
    await admin.call('_cleveragents/action/add', { action });
  });
});

/** The guard in force, as guard/show answers it. */
async function guardOf(plan_id: string) {
  const { limits, policy, digest } = await admin.call('_cleveragents/plan/guard/show', { plan_id });
  return {
    policy,
    digest,
    of: (name: string) => limits.filter((limit) => limit.name === name).map(({ value, origin }) => [value, origin]),
  };
}

describe('the policy of a plan', () => {
  it('is the strictest of floor, settings of org and project, profile, action and call, and says where each part is from', async () => {
    await admin.call('_cleveragents/profile/add', { profile: { name: 'own', extends: 'auto', guard: { tool_denylist: ['by.profile'] } } });
    const params = await arrange({});
    await admin.call('_cleveragents/org/policy/set', { policy: { guardrails: { tool_denylist: ['by.org'], max_steps: 50 } } });
    const set = (key: string, value: unknown, place: object = {}) =>
      admin.call('_cleveragents/config/set', { key, value, ...place } as ParamsInputOf<'_cleveragents/config/set'>);
    await set('guardrails.tool_denylist', ['by.config']);
    await set('guardrails.max_steps', 40);
    await set('guardrails.actor_limits.max_retries_per_failure', 1);
    await set('guardrails.tool_denylist', ['by.project'], { scope: 'project', project: 'web' });
    await set('guardrails.max_steps', 30, { scope: 'project', project: 'web' });
    const guardrails = { tool_denylist: ['by.plan'], max_steps: 35 };
    const { plan_id } = await use({ ...params, automation_profile: 'own', guardrails });
    const guard = await guardOf(plan_id);
    expect(guard.of('tool_denylist').toSorted()).toEqual([
      ['by.config', 'org_config'],
      ['by.org', 'org'],
      ['by.plan', 'plan'],
      ['by.profile', 'profile'],
      ['by.project', 'project'],
    ]);
    expect(guard.of('max_steps')).toEqual([[30, 'project (max_steps)']]);
    expect(guard.of('max_retries_per_failure')).toEqual([[1, 'org_config (max_retries_per_failure)']]);

    // Settings of a project bind its own plans only.
    const { plan_id: alone } = await use({ action_name: 'go', automation_profile: 'own', guardrails });
    expect((await guardOf(alone)).of('max_steps')).toEqual([[35, 'plan (max_steps)']]);
  });

  it('takes nothing from a setting that was removed', async () => {
    const params = await arrange({});
    await admin.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 0 });
    await admin.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: null });
    expect((await guardOf((await use(params)).plan_id)).of('max_steps')).toEqual([]);
  });

  it('cannot be made from a setting or a floor that no longer reads: no plan without its limits', async () => {
    const params = await arrange({});
    await service.services.config.set('acme', 'org', 'guardrails.max_steps', 'many');
    expect(await admin.refused('_cleveragents/plan/use', params)).toMatchObject({ issues: [{ field: 'guardrails.max_steps' }] });
    await service.services.config.set('acme', 'org', 'guardrails.max_steps', 5);
    await service.services.orgPolicies.save({ org: 'acme', version: 1, policy: { deny: ['all'] }, savedAt: '', savedBy: 'k' });
    expect(await admin.refused('_cleveragents/plan/use', params)).toMatchObject({ kind: 'invalid' });
    expect(await planCount()).toBe(0);
  });

  it('keeps what the org denies and demands, whatever profile and limits a plan brings, and shows it before the run', async () => {
    const params = await arrange({});
    await admin.call('_cleveragents/org/policy/set', {
      policy: {
        guardrails: { tool_denylist: ['pay.send'], max_tool_calls_per_step: 5, max_total_cost: 1 },
        threshold_minima: { select_tool: 1, execute_command: 0.5, decompose_task: 1 },
        safety: { require_sandbox: true, allow_unsafe_tools: false },
      },
    });
    await admin.call('_cleveragents/profile/add', {
      profile: { name: 'loose', extends: 'auto', allow_unsafe_tools: true, guard: { tool_denylist: [], tool_allowlist: ['pay.send'] } },
    });
    for (const profile of ['loose', 'full-auto']) {
      const made = await use({
        ...params,
        automation_profile: profile,
        guardrails: { max_tool_calls_per_step: 1e6, tool_budget: 1e6, max_steps: 1e6 },
      });
      const { policy, of } = await guardOf(made.plan_id);
      expect(policy).toMatchObject({
        ...{ max_tool_calls_per_step: 5, max_total_cost: 1, tool_denylist: ['pay.send'] },
        safety: { require_sandbox: true, allow_unsafe_tools: false },
        thresholds: { select_tool: 1, execute_command: 0.5, decompose_task: 1, edit_code: 0 },
      });
      expect(of('tool_denylist')).toEqual([['pay.send', 'org']]);
      // The first gate asks, although the profile's own threshold is 0.
      expect(made).toMatchObject({ state: 'waiting', pending: [{ gate: 'decompose_task' }], budget: { cap_usd: 1 } });
    }
  });

  it('has a digest that covers the floor: another floor, another digest, and plans that are live are bound by it too', async () => {
    const params = await arrange({});
    const { plan_id: first } = await use(params);
    const before = (await guardOf(first)).digest;
    await admin.call('_cleveragents/org/policy/set', { policy: { guardrails: { max_steps: 9 } } });
    const { plan_id: second } = await use(params);
    expect((await guardOf(second)).digest).not.toBe(before);
    expect((await guardOf(first)).digest).not.toBe(before);
    expect((await guardOf(first)).of('max_steps')).toEqual((await guardOf(second)).of('max_steps'));
  });

  it('takes nothing from the floor and the settings of another org', async () => {
    const params = await arrange({});
    const other = await service.caller('other');
    await other.call('_cleveragents/org/policy/set', { policy: { guardrails: { max_steps: 1 } } });
    await other.call('_cleveragents/config/set', { key: 'guardrails.tool_denylist', value: ['*'] });
    const { of } = await guardOf((await use(params)).plan_id);
    expect([of('max_steps'), of('tool_denylist')]).toEqual([[], []]);
  });
});

/** As an admin sets it; `scope` is `org` or `project:<name>`. */
const setting = (scope: string, key: 'sandbox.strategy' | 'sandbox.checkpoint.enabled', value: string | boolean) => {
  const [, project] = scope.split(':');
  return admin.call('_cleveragents/config/set', { key, value, ...(project === undefined ? {} : { scope: 'project' as const, project }) });
};

describe('a sandbox that is required and not there', () => {
  it.each(['org', 'project:web'])('makes no plan: strategy none of %s', async (scope) => {
    const params = await arrange({});
    await setting(scope, 'sandbox.strategy', 'none');
    await admin.call('_cleveragents/profile/add', { profile: { name: 'boxed', extends: 'auto', require_sandbox: true } });
    const refusal = await admin.refused('_cleveragents/plan/use', { ...params, automation_profile: 'boxed', session_id: 'mine' });
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { profile: 'boxed', project: 'web', sandbox_strategy: 'none' } });
    expect(await planCount()).toBe(0);
    expect((await admin.call('session.list', {})).sessions).toEqual([]);
    expect((await admin.call('_cleveragents/project/show', { name: 'web' })).commits).toBe(0);
  });

  it('is the same when the floor requires it and the profile does not', async () => {
    const params = { ...(await arrange({})), automation_profile: 'full-auto' };
    await setting('project:web', 'sandbox.strategy', 'none');
    await use(params);
    await admin.call('_cleveragents/org/policy/set', { policy: { safety: { require_sandbox: true } } });
    expect(await admin.refused('_cleveragents/plan/use', params)).toMatchObject({ kind: 'invalid_state' });
  });

  it.each([
    ['an action that applies nothing', { apply: 'none' }, { project: 'web' }],
    ['a plan without a project', { apply: 'project' }, {}],
  ] as const)('is there for %s, whatever the setting: it keeps its workspace', async (_what, { apply }, on) => {
    await admin.call('_cleveragents/project/create', { name: 'web' });
    const action = { name: 'report', description: 'Reports', actor: 'scripted/steps', apply, execute: [{ say: 'Hello' }] };
    await admin.call('_cleveragents/action/add', { action });
    await setting('org', 'sandbox.strategy', 'none');
    const params = { action_name: 'report', automation_profile: 'auto', ...on };
    expect(await admin.call('_cleveragents/plan/preflight', params)).toMatchObject({ would_run: true });
    await use(params);
    expect(await planCount()).toBe(1);
  });

  it('is a matter of the narrower scope: a project with a workspace has one', async () => {
    const params = await arrange({});
    await setting('org', 'sandbox.strategy', 'none');
    await setting('project:web', 'sandbox.strategy', 'workspace');
    await use(params);
    expect(await planCount()).toBe(1);
  });
});

describe('checkpoints that are required and off', () => {
  it.each(['org', 'project:web'])('make no plan: not enabled in %s', async (scope) => {
    const params = { ...(await arrange({})), automation_profile: 'auto' };
    await setting(scope, 'sandbox.checkpoint.enabled', false);
    const refusal = await admin.refused('_cleveragents/plan/use', { ...params, session_id: 'mine' });
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { profile: 'auto', project: 'web', checkpoints_enabled: false } });
    expect(refusal.kind === 'invalid_state' ? refusal.message : '').toContain('sandbox.checkpoint.enabled false');
    expect(await planCount()).toBe(0);
    expect((await admin.call('session.list', {})).sessions).toEqual([]);
  });

  it('make no plan either when the floor requires them and the profile does not', async () => {
    const params = { ...(await arrange({})), automation_profile: 'full-auto' };
    await setting('project:web', 'sandbox.checkpoint.enabled', false);
    await use(params);
    await admin.call('_cleveragents/org/policy/set', { policy: { safety: { require_checkpoints: true } } });
    expect(await admin.refused('_cleveragents/plan/use', params)).toMatchObject({ kind: 'invalid_state' });
  });

  it('are a matter of the narrower scope', async () => {
    const params = { ...(await arrange({})), automation_profile: 'auto' };
    await setting('org', 'sandbox.checkpoint.enabled', false);
    await setting('project:web', 'sandbox.checkpoint.enabled', true);
    await use(params);
    expect(await planCount()).toBe(1);
  });
});

describe('the profile that an agent chooses', () => {
  const choose = async (kind: 'agent' | 'human', names: { readonly action?: string; readonly plan: string }) => {
    const caller = await service.caller('acme', { kind, roles: ['operator', 'viewer'] });
    const params = await arrange(names);
    const { plan_id } = await caller.call('_cleveragents/plan/use', params);
    const { policy } = await caller.call('_cleveragents/plan/guard/show', { plan_id });
    return policy['thresholds'] as Record<string, number>;
  };

  it('cannot loosen the one that the action names: an agent approves nothing, so it cannot choose that nobody is asked', async () => {
    expect(await choose('agent', { action: 'supervised', plan: 'full-auto' })).toMatchObject({ select_tool: 1, create_tool: 0.2 });
  });

  it('can tighten it', async () => {
    expect(await choose('agent', { action: 'supervised', plan: 'manual' })).toMatchObject({ select_tool: 1, create_tool: 1 });
  });

  it('counts where the action leaves it open', async () => {
    expect(await choose('agent', { plan: 'auto' })).toMatchObject({ select_tool: 0, create_tool: 0 });
  });

  it('of a person wins, as the source says', async () => {
    expect(await choose('human', { action: 'supervised', plan: 'auto' })).toMatchObject({ select_tool: 0, create_tool: 0 });
  });
});
