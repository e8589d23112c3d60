/** Names of profiles in settings, actions and other profiles, and the deletion of profiles, at once and in D1: no name is left that leads nowhere. */
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import { newOrg, pause, services } from './plan-support.ts';

const ROUNDS = 24;

describe('a profile', () => {
  it('that is deleted while settings, actions and profiles come to name it either stays, or nothing names it', async () => {
    const person = await newOrg();
    const ask = async <N extends OperationName>(name: N, params: ParamsInputOf<N>): Promise<Result<ResultOf<N>, Refusal>> => {
      const found = findOperation(name);
      if (found === null) throw new Error(`no operation ${name}`);
      return (await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services)) as Result<
        ResultOf<N>,
        Refusal
      >;
    };
    const key = 'core.automation-profile';
    const seen = { deleted: 0, kept: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const [profile, action] = [`p${round}`, `a-${ulid().toLowerCase()}`];
      expect(await ask('_cleveragents/profile/add', { profile: { name: profile, extends: 'auto' } })).toMatchObject({ ok: true });
      const body = {
        name: action,
        description: 'Says it',
        actor: 'scripted/steps',
        automation_profile: profile,
        execute: [{ say: 'done' }],
      };
      // Each of them begins first in turn, and each has a head start of its own.
      const late = <T>(index: number, begin: () => Promise<T>): Promise<T> => pause(((index + round) % 4) * (round % 8)).then(begin);
      const [deleted, set, added, made] = await Promise.all([
        late(0, () => ask('_cleveragents/profile/delete', { name: profile })),
        late(1, () => ask('_cleveragents/config/set', { scope: 'org', key, value: profile })),
        late(2, () => ask('_cleveragents/action/add', { action: body })),
        late(3, () => ask('_cleveragents/profile/add', { profile: { name: `made-${profile}`, extends: profile } })),
      ]);
      const named = await services.profiles.namedBy(person.org, profile);
      const expected = { scopes: set.ok ? ['org'] : [], actions: added.ok ? [action] : [], profiles: made.ok ? [`made-${profile}`] : [] };
      expect(named).toEqual(expected);
      const isThere = (await ask('_cleveragents/profile/show', { name: profile })).ok;
      expect(isThere).toBe(!deleted.ok);
      expect(Object.values(named).flat().length > 0).toBe(isThere);
      seen[isThere ? 'kept' : 'deleted'] += 1;
      expect(await ask('_cleveragents/config/set', { scope: 'org', key, value: null })).toMatchObject({ ok: true });
    }
    console.log(`profiles deleted while they are named: ${JSON.stringify(seen)}`);
    expect(Math.min(seen.deleted, seen.kept)).toBeGreaterThan(0);
  }, 60_000);
});
