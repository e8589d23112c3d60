/** The pure core of the org's own log: chain, projection, masking, counted refusals, reports of plans. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { orgAuditEntryOf, readOrgEntryOf } from '../../../src/core/org-log/audit.ts';
import { CHANGE_TYPES, ORG_EVENT_TYPES, type OrgEventType, type OrgFact, type OrgLogRow } from '../../../src/core/org-log/org-event.ts';
import { factOfReport, type KnownPlan } from '../../../src/core/org-log/plan-report.ts';
import { recordedMembers, recordedValue } from '../../../src/core/org-log/recorded-value.ts';
import { mergeRefusals, refusalNote } from '../../../src/core/org-log/refusals.ts';
import { chainRow, genesisHash, ORG_LOG_ID, verifyChain } from '../../../src/core/plan/chain.ts';
import { makeMemoryOrgLog } from '../../../src/storage/memory/org-log.ts';

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

const START = Date.parse('2026-11-30T12:00:00.000Z');
const ORG = 'acme';
const GENESIS = genesisHash(sha256, ORG, ORG_LOG_ID);
const actor = { kind: 'human', id: 'key-1', name: 'Ada' } as const;
const CHANGE = { change_id: 'c1', operation: 'o', subject: { key: 'k' } };

function factOf(type: OrgEventType, value: string): OrgFact {
  const position = { plan_id: value, seq: 3, hash: 'h' };
  switch (type) {
    case 'change_requested':
      return { type, actor, data: { ...CHANGE, change: 'key_created', params_digest: 'd', before: value } };
    case 'change_refused':
    case 'change_unresolved':
      return { type, actor, data: { ...CHANGE, change: 'key_created', reason: value } };
    case 'access_refused':
      return {
        type,
        actor,
        data: { reason: 'role_missing', count: 1, operations: [value], subjects: [], first_at: 'a', last_at: 'b' },
      };
    case 'budget_warning':
      return {
        type,
        actor,
        data: { level: 'org', id: value, window: 'total', window_key: 'total', cap_micro_usd: 10, used_micro_usd: 9 },
      };
    case 'plan_created':
    case 'plan_head':
    case 'plan_ended':
      return { type, actor, data: position };
    case 'trail_problem':
      return { type, actor, data: { ...position, problem: 'shorter', known_seq: 4, known_hash: 'k' } };
    default:
      return { type, actor, data: { ...CHANGE, before: null, after: value } };
  }
}

function rowsOf(count: number): OrgLogRow[] {
  const rows: OrgLogRow[] = [];
  for (let index = 0; index < count; index += 1) {
    const type = ORG_EVENT_TYPES[index % ORG_EVENT_TYPES.length] ?? 'plan_head';
    const event = { ...factOf(type, `v${index}`), at: new Date(START + index).toISOString() };
    rows.push(chainRow(sha256, rows.at(-1)?.hash ?? GENESIS, index + 1, event));
  }
  return rows;
}

describe('the chain of the log of an org', () => {
  it('begins with org and kind: no plan and no other org has the same beginning', () => {
    expect(GENESIS).toBe(sha256('{"kind":"org","org":"acme","v":1}'));
    expect(genesisHash(sha256, 'other', ORG_LOG_ID)).not.toBe(GENESIS);
    expect(genesisHash(sha256, ORG, '01HXRCF1ABCDE12345678901AB')).not.toBe(GENESIS);
  });

  const rows = rowsOf(12);
  const at = (index: number): OrgLogRow => rows[index] as OrgLogRow;
  const flipped = JSON.parse(JSON.stringify(at(5)).replace('Ada', 'Eve')) as OrgLogRow;

  it('holds as it was written', () => {
    expect(verifyChain(sha256, GENESIS, rows)).toEqual({ valid: true, entries: 12, head: at(11).hash });
  });

  it.each([
    { what: 'a flipped byte', broken: rows.with(5, flipped), seq: 6, problem: 'changed' },
    { what: 'a dropped row', broken: rows.toSpliced(5, 1), seq: 7, problem: 'gap' },
    { what: 'two rows that changed places', broken: rows.with(5, at(6)).with(6, at(5)), seq: 7, problem: 'gap' },
    { what: 'an inserted row', broken: rows.toSpliced(5, 0, at(4)), seq: 5, problem: 'gap' },
    {
      what: 'a row of another chain in its place',
      broken: rows.with(5, chainRow(sha256, GENESIS, 6, { ...factOf('key_created', 'x'), at: 't' })),
      seq: 6,
      problem: 'broken_link',
    },
  ])('names $what', ({ broken, seq, problem }) => {
    expect(verifyChain(sha256, GENESIS, broken)).toMatchObject({ valid: false, seq, problem });
  });

  it('is shorter, and no more than that, where its end was cut: the signed head says the rest', () => {
    expect(verifyChain(sha256, GENESIS, rows.slice(0, 8))).toEqual({ valid: true, entries: 8, head: at(7).hash });
  });
});

describe('the audit entry of a row', () => {
  test.each(ORG_EVENT_TYPES)('exists for %s: who, what and why', (type) => {
    const row = chainRow(sha256, GENESIS, 1, { ...factOf(type, 'something'), at: '2026-11-30T12:00:00.000Z' });
    const entry = orgAuditEntryOf(row);
    expect(entry).toMatchObject({ seq: 1, timestamp: row.at, eventType: type, actor, hash: row.hash });
    expect(entry.result).toBe(
      ['change_refused', 'change_unresolved', 'access_refused', 'trail_problem'].includes(type) ? 'denied' : 'allowed',
    );
    if (entry.result === 'denied') expect(entry.reason).not.toBeNull();
  });

  it('of a change has what was there before and what is there now', () => {
    for (const type of CHANGE_TYPES) {
      const row = chainRow(sha256, GENESIS, 1, { ...factOf(type, 'now'), at: 't' });
      expect(orgAuditEntryOf(row).context).toMatchObject({ operation: 'o', subject: { key: 'k' }, before: null, after: 'now' });
    }
  });

  it('masks secrets, also in rows that hold them', () => {
    const secret = 'ca_01HXRCF1ABCDE_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';
    for (const type of ORG_EVENT_TYPES) {
      const row = chainRow(sha256, GENESIS, 1, { ...factOf(type, secret), at: 't' });
      expect(JSON.stringify(orgAuditEntryOf(row))).not.toContain('aaaaaaaaaa');
    }
  });

  it('is none where what stands in the log was not written here', () => {
    const row = chainRow(sha256, GENESIS, 1, { type: 'nonsense', at: 't', actor, data: {} });
    expect(readOrgEntryOf(row as unknown as OrgLogRow)).toBeNull();
  });
});

describe('what is recorded of a value', () => {
  it('has its secrets masked, by their names and by their shapes', () => {
    const value = { github_token: 'abc', note: 'Bearer abcdefghijklmnopqrstuvwxyz0123', plain: 'stays', nested: [{ password: 'x' }] };
    expect(recordedValue(sha256, value)).toEqual({
      github_token: '[masked]',
      note: 'Bearer [masked]',
      plain: 'stays',
      nested: [{ password: '[masked]' }],
    });
    expect(recordedMembers(sha256, { key: 'ca_01HXRCF1ABCDE_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', name: 'n' }, ['name'])).toEqual({
      name: 'n',
    });
  });

  it('is a digest where it is long', () => {
    expect(recordedValue(sha256, { text: 'x'.repeat(20_000) })).toEqual({
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      characters: 20_011,
    });
  });
});

describe('counted refusals', () => {
  it('make two rows per key, reason and minute, and the numbers add up to what happened', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ key: fc.integer({ min: 0, max: 2 }), agent: fc.boolean(), waitMs: fc.integer({ min: 0, max: 40_000 }) }), {
          maxLength: 60,
        }),
        async (refusals) => {
          let nowMs = START;
          const log = makeMemoryOrgLog({ sha256, nowMs: () => nowMs });
          const buckets = new Set<string>();
          for (const { key, agent, waitMs } of refusals) {
            nowMs += waitMs;
            const at = new Date(nowMs).toISOString();
            const reason = agent ? 'human_only' : 'role_missing';
            buckets.add(`${key} ${reason} ${at.slice(0, 16)}`);
            log.refused(ORG, refusalNote({ kind: 'agent', id: `key-${key}` }, reason, 'op', null, at));
          }
          nowMs += 120_000;
          const rows = (await log.page(ORG, { afterSeq: 0, limit: 1_000 }))?.rows ?? [];
          expect(rows.reduce((sum, row) => sum + (row.type === 'access_refused' ? row.data.count : 0), 0)).toBe(refusals.length);
          expect(rows.length).toBeLessThanOrEqual(2 * buckets.size);
          expect((await log.verify(ORG))?.valid ?? true).toBe(true);
        },
      ),
      { numRuns: 200 },
    ));

  it('keep ten names of what was asked for, none of them longer than an id', () => {
    let note = null;
    for (let index = 0; index < 50; index += 1) {
      note = mergeRefusals(note, refusalNote(actor, 'unknown_plan', 'op', `${index}`.padEnd(500, 'x'), 't'));
    }
    expect(note?.count).toBe(50);
    expect(note?.subjects).toHaveLength(10);
    expect(Math.max(...(note?.subjects ?? []).map((subject) => subject.length))).toBeLessThanOrEqual(129);
  });
});

describe('a report of a plan', () => {
  const known: KnownPlan = { plan_id: 'p', seq: 10, hash: 'h10', ended: false, createdHash: 'h1', rowSeq: 5 };
  const report = (kind: 'created' | 'head' | 'ended', seq: number, hash: string) => ({ kind, plan_id: 'p', seq, hash }) as const;

  it.each([
    { what: 'the first row of a new plan', of: null, says: report('created', 1, 'h1'), type: 'plan_created' },
    { what: 'a later position', of: known, says: report('head', 74, 'h74'), type: 'plan_head' },
    { what: 'the end', of: known, says: report('ended', 12, 'h12'), type: 'plan_ended' },
    { what: 'the end at the position that is known', of: known, says: report('ended', 10, 'h10'), type: 'plan_ended' },
    { what: 'the beginning once more', of: known, says: report('created', 1, 'h1'), type: null },
    { what: 'the same position once more', of: known, says: report('head', 10, 'h10'), type: null },
    { what: 'an earlier position that came late', of: known, says: report('head', 8, 'h8'), type: null },
    { what: 'the end once more', of: { ...known, ended: true }, says: report('ended', 10, 'h10'), type: null },
    { what: 'another beginning', of: known, says: report('created', 1, 'other'), type: 'trail_problem' },
    { what: 'another row at the known position', of: known, says: report('head', 10, 'other'), type: 'trail_problem' },
    { what: 'an end before what is known', of: known, says: report('ended', 8, 'h8'), type: 'trail_problem' },
  ])('of $what is $type', ({ of, says, type }) => {
    expect(factOfReport(of, says)?.type ?? null).toBe(type);
  });

  it('that contradicts what is known changes nothing of it and is recorded once', async () => {
    const log = makeMemoryOrgLog({ sha256, nowMs: () => START });
    await log.report(ORG, [report('created', 1, 'h1'), report('head', 80, 'h80')]);
    for (let times = 0; times < 3; times += 1) await log.report(ORG, [report('created', 1, 'other'), report('ended', 5, 'h5')]);
    const types = (await log.page(ORG, { afterSeq: 0, limit: 100 }))?.rows.map(({ type }) => type);
    expect(types).toEqual(['plan_created', 'plan_head', 'trail_problem', 'trail_problem']);
    expect(await log.plan(ORG, 'p')).toMatchObject({ seq: 80, hash: 'h80', ended: false });
  });
});
