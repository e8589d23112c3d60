/** Refused callers in the log of their org, through HTTP: keys that open nothing, missing rights, plans that are not the org's. */
import { describe, expect, test } from 'vitest';
import { call, type Deployment, deploy, START_MS } from './deployment.ts';

const ORG = 'acme';
const TASK = '01HXRCF1ABCDE12345678901AB';
const iso = (ms: number): string => new Date(ms).toISOString();

async function refusals({ services }: Deployment, org = ORG): Promise<readonly object[]> {
  const rows = (await services.orgLog.page(org, { afterSeq: 0, limit: 100 }))?.rows ?? [];
  return rows.map(({ type, actor, data }) => ({ type, actor: { kind: actor.kind, id: actor.id }, ...data }));
}

/** One method of each family. */
describe.each([
  ['tasks/get', { id: TASK }],
  ['_cleveragents/plan/status', { plan_id: TASK }],
] as const)('%s', (method, params) => {
  test.each([
    ['revoked', { revokedAt: iso(START_MS - 1) }, 'key_revoked'],
    ['expired', { expiresAt: iso(START_MS - 1) }, 'key_expired'],
  ] as const)('with a %s key is a row with the id of the key and what was called', async (_what, record, reason) => {
    const deployment = deploy();
    const key = await deployment.addKey({ id: 'dead', ...record });
    expect((await call(deployment.app, method, params, { key })).status).toBe(401);
    expect(await refusals(deployment)).toMatchObject([
      { type: 'access_refused', actor: { kind: 'human', id: 'dead' }, reason, count: 1, operations: [method] },
    ]);
  });

  test('with the id of a key and another secret is one, with an id that nobody has is none in any log', async () => {
    const deployment = deploy();
    const key = await deployment.addKey({ id: 'known' });
    expect((await call(deployment.app, method, params, { key: `${key.slice(0, -4)}xxxx` })).status).toBe(401);
    const unknown = key.replace('known', 'nobody');
    expect((await call(deployment.app, method, params, { key: unknown })).status).toBe(401);
    expect(await refusals(deployment)).toMatchObject([{ reason: 'wrong_secret', actor: { id: 'known' }, count: 1 }]);
  });

  test('of a plan that the org does not have is one, with the id that was asked for', async () => {
    const deployment = deploy();
    const key = await deployment.addKey({ id: 'caller' });
    await call(deployment.app, method, params, { key });
    expect(await refusals(deployment)).toMatchObject([
      { reason: 'unknown_plan', actor: { id: 'caller' }, subjects: [TASK], operations: [method] },
    ]);
  });
});

test('a tenant that is not the org of the key is one, with what was named, and none in the log of that tenant', async () => {
  const deployment = deploy();
  const key = await deployment.addKey({ id: 'caller' });
  await deployment.addKey({ id: 'theirs', org: 'other' });
  await call(deployment.app, 'GetTask', { id: TASK, tenant: 'other' }, { key, headers: { 'a2a-version': '1.0' } });
  expect(await refusals(deployment)).toMatchObject([{ reason: 'foreign_tenant', actor: { id: 'caller' }, subjects: ['other'], count: 1 }]);
  expect(await refusals(deployment, 'other')).toEqual([]);
});

test('a standard method without the role for it is one, the first and the rest of a minute in two rows', async () => {
  const deployment = deploy();
  const key = await deployment.addKey({ id: 'viewer', roles: ['viewer'], kind: 'agent' });
  for (let times = 0; times < 5; times += 1) expect((await call(deployment.app, 'tasks/cancel', { id: TASK }, { key })).status).toBe(403);
  deployment.advance(60_000);
  expect(await refusals(deployment)).toMatchObject([
    { reason: 'role_missing', actor: { kind: 'agent', id: 'viewer' }, count: 1, operations: ['tasks/cancel'] },
    { reason: 'role_missing', count: 4 },
  ]);
});

test('what the log does with a refusal changes nothing of its answer', async () => {
  const silent = deploy({ services: { orgLog: { ...deploy().services.orgLog, refused: () => undefined } } });
  const noting = deploy();
  const answers = await Promise.all(
    [silent, noting].map(async (deployment) => {
      const key = await deployment.addKey({ id: 'dead', revokedAt: iso(START_MS - 1) });
      return call(deployment.app, 'session.list', {}, { key });
    }),
  );
  expect(answers[0]?.body).toEqual(answers[1]?.body);
  expect(answers[0]?.status).toBe(401);
});
