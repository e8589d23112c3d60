import { beforeEach, describe, expect, it } from 'vitest';
import { OPERATION_NAMES } from '../../src/api/operations.ts';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { digestOf } from '../../src/core/digest.ts';
import { BUILTIN_PROFILE_NAMES, THRESHOLD_NAMES, THRESHOLDS } from '../../src/core/profile.ts';
import { makeToolCatalogue, type ToolSpec } from '../../src/core/tool.ts';
import { makeActorRegistry } from '../../src/engine/actors/registry.ts';
import { WORKSPACE_TOOLS } from '../../src/engine/tools/workspace-tools.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let viewer: TestCaller;
beforeEach(async () => {
  service = makeService();
  viewer = await service.caller('acme', { roles: ['viewer'] });
});

describe('registry/tool/list', () => {
  it('shows every tool as the policy sees it', async () => {
    const { tools } = await viewer.call('_cleveragents/registry/tool/list', {});
    expect(tools.map(({ name }) => name)).toEqual(WORKSPACE_TOOLS.map(({ spec }) => spec.name));
    expect(tools[0]).toMatchObject({ name: 'read_file', aliases: ['file_read'], class: 'read', price_usd: 0, idempotent: true });
    expect(tools[0]?.input_schema).toMatchObject({ type: 'object', required: ['path'] });
  });

  it.each([
    ['git', ['git/commit', 'git:hub/issue']],
    ['git:hub', ['git:hub/issue']],
    ['gi', []],
    ['Git', []],
    ['git/', []],
    ['old', ['plain']],
    ['plain', []],
  ])('in the namespace %s shows %j', async (namespace, names) => {
    const spec = (name: string, aliases: readonly string[] = []): ToolSpec => ({
      name,
      aliases,
      summary: name,
      riskClass: 'external_write',
      parameters: {},
      priceMicroUsd: 1_500,
      scope: 'external',
      idempotent: false,
      skillCategory: 'vcs',
    });
    const catalogue = makeToolCatalogue([spec('git/commit'), spec('git:hub/issue'), spec('plain', ['old/plain'])]);
    if (!catalogue.ok) throw new Error(catalogue.error.message);
    const caller = await makeService({ catalogue: catalogue.value }).caller('acme');
    const { tools } = await caller.call('_cleveragents/registry/tool/list', { namespace });
    expect(tools.map(({ name }) => name)).toEqual(names);
    for (const tool of tools) expect(tool).toMatchObject({ price_usd: 0.0015, skill: 'vcs', class: 'external_write' });
  });
});

describe('registry/actor/list', () => {
  it('names the actors that an action can have', async () => {
    const { actors } = await viewer.call('_cleveragents/registry/actor/list', {});
    expect(actors.map(({ name }) => name)).toEqual(makeActorRegistry().names);
  });
});

describe('profiles', () => {
  it('are the eight built-in ones, each threshold with its meaning', async () => {
    const { profiles } = await viewer.call('_cleveragents/profile/list', {});
    expect(profiles.map(({ name }) => name)).toEqual(BUILTIN_PROFILE_NAMES);
    for (const profile of profiles) {
      expect(profile.built_in).toBe(true);
      expect(profile.digest).toBe(digestOf(sha256, profile.document));
      expect(profile.thresholds).toEqual(
        THRESHOLD_NAMES.map((name) => ({ name, value: profile.document[name], meaning: THRESHOLDS[name] })),
      );
      expect(await viewer.call('_cleveragents/profile/show', { name: profile.name })).toEqual(profile);
    }
  });

  it.each(['yolo', 'Manual', 'constructor', '__proto__'])('are not %s: the names that exist are said', async (name) => {
    const refusal = await viewer.refused('_cleveragents/profile/show', { name });
    expect(refusal).toMatchObject({ kind: 'not_found', entity: 'profile', id: name, details: { valid_names: [...BUILTIN_PROFILE_NAMES] } });
    expect(refusal.message).toContain('supervised');
  });
});

describe('health/check', () => {
  it('asks both kinds of store, and leaves nothing in them', async () => {
    expect(await viewer.call('_cleveragents/health/check', {})).toEqual({
      status: 'ok',
      version: '9.9.9',
      checks: [
        { name: 'registry', status: 'ok', latency_ms: 0 },
        { name: 'objects', status: 'ok', latency_ms: 0 },
        { name: 'audit_signing', status: 'ok', latency_ms: 0 },
        { name: 'card_signing', status: 'ok', latency_ms: 0 },
      ],
    });
    expect(service.projects.stored()).toEqual([]);
  });

  it.each([
    ['registry', new StorageUnavailable('keys.find', new Error('D1_ERROR at 10.0.0.1'))],
    ['registry', new TypeError('a bug')],
    ['objects', new StorageUnavailable('projects.head', new Error('reset'))],
  ])('says that %s does not answer, how long that took, and nothing of the cause (%s)', async (name, failure) => {
    const slow = (): Promise<never> => {
      broken.clock.ms += 250;
      return Promise.reject(failure);
    };
    const { keys, projects } = service.services;
    const broken: TestService = makeService(
      name === 'registry'
        ? { keys: { ...keys, find: slow } }
        : { projects: { project: (org, id) => ({ ...projects.project(org, id), head: slow }) } },
    );
    const caller = await broken.caller('acme');
    const health = await caller.call('_cleveragents/health/check', {});
    expect(health.status).toBe('degraded');
    const failed = health.checks.filter(({ status }) => status === 'failed');
    expect(failed).toEqual([{ name, status: 'failed', latency_ms: expect.any(Number), detail: 'did not answer' }]);
    expect(JSON.stringify(health)).not.toMatch(/10\.0\.0\.1|bug|reset/);
  });
});

describe('rpc.discover', () => {
  it('describes every operation at the address of the deployment', async () => {
    const document = await viewer.call('rpc.discover', {});
    expect(document.openrpc).toMatch(/^1\.3/);
    const { methods, servers } = document as unknown as { methods: { name: string }[]; servers: { url: string }[] };
    expect(methods.map(({ name }) => name)).toEqual(expect.arrayContaining([...OPERATION_NAMES]));
    expect(servers[0]?.url).toBe('https://agents.example/a2a');
  });
});
