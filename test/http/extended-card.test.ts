import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OPERATIONS, type OperationName } from '../../src/api/operations.ts';
import type { KeyRecord } from '../../src/app/ports.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { extendedCardDocument, extendedCardOf } from '../../src/http/card.ts';
import { createModificationTimes } from '../../src/http/modification-times.ts';
import { expectOfficial } from '../a2a/oracles.ts';
import { call, type Deployment, deploy, START_MS } from './deployment.ts';

const METHODS = [
  ['GetExtendedAgentCard', '1.0'],
  ['agent/getAuthenticatedExtendedCard', '0.3'],
  ['getExtendedAgentCard', ''],
] as const;

const action = (org: string, name: string, more: JsonObject = {}) => ({
  org,
  name,
  version: 1,
  body: { name, description: `Of ${org}`, actor: 'scripted/steps', ...more },
  createdAt: new Date(START_MS).toISOString(),
  updatedAt: new Date(START_MS).toISOString(),
});

async function filled(): Promise<Deployment> {
  const deployment = deploy();
  const { services } = deployment;
  await services.actions.add(action('acme', 'greet', { public: true }));
  await services.actions.add(action('acme', 'inner'));
  await services.actions.add(action('zeta', 'theirs', { public: true }));
  return deployment;
}

interface Extended {
  readonly skills: readonly { readonly id: string }[];
  readonly capabilities: { readonly extensions: readonly { readonly params: { readonly methods: readonly string[] } & JsonObject }[] };
}

const cardFor = async ({ app, addKey }: Deployment, record: Partial<KeyRecord>, method = 'GetExtendedAgentCard', version = '1.0') => {
  const key = await addKey(record);
  const answer = await call(app, method, undefined, { key, headers: version === '' ? {} : { 'a2a-version': version } });
  expect(answer.body.error).toBeUndefined();
  return { headers: answer.headers, card: answer.body.result as unknown as Extended & JsonObject };
};

const paramsOf = (card: Extended) => card.capabilities.extensions[0]?.params;
const idsOf = (card: Extended) => card.skills.map(({ id }) => id);

// The SDK tells of each signature that is not for it.
beforeEach(() => void vi.spyOn(console, 'debug').mockImplementation(() => {}));
afterEach(() => void vi.restoreAllMocks());

describe.each(METHODS)('%s (version %j)', (method, version) => {
  test('answers the card in the shape of its version, with the actions of the caller and signed', async () => {
    const deployment = await filled();
    const { card, headers } = await cardFor(deployment, {}, method, version);
    expectOfficial(version === '1.0' ? '1.0' : '0.3', 'card', card);
    expect('protocolVersion' in card).toBe(version !== '1.0');
    expect(idsOf(card)).toEqual(['greet', 'inner']);
    expect(headers.get('cache-control')).toBe('no-store');
    const [key] = deployment.services.cardSigner.publicKeys;
    await verifyAgentCardSignature(async () => ({ ...key }))(AgentCard.fromJSON(card));
  });

  test('needs a key, like any other method', async () => {
    const { app } = await filled();
    const answer = await call(app, method, {}, { headers: { 'a2a-version': version } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toContain('Bearer');
  });
});

describe('the extended card', () => {
  test('shows nothing of another org, and another org gets its own', async () => {
    const deployment = await filled();
    const mine = JSON.stringify((await cardFor(deployment, {})).card);
    expect(mine).not.toContain('theirs');
    expect(mine).not.toContain('zeta');
    const { card } = await cardFor(deployment, { org: 'zeta' });
    expect(idsOf(card)).toEqual(['theirs']);
    expect(JSON.stringify(card)).not.toContain('acme');
    expect(idsOf((await cardFor(deployment, { org: 'empty' })).card)).toEqual(['plan-lifecycle']);
  });

  test('lists the methods that the roles and the kind of the caller allow, and says what he may', async () => {
    const deployment = await filled();
    const cases = [
      [{ kind: 'human', roles: ['viewer'] }, { may_start: false, may_approve: false }, ['follow-plans']],
      [{ kind: 'agent', roles: ['operator'] }, { may_start: true, may_approve: false }, ['greet', 'inner']],
      [{ kind: 'human', roles: ['approver'] }, { may_start: false, may_approve: true }, ['follow-plans']],
      [{ kind: 'agent', roles: ['admin'] }, { may_start: true, may_approve: false }, ['greet', 'inner']],
      [{ kind: 'human', roles: ['admin'] }, { may_start: true, may_approve: true }, ['greet', 'inner']],
    ] as const;
    for (const [who, may, skills] of cases) {
      const { card } = await cardFor(deployment, who);
      expect(paramsOf(card)?.['caller']).toEqual({ org: 'acme', ...who, ...may });
      expect(idsOf(card)).toEqual(skills);
      // What is listed is not refused for its role; what is not listed is.
      const listed = new Set(paramsOf(card)?.methods);
      const key = await deployment.addKey(who);
      for (const name of [
        '_cleveragents/plan/status',
        '_cleveragents/plan/use',
        '_cleveragents/key/list',
        '_cleveragents/config/set',
      ] as const) {
        const { status } = await call(deployment.app, name, { unknown_member: 1 }, { key });
        expect([who, name, status !== 403]).toEqual([who, name, listed.has(name)]);
      }
    }
    const admin = paramsOf((await cardFor(deployment, {})).card)?.methods ?? [];
    expect(admin.every((name) => name in OPERATIONS)).toBe(true);
    expect(admin).toHaveLength((Object.keys(OPERATIONS) as OperationName[]).length);
  });

  test('says under which limits the caller works', async () => {
    const deployment = await filled();
    const { services } = deployment;
    expect(paramsOf((await cardFor(deployment, {})).card)?.['limits']).toEqual({ max_body_bytes: 4 * 1024 * 1024 });
    await services.config.set('acme', 'org', 'guardrails.max_steps', 12);
    await services.config.set('zeta', 'org', 'guardrails.max_steps', 99);
    await services.orgPolicies.save({
      org: 'acme',
      version: 1,
      policy: { threshold_minima: { select_tool: 1 } },
      savedAt: new Date(START_MS).toISOString(),
      savedBy: 'k',
    });
    const params = paramsOf((await cardFor(deployment, {})).card);
    expect(params?.['limits']).toEqual({
      max_body_bytes: 4 * 1024 * 1024,
      guardrails: { max_steps: 12 },
      policy_floor: { threshold_minima: { select_tool: 1 } },
    });
    expect(params?.['automation_profiles']).toContain('manual');
  });

  test('needs no key where the deployment asks for none', async () => {
    const { app } = deploy({ settings: { authMode: 'open' } });
    const answer = await call(app, 'GetExtendedAgentCard', {}, { path: 'http://127.0.0.1/a2a', headers: { 'a2a-version': '1.0' } });
    expectOfficial('1.0', 'card', answer.body.result);
    expect(answer.body.result).toMatchObject({ capabilities: { extendedAgentCard: true } });
    expect(answer.body.result).not.toHaveProperty('securitySchemes');
  });

  test('as a document of its own is for its caller only, and can be asked for again', async () => {
    const { services } = await filled();
    const times = createModificationTimes();
    const principal = { org: 'acme', keyId: 'k', name: 'k', kind: 'human', roles: ['admin'] } as const;
    const origin = 'https://agents.example.com';
    const ask = async (headers: Record<string, string> = {}) => {
      const request = new Request(`${origin}/extendedAgentCard`, { headers: { authorization: 'Bearer k', ...headers } });
      const card = await extendedCardOf(principal, { origin, shape: '1.0' }, services);
      return extendedCardDocument(request, card, services, times);
    };
    const first = await ask();
    expect(first.headers.get('cache-control')).toBe('private, max-age=300');
    expect(first.headers.get('vary')).toBe('A2A-Version, Authorization, X-API-Key, Host');
    expect(Date.parse(first.headers.get('last-modified') ?? '')).toBe(START_MS);
    const known = await ask({ 'if-none-match': first.headers.get('etag') ?? '' });
    expect([known.status, known.headers.get('cache-control')]).toEqual([304, 'private, max-age=300']);
    await services.actions.add(action('acme', 'third'));
    expect((await ask({ 'if-none-match': first.headers.get('etag') ?? '' })).status).toBe(200);
  });
});
