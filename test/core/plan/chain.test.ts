import { describe, expect, it } from 'vitest';
import { chainRow, genesisHash, verifyChain } from '../../../src/core/plan/chain.ts';
import type { PlanEvent } from '../../../src/core/plan/events.ts';
import { call, PLAN_ID, PlanDriver, sha256 } from './plan-driver.ts';

const GENESIS = genesisHash(sha256, 'acme', PLAN_ID);
const { rows, plan } = PlanDriver.run({}, { execute: [{ calls: [call('files.write'), call('model.ask')] }] });
const at = (index: number) => {
  const row = rows[index];
  if (row === undefined) throw new Error(`no row ${index}`);
  return row;
};
const event: PlanEvent = {
  type: 'plan_cancelled',
  at: '2026-03-01T09:00:00.000Z',
  actor: { kind: 'human', id: 'boss' },
  data: { reason: null, to: { phase: 'execute', state: 'cancelled', terminal: true } },
};

describe('the chain of a log', () => {
  it('verifies, and ends at the head that the plan knows', () => {
    expect(verifyChain(sha256, GENESIS, rows)).toEqual({ valid: true, entries: rows.length, head: plan.headHash });
  });

  it('goes on from a part that was verified before', () => {
    const from = { seq: at(3).seq, head: at(3).hash };
    expect(verifyChain(sha256, GENESIS, rows.slice(4), from)).toMatchObject({ valid: true, entries: rows.length - 4, head: plan.headHash });
  });

  it('is valid when it is empty, with the genesis as its head', () => {
    expect(verifyChain(sha256, GENESIS, [])).toEqual({ valid: true, entries: 0, head: GENESIS });
  });

  it('binds every hash to the row before, to the number and to the content', () => {
    const hashes = [
      chainRow(sha256, GENESIS, 5, event).hash,
      chainRow(sha256, at(0).hash, 5, event).hash,
      chainRow(sha256, GENESIS, 6, event).hash,
      chainRow(sha256, GENESIS, 5, { ...event, actor: { kind: 'human', id: 'asker' } }).hash,
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(chainRow(sha256, GENESIS, 5, event).hash).toBe(hashes[0]);
  });

  it.each([
    { name: 'a row is missing', broken: rows.toSpliced(2, 1), seq: 4, problem: 'gap' },
    { name: 'a row is there twice', broken: rows.toSpliced(2, 0, at(2)), seq: 3, problem: 'gap' },
    {
      name: 'a row says that another came before it',
      broken: rows.with(2, { ...at(2), prev: at(0).hash }),
      seq: 3,
      problem: 'broken_link',
    },
    { name: 'a row was changed', broken: rows.with(2, { ...at(2), at: '2030-01-01T00:00:00.000Z' }), seq: 3, problem: 'changed' },
    {
      name: 'a row was replaced together with its hash',
      broken: rows.with(2, chainRow(sha256, at(1).hash, 3, event)),
      seq: 4,
      problem: 'broken_link',
    },
    {
      name: 'the first row continues something else',
      broken: rows.with(0, chainRow(sha256, at(5).hash, 1, event)),
      seq: 1,
      problem: 'broken_link',
    },
  ])('names the row at which it is wrong: $name', ({ broken, seq, problem }) => {
    expect(verifyChain(sha256, GENESIS, broken)).toMatchObject({ valid: false, seq, problem });
  });

  it('cut off at its end is another head', () => {
    expect(verifyChain(sha256, GENESIS, rows.slice(0, -1))).toMatchObject({ valid: true, head: at(rows.length - 2).hash });
    expect(at(rows.length - 2).hash).not.toBe(plan.headHash);
  });
});
