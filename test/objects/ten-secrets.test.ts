/**
 * Ten kinds of secrets, put into everything that somebody can write into: nothing that tells of the plan or the org shows one. What is handed
 * over as it is (files and artifacts, the product of the plan) is named.
 */
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import { extensionError } from '../../src/a2a/errors.ts';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { runStandard } from '../../src/app/standard.ts';
import { eventsOf } from '../../src/app/task-view.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { Principal } from '../../src/core/principal.ts';
import { addAction, answer, auditOf, cancel, isSettled, isTerminal, newOrg, onlyPending, planOf, services, until } from './plan-support.ts';

/** Never whole in this file, so that no scanner takes a sample for a leak. */
const join = (...parts: readonly string[]): string => parts.join('');

const SECRETS: ReadonlyMap<string, string> = new Map([
  ['a classic GitHub token', join('ghp_', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8')],
  ['a fine-grained GitHub token', join('github_pat_', '11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789')],
  ['an AWS key id with its secret', join('AKIA', 'IOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/', 'bPxRfiCYEXAMPLEKEY')],
  ['a Slack token', join('xoxb-', '123456789012-1234567890123-a1B2c3D4e5F6')],
  ['a Google key', join('AIza', 'SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q')],
  ['a JSON web token', join('eyJ', 'hbGciOiJIUzI1NiJ9.', 'eyJzdWIiOiIxMjM0NTY3ODkwIn0.', 'dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P')],
  [
    'a private key',
    join('-----BEGIN ', 'PRIVATE KEY-----\n', 'MC4CAQAwBQYDK2VwBCIEIabCD09+/abCD09+/abCD09', '\n-----END PRIVATE KEY-----'),
  ],
  ['a bearer credential', join('Authorization: Bearer ', 'Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg')],
  ['a password in an address', join('https://bob:', 'correct-horse-9', '@git.example.com/x')],
  ['one of our own keys', join('ca_01HXRCF1ABCDE12345678901AB_', 'Ab3_dEf6-hIj9kLm2nOp5qRs8tUv1wXy4z_012345')],
  ['an OpenAI key', join('sk-', 'proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z')],
  ['an Anthropic key', join('sk-', 'ant-api03-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z')],
]);

/** The part of a secret that opens something. */
const heart = (secret: string): string => /correct-horse-9|[A-Za-z0-9+/_-]{16,}(?=\n-----END)/.exec(secret)?.[0] ?? secret.slice(-14);

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

async function refused(person: Principal, name: OperationName, params: JsonObject): Promise<unknown> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (result.ok) throw new Error(`${name} was not refused`);
  return extensionError(result.error);
}

it('ten kinds of secrets are shown nowhere, wherever they were written', async () => {
  const person = await newOrg();
  const said = [...SECRETS.values()].map((secret) => `before ${secret} after`).join('\n');
  const steps = [
    { id: 'first', call: { tool: 'test/counter', arguments: { label: said, padding: said } } },
    { decide: { type: 'implementation_choice', question: said, chosen: said, alternatives: [said], rationale: said } },
    { say: said },
    { on_refused: 'continue', call: { tool: 'test/priced', arguments: { label: said } } },
    { on_refused: 'continue', call: { tool: `no_such_tool`, arguments: { label: said } } },
    { ask: said },
    { artifact: { name: 'report.txt', text: said } },
  ];
  const action = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    arguments: { type: 'object', properties: { note: { type: 'string' } } },
    execute: steps,
    apply: 'none',
  });
  const used = await call(person, '_cleveragents/plan/use', {
    action_name: action,
    arguments: { note: said },
    automation_profile: 'auto',
    guardrails: { tool_denylist: ['test/priced'] },
  });
  const planId = used.plan_id;
  const shown: [string, unknown][] = [['use', used]];
  const look = async (when: string): Promise<void> => {
    const of = { plan_id: planId };
    shown.push([`${when}: status`, await call(person, '_cleveragents/plan/status', of)]);
    shown.push([`${when}: tree`, await call(person, '_cleveragents/plan/tree', of)]);
    shown.push([`${when}: approvals`, await call(person, '_cleveragents/approval/list', of)]);
    shown.push([`${when}: list`, await call(person, '_cleveragents/plan/list', {})]);
    shown.push([`${when}: trail`, await call(person, '_cleveragents/plan/guard/audit', of)]);
    shown.push([`${when}: guards of it`, await call(person, '_cleveragents/plan/guard/audit', { ...of, expand: true })]);
    shown.push([`${when}: export`, await call(person, '_cleveragents/audit/export', of)]);
    shown.push([`${when}: sheet`, await call(person, '_cleveragents/audit/export', { ...of, format: 'csv' })]);
    shown.push([`${when}: database`, await auditOf(person, planId)]);
    const task = { principal: person, idempotencyKey: null, signal: new AbortController().signal };
    const got = await runStandard({ op: 'get', params: { id: planId } } as never, task as never, services);
    if (!got.ok) throw new Error(JSON.stringify(got.error));
    // Artifacts are the product of the plan: handed over as they are.
    const { artifacts: _artifacts, ...rest } = got.value as { artifacts?: unknown };
    shown.push([`${when}: task`, rest]);
  };

  const denied = onlyPending(await until(person, planId, isSettled));
  await look('waiting');
  await answer(person, planId, denied, { decision: 'deny', reason: said });
  const question = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && onlyPending(snapshot).id !== denied.id));
  expect(question.kind).toBe('question');
  await look('asked');
  shown.push([
    'refused',
    await refused(person, '_cleveragents/approval/decide', {
      approval_id: question.id,
      decision: 'answer',
      text: said,
      digest: '0'.repeat(64),
    }),
  ]);
  await answer(person, planId, question, { decision: 'answer', text: said });
  await until(person, planId, isTerminal);
  await look('ended');
  const feed = await planOf(person, planId).follow({ afterSeq: 0, signal: AbortSignal.timeout(5000), maxMs: 5000 });
  for await (const item of feed ?? []) {
    if (item.kind !== 'update' || item.update.kind !== 'status') continue;
    shown.push(['stream', eventsOf(item.update, () => false)]);
  }
  // One that is given up, with a reason.
  const other = await call(person, '_cleveragents/plan/use', { action_name: action, automation_profile: 'manual' });
  await until(person, other.plan_id, isSettled);
  await cancel(person, other.plan_id, said);
  shown.push(['cancelled', await call(person, '_cleveragents/plan/status', { plan_id: other.plan_id })]);
  shown.push(['cancelled trail', await call(person, '_cleveragents/plan/guard/audit', { plan_id: other.plan_id })]);

  // The org's own log: what was changed, what was refused, and what somebody typed in the wrong place.
  await call(person, '_cleveragents/halt/set', { level: 'org', reason: said });
  await call(person, '_cleveragents/halt/clear', { level: 'org' });
  await call(person, '_cleveragents/profile/add', { profile: { name: 'own', description: said, extends: 'auto' } });
  shown.push(['bad value', await refused(person, '_cleveragents/config/set', { key: 'core.automation-profile', value: said })]);
  shown.push(['bad name', await refused(person, '_cleveragents/project/create', { name: said })]);
  shown.push(['bad plan', await refused(person, '_cleveragents/halt/set', { level: 'plan', plan_id: ulid(), reason: said })]);
  shown.push(['org log', await call(person, '_cleveragents/org/log/list', { limit: 1000 })]);
  shown.push(['org export', await call(person, '_cleveragents/org/log/export', {})]);
  shown.push(['org sheet', await call(person, '_cleveragents/org/log/export', { format: 'csv' })]);

  const isIn = (text: string, secret: string): boolean => text.includes(JSON.stringify(heart(secret)).slice(1, -1));
  const leaks = shown.flatMap(([where, each]) => {
    const text = JSON.stringify(each);
    return [...SECRETS].flatMap(([name, secret]) => (isIn(text, secret) ? [`${where} shows ${name}`] : []));
  });
  expect(leaks).toEqual([]);
  expect(shown.map(([where]) => where)).toContain('stream');
  // What is handed over as it is.
  const artifacts = JSON.stringify(await call(person, '_cleveragents/plan/artifacts', { plan_id: planId }));
  for (const secret of SECRETS.values()) expect(isIn(artifacts, secret)).toBe(true);
}, 30_000);
