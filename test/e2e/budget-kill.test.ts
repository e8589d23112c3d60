/**
 * SIGKILL of the server at random moments while many plans ask for money under one tight cap (KILLS=20 for the long run). Whatever was
 * acknowledged is there, asked again it is the same decision, nothing is above the cap, and no money is lost.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ulid } from 'ulid';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ResultOf } from '../../src/api/operations.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { A2aConnectionError, ServiceUnavailableError } from '../../src/client/errors.ts';
import { startServer, type TestServer, temporaryFolder } from '../support/server.ts';

const KILLS = Number(process.env['KILLS'] ?? 3);
const SESSIONS = 3;
const PLANS = 12;
/** So many requests are on their way at any time. */
const AT_ONCE = 16;
const CALLS = 100 * (KILLS + 1);
/** Micro-USD; the cap is no multiple of any. */
const COSTS = [10_000, 23_000, 7_001, 40_000];
const CAP = Math.floor(((CALLS * 80_001) / 4) * 0.45);

type Authorized = ResultOf<'_cleveragents/guard/authorize'>;

let state: string;
let server: TestServer;
let agent: Client;
let human: Client;

beforeAll(async () => {
  state = await temporaryFolder();
  await start();
});
afterAll(async () => {
  await server.stop();
  await rm(state, { recursive: true, force: true });
});

async function start(): Promise<void> {
  server = await startServer({ entry: 'test', state });
  const { url, key, agent_key: agentKey } = server.connection;
  agent = createClient({ url, key: agentKey, retry: { attempts: 0 } });
  human = createClient({ url, key, retry: { attempts: 0 } });
}

/** Until it is answered: by the server that is there at the moment, however often it dies. */
async function persistently<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof A2aConnectionError || error instanceof ServiceUnavailableError) || attempt > 200) throw error;
      await sleep(50 + 200 * Math.random());
    }
  }
}

interface Request {
  readonly planId: string;
  readonly n: number;
  readonly cost: number;
}

/** The cost is exact to the micro-dollar: a number with six decimals. */
const usd = (microUsd: number): number => microUsd / 1_000_000;

const authorize = ({ planId, n, cost }: Request): Promise<Authorized> =>
  persistently(() =>
    agent.call('_cleveragents/guard/authorize', {
      plan_id: planId,
      tool_name: 'own.tool',
      arguments: { n },
      is_write: false,
      cost_usd: usd(cost),
      idempotency_key: `${planId}.${n}`,
    }),
  );

const settle = (decisionId: string, charged: number): Promise<unknown> =>
  persistently(() => agent.call('_cleveragents/guard/settle', { decision_id: decisionId, outcome: 'succeeded', cost_usd: usd(charged) }));

async function trailOf(planId: string) {
  const entries: ResultOf<'_cleveragents/plan/guard/audit'>['entries'][number][] = [];
  for (let afterSeq = 0; ; ) {
    const page = await human.call('_cleveragents/plan/guard/audit', { plan_id: planId, limit: 1000, after_seq: afterSeq });
    entries.push(...page.entries);
    if (page.next_after_seq === undefined) return entries;
    afterSeq = page.next_after_seq;
  }
}

test(
  `killed ${KILLS} times at random moments: never above the cap, every acknowledged decision stands, nothing is lost`,
  async () => {
    await human.call('_cleveragents/budget/set', { level: 'org', total_usd: usd(CAP) });
    const plans = Array.from({ length: PLANS }, (_, n) => ({ id: ulid(), session: `kill-${n % SESSIONS}` }));
    for (const { id, session } of plans) {
      await agent.call('_cleveragents/guard/configure', { plan_id: id, session_id: session, automation_profile: 'full-auto' });
    }
    const queue: Request[] = Array.from({ length: CALLS }, (_, n) => ({
      planId: plans[n % PLANS]?.id ?? '',
      n,
      cost: COSTS[n % COSTS.length] ?? 0,
    }));
    const answered: { readonly request: Request; readonly answer: Authorized; readonly charged: number | null }[] = [];
    const worker = async (): Promise<void> => {
      for (let request = queue.shift(); request !== undefined; request = queue.shift()) {
        const answer = await authorize(request);
        // Some settle at once, for a part; the others hold what they got.
        const charged = answer.allowed && request.n % 3 === 0 ? Math.floor(request.cost / 2) : null;
        if (charged !== null) await settle(answer.decision_id, charged);
        answered.push({ request, answer, charged });
      }
    };
    let isDone = false;
    const killer = (async () => {
      let kills = 0;
      for (; kills < KILLS; kills += 1) {
        // When a part of the work is done, at a random moment of it.
        while (!isDone && answered.length < ((kills + Math.random()) * CALLS) / (KILLS + 1)) await sleep(5);
        await sleep(100 * Math.random());
        expect(await server.kill('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
        await start();
      }
      return kills;
    })();
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    isDone = true;
    expect(await killer).toBe(KILLS);
    expect(answered).toHaveLength(CALLS);

    // What holds of each authorisation: its charge where it was settled, else its whole reservation.
    const allowed = answered.filter(({ answer }) => answer.allowed);
    const held = allowed.reduce((sum, { request, charged }) => sum + (charged ?? request.cost), 0);
    expect(held).toBeLessThanOrEqual(CAP);
    const refused = answered.filter(({ answer }) => !answer.allowed);
    expect(refused.length).toBeGreaterThan(0);
    for (const { answer } of refused) expect(answer.exceeded_level).toBe('org');

    // Asked again, an allowed call is the same decision.
    for (const { request, answer, charged } of allowed.slice(0, 60)) {
      if (charged === null) expect(await authorize(request)).toMatchObject({ allowed: true, decision_id: answer.decision_id });
    }
    let spent = 0;
    for (const { request, answer, charged } of allowed) {
      if (charged === null) await settle(answer.decision_id, request.cost);
      spent += charged ?? request.cost;
    }
    for (const { id } of plans) await persistently(() => agent.call('_cleveragents/plan/cancel', { plan_id: id }));
    const total = async () =>
      (await human.call('_cleveragents/budget/show', { level: 'org' })).windows.find(({ window }) => window === 'total');
    await expect.poll(total, { timeout: 60_000, interval: 500 }).toMatchObject({
      cap_usd: usd(CAP),
      spent_usd: usd(spent),
      leased_usd: 0,
      excess_usd: 0,
      remaining_usd: usd(CAP - spent),
    });

    // Every acknowledged decision is in the trail, and every chain verifies.
    for (const { id } of plans) {
      const decided = new Map<unknown, boolean>();
      for (const entry of await trailOf(id)) if (entry.context['call_id'] !== undefined) decided.set(entry.context['call_id'], true);
      for (const { request, answer } of answered) {
        if (request.planId === id) expect(decided.has(answer.decision_id.slice(id.length + 1)), answer.decision_id).toBe(true);
      }
      expect(await human.call('_cleveragents/plan/guard/audit/verify', { plan_id: id })).toMatchObject({ valid: true });
    }
  },
  60_000 + KILLS * 30_000,
);
