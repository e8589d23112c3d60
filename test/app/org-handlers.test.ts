import { beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const SET = '_cleveragents/org/policy/set';
const show = (caller = admin) => caller.call('_cleveragents/org/policy/show', {});
const FLOOR = {
  guardrails: { tool_denylist: ['pay.send'], max_total_cost: 5 },
  threshold_minima: { select_tool: 1 },
  safety: { allow_unsafe_tools: false },
} as const;

describe('org/policy', () => {
  it('is a floor that binds nothing until one is set', async () => {
    expect(await show()).toEqual({ version: 0, digest: digestOf(sha256, {}), policy: {}, updated_at: null, updated_by: null });
  });

  it('is replaced as a whole, and says who did it and when', async () => {
    const first = await admin.call(SET, { policy: FLOOR });
    expect(first).toEqual({
      version: 1,
      digest: digestOf(sha256, FLOOR),
      policy: FLOOR,
      updated_at: '2026-11-30T12:00:00.000Z',
      updated_by: admin.principal.keyId,
      done: true,
      reached: 0,
      unreached: [],
    });
    const { done: _done, reached: _reached, unreached: _unreached, ...stored } = first;
    expect(await show()).toEqual(stored);
    service.clock.ms += 1000;
    expect(await admin.call(SET, { policy: {} })).toMatchObject({ version: 2, policy: {}, updated_at: '2026-11-30T12:00:01.000Z' });
  });

  it('is the own of each org', async () => {
    await admin.call(SET, { policy: FLOOR });
    expect(await show(await service.caller('other'))).toMatchObject({ version: 0, policy: {} });
  });

  it('takes a change with the version that was read, and refuses it with another', async () => {
    await admin.call(SET, { policy: FLOOR, expected_version: 0 });
    expect(await admin.refused(SET, { policy: {}, expected_version: 0 })).toMatchObject({ kind: 'invalid_state' });
    expect(await show()).toMatchObject({ version: 1, policy: FLOOR });
    await admin.call(SET, { policy: {}, expected_version: 1 });
  });

  it('of two changes at the same instant takes one', async () => {
    const both = await Promise.allSettled([admin.call(SET, { policy: FLOOR }), admin.call(SET, { policy: {} })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect((await show()).version).toBe(1);
  });

  it.each<[object, string]>([
    [{ guardrails: { max_steps: -1 } }, 'policy.guardrails.max_steps'],
    [{ guardrails: { tool_allowlist: [' '] } }, 'policy.guardrails.tool_allowlist.0'],
    [{ threshold_minima: { select_tool: 2 } }, 'policy.threshold_minima.select_tool'],
    [{ threshold_minima: { apply: 1 } }, 'policy.threshold_minima.apply'],
    [{ safety: { require_sandbox: false } }, 'policy.safety.require_sandbox'],
    [{ denylist: [] }, 'policy.denylist'],
  ])('refuses %j by the field %s, and changes nothing', async (policy, field) => {
    expect(await admin.refused(SET, { policy: policy as typeof FLOOR })).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    expect(await show()).toMatchObject({ version: 0 });
  });

  it('is read by viewers and changed by admins only', async () => {
    for (const roles of [['viewer'], ['operator'], ['approver']] as const) {
      const caller = await service.caller('acme', { roles });
      await show(caller);
      expect(await caller.refused(SET, { policy: {} })).toMatchObject({ kind: 'forbidden' });
    }
  });
});
