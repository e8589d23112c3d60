/** Asking whether a plan would be made: every check with its answer, by the same code that makes one, and nothing comes of it. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ParamsInputOf } from '../../src/api/operations.ts';
import { PREFLIGHT_CHECKS } from '../../src/api/preflight.ts';
import { THRESHOLD_NAMES, THRESHOLDS } from '../../src/core/profile.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

type Params = ParamsInputOf<'_cleveragents/plan/preflight'>;

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
  await admin.call('_cleveragents/project/create', { name: 'web' });
  await admin.call('_cleveragents/action/add', {
    action: {
      name: 'tidy',
      description: 'Tidies',
      actor: 'scripted/steps',
      project: 'web',
      arguments: { type: 'object', properties: { depth: { type: 'integer' } }, additionalProperties: false },
      execute: [{ say: 'done' }],
    },
  });
});

const USABLE: Params = { action_name: 'tidy', automation_profile: 'full-auto' };
const preflight = (params: Params) => admin.call('_cleveragents/plan/preflight', params);
const set = (key: 'sandbox.strategy' | 'sandbox.checkpoint.enabled', value: string | boolean | null, project?: string) =>
  admin.call('_cleveragents/config/set', { key, value, ...(project === undefined ? {} : { scope: 'project' as const, project }) });
const failing = (answer: Awaited<ReturnType<typeof preflight>>) => answer.checks.filter(({ ok }) => !ok).map(({ name }) => name);

/** What is stored of plans and sessions, and the newest row of the org's log. */
const traces = async () => [
  (await admin.call('_cleveragents/plan/list', {})).total_size,
  (await admin.call('session.list', {})).sessions,
  await service.services.orgLog.page('acme', { afterSeq: 0, limit: 1000, types: [] }),
];

describe('a preflight', () => {
  it('of arguments that are too large says what helps', async () => {
    const answer = await preflight({ ...USABLE, arguments: { text: 'x'.repeat(300_000) } });
    const check = answer.checks.find(({ name }) => name === 'arguments');
    expect(check).toMatchObject({ ok: false, remediation: 'Send less: put long contents into files of the project and name them.' });
  });

  it('of what can run says so, with the profile, the project and the sandbox that the plan would have', async () => {
    const before = await traces();
    const answer = await preflight({ ...USABLE, arguments: { depth: 1 } });
    expect(answer).toEqual({
      would_run: true,
      profile: 'full-auto',
      profile_level: 'plan',
      thresholds: THRESHOLD_NAMES.map((name) => ({ name, value: 0, effective: 0, tightened: false, meaning: THRESHOLDS[name] })),
      effective: expect.objectContaining({ tool_allowlist: null, safety: expect.objectContaining({ require_sandbox: false }) }),
      project: 'web',
      sandbox_strategy: 'workspace',
      checkpoints_enabled: true,
      checks: PREFLIGHT_CHECKS.map((name) => ({ name, ok: true })),
    });
    expect(await traces()).toEqual(before);
    const plan = await admin.call('_cleveragents/plan/use', { ...USABLE, arguments: { depth: 1 } });
    expect(plan.profile).toMatchObject({ name: 'full-auto', level: 'plan' });
  });

  /** What is arranged, the parameters, the checks that fail. */
  const CASES: readonly [string, () => Promise<unknown>, Params, readonly string[]][] = [
    [
      'an action that does not exist',
      async () => {},
      { ...USABLE, action_name: 'nothing' },
      ['action', 'arguments', 'project', 'profile', 'policy', 'sandbox', 'checkpoints'],
    ],
    ['arguments that do not fit', async () => {}, { ...USABLE, arguments: { depth: 'deep' } }, ['arguments']],
    [
      'a project that does not exist',
      async () => {},
      { ...USABLE, project: 'nowhere' },
      ['project', 'profile', 'policy', 'sandbox', 'checkpoints'],
    ],
    [
      'a profile that does not exist',
      async () => {},
      { ...USABLE, automation_profile: 'yolo' },
      ['profile', 'policy', 'sandbox', 'checkpoints'],
    ],
    ['a sandbox that is required and not there', () => set('sandbox.strategy', 'none', 'web'), { action_name: 'tidy' }, ['sandbox']],
    ['checkpoints that are required and off', () => set('sandbox.checkpoint.enabled', false), { action_name: 'tidy' }, ['checkpoints']],
    [
      'neither a sandbox nor checkpoints under a floor that requires both',
      async () => {
        await set('sandbox.strategy', 'none');
        await set('sandbox.checkpoint.enabled', false);
        await admin.call('_cleveragents/org/policy/set', { policy: { safety: { require_sandbox: true, require_checkpoints: true } } });
      },
      USABLE,
      ['sandbox', 'checkpoints'],
    ],
    ['a halt of the org', () => admin.call('_cleveragents/halt/set', { level: 'org', reason: 'stop' }), USABLE, ['halts']],
    ['a budget of the org that is 0', () => admin.call('_cleveragents/budget/set', { level: 'org', total_usd: 0 }), USABLE, ['budget']],
    [
      'a closed session',
      async () => {
        await admin.call('session.create', { session_id: 'old' });
        await admin.call('session.close', { session_id: 'old' });
      },
      { ...USABLE, session_id: 'old' },
      ['session'],
    ],
  ];

  it.each(CASES)(
    'of %s names it, says what helps, and is right: plan/use refuses for the same reason',
    async (_what, arrange, params, fails) => {
      await arrange();
      const before = await traces();
      const answer = await preflight(params);
      expect(answer.would_run).toBe(false);
      expect(failing(answer)).toEqual(fails);
      const [first] = answer.checks.filter(({ ok }) => !ok);
      expect(first?.remediation).toMatch(/^[A-Za-z].{10,}/);
      expect(await traces()).toEqual(before);
      const refusal = await admin.refused('_cleveragents/plan/use', params);
      expect(refusal.message.startsWith(first?.reason ?? '-')).toBe(true);
      expect((await admin.call('_cleveragents/plan/list', {})).total_size).toBe(0);
    },
  );

  it('says every reason at once, not only the first', async () => {
    await set('sandbox.strategy', 'none');
    await admin.call('_cleveragents/halt/set', { level: 'org', reason: 'stop' });
    const answer = await preflight({ action_name: 'tidy', arguments: { depth: 'x' } });
    expect(failing(answer)).toEqual(['arguments', 'sandbox', 'halts']);
    expect(answer.checks.find(({ name }) => name === 'halts')?.reason).toContain('stop');
  });

  it('never differs from plan/use, whatever profile, settings and floor', async () => {
    await set('sandbox.strategy', 'none');
    await set('sandbox.checkpoint.enabled', false);
    const safety = (sandbox: boolean, checkpoints: boolean) => ({ require_sandbox: sandbox, require_checkpoints: checkpoints });
    const profiles = ['full-auto', 'auto', 'ci'];
    for (const [sandbox, checkpoints] of [
      [true, false],
      [false, true],
      [false, false],
    ] as const) {
      const name = `p-${sandbox}-${checkpoints}`;
      await admin.call('_cleveragents/profile/add', { profile: { name, extends: 'full-auto', ...safety(sandbox, checkpoints) } });
      profiles.push(name);
    }
    let runs = 0;
    for (const strategy of ['workspace', 'none', null] as const)
      for (const enabled of [true, false, null] as const)
        for (const floor of [{}, { require_sandbox: true as const }, { require_checkpoints: true as const }])
          for (const profile of profiles) {
            await set('sandbox.strategy', strategy, 'web');
            await set('sandbox.checkpoint.enabled', enabled, 'web');
            await admin.call('_cleveragents/org/policy/set', { policy: { safety: floor } });
            const params = { action_name: 'tidy', automation_profile: profile };
            const { would_run: wouldRun } = await preflight(params);
            const used = await admin.call('_cleveragents/plan/use', params).then(
              () => true,
              () => false,
            );
            expect(used, JSON.stringify({ strategy, enabled, floor, profile })).toBe(wouldRun);
            runs += used ? 1 : 0;
          }
    expect(runs).toBeGreaterThan(20);
  });
});

describe('a profile that goes without a sandbox or checkpoints', () => {
  const add = { profile: { name: 'free', extends: 'full-auto' } };

  it('can be saved exactly where an admin has turned them off', async () => {
    const fields = async () => {
      const refusal = await admin.refused('_cleveragents/profile/add', add);
      return refusal.kind === 'invalid' ? refusal.issues.map(({ field }) => field) : [refusal.kind];
    };
    expect(await fields()).toEqual(['profile.safety.require_sandbox', 'profile.safety.require_checkpoints']);
    await set('sandbox.strategy', 'none');
    expect(await fields()).toEqual(['profile.safety.require_checkpoints']);
    await set('sandbox.checkpoint.enabled', false);
    expect((await admin.call('_cleveragents/profile/add', add)).safety).toMatchObject({
      require_sandbox: false,
      require_checkpoints: false,
    });
    await set('sandbox.strategy', null);
    const again = await admin.refused('_cleveragents/profile/update', { name: 'free', profile: { extends: 'full-auto' } });
    expect(again).toMatchObject({ kind: 'invalid', issues: [{ field: 'profile.safety.require_sandbox' }] });
  });

  it('is used where they are on again, since what is not required is not forbidden', async () => {
    await set('sandbox.strategy', 'none');
    await set('sandbox.checkpoint.enabled', false);
    await admin.call('_cleveragents/profile/add', add);
    await set('sandbox.strategy', null);
    await set('sandbox.checkpoint.enabled', null);
    const answer = await preflight({ action_name: 'tidy', automation_profile: 'free' });
    expect(answer).toMatchObject({ would_run: true, sandbox_strategy: 'workspace', checkpoints_enabled: true });
  });
});
