import { describe, expect, it } from 'vitest';
import type { Operation } from '../../src/api/operation.ts';
import { OPERATION_NAMES, OPERATIONS } from '../../src/api/operations.ts';
import { makeService } from './service.ts';

/** What decides about agents, or goes around what a human has to accept. */
const DECIDES_ABOUT_AGENTS = [
  '_cleveragents/action/add',
  '_cleveragents/config/set',
  '_cleveragents/key/create',
  '_cleveragents/key/revoke',
  '_cleveragents/org/policy/set',
  '_cleveragents/plan/retire',
  '_cleveragents/profile/add',
  '_cleveragents/profile/delete',
  '_cleveragents/profile/update',
  '_cleveragents/project/commit',
];

describe('operations for people only', () => {
  it('are those that decide about agents', () => {
    const marked = OPERATION_NAMES.filter((name) => (OPERATIONS[name] as Operation).humanOnly === true);
    expect([...marked].sort()).toEqual(DECIDES_ABOUT_AGENTS);
  });

  it.each(DECIDES_ABOUT_AGENTS)('%s is refused to an agent with every role, before its parameters are looked at', async (name) => {
    const service = makeService();
    const agent = await service.caller('acme', { kind: 'agent', roles: ['viewer', 'operator', 'approver', 'admin'] });
    const refusal = await agent.refused(name as never, { nonsense: true } as never);
    expect(refusal).toMatchObject({ kind: 'forbidden', details: { needed_kind: 'human' } });
  });
});

describe('a project that an agent makes', () => {
  it('has the usual protected paths: which are protected is chosen by people', async () => {
    const service = makeService();
    const agent = await service.caller('acme', { kind: 'agent', roles: ['admin'] });
    for (const protected_paths of [[], ['src/**']]) {
      const refusal = await agent.refused('_cleveragents/project/create', { name: 'web', settings: { protected_paths } });
      expect(refusal).toMatchObject({ kind: 'forbidden', details: { needed_kind: 'human', field: 'settings.protected_paths' } });
    }
    const made = await agent.call('_cleveragents/project/create', { name: 'web', settings: { description: 'Site' } });
    expect(made.settings).toEqual({ description: 'Site', protected_paths: ['.git/**', '.github/**', '.env*'] });
    const person = await service.caller('acme');
    const own = await person.call('_cleveragents/project/create', { name: 'scratch', settings: { protected_paths: [] } });
    expect(own.settings).toEqual({ protected_paths: [] });
  });
});
