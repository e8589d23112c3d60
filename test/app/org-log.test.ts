/** Changes to the configuration and refused access in the org's own log, through the same dispatch as every edge. */
import { beforeEach, describe, expect, it, test } from 'vitest';
import type { Operation } from '../../src/api/operation.ts';
import { findOperation, OPERATION_NAMES, OPERATIONS, type OperationName } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { tracedOrgLog } from '../../src/app/traced-org-log.ts';
import type { OrgLogRow } from '../../src/core/org-log/org-event.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeMemoryOrgLog } from '../../src/storage/memory/org-log.ts';
import { makeService, START, type TestCaller, type TestService } from './service.ts';

const ORG = 'acme';

let service: TestService;
let admin: TestCaller;

beforeEach(async () => {
  service = makeService();
  admin = await service.caller(ORG, { name: 'Ada' });
});

async function rows(org = ORG): Promise<readonly OrgLogRow[]> {
  return (await service.services.orgLog.page(org, { afterSeq: 0, limit: 1_000 }))?.rows ?? [];
}

const operation = (name: OperationName): Operation => OPERATIONS[name];

interface Case {
  readonly before?: (caller: TestCaller) => Promise<unknown>;
  readonly params: object | ((caller: TestCaller) => Promise<object>);
  /** What the row of the change says. */
  readonly row: object;
}

const profile = { name: 'team/careful', description: 'one' };
const action = { name: 'greet', description: 'says hello', actor: 'scripted/commands' };

const started = async (caller: TestCaller): Promise<string> => {
  await caller.call('_cleveragents/action/add', { action });
  return (await caller.call('_cleveragents/plan/use', { action_name: 'greet', automation_profile: 'manual' })).plan_id;
};
let halted = '';

/** Every operation whose row says that it is a change; one without a case fails below. */
const CHANGES: { readonly [name: string]: Case } = {
  '_cleveragents/config/set': {
    before: (caller) => caller.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 5 }),
    params: { key: 'guardrails.max_steps', value: 9 },
    row: { subject: { scope: 'org', key: 'guardrails.max_steps' }, before: { value: 5, is_default: false }, after: { value: 9 } },
  },
  '_cleveragents/org/policy/set': {
    params: { policy: { guardrails: { max_steps: 3 } } },
    row: { subject: {}, before: { version: 0 }, after: { version: 1, policy: { guardrails: { max_steps: 3 } } } },
  },
  '_cleveragents/profile/add': { params: { profile }, row: { subject: { name: profile.name }, before: null, after: { version: 1 } } },
  '_cleveragents/profile/update': {
    before: (caller) => caller.call('_cleveragents/profile/add', { profile }),
    params: { name: profile.name, profile: { description: 'two' } },
    row: { subject: { name: profile.name }, before: { version: 1 }, after: { version: 2, document: { description: 'two' } } },
  },
  '_cleveragents/profile/delete': {
    before: (caller) => caller.call('_cleveragents/profile/add', { profile }),
    params: { name: profile.name },
    row: { subject: { name: profile.name }, before: { version: 1 }, after: { version: 2, deleted: true } },
  },
  '_cleveragents/action/add': { params: { action }, row: { subject: { name: 'greet' }, before: null, after: { version: 1 } } },
  '_cleveragents/project/create': { params: { name: 'web' }, row: { subject: { name: 'web' }, before: null, after: { name: 'web' } } },
  '_cleveragents/key/create': {
    params: { name: 'ci', kind: 'agent', roles: ['operator'] },
    row: { subject: { name: 'ci', kind: 'agent', key_id: expect.any(String) }, before: null, after: { roles: ['operator'] } },
  },
  '_cleveragents/key/revoke': {
    params: async (caller) => ({
      key_id: (await caller.call('_cleveragents/key/create', { name: 'ci', kind: 'agent', roles: ['operator'] })).key_id,
    }),
    row: { subject: { key_id: expect.any(String) }, after: { name: 'ci', revoked_at: expect.any(String) } },
  },
  '_cleveragents/budget/set': {
    params: { level: 'org', total_usd: 5 },
    row: {
      subject: { level: 'org', total_usd: 5 },
      before: { windows: expect.arrayContaining([expect.objectContaining({ window: 'total', cap_usd: null })]) },
      after: { windows: expect.arrayContaining([expect.objectContaining({ window: 'total', cap_usd: 5 })]) },
    },
  },
  'session.create': {
    params: { session_id: 's1', max_cost: 2 },
    row: { subject: { session_id: 's1', max_cost: 2 }, before: null },
  },
  '_cleveragents/halt/set': {
    params: async (caller) => {
      halted = await started(caller);
      return { level: 'plan', plan_id: halted, reason: 'pays twice' };
    },
    row: { subject: { level: 'plan', reason: 'pays twice' }, before: { halted: false }, after: { halted: true } },
  },
  '_cleveragents/halt/clear': {
    params: async (caller) => {
      halted = await started(caller);
      await caller.call('_cleveragents/halt/set', { level: 'plan', plan_id: halted, reason: 'pays twice' });
      return { level: 'plan', plan_id: halted };
    },
    row: { subject: { level: 'plan' }, before: { halted: true }, after: { halted: false } },
  },
};

/** Needs a log that somebody damaged: objects/plan-retired.test.ts. */
const ON_REAL_OBJECTS = ['_cleveragents/plan/retire'];

/** Operations of admins that change no configuration: they read, or move files whose history is the project's own. */
const NO_CONFIGURATION = [
  '_cleveragents/project/blob/missing',
  '_cleveragents/project/blob/put',
  '_cleveragents/project/commit',
  '_cleveragents/key/list',
  '_cleveragents/org/log/list',
  '_cleveragents/org/log/verify',
  '_cleveragents/org/log/export',
  '_cleveragents/org/log/head',
];

describe('a change to the configuration', () => {
  it('is every operation whose row says so, and every operation of admins is one or is named as none', () => {
    const named = OPERATION_NAMES.filter((name) => operation(name).change !== undefined);
    expect([...named].sort()).toEqual([...Object.keys(CHANGES), ...ON_REAL_OBJECTS].sort());
    const ofAdmins = OPERATION_NAMES.filter((name) => operation(name).role === 'admin' && operation(name).change === undefined);
    expect([...ofAdmins].sort()).toEqual([...NO_CONFIGURATION].sort());
  });

  test.each(Object.entries(CHANGES))(
    '%s leaves two rows: asked for before it is made, and made, with actor and key id',
    async (name, of) => {
      await of.before?.(admin);
      const params = typeof of.params === 'function' ? await of.params(admin) : of.params;
      const earlier = (await rows()).length;
      await admin.call(name as OperationName, params as never);
      const added = (await rows()).slice(earlier);
      const { change } = operation(name as OperationName);
      expect(added.map(({ type }) => type)).toEqual(['change_requested', change?.type]);
      for (const row of added) expect(row.actor).toEqual({ kind: 'human', id: admin.principal.keyId, name: 'Ada' });
      expect(added[1]?.data).toMatchObject({ operation: name, ...of.row });
      expect(added[0]?.data).toMatchObject({ change: change?.type, params_digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
      expect(Reflect.get(added[0]?.data ?? {}, 'change_id')).toBe(Reflect.get(added[1]?.data ?? {}, 'change_id'));
      expect((await service.services.orgLog.verify(ORG))?.valid).toBe(true);
    },
  );

  it('that somebody else comes before says so and why, and what was asked for', async () => {
    const { services } = service;
    service = makeService({ ...services, actions: { ...services.actions, add: async () => false } });
    admin = await service.caller(ORG);
    await admin.refused('_cleveragents/action/add', { action });
    expect(await rows()).toMatchObject([
      { type: 'change_requested', data: { change: 'action_added' } },
      { type: 'change_refused', data: { change: 'action_added', reason: expect.stringContaining('already_exists: ') } },
    ]);
  });

  describe('that is refused', () => {
    const agentCases: readonly (readonly [string, OperationName, (index: number) => object, object])[] = [
      ['a cap of the org', '_cleveragents/budget/set', () => ({ level: 'org', total_usd: 0 }), { reason: 'role_missing' }],
      [
        'sessions that there are not',
        '_cleveragents/budget/set',
        (index) => ({ level: 'session', session_id: `none-${index}`, total_usd: 1 }),
        { reason: 'change_target_unknown', subjects: expect.arrayContaining(['none-0']) },
      ],
      ['a raise', '_cleveragents/budget/set', () => ({ level: 'session', session_id: 's1', total_usd: 100 }), { reason: 'role_missing' }],
      ['a raise on creation', 'session.create', () => ({ session_id: 's1', max_cost: 100 }), { reason: 'change_conflicts' }],
      [
        'halts of sessions that there are not',
        '_cleveragents/halt/set',
        (index) => ({ level: 'session', session_id: `none-${index}`, reason: 'x' }),
        { reason: 'change_target_unknown' },
      ],
      ['a halt without a reason', '_cleveragents/halt/set', () => ({ level: 'org', reason: ' ' }), { reason: 'change_invalid' }],
      ['a halt of the org', '_cleveragents/halt/set', () => ({ level: 'org', reason: 'x' }), { reason: 'role_missing' }],
      ['nothing in particular', '_cleveragents/budget/set', () => ({ level: 'org' }), { reason: 'change_invalid' }],
    ];

    test.each(agentCases)('is counted: %s, a hundred times in a minute, is two rows', async (_what, name, params, data) => {
      await admin.call('session.create', { session_id: 's1', max_cost: 5 });
      const agent = await service.caller(ORG, { kind: 'agent', roles: ['operator'] });
      const earlier = (await rows()).length;
      for (let index = 0; index < 100; index += 1) await agent.refused(name, params(index) as never);
      service.clock.ms += 60_000;
      const added = (await rows()).slice(earlier);
      expect(added.map(({ type }) => type)).toEqual(['access_refused', 'access_refused']);
      for (const row of added) expect(row).toMatchObject({ actor: { id: agent.principal.keyId }, data: { operations: [name] } });
      expect(added.map((row) => (row.type === 'access_refused' ? row.data.count : null))).toEqual([1, 99]);
      expect(added[0]?.data).toMatchObject(data);
    });

    it('is counted by operation', async () => {
      await admin.refused('_cleveragents/profile/delete', { name: 'none' });
      await admin.refused('_cleveragents/key/revoke', { key_id: service.services.ids.ulid() });
      expect(await rows()).toMatchObject([
        { data: { reason: 'change_target_unknown', operations: ['_cleveragents/profile/delete'], count: 1 } },
        { data: { reason: 'change_target_unknown', operations: ['_cleveragents/key/revoke'], count: 1 } },
      ]);
    });
  });

  const same: readonly (readonly [string, OperationName, (caller: TestCaller) => Promise<object>])[] = [
    ['the same setting', '_cleveragents/config/set', async () => ({ key: 'guardrails.max_steps', value: 5 })],
    ['the same cap of the org', '_cleveragents/budget/set', async () => ({ level: 'org', total_usd: 5 })],
    [
      'the same cap of a session',
      '_cleveragents/budget/set',
      async (caller) => ({
        level: 'session',
        session_id: (await caller.call('session.create', { session_id: 's9' })).session_id,
        daily_usd: 2,
      }),
    ],
    ['the same cap on creation', 'session.create', async () => ({ session_id: 's1', max_cost: 2 })],
    [
      'a session halt that holds',
      '_cleveragents/halt/set',
      async (caller) => {
        await caller.call('session.create', { session_id: 's9' });
        return { level: 'session', session_id: 's9', reason: 'x' };
      },
    ],
    ['an org halt that holds', '_cleveragents/halt/set', async () => ({ level: 'org', reason: 'x' })],
    [
      'a plan halt that holds',
      '_cleveragents/halt/set',
      async (caller) => ({ level: 'plan', plan_id: await started(caller), reason: 'x' }),
    ],
    [
      'revoking again',
      '_cleveragents/key/revoke',
      async (caller) => ({
        key_id: (await caller.call('_cleveragents/key/create', { name: 'ci', kind: 'agent', roles: ['operator'] })).key_id,
      }),
    ],
  ];

  test.each(same)('that changes nothing leaves no row: %s', async (_what, name, paramsOf) => {
    const params = await paramsOf(admin);
    const first = (await rows()).length;
    await admin.call(name, params as never);
    const earlier = (await rows()).length;
    expect(earlier).toBe(first + 2);
    for (let times = 0; times < 3; times += 1) await admin.call(name, params as never);
    expect(await rows()).toHaveLength(earlier);
  });

  it('of nothing: clearing what is not halted leaves no row', async () => {
    await admin.call('_cleveragents/halt/clear', { level: 'org' });
    await admin.call('_cleveragents/budget/set', { level: 'org', total_usd: null });
    expect(await rows()).toEqual([]);
  });

  it('that nobody may ask for, or with bad parameters, leaves none', async () => {
    const agent = await service.caller(ORG, { kind: 'agent', roles: ['operator'] });
    await agent.refused('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 1 });
    await admin.refused('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 'many' });
    const reasons = (await rows()).map((row) => (row.type === 'access_refused' ? row.data.reason : row.type));
    expect(reasons).toEqual(['role_missing', 'change_invalid']);
  });

  it('never shows a secret: not the key that was made, nor one that stands in a value', async () => {
    const made = await admin.call('_cleveragents/key/create', { name: 'ci', kind: 'agent', roles: ['operator'] });
    const secret = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';
    await admin.call('_cleveragents/action/add', { action: { ...action, description: `uses ${secret}` } });
    const text = JSON.stringify(await rows());
    expect(text).not.toContain(made.key);
    expect(text).not.toContain(made.key.split('_').slice(2).join('_'));
    expect(text).not.toContain(secret);
    expect(text).toContain('[masked]');
  });
});

describe('while the log cannot be written', () => {
  const broken = (): TestService => {
    const real = makeMemoryOrgLog({ sha256, nowMs: () => START });
    return makeService({
      orgLog: {
        ...real,
        append: async () => {
          throw new StorageUnavailable('orgLog.append', new Error('switched off by a test'));
        },
      },
    });
  };

  it('nothing is changed, and the caller gets the retryable failure of an unavailable store', async () => {
    service = broken();
    const caller = await service.caller(ORG);
    await expect(caller.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 5 })).rejects.toBeInstanceOf(
      StorageUnavailable,
    );
    await expect(caller.call('_cleveragents/key/create', { name: 'x', kind: 'agent', roles: ['viewer'] })).rejects.toBeInstanceOf(
      StorageUnavailable,
    );
    expect(await caller.call('_cleveragents/config/get', { key: 'guardrails.max_steps' })).toMatchObject({ value: null });
    expect((await caller.call('_cleveragents/key/list', {})).keys).toHaveLength(1);
  });

  it('no operation that is a change makes it', async () => {
    for (const [name, of] of Object.entries(CHANGES)) {
      const real = makeMemoryOrgLog({ sha256, nowMs: () => START });
      let isBroken = false;
      service = makeService({
        orgLog: {
          ...real,
          append: async (org, entry) => {
            if (isBroken) throw new StorageUnavailable('orgLog.append', new Error('switched off by a test'));
            await real.append(org, entry);
          },
        },
      });
      if (operation(name as OperationName).change?.unrecorded === 'goes_ahead') continue;
      const caller = await service.caller(ORG);
      await of.before?.(caller);
      const params = typeof of.params === 'function' ? await of.params(caller) : of.params;
      isBroken = true;
      const attempt = () => caller.call(name as OperationName, params as never);
      await expect(attempt(), name).rejects.toBeInstanceOf(StorageUnavailable);
      isBroken = false;
      const earlier = (await rows()).length;
      // Had it been made, it would be refused now or leave no row.
      await attempt();
      expect(
        (await rows()).slice(earlier).map(({ type }) => type),
        name,
      ).toEqual(['change_requested', operation(name as OperationName).change?.type]);
    }
  });

  it('a session is not made without the cap that could not be recorded', async () => {
    service = broken();
    const caller = await service.caller(ORG);
    await expect(caller.call('session.create', { session_id: 's1', max_cost: 2 })).rejects.toBeInstanceOf(StorageUnavailable);
    expect((await caller.call('session.list', {})).sessions).toEqual([]);
  });

  it('the kill switch works all the same', async () => {
    const real = makeMemoryOrgLog({ sha256, nowMs: () => START });
    let isBroken = false;
    service = makeService({
      orgLog: {
        ...real,
        append: async (org, entry) => {
          if (isBroken) throw new StorageUnavailable('orgLog.append', new Error('switched off by a test'));
          await real.append(org, entry);
        },
      },
    });
    const caller = await service.caller(ORG);
    const planId = await started(caller);
    isBroken = true;
    expect(await caller.call('_cleveragents/halt/set', { level: 'plan', plan_id: planId, reason: 'stop' })).toMatchObject({ halted: true });
    await expect(caller.call('_cleveragents/halt/clear', { level: 'plan', plan_id: planId })).rejects.toBeInstanceOf(StorageUnavailable);
  });

  it('a change whose end could not be told is answered as done, and the log says in time that nobody told', async () => {
    const real = makeMemoryOrgLog({ sha256, nowMs: () => service.clock.ms });
    service = makeService({
      orgLog: {
        ...real,
        append: async (org, entry) => {
          if (entry.id.endsWith('.ended')) throw new StorageUnavailable('orgLog.append', new Error('switched off by a test'));
          await real.append(org, entry);
        },
      },
    });
    const caller = await service.caller(ORG);
    expect(await caller.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 5 })).toMatchObject({ value: 5 });
    expect((await rows()).map(({ type }) => type)).toEqual(['change_requested']);
    service.clock.ms += 6 * 60_000;
    expect((await rows()).map(({ type }) => type)).toEqual(['change_requested', 'change_unresolved']);
  });
});

describe('refused access', () => {
  const cases = [
    { what: 'a missing role', kind: 'human', roles: ['viewer'], name: '_cleveragents/config/set', params: {}, reason: 'role_missing' },
    {
      what: 'an agent that asks for what people do',
      kind: 'agent',
      roles: ['admin'],
      name: '_cleveragents/org/policy/set',
      params: {},
      reason: 'human_only',
    },
    {
      what: 'a plan that the org does not have',
      kind: 'human',
      roles: ['viewer'],
      name: '_cleveragents/plan/status',
      params: { plan_id: '01JZZZZZZZZZZZZZZZZZZZZZZ1' },
      reason: 'unknown_plan',
    },
  ] as const;

  test.each(cases)('for $what is a row with actor and key id', async ({ kind, roles, name, params, reason }) => {
    const caller = await service.caller(ORG, { kind, roles: [...roles], name: 'Eve' });
    await caller.refused(name, params as never);
    const [row] = await rows();
    expect(row).toMatchObject({
      type: 'access_refused',
      actor: { kind, id: caller.principal.keyId, name: 'Eve' },
      data: { reason, count: 1, operations: [name], subjects: 'plan_id' in params ? [params.plan_id] : [] },
    });
  });

  it('and changes name the request that they came with', async () => {
    const trace = (of: string) => of.repeat(32);
    const { services } = service;
    const traced = (id: string) => ({ ...services, orgLog: tracedOrgLog(services.orgLog, id) });
    const ask = (name: OperationName, params: object, id: string) => {
      const found = findOperation(name);
      if (found === null) throw new Error(name);
      return dispatchOperation(found, params, { principal: admin.principal, idempotencyKey: null }, traced(id));
    };
    await ask('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 5 }, trace('a'));
    await ask('_cleveragents/config/set', { key: 'core.default-action', value: 'none' }, trace('b'));
    await ask('_cleveragents/config/set', { key: 'core.default-action', value: 'none' }, trace('c'));
    await ask('_cleveragents/config/set', { key: 'core.default-action', value: 'none' }, trace('d'));
    service.clock.ms += 60_000;
    expect((await rows()).map((row) => [row.type, row.trace_id, Reflect.get(row.data, 'trace_ids')])).toEqual([
      ['change_requested', trace('a'), undefined],
      ['configuration_changed', trace('a'), undefined],
      ['access_refused', trace('b'), undefined],
      ['access_refused', trace('c'), [trace('c'), trace('d')]],
    ]);
    const { entries } = await admin.call('_cleveragents/org/log/list', {});
    expect(entries.map(({ context }) => context['trace_id'])).toEqual([trace('a'), trace('a'), trace('b'), trace('c')]);
    expect((await service.services.orgLog.verify(ORG))?.valid).toBe(true);
  });

  it('to the plan of another org stands in the log of the org that asked, and nowhere else', async () => {
    const planId = await started(admin);
    const other = await service.caller('other');
    const before = await rows();
    await other.refused('_cleveragents/plan/status', { plan_id: planId });
    expect(await rows()).toEqual(before);
    expect(await rows('other')).toMatchObject([{ type: 'access_refused', data: { reason: 'unknown_plan', subjects: [planId] } }]);
  });

  it('of many kinds of bad input is no refusal of access', async () => {
    await admin.refused('_cleveragents/plan/status', { plan_id: 'x' });
    await admin.refused('_cleveragents/profile/show', { name: 'nothing' });
    expect(await rows()).toEqual([]);
  });

  it('a thousand times in a minute is two rows', async () => {
    const caller = await service.caller(ORG, { roles: ['viewer'] });
    for (let times = 0; times < 1_000; times += 1) await caller.refused('_cleveragents/key/list', {});
    service.clock.ms += 60_000;
    const counts = (await rows()).map((row) => (row.type === 'access_refused' ? row.data.count : null));
    expect(counts).toEqual([1, 999]);
  });
});

describe('the list of the log', () => {
  it('is paged, and can be restricted to types, a plan and a time', async () => {
    for (let value = 1; value <= 5; value += 1) {
      service.clock.ms = START + value * 1_000;
      await admin.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value });
    }
    const first = await admin.call('_cleveragents/org/log/list', { limit: 4 });
    expect(first.entries.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    const second = await admin.call('_cleveragents/org/log/list', { limit: 1_000, after_seq: first.next_after_seq ?? 0 });
    expect(second.entries.map(({ seq }) => seq)).toEqual([5, 6, 7, 8, 9, 10]);
    expect(second.next_after_seq).toBeUndefined();
    const since = await admin.call('_cleveragents/org/log/list', { type: ['configuration_changed'], since: '2026-11-30T12:00:04Z' });
    expect(since.entries.map(({ seq, event_type: type, context }) => [seq, type, context['after']])).toEqual([
      [8, 'configuration_changed', { value: 4, is_default: false }],
      [10, 'configuration_changed', { value: 5, is_default: false }],
    ]);
    const other = await service.caller('other');
    expect((await other.call('_cleveragents/org/log/list', {})).entries).toEqual([]);
  });

  it('is for admins', async () => {
    const viewer = await service.caller(ORG, { roles: ['viewer', 'operator', 'approver'] });
    for (const name of ['list', 'verify', 'export', 'head'] as const) {
      expect(await viewer.refused(`_cleveragents/org/log/${name}`, {})).toMatchObject({ kind: 'forbidden' });
    }
  });
});
