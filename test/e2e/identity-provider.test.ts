/** The real Worker beside a real identity provider: who calls by its tokens, who is refused, and the signed cards as a client meets them. */
import { rm } from 'node:fs/promises';
import { type AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import type { JWK } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type BootstrappedOrg, bootstrapOrg } from '../../src/cli/bootstrap-org.ts';
import { ensureWorkerBuilt, PRODUCT_BUILD } from '../../src/cli/build-worker.ts';
import { type LocalServer, startLocalServer } from '../../src/cli/local-server.ts';
import { createClient } from '../../src/client/client.ts';
import {
  AUDIENCE,
  type IdentityProvider,
  signedWithPublicKey,
  startIdentityProvider,
  type TokenOptions,
  unsigned,
} from '../support/identity-provider.ts';
import { temporaryFolder } from '../support/server.ts';
import { post, type RawAnswer } from './world.ts';

let provider: IdentityProvider;
let server: LocalServer;
let stateDir: string;
let keys: BootstrappedOrg;

beforeAll(async () => {
  stateDir = await temporaryFolder();
  const [bundlePath, started] = await Promise.all([ensureWorkerBuilt(PRODUCT_BUILD), startIdentityProvider()]);
  provider = started;
  const bindings = {
    OIDC_ISSUER: provider.issuer,
    OIDC_AUDIENCE: AUDIENCE,
    OIDC_JWKS_URL: provider.jwksUrl,
    REQUIRED_EXTENSIONS: REQUIRED,
  };
  server = await startLocalServer({ stateDir, port: 0, bundlePath, bindings, log: () => {} });
  keys = await bootstrapOrg(await server.d1(), 'dev');
});

afterAll(async () => {
  await server?.stop();
  await provider?.close();
  await rm(stateDir, { recursive: true, force: true });
});

// The SDK tells of each signature that is not for it.
beforeEach(() => void vi.spyOn(console, 'debug').mockImplementation(() => {}));
afterEach(() => void vi.restoreAllMocks());

/** The one of the public conformance suite. */
const REQUIRED = 'urn:a2a:tck:required-extension';

const METHODS = [
  ['GetTask', { id: '01HXRCF1ABCDE12345678901AB' }],
  ['_cleveragents/plan/list', {}],
] as const;

const ask = (method: string, params: object, headers: Record<string, string>): Promise<RawAnswer> =>
  post(server.url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), { 'a2a-version': '1.0', ...headers });

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('a token of the identity provider', () => {
  test('is believed by each of thirty requests at once, before the keys are known', async () => {
    const token = await provider.token();
    const before = provider.fetches();
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask('_cleveragents/plan/list', {}, bearer(token))));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(provider.fetches() - before).toBe(1);
  });

  test('starts work as an agent, approves it as a person of the same org, and the trail names both', async () => {
    const admin = createClient({ url: server.url, key: keys.key });
    const action = { name: 'asks', description: 'Asks', actor: 'scripted/steps', apply: 'none', automation_profile: 'manual' };
    await admin.call('_cleveragents/action/add', { action: { ...action, execute: [{ say: 'Done.' }] } });
    const agent = createClient({ url: server.url, key: await provider.token({ sub: 'robot', cleveragents_kind: 'agent' }, { kid: 'ec' }) });
    const person = createClient({ url: server.url, key: await provider.token({ sub: 'ada', name: 'Ada' }) });

    const plan = await agent.call('_cleveragents/plan/use', { action_name: 'asks' });
    const [approval] = (await agent.call('_cleveragents/plan/status', { plan_id: plan.plan_id })).pending;
    if (approval === undefined) throw new Error('nothing waits');
    const decision = { approval_id: approval.approval_id, digest: approval.digest, decision: 'approve' } as const;
    await expect(agent.call('_cleveragents/approval/decide', decision)).rejects.toThrow();
    const decided = await person.call('_cleveragents/approval/decide', decision);
    expect(decided.plan.plan_id).toBe(plan.plan_id);
    const trail = JSON.stringify(await person.call('_cleveragents/plan/guard/audit', { plan_id: plan.plan_id }));
    expect(trail).toContain('"Ada"');
    expect(trail).toMatch(/oidc:[0-9a-f]{32}/);
  });

  test('lets nobody approve what he started himself, unless the org says so: others may have tokens as well', async () => {
    const ada = createClient({ url: server.url, key: await provider.token({ sub: 'ada' }) });
    const admin = createClient({ url: server.url, key: keys.key });
    const plan = await ada.call('_cleveragents/plan/use', { action_name: 'asks' });
    const [approval] = (await ada.call('_cleveragents/plan/status', { plan_id: plan.plan_id })).pending;
    if (approval === undefined) throw new Error('nothing waits');
    const decision = { approval_id: approval.approval_id, digest: approval.digest, decision: 'approve' } as const;
    await expect(ada.call('_cleveragents/approval/decide', decision)).rejects.toThrow();
    await admin.call('_cleveragents/config/set', { key: 'approvals.separate_requester', value: false });
    await ada.call('_cleveragents/approval/decide', decision);
    await admin.call('_cleveragents/config/set', { key: 'approvals.separate_requester', value: null });
  });

  test('of another org sees nothing of this one, and reads the same as of a plan that there is not', async () => {
    const person = createClient({ url: server.url, key: keys.key });
    const { plans } = await person.call('_cleveragents/plan/list', {});
    const [mine] = plans;
    const foreign = bearer(await provider.token({ cleveragents_org: 'zeta', cleveragents_roles: ['admin'] }));
    const [known, unknown] = await Promise.all([
      ask('GetTask', { id: mine?.plan_id }, foreign),
      ask('GetTask', { id: '01HXRCF1ABCDE12345678901AB' }, foreign),
    ]);
    expect(known?.body?.error?.code).toBe(-32001);
    expect(known?.body?.error?.message).toBe(unknown?.body?.error?.message);
    expect((await ask('_cleveragents/plan/list', {}, foreign)).body?.result).toMatchObject({ plans: [] });
    const card = (await ask('GetExtendedAgentCard', {}, foreign)).body?.result;
    expect(JSON.stringify(card)).toContain('"org":"zeta"');
    expect(JSON.stringify(card)).not.toContain('"asks"');
  });

  test('without a role is known and may do nothing', async () => {
    const answer = await ask('_cleveragents/plan/list', {}, bearer(await provider.token({ cleveragents_roles: [] })));
    expect([answer.status, answer.body?.error?.code]).toEqual([403, -32003]);
  });

  test.each(METHODS)('that is wrong in any way is refused by %s like a bad key, word for word', async (method, params) => {
    const wrong = async (claims: Record<string, unknown>, options?: TokenOptions) => bearer(await provider.token(claims, options));
    const right = await provider.token();
    const past = Math.floor(Date.now() / 1000) - 3600;
    const confused = await signedWithPublicKey(right, provider.published[0] ?? {});
    const cases: readonly (readonly [string, Record<string, string>])[] = [
      ['bad key', bearer('ca_nobody_ssssssssssssssssssss')],
      ['no key', {}],
      ['wrong audience', await wrong({ aud: 'https://other.example.com' })],
      ['wrong issuer', await wrong({ iss: 'https://elsewhere.example' })],
      ['expired', await wrong({ exp: past + 60 }, { now: past })],
      ['not yet', await wrong({ nbf: past + 7200 })],
      ['no signature', bearer(unsigned(right))],
      ...confused.map((token, index): [string, Record<string, string>] => [`public key as a secret, ${index}`, bearer(token)]),
      ['unknown key', await wrong({}, { kid: 'unknown' })],
      ['stranger', await wrong({}, { stranger: true })],
      ['no org', await wrong({ cleveragents_org: undefined })],
      ['a right one in the header of keys', { 'x-api-key': right }],
      ['one that is too long', await wrong({ more: 'x'.repeat(9_000) })],
    ];
    const first = await ask(method, params, cases[0]?.[1] ?? {});
    expect(first.status).toBe(401);
    for (const [what, headers] of cases) {
      const answer = await ask(method, params, headers);
      expect([what, answer.status, answer.headers.get('www-authenticate')]).toEqual([what, 401, 'Bearer realm="CleverAgents"']);
      expect([what, answer.body]).toEqual([what, first.body]);
    }
    expect((await ask(method, params, bearer(right))).status).toBe(200);
    expect((await ask(method, params, { 'x-api-key': keys.agent_key })).status).toBe(200);
  });
});

test('a deployment that requires an extension declares it, and refuses a message that does not name it', async () => {
  const card = (await (await fetch(`${server.url}/.well-known/agent-card.json`)).json()) as AgentCard;
  expect(card.capabilities?.extensions).toContainEqual(expect.objectContaining({ uri: REQUIRED, required: true }));
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'help' }] } };
  const refused = await ask('SendMessage', params, bearer(keys.agent_key));
  expect([refused.status, refused.body?.error?.code]).toEqual([200, -32008]);
  const named = await ask('SendMessage', params, { ...bearer(keys.agent_key), 'a2a-extensions': REQUIRED });
  expect(named.body?.error?.code).not.toBe(-32008);
  expect(named.headers.get('a2a-extensions')).toBe(REQUIRED);
});

describe('the cards of a running deployment', () => {
  const keyOf = async (kid: string, jku?: string): Promise<JWK> => {
    const { keys: published } = (await (await fetch(jku ?? '')).json()) as { keys: JWK[] };
    const found = published.find((key) => key.kid === kid);
    if (found === undefined) throw new Error(`${jku} has no key ${kid}`);
    return found;
  };
  const verify = verifyAgentCardSignature(keyOf);

  test.each(['', '1.0'])('are signed and name the provider, for version %j', async (version) => {
    const response = await fetch(`${server.url}/.well-known/agent-card.json`, {
      headers: version === '' ? {} : { 'a2a-version': version },
    });
    const card = (await response.json()) as AgentCard & { securitySchemes: Record<string, unknown> };
    await verify(card);
    await expect(verify({ ...card, name: 'CleverAgentz' })).rejects.toThrow();
    expect(card.securitySchemes['openIdConnect']).toMatchObject({
      openIdConnectSecurityScheme: { openIdConnectUrl: `${provider.issuer}/.well-known/openid-configuration` },
    });
  });

  test('are read, replaced by the extended one and verified by the official client as it is meant to be used', async () => {
    const fetchImpl: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${keys.agent_key}`);
      return fetch(input, { ...init, headers });
    };
    const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    });
    const client = await new ClientFactory(options).createFromUrl(server.url);
    const card = await client.getAgentCard(undefined, verify);
    expect(card.skills.map(({ id }) => id)).toContain('asks');
  });

  test('are signed by another key than the trail, and the health check says that all is in order', async () => {
    const { keys: ofCards } = (await (await fetch(`${server.url}/.well-known/agent-card-jwks.json`)).json()) as { keys: JWK[] };
    const { keys: ofTrail } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as { keys: JWK[] };
    expect([ofCards.length, ofTrail.length]).toEqual([1, 1]);
    expect(ofCards[0]?.kid).not.toBe(ofTrail[0]?.kid);
    const health = await createClient({ url: server.url, key: keys.key }).call('_cleveragents/health/check', {});
    expect(health).toMatchObject({ status: 'ok' });
    expect(health.checks.map(({ name, status, detail }) => [name, status, detail])).toEqual(
      expect.arrayContaining([
        ['card_signing', 'ok', undefined],
        ['identity_provider', 'ok', undefined],
      ]),
    );
  });
});
