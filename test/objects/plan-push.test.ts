import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { MAX_REFUSALS } from '../../src/core/push/judge-attempt.ts';
import { MAX_PUSH_CONFIGS } from '../../src/core/push/push-config.ts';
import { PUSH_TIMINGS } from '../worker/test-worker.ts';
import {
  alarmOf,
  approve,
  auditOf,
  callerOf,
  crash,
  evict,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  pause,
  planOf,
  rowsOf,
  startSteps,
  track,
  until,
} from './plan-support.ts';
import { type Arrived, answered, openReceiver, pushesOf, register, untilArrived, untilPush } from './push-receiver.ts';

const say = (text: string) => ({ say: text });
const sayings = (count: number) => Array.from({ length: count }, (_, index) => say(`line ${index + 1}`));

/** Registered before anything happened: the whole story is told. */
const FROM_THE_START = { afterSeq: 0 } as const;

const statesOf = (arrived: readonly Arrived[]): readonly string[] =>
  arrived.map(({ body }) => body.task?.status.state ?? body.statusUpdate?.status.state ?? body.status?.state ?? 'artifact');

const isEnd = (arrived: readonly Arrived[]): boolean => ['TASK_STATE_COMPLETED', 'completed'].includes(statesOf(arrived).at(-1) ?? '');

/** Each once, or again under the same number, id and body; numbers without a gap; never back. */
function expectInOrder(arrived: readonly Arrived[], planId: string): void {
  let last = 0;
  const bodies = new Map<string, string>();
  for (const { id, sequence, text } of arrived) {
    expect(sequence === last || sequence === last + 1, `${sequence} after ${last}`).toBe(true);
    expect(id.startsWith(`${planId}.`) && id.endsWith(`.${sequence}`), id).toBe(true);
    expect(bodies.get(id) ?? text).toBe(text);
    bodies.set(id, text);
    last = sequence;
  }
  expect(bodies.size).toBe(last);
}

describe('A webhook of a plan', () => {
  it('is told in the wire that registered it, with its authorization, its token, a rising number and an id', async () => {
    const person = await newOrg();
    const [one, three] = [openReceiver(), openReceiver()];
    const planId = await startSteps(person, [say('hello'), { ask: 'Which colour?' }, { artifact: { name: 'a', text: 'text' } }]);
    track(person, planId);
    const target = { url: one.url, token: 'token-1', authentication: { schemes: ['Bearer'], credentials: 'k1' } };
    await register(person, planId, { id: 'one', target, ...FROM_THE_START });
    await register(person, planId, {
      id: 'three',
      wire: '0.3',
      target: { ...target, url: three.url, authentication: { schemes: ['Basic', 'bearer'], credentials: 'k3' } },
      ...FROM_THE_START,
    });
    const asked = onlyPending(await until(person, planId, isWaiting));
    await untilArrived(one, (arrived) => statesOf(arrived).at(-1) === 'TASK_STATE_INPUT_REQUIRED');
    await untilArrived(three, (arrived) => statesOf(arrived).at(-1) === 'input-required');
    const answer = { approvalId: asked.id, decision: 'answer', digest: asked.digest, reason: null, text: 'blue', grant: null } as const;
    await planOf(person, planId).command({ type: 'answer', by: callerOf(person), answer });
    await untilArrived(one, isEnd);
    await untilArrived(three, isEnd);

    expectInOrder(one.arrived, planId);
    expectInOrder(three.arrived, planId);
    expect(one.arrived[0]?.body).toMatchObject({ task: { id: planId } });
    for (const { body, headers } of one.arrived) {
      expect(Object.keys(body)).toHaveLength(1);
      expect(['task', 'statusUpdate', 'artifactUpdate']).toContain(Object.keys(body)[0]);
      expect(headers.get('authorization')).toBe('Bearer k1');
      expect(headers.get('x-a2a-notification-token')).toBe('token-1');
      expect(headers.get('content-type')).toBe('application/a2a+json');
      expect(headers.get('x-a2a-notification-id')).toBe(headers.get('idempotency-key'));
    }
    expect(one.arrived.some(({ body }) => body.artifactUpdate !== undefined)).toBe(true);
    for (const { body, headers } of three.arrived) {
      expect(body).toMatchObject({ kind: 'task', id: planId });
      expect(headers.get('authorization')).toBe('bearer k3');
      expect(headers.get('content-type')).toBe('application/json');
    }
    const told = statesOf(three.arrived);
    expect(told).toEqual(['submitted', 'working', 'input-required', 'working', 'completed']);
    expect(three.arrived.at(-1)?.body.artifacts).toHaveLength(1);
  });

  it('gets the same notification again, under the same id, when the object dies before its answer is kept', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, sayings(3));
    track(person, planId);
    let kills = 0;
    receiver.answer = async (_nth, { text }) => {
      if (text.includes('line 2') && kills === 0) {
        kills += 1;
        await crash(person, planId);
      }
      return answered(204);
    };
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    await untilArrived(receiver, isEnd, 30_000);
    expectInOrder(receiver.arrived, planId);
    const ids = receiver.arrived.map(({ id }) => id);
    expect(ids.length - new Set(ids).size, 'the one was sent twice').toBe(1);
  });

  it('that was registered before the object was taken from memory is told what happens after it', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, [{ ask: 'Go on?' }, say('done')]);
    track(person, planId);
    const asked = onlyPending(await until(person, planId, isWaiting));
    await register(person, planId, { target: { url: receiver.url } });
    await evict(person, planId);
    expect(receiver.arrived).toEqual([]);
    const answer = { approvalId: asked.id, decision: 'answer', digest: asked.digest, reason: null, text: 'yes', grant: null } as const;
    await planOf(person, planId).command({ type: 'answer', by: callerOf(person), answer });
    await untilArrived(receiver, isEnd);
    expectInOrder(receiver.arrived, planId);
  });

  it('is told nothing of what was before it, and a plan that waits with it holds nothing and has no alarm for it', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, [say('before'), { ask: 'Go on?' }]);
    track(person, planId);
    const asked = onlyPending(await until(person, planId, isWaiting));
    await register(person, planId, { target: { url: receiver.url } });
    await untilPush(person, planId, ({ waiting }) => waiting === 0);
    const expiresMs = Date.parse(asked.expiresAt ?? '');
    await expect.poll(async () => ((await alarmOf(person, planId)) ?? 0) >= expiresMs - 2 * 86_400_000, { timeout: 10_000 }).toBe(true);
    expect(receiver.arrived).toEqual([]);
  });

  it('that is slow, hangs or is down delays neither the plan nor another receiver', async () => {
    const person = await newOrg();
    const [hanging, down, sound] = [openReceiver(), openReceiver(), openReceiver()];
    hanging.answer = () => new Promise<Response>(() => undefined);
    down.answer = () => answered(503);
    const planId = await startSteps(person, sayings(30));
    track(person, planId);
    for (const [id, receiver] of Object.entries({ hanging, down, sound }))
      await register(person, planId, { id, target: { url: receiver.url }, ...FROM_THE_START });
    await until(person, planId, isTerminal, 5_000);
    await untilArrived(sound, isEnd);
    expectInOrder(sound.arrived, planId);
    const health = await untilPush(person, planId, ({ tries }) => tries > 1, 'hanging');
    expect(health).toMatchObject({ delivered: 0, lastError: 'no answer in 0.3 s', stopped: null });
    expect(health.waiting).toBeGreaterThan(30);
    expect(new Set(hanging.arrived.map(({ id }) => id)).size, 'the first, and no other before it').toBe(1);
    expect(await untilPush(person, planId, ({ tries }) => tries > 1, 'down')).toMatchObject({ lastError: 'HTTP 503' });
    // They recover, and nothing is missing.
    for (const receiver of [hanging, down]) receiver.answer = () => answered(200);
    for (const receiver of [hanging, down]) {
      await untilArrived(receiver, isEnd);
      expectInOrder(receiver.arrived, planId);
    }
  });

  it('gets hundreds of updates in their order, each once', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, sayings(400));
    track(person, planId);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    await untilArrived(receiver, isEnd, 30_000);
    expect(receiver.arrived.length).toBeGreaterThan(400);
    expectInOrder(receiver.arrived, planId);
    expect(receiver.arrived.map(({ sequence }) => sequence)).toEqual(receiver.arrived.map((_, index) => index + 1));
    const said = receiver.arrived.flatMap(
      ({ body }) => /^line \d+$/.exec(body.statusUpdate?.status.message?.parts[0]?.text ?? '')?.[0] ?? [],
    );
    expect(said).toEqual(sayings(400).map((each) => each.say));
  }, 60_000);
});

describe('A receiver', () => {
  it('that answers 410 gets nothing more, until somebody asks for it', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    receiver.answer = (nth) => answered(nth === 2 ? 410 : 204);
    const planId = await startSteps(person, sayings(5));
    track(person, planId);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    const stopped = await untilPush(person, planId, (status) => status.stopped !== null);
    expect(stopped).toMatchObject({ stopped: 'gone', delivered: 1, lastError: 'HTTP 410' });
    await until(person, planId, isTerminal);
    await pause(100);
    expect(receiver.arrived).toHaveLength(2);
    const changes = await rowsOf(person, planId, 'push_config_changed');
    expect(changes.at(-1)?.data).toMatchObject({ change: 'stopped', reason: 'gone', config_id: planId });

    await planOf(person, planId).retryPush(planId, null, callerOf(person).actor);
    await untilArrived(receiver, isEnd);
    expectInOrder(receiver.arrived, planId);
  });

  it('that refuses a notification again and again has it as a dead letter, gets the next, and gets it when somebody asks', async () => {
    const person = await newOrg();
    PUSH_TIMINGS.set(person.org, { pauseMs: 1, maxPauseMs: 2 });
    const receiver = openReceiver();
    receiver.answer = (_nth, { sequence }) => answered(sequence === 2 ? 400 : 204);
    const planId = await startSteps(person, sayings(3));
    track(person, planId);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    await untilArrived(receiver, isEnd);
    const refused = receiver.arrived.filter(({ sequence }) => sequence === 2);
    expect(refused).toHaveLength(MAX_REFUSALS);
    const { deadLetters, givenUp } = await untilPush(person, planId, ({ waiting }) => waiting === 0);
    expect(givenUp).toBe(1);
    expect(deadLetters).toMatchObject([
      { deliveryId: refused[0]?.id, sequence: 2, reason: 'refused', tries: MAX_REFUSALS, lastError: 'HTTP 400', again: false },
    ]);
    receiver.answer = () => answered(204);
    await evict(person, planId);
    const asked = await planOf(person, planId).retryPush(planId, 2, callerOf(person).actor);
    expect(asked?.ok).toBe(true);
    await untilArrived(receiver, (arrived) => arrived.at(-1)?.sequence === 2);
    expect(receiver.arrived.at(-1)).toMatchObject({ id: refused[0]?.id, text: refused[0]?.text });
    expect((await untilPush(person, planId, ({ waiting }) => waiting === 0)).deadLetters).toEqual([]);
    expect(await planOf(person, planId).retryPush(planId, 99, callerOf(person).actor)).toMatchObject({ ok: false });
  });

  it('that refuses everything is left alone after ten, and the log says so', async () => {
    const person = await newOrg();
    PUSH_TIMINGS.set(person.org, { pauseMs: 1, maxPauseMs: 1 });
    const receiver = openReceiver();
    receiver.answer = () => answered(301, { location: 'https://elsewhere.example.com/' });
    const planId = await startSteps(person, sayings(20));
    track(person, planId);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    const status = await untilPush(person, planId, ({ stopped }) => stopped !== null);
    expect(status).toMatchObject({ stopped: 'failing', givenUp: 10, delivered: 0, lastError: 'HTTP 301' });
    expect(status.deadLetters).toHaveLength(10);
    await until(person, planId, isTerminal);
    await pause(50);
    expect(receiver.arrived).toHaveLength(10 * MAX_REFUSALS);
    expect((await untilPush(person, planId, () => true)).waiting).toBeGreaterThan(10);
  });

  it('that is down for longer than a notification lives gets it no more', async () => {
    const person = await newOrg();
    PUSH_TIMINGS.set(person.org, { maxAgeMs: 1 });
    const receiver = openReceiver();
    receiver.answer = (_nth, { sequence }) => answered(sequence < 3 ? 500 : 204);
    const planId = await startSteps(person, [say('a'), { ask: 'Go on?' }, say('b')]);
    track(person, planId);
    const asked = onlyPending(await until(person, planId, isWaiting));
    await pause(5);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    await untilPush(person, planId, ({ waiting, delivered }) => waiting === 0 && delivered > 0);
    const { deadLetters } = await untilPush(person, planId, () => true);
    expect(deadLetters.map(({ sequence, reason, tries }) => [sequence, reason, tries])).toEqual([
      [1, 'expired', 1],
      [2, 'expired', 1],
    ]);
    await approve(person, planId, asked).catch(() => undefined);
  });

  it('may ask for a pause, and it is kept', async () => {
    const person = await newOrg();
    PUSH_TIMINGS.set(person.org, { maxPauseMs: 1_500 });
    const receiver = openReceiver();
    const times: number[] = [];
    receiver.answer = (nth) => {
      times.push(performance.now());
      return nth === 1 ? answered(429, { 'retry-after': '1' }) : answered(204);
    };
    const planId = await startSteps(person, [say('a')]);
    track(person, planId);
    await register(person, planId, { target: { url: receiver.url }, ...FROM_THE_START });
    await untilArrived(receiver, isEnd);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });
});

describe('The webhooks of a plan', () => {
  it('are at most ten; one that is there can be replaced and deleted, once and again', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ ask: 'Go on?' }]);
    track(person, planId);
    await until(person, planId, isWaiting);
    const receiver = openReceiver();
    for (let index = 0; index < MAX_PUSH_CONFIGS; index += 1)
      await register(person, planId, { id: `c${index}`, target: { url: receiver.url } });
    const by = callerOf(person).actor;
    const port = planOf(person, planId);
    const more = await port.setPush({ id: 'one-more', wire: '1.0', target: { url: receiver.url }, by });
    expect(more).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field: 'id' }] } });
    expect(await port.setPush({ id: 'c3', wire: '1.0', target: { url: `${receiver.url}&again` }, by })).toMatchObject({ ok: true });
    expect(await pushesOf(person, planId)).toHaveLength(MAX_PUSH_CONFIGS);
    const before = (await logOf(person, planId)).length;
    expect(await port.setPush({ id: 'c3', wire: '1.0', target: { url: `${receiver.url}&again` }, by })).toMatchObject({ ok: true });
    expect(await logOf(person, planId), 'the same again is no change').toHaveLength(before);
    expect(await port.deletePush('c3', by)).toEqual({ ok: true, value: true });
    expect(await port.deletePush('c3', by)).toEqual({ ok: true, value: false });
    await evict(person, planId);
    expect((await pushesOf(person, planId)).map(({ id }) => id)).not.toContain('c3');
    const changes = (await rowsOf(person, planId, 'push_config_changed')).map(({ data, actor }) => [data.config_id, data.change, actor.id]);
    expect(changes.slice(-2)).toEqual([
      ['c3', 'replaced', person.keyId],
      ['c3', 'deleted', person.keyId],
    ]);
  });

  it('keep their secrets: log, trail and what is shown of them hold none, nor the query of an address', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, [say('a')]);
    track(person, planId);
    const secret = `never-${ulid()}`;
    const target = { url: receiver.url, token: `${secret}-t`, authentication: { schemes: ['Bearer'], credentials: `${secret}-c` } };
    const shown = await register(person, planId, { target, ...FROM_THE_START });
    await untilArrived(receiver, isEnd);
    await until(person, planId, isTerminal);
    expect(receiver.arrived[0]?.headers.get('authorization')).toBe(`Bearer ${secret}-c`);
    const [log, audit, listed] = await Promise.all([logOf(person, planId), auditOf(person, planId), pushesOf(person, planId)]);
    for (const told of [shown, log, audit, listed]) expect(JSON.stringify(told)).not.toContain(secret);
    for (const told of [log, audit]) expect(JSON.stringify(told)).not.toContain('in-the-query');
    const entry = (await auditOf(person, planId)).find(({ eventType }) => eventType === 'push_config_created');
    expect(entry).toMatchObject({
      guardName: 'push',
      actorId: person.keyId,
      context: { origin: new URL(receiver.url).origin, wire: '1.0' },
    });
  });

  it('are judged again before each delivery: one that may be called no more is stopped without a call', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [say('a')]);
    track(person, planId);
    await register(person, planId, { target: { url: 'http://127.0.0.1:9/hook' }, ...FROM_THE_START });
    expect(await untilPush(person, planId, ({ stopped }) => stopped !== null)).toMatchObject({ stopped: 'target_refused', delivered: 0 });
  });

  it('can be registered for a plan that has ended', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const planId = await startSteps(person, [say('a')]);
    track(person, planId);
    await until(person, planId, isTerminal);
    await register(person, planId, { id: 'late', target: { url: receiver.url } });
    expect(await pushesOf(person, planId)).toMatchObject([{ id: 'late', waiting: 0 }]);
    expect((await rowsOf(person, planId, 'push_config_changed')).length).toBe(1);
  });
});
