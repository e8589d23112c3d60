// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * Somebody changes the files of a local server while it is down. With the next start the commands of a person name what was done, with
 * exit codes that a script sees; the plan decides nothing any more; plans beside it are as they were. And secrets leave by no way.
 */
import { readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, temporaryFolder } from '../support/server.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type AgentsRun, makeWorld, runAgents, type World } from './world.ts';

let state: string;
let receiver: Receiver;
let world: World;
const start = async (): Promise<World> => makeWorld(await startServer({ entry: 'test', state }), receiver);
beforeAll(async () => {
  [state, receiver] = await Promise.all([temporaryFolder(), startReceiver()]);
  world = await start();
});
afterAll(async () => {
  await world.stop();
  await rm(state, { recursive: true, force: true });
});

const agents = (...args: readonly string[]): Promise<AgentsRun> => runAgents(args, world.server.connection);

/** Every SQLite file of the state folder that holds the log of this plan. */
async function fileOf(planId: string): Promise<string> {
  const files = (await readdir(state, { recursive: true })).filter((name) => name.endsWith('.sqlite')).map((name) => join(state, name));
  for (const file of files) {
    const database = new DatabaseSync(file);
    try {
      const hasLog = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'log_parts'").get() !== undefined;
      const first = hasLog ? database.prepare('SELECT body FROM log WHERE seq = 1').get() : undefined;
      if (String(first?.['body'] ?? '').includes(`"plan_id":"${planId}"`)) return file;
    } finally {
      database.close();
    }
  }
  throw new Error(`no file holds plan ${planId}`);
}

async function change(planId: string, how: (database: DatabaseSync) => void): Promise<void> {
  const database = new DatabaseSync(await fileOf(planId));
  how(database);
  database.close();
}

const bodyOf = (database: DatabaseSync, seq: number): string =>
  String(database.prepare('SELECT body FROM log WHERE seq = ?').get(seq)?.['body']);
const setBody = (database: DatabaseSync, seq: number, body: string): void =>
  void database.prepare('UPDATE log SET body = ? WHERE seq = ?').run(body, seq);

const CLASSES: readonly (readonly [name: string, how: (database: DatabaseSync) => void, named: RegExp])[] = [
  ['a flipped byte', (db) => setBody(db, 4, bodyOf(db, 4).replace('"at":"2', '"at":"1')), /at row 4: changed/],
  ['a row that is no JSON any more', (db) => setBody(db, 4, bodyOf(db, 4).slice(1)), /at row 4: changed/],
  ['a dropped row', (db) => db.exec('DELETE FROM log WHERE seq = 4'), /at row 5: gap/],
  [
    'two rows swapped',
    (db) => {
      const [four, five] = [bodyOf(db, 4), bodyOf(db, 5)];
      setBody(db, 4, five);
      setBody(db, 5, four);
    },
    /at row 5: gap/,
  ],
  [
    'a row put in between',
    (db) => {
      db.exec('UPDATE log SET seq = -seq - 1 WHERE seq >= 4; UPDATE log SET seq = -seq WHERE seq < 0');
      db.exec('INSERT INTO log (seq, body) SELECT 4, body FROM log WHERE seq = 5');
    },
    /at row 4: gap/,
  ],
  ['the end cut off', (db) => db.exec('DELETE FROM log WHERE seq > 6'), /at row 7: truncated/],
  [
    'the end cut off with what knew of it in the same file',
    (db) => db.exec('DELETE FROM log WHERE seq > 6; DELETE FROM heads; DELETE FROM meta; DELETE FROM snapshot'),
    /at row 7: truncated/,
  ],
  ['all rows deleted', (db) => db.exec('DELETE FROM log'), /at row 1: deleted/],
];

describe('the files of a server that was killed', () => {
  const plans: string[] = [];
  let untouched = '';
  let waiting = '';
  let gone = '';

  beforeAll(async () => {
    const step = { call: { tool: 'test/counter', arguments: {} } };
    const common = { description: 'Counts', actor: 'scripted/steps', automation_profile: 'auto', apply: 'none' } as const;
    await world.addAction({ ...common, name: 'counts', execute: [step, step] });
    await world.addAction({ ...common, name: 'asks', execute: [step, { ask: 'Go on?' }, step] });
    const ended = async (): Promise<string> => {
      const { plan_id } = await world.use('counts');
      await world.until(plan_id, (plan) => plan.state === 'applied');
      await signed(plan_id);
      return plan_id;
    };
    for (const _ of CLASSES) plans.push(await ended());
    [untouched, gone] = [await ended(), await ended()];
    waiting = (await world.use('asks')).plan_id;
    await world.pending(waiting);
    await world.server.kill('SIGKILL');
    for (const [index, [, how]] of CLASSES.entries()) await change(plans[index] ?? '', how);
    await change(waiting, (db) => setBody(db, 3, 'x'));
    const file = await fileOf(gone);
    for (const name of ['', '-wal', '-shm']) await unlink(`${file}${name}`).catch(() => undefined);
    world = await start();
  }, 120_000);

  /** Until index, trail and signature of the end are written. */
  async function signed(planId: string): Promise<void> {
    for (;;) {
      const verdict = await world.human.call('_cleveragents/plan/guard/audit/verify', { plan_id: planId });
      if (verdict.head_signature === 'valid' && verdict.trail === 'complete' && verdict.signed_seq === verdict.entries) return;
      await sleep(50);
    }
  }

  test.each(CLASSES.map(([name, , named], index) => [name, named, index] as const))(
    'show to agents plan guard verify: %s',
    async (_, named, index) => {
      const run = await agents('plan', 'guard', 'verify', plans[index] ?? '');
      expect(`${run.stdout}${run.stderr}`).toMatch(/NOT VALID/);
      expect(`${run.stdout}${run.stderr}`).toMatch(named);
      expect(run.code).toBe(1);
    },
  );

  test.each(CLASSES.map(([name], index) => [name, index] as const))(
    'make an export that agents audit verify refuses: %s',
    async (_, index) => {
      const file = join(state, `export-${index}.jsonl`);
      const exported = await agents('audit', 'export', plans[index] ?? '', '--out', file);
      // Of a log without its tables' content the service may know nothing more to export.
      if (exported.code !== 0) {
        expect(`${exported.stdout}${exported.stderr}`).toMatch(/not found/i);
        return;
      }
      const run = await agents('audit', 'verify', file);
      expect(`${run.stdout}${run.stderr}`).toMatch(/NOT VALID/);
      expect(run.code).toBe(1);
    },
  );

  test('that are gone for a plan are named by what the database knows of it', async () => {
    const run = await agents('plan', 'guard', 'verify', gone);
    expect(`${run.stdout}${run.stderr}`).toMatch(/NOT VALID at row 1: deleted/);
    expect(run.code).toBe(1);
  });

  test('that were damaged for a plan that waits refuse every decision on it, by name and for good', async () => {
    expect((await agents('plan', 'guard', 'verify', waiting)).code).toBe(1);
    for (const args of [
      ['plan', 'status', waiting],
      ['plan', 'cancel', waiting],
      ['plan', 'execute', waiting],
    ]) {
      const run = await agents(...args);
      expect(`${run.stdout}${run.stderr}`).toMatch(/damaged \(changed at row 3/);
      expect(run.code).toBe(4);
    }
    await expect(world.human.call('_cleveragents/plan/status', { plan_id: waiting })).rejects.toMatchObject({ code: -32004 });
    const trail = await world.human.call('_cleveragents/plan/guard/audit', { plan_id: waiting });
    expect(trail.log_problem).toMatchObject({ problem: 'changed', first_bad_seq: 3 });
  });

  test('are as they were for the plan that nobody touched', async () => {
    expect((await agents('plan', 'guard', 'verify', untouched)).code).toBe(0);
    const file = join(state, 'good.jsonl');
    expect((await agents('audit', 'export', untouched, '--out', file)).code).toBe(0);
    expect((await agents('audit', 'verify', file)).code).toBe(0);
    await writeFile(file, 'no export');
    expect((await agents('audit', 'verify', file)).code).toBe(1);
  });
});

test('secrets, by the name of their member and by their shape, leave with no trail, no stream, no export and no CSV', async () => {
  const key = `sk-${'Ab3dEf6hIj9k'.repeat(3)}`;
  const password = 'correct-horse-7-battery';
  const reason = `no: ${key} is in it`;
  await world.addAction({
    name: 'secretive',
    description: 'Has secrets',
    arguments: { type: 'object', properties: { label: { type: 'string' }, password: { type: 'string' } } },
    actor: 'scripted/steps',
    automation_profile: 'manual',
    apply: 'none',
    execute: [{ call: { tool: 'test/counter', arguments: { label: '${args.label}', padding: '${args.password}' } } }],
  });
  const { plan_id } = await world.use('secretive', { arguments: { label: `use ${key}`, password } });
  const stop = new AbortController();
  const stream = follow(plan_id, stop.signal);
  // Two gates, then the call itself, which is refused with a reason that holds the secret.
  for (;;) {
    const approval = await world.pending(plan_id);
    if ((approval.calls ?? []).length > 0 || approval.call !== undefined) {
      await world.human.call('_cleveragents/approval/decide', {
        approval_id: approval.approval_id,
        decision: 'deny',
        digest: approval.digest,
        reason,
      });
      break;
    }
    await world.approve(approval);
  }
  await world.until(plan_id, (plan) => ['errored', 'cancelled', 'applied'].includes(plan.state));
  await sleep(500);
  stop.abort();
  const streamed = await stream;
  const trail = JSON.stringify(await world.human.call('_cleveragents/plan/guard/audit', { plan_id, limit: 1000, expand: true }));
  const jsonl = (await world.human.call('_cleveragents/audit/export', { plan_id, limit: 1000 })).content;
  const csv = (await world.human.call('_cleveragents/audit/export', { plan_id, limit: 1000, format: 'csv' })).content;
  for (const [way, text] of Object.entries({ streamed, trail, jsonl, csv })) {
    expect(text, way).toContain('[masked]');
    expect(text, way).not.toContain(key);
  }
  // By its name it is a secret wherever the member stands; the stream shows the call that is asked about.
  for (const [way, text] of Object.entries({ trail, jsonl, csv })) expect(text, way).not.toContain(password);
});

/** Everything that the plan's stream brings until it is told to stop. */
async function follow(planId: string, signal: AbortSignal): Promise<string> {
  const { url, key } = world.server.connection;
  const response = await fetch(`${url}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: planId } }),
    signal,
  });
  let text = '';
  try {
    for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) text += chunk;
  } catch (cause) {
    if (!signal.aborted) throw cause;
  }
  return text;
}
