// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { valueIn } from '../../src/core/plan/snapshot.ts';
import {
  addAction,
  addProject,
  answer,
  approve,
  evict,
  fileOf,
  isSettled,
  isTerminal,
  logOf,
  newOrg,
  onlyPending,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  startSteps,
  stateOf,
  stubOf,
  until,
} from './plan-support.ts';

const MIB = 1024 * 1024;

const sizesOf = (person: Parameters<typeof stubOf>[0], planId: string) =>
  runInDurableObject(stubOf(person, planId), (_object, state) => {
    const longest = (table: string, column: string) =>
      Number(state.storage.sql.exec(`SELECT max(length(CAST(${column} AS BLOB))) AS size FROM ${table}`).one()['size'] ?? 0);
    return {
      log: longest('log', 'body'),
      parts: longest('log_parts', 'body'),
      blobs: longest('blobs', 'bytes'),
      snapshot: longest('snapshot', 'body'),
    };
  });

describe('big values', () => {
  it('a file of half a megabyte that doubles as JSON is written, shown in the diff, approved and applied', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old\n' });
    const actionName = await addAction(person, {
      name: 'write',
      arguments: { type: 'object', properties: { text: { type: 'string' } } },
      execute: [
        {
          id: 'big',
          call: {
            tool: 'write_file',
            arguments: { path: 'big.txt', content: '${args.text}${args.text}${args.text}${args.text}${args.text}' },
          },
        },
      ],
    });
    // Arguments have at most 256 kB; the template makes more of them.
    const piece = `${'ü"\\'.repeat(20)}\n`.repeat(1200);
    const made = await start(person, { actionName, project, automationProfile: 'supervised', arguments: { text: piece } });
    const approval = onlyPending(await until(person, made.plan.id, isSettled));
    expect(approval.gate).toBe('select_tool');
    await approve(person, made.plan.id, approval);
    const done = await until(person, made.plan.id, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(await fileOf(person, project, 'big.txt')).toBe(piece.repeat(5));
  });

  it('a file of 1 MiB, and nothing above it, gets into the workspace; what is above is refused and the plan goes on', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old\n' });
    const piece = 'x'.repeat(128 * 1024);
    const actionName = await addAction(person, {
      name: 'write',
      arguments: { type: 'object', properties: { text: { type: 'string' } } },
      execute: [
        { id: 'fits', call: { tool: 'write_file', arguments: { path: 'fits.txt', content: '${args.text}'.repeat(8) } } },
        {
          id: 'above',
          on_refused: 'continue',
          call: { tool: 'write_file', arguments: { path: 'above.txt', content: `${'${args.text}'.repeat(8)}y` } },
        },
        { id: 'read', call: { tool: 'read_file', arguments: { path: 'fits.txt' } } },
      ],
    });
    const made = await start(person, { actionName, project, automationProfile: 'auto', arguments: { text: piece } });
    const done = await until(person, made.plan.id, isSettled, 30_000);
    expect(done.plan.failure).toBeNull();
    expect(done.plan.state).toBe('applied');
    expect((await fileOf(person, project, 'fits.txt'))?.length).toBe(MIB);
    expect(await fileOf(person, project, 'above.txt')).toBeNull();
    const sizes = await sizesOf(person, made.plan.id);
    expect(sizes.log).toBeLessThan(64 * 1024);
    expect(sizes.blobs).toBeLessThanOrEqual(MIB);
    expect(sizes.snapshot).toBeLessThan(2 * MIB);
  });

  it.each([
    [150_000, 0, 'succeeded'],
    [3_000_000, 0, 'succeeded'],
    [5_000_000, 0, 'failed'],
    [10, 60, 'succeeded'],
    [10, 200, 'failed'],
    [10, 10_000, 'failed'],
  ])('a result of %i characters, nested %i deep, is kept whole or refused in the trail: %s', async (characters, depth, outcome) => {
    const person = await newOrg();
    const planId = await startSteps(person, [
      { id: 'big', on_refused: 'continue', call: { tool: 'test/large_result', arguments: { label: person.org, characters, depth } } },
      { id: 'after', call: { tool: 'test/counter', arguments: { label: person.org } } },
    ]);
    expect((await until(person, planId, isSettled)).plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(2);
    const [settled] = await rowsOf(person, planId, 'call_settled');
    expect(settled?.data.outcome).toBe(outcome);
    const stored = settled?.data.result;
    if (outcome === 'succeeded' && characters > 10_000) expect(stored).toMatchObject({ blob: expect.any(String) });
    if (outcome === 'failed') expect(settled?.data.error?.message).toMatch(/nested too deep|at most/);
    expect((await sizesOf(person, planId)).blobs).toBeLessThanOrEqual(MIB);
    await evict(person, planId);
    expect((await stateOf(person, planId)).results).toHaveLength(2);
  });

  it('arguments and text of 250 kB are kept beside the log, reach the tool whole, and are shown where they are asked about', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, {
      name: 'long',
      apply: 'none',
      arguments: { type: 'object', properties: { text: { type: 'string' } } },
      execute: [{ id: 'use', call: { tool: 'test/counter', arguments: { label: person.org, padding: '${args.text}' } } }],
    });
    const text = 'ä'.repeat(125_000);
    const input = 'i'.repeat(250_000);
    const made = await start(person, {
      actionName,
      automationProfile: 'manual',
      arguments: { text },
      input,
      message: { messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: input }], metadata: { note: 'n'.repeat(250_000) } },
    });
    const planId = made.plan.id;
    const [created] = await logOf(person, planId);
    expect(JSON.stringify(created).length).toBeLessThan(16 * 1024);
    expect(made.plan.messages[0]?.metadata).toMatchObject({ blob: expect.any(String) });
    for (const _gate of ['decompose_task', 'create_tool']) {
      const approval = onlyPending(await until(person, planId, isSettled));
      await approve(person, planId, approval);
      await until(person, planId, (snapshot) => isSettled(snapshot) && onlyPending(snapshot).id !== approval.id);
    }
    const waiting = await until(person, planId, isSettled);
    const approval = onlyPending(waiting);
    expect(approval.subject.calls?.map((call) => valueIn(waiting, call.arguments))).toEqual([{ label: person.org, padding: text }]);
    await evict(person, planId);
    await approve(person, planId, approval);
    await until(person, planId, isTerminal);
    expect(performed(person.org)[0]?.args['padding']).toBe(text);
  });

  it('a batch of 200 calls with 8 kB each is asked about as one limit, in rows that stay small', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, {
      name: 'many',
      apply: 'none',
      arguments: { type: 'object', properties: { text: { type: 'string' } } },
      execute: [
        {
          id: 'many',
          calls: Array.from({ length: 200 }, (_, index) => ({
            tool: 'test/counter',
            arguments: { label: person.org, padding: `${index} \${args.text}` },
          })),
        },
      ],
    });
    const made = await start(person, {
      actionName,
      automationProfile: 'auto',
      arguments: { text: 'x'.repeat(7_800) },
      guardrails: { max_tool_calls_per_step: 3 },
    });
    const limit = onlyPending(await until(person, made.plan.id, (snapshot) => isSettled(snapshot) && performed(person.org).length === 3));
    expect(limit.callIds).toHaveLength(197);
    expect((await answer(person, made.plan.id, limit)).ok).toBe(true);
    await until(person, made.plan.id, isTerminal, 30_000);
    expect(performed(person.org)).toHaveLength(200);
  }, 60_000);

  it('a change of 300 files is approved and applied', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old\n' });
    const steps = Array.from({ length: 3 }, (_, step) => ({
      id: `s${step}`,
      calls: Array.from({ length: 100 }, (__, index) => ({
        tool: 'write_file',
        arguments: { path: `some/rather/long/folder/name/${step}/file-number-${index}.txt`, content: '${args.c}' },
      })),
    }));
    const actionName = await addAction(person, {
      name: 'files',
      arguments: { type: 'object', properties: { c: { type: 'string' } } },
      execute: steps,
    });
    const made = await start(person, { actionName, project, automationProfile: 'supervised', arguments: { c: 'text\n' } });
    const approval = onlyPending(await until(person, made.plan.id, isSettled, 30_000));
    expect(approval.subject.diff?.files).toHaveLength(300);
    await approve(person, made.plan.id, approval);
    expect((await until(person, made.plan.id, isTerminal, 30_000)).plan.state).toBe('applied');
    expect((await services.projects.project(person.org, project).head())?.files).toBe(301);
  }, 60_000);
});

describe('a script of 300 steps', () => {
  it('runs in seconds, and its object wakes from its snapshot to exactly the same state', async () => {
    const person = await newOrg();
    const steps = Array.from({ length: 300 }, (_, index) => ({
      id: `s${index}`,
      call: { tool: 'test/counter', arguments: { padding: `${index}` } },
    }));
    const began = Date.now();
    const planId = await startSteps(person, steps);
    const done = await until(person, planId, isTerminal, 60_000);
    const elapsed = Date.now() - began;
    expect(done.plan.stepsUsed).toBe(300);
    expect(done.plan.seq).toBeGreaterThan(900);
    expect(elapsed).toBeLessThan(30_000);
    console.info(`300 steps, ${done.plan.seq} events: ${elapsed} ms`);
    const state = await stateOf(person, planId);
    await evict(person, planId);
    const woke = Date.now();
    expect(await planOf(person, planId).read()).not.toBeNull();
    console.info(`wake: ${Date.now() - woke} ms`);
    expect(await stateOf(person, planId)).toEqual(state);
  }, 90_000);
});
