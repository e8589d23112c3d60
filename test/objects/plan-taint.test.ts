/** What content from outside may decide: nothing that goes outside, unless the profile names where to (design section 6, issue "Taint"). */
import { describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { Principal } from '../../src/core/principal.ts';
import { approve, isSettled, newOrg, onlyPending, performed, rowsOf, services, startSteps, until } from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<void> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
}

/** A profile without threshold, sandbox and ban, that names these hosts; made as an operator of the org makes it. */
async function profileFor(person: Principal, hosts: readonly string[]): Promise<string> {
  await call(person, '_cleveragents/config/set', { key: 'sandbox.strategy', value: 'none' });
  await call(person, '_cleveragents/config/set', { key: 'sandbox.checkpoint.enabled', value: false });
  const profile = { name: 'hosts', extends: 'full-auto', safety: { tainted_write_hosts: [...hosts] } };
  await call(person, '_cleveragents/profile/add', { profile });
  return 'hosts';
}

const write = (label: string, host?: string) => ({
  call: { tool: 'test/external_write', arguments: { label, ...(host === undefined ? {} : { host }) } },
});
const read = (label: string) => ({ call: { tool: 'test/outside', arguments: { label } } });

const toolsOf = (label: string): readonly string[] => performed(label).map(({ tool }) => tool);

describe('a write to the outside', () => {
  it.each([
    ['after content from outside, to a host that the profile names, runs', ['api.example.com'], 'api.example.com', true],
    ['after content from outside, to a host below one that it names, runs', ['*.example.com'], 'a.b.example.com', true],
    ['after content from outside, to another host, asks', ['api.example.com'], 'api.example.com.evil.test', false],
    ['after content from outside, to a host that is not known, asks', ['api.example.com'], undefined, false],
    ['after content from outside, where the profile names no host, asks', [], 'api.example.com', false],
  ])('%s', async (_case, hosts, host, free) => {
    const person = await newOrg();
    const profile = await profileFor(person, hosts);
    const planId = await startSteps(person, [read(person.org), write(person.org, host)], { profile });
    const settled = await until(person, planId, isSettled);
    if (free) {
      expect(settled.plan).toMatchObject({ phase: 'apply', state: 'applied' });
      expect(toolsOf(person.org)).toEqual(['test/outside', 'test/external_write']);
      return;
    }
    const approval = onlyPending(settled);
    expect(approval).toMatchObject({ kind: 'call', guard: 'taint' });
    expect(approval.reason).toContain(host ?? 'a host that is not known');
    expect(toolsOf(person.org)).toEqual(['test/outside']);
    const decided = await rowsOf(person, planId, 'call_decided');
    expect(decided.at(-1)?.data).toMatchObject({ allowed: false, event_type: 'taint_blocked', guard: 'taint' });
    await approve(person, planId, approval);
    await until(person, planId, ({ plan }) => plan.terminal);
    expect(toolsOf(person.org)).toEqual(['test/outside', 'test/external_write']);
  });

  it('before any content from outside goes anywhere, and what was read once stays read', async () => {
    const person = await newOrg();
    const profile = await profileFor(person, ['api.example.com']);
    const label = person.org;
    const steps = [write(label, 'evil.test'), read(label), write(label, 'api.example.com'), write(label, 'evil.test')];
    const planId = await startSteps(person, steps, { profile });
    expect(onlyPending(await until(person, planId, isSettled))).toMatchObject({ kind: 'call', guard: 'taint' });
    expect(toolsOf(label)).toEqual(['test/external_write', 'test/outside', 'test/external_write']);
  });

  it('asks at a host that the org forbids, whatever the profile names', async () => {
    const person = await newOrg();
    const profile = await profileFor(person, ['api.example.com', 'b.test']);
    await call(person, '_cleveragents/org/policy/set', { policy: { safety: { tainted_write_hosts: ['b.test'] } } });
    const label = person.org;
    const planId = await startSteps(person, [read(label), write(label, 'b.test'), write(label, 'api.example.com')], { profile });
    expect(onlyPending(await until(person, planId, isSettled))).toMatchObject({ kind: 'call', guard: 'taint' });
    expect(performed(label).map(({ args }) => args['host'])).toEqual([undefined, 'b.test']);
  });
});
