import { beforeEach, describe, expect, it } from 'vitest';
import { BUILTIN_PROFILE_NAMES } from '../../src/core/profile.ts';
import { makeActorRegistry } from '../../src/engine/actors/registry.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const CALL = { tool: 'read_file', arguments: { path: 'a' } };
const ACTION = {
  name: 'tidy',
  description: 'Tidies up',
  actor: 'scripted/steps',
  execute: [{ id: 'look', call: CALL }],
};
const add = (action: object) => admin.call('_cleveragents/action/add', { action: action as typeof ACTION });
const refusedAdd = (action: object) => admin.refused('_cleveragents/action/add', { action: action as typeof ACTION });

describe('action/add', () => {
  it('stores the checked document, defaults filled in, as version 1', async () => {
    const added = await add({ ...ACTION, arguments: { type: 'object' }, public: true });
    expect(added).toEqual({
      name: 'tidy',
      description: 'Tidies up',
      version: 1,
      document: { ...ACTION, apply: 'project', arguments: { type: 'object' }, public: true },
      created_at: '2026-11-30T12:00:00.000Z',
      updated_at: '2026-11-30T12:00:00.000Z',
    });
    expect(await admin.call('_cleveragents/action/show', { name: 'tidy' })).toEqual(added);
    expect((await service.services.actions.listPublic('acme')).map(({ name }) => name)).toEqual(['tidy']);
  });

  it('refuses a name that is taken and leaves the first as it was', async () => {
    await add(ACTION);
    expect(await refusedAdd({ ...ACTION, description: 'Another' })).toMatchObject({
      kind: 'already_exists',
      entity: 'action',
      id: 'tidy',
      details: { action_name: 'tidy' },
    });
    expect((await admin.call('_cleveragents/action/show', { name: 'tidy' })).description).toBe('Tidies up');
  });

  it.each<[string, object, string, readonly string[]]>([
    ['an actor', { actor: 'nobody/at-all', execute: undefined }, 'action.actor', makeActorRegistry().names],
    ['a profile', { automation_profile: 'yolo' }, 'action.automation_profile', BUILTIN_PROFILE_NAMES],
    ['a profile that only looks like one', { automation_profile: 'Auto' }, 'action.automation_profile', BUILTIN_PROFILE_NAMES],
    ['a tool', { execute: [{ call: CALL }, { call: { tool: 'read_fil' } }] }, 'action.execute[1].call.tool', ['read_file', 'write_file']],
    ['a tool in a batch', { execute: [{ calls: [CALL, { tool: 'rm' }] }] }, 'action.execute[0].calls[1].tool', ['delete_file']],
  ])('refuses %s that does not exist, by its field, and names those that do', async (_what, change, field, names) => {
    const refusal = await refusedAdd({ ...ACTION, ...change });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    for (const name of names) expect(refusal.message).toContain(name);
    expect((await admin.call('_cleveragents/action/list', {})).actions).toEqual([]);
  });

  it('names every name that is wrong at once', async () => {
    const refusal = await refusedAdd({
      ...ACTION,
      automation_profile: 'yolo',
      execute: [{ call: { tool: 'x' } }, { call: { tool: 'y' } }],
    });
    expect(refusal).toMatchObject({
      issues: [{ field: 'action.automation_profile' }, { field: 'action.execute[0].call.tool' }, { field: 'action.execute[1].call.tool' }],
    });
  });

  it('takes a tool by its alias, and names in guard lists that nothing has yet', async () => {
    await add({ ...ACTION, execute: [{ call: { ...CALL, tool: 'file_read' } }], guardrails: { tool_denylist: ['shell_exec', 'prod.*'] } });
    expect((await admin.call('_cleveragents/action/show', { name: 'tidy' })).document).toMatchObject({
      guardrails: { tool_denylist: ['shell_exec', 'prod.*'] },
    });
  });

  it.each<[string, object, string]>([
    ['an unknown member', { colour: 'red' }, 'action.colour'],
    ['a missing member', { description: undefined }, 'action.description'],
    ['a wrong name', { name: 'Tidy Up' }, 'action.name'],
    ['a wrong step', { execute: [{ id: 'x' }] }, 'action.execute[0]'],
    ['a template that nothing fills', { execute: [{ say: '$' + '{args.x}' }] }, 'action.execute[0].say'],
  ])('says where in the parameters %s is', async (_what, change, field) => {
    const refusal = await refusedAdd({ ...ACTION, ...change });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    expect(refusal.message).toContain(`${field}: `);
  });

  it('refuses a document that is too large, with the limit', async () => {
    expect(await refusedAdd({ ...ACTION, definition_of_done: 'x'.repeat(60_000) })).toMatchObject({
      kind: 'too_large',
      limitBytes: 49_152,
    });
  });

  it('needs the role admin', async () => {
    const operator = await service.caller('acme', { roles: ['operator', 'approver'] });
    expect(await operator.refused('_cleveragents/action/add', { action: ACTION })).toMatchObject({ kind: 'forbidden' });
  });
});

describe('action/list', () => {
  it('answers summaries by name, the same as registry/action/list', async () => {
    await add({ ...ACTION, name: 'z' });
    await add({ ...ACTION, name: 'a', project: 'web', automation_profile: 'auto', arguments: { type: 'object' }, public: true });
    const list = await admin.call('_cleveragents/action/list', {});
    expect(list.next_page_token).toBe('');
    expect(list.actions).toEqual([
      {
        name: 'a',
        description: 'Tidies up',
        actor: 'scripted/steps',
        arguments: { type: 'object' },
        project: 'web',
        automation_profile: 'auto',
        public: true,
        version: 1,
        created_at: '2026-11-30T12:00:00.000Z',
      },
      expect.objectContaining({ name: 'z', arguments: null, project: null, automation_profile: null, public: false }),
    ]);
    expect(await admin.call('_cleveragents/registry/action/list', {})).toEqual(list);
  });

  it('shows the others when one was stored in another form', async () => {
    await add(ACTION);
    const at = '2026-01-01T00:00:00.000Z';
    await service.services.actions.add({ org: 'acme', name: 'old', version: 3, body: { actor: 7 }, createdAt: at, updatedAt: at });
    const { actions } = await admin.call('_cleveragents/action/list', {});
    expect(actions.map(({ name, actor, version }) => [name, actor, version])).toEqual([
      ['old', '', 3],
      ['tidy', 'scripted/steps', 1],
    ]);
  });
});
