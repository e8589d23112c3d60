/** One real server with the test tools, who talks to it, and the promise that holds after every test: each plan's chain verifies. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ParamsInputOf, ResultOf } from '../../src/api/operations.ts';
import type { ApprovalView, PlanView } from '../../src/api/views.ts';
import { REPOSITORY } from '../../src/cli/build-worker.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { type StartServerOptions, startServer, type TestServer } from '../support/server.ts';
import { type Receiver, startReceiver } from './receiver.ts';

export type ActionDocument = ParamsInputOf<'_cleveragents/action/add'>['action'];

/** For `expect.poll`: slow machines get their time, fast ones do not wait. */
export const PATIENT = { timeout: 20_000, interval: 25 } as const;

/** What the stories need of a server, however it was started. */
export type RunningServer = Pick<TestServer, 'connection' | 'stop'>;

export interface World<S extends RunningServer = TestServer> {
  readonly server: S;
  readonly receiver: Receiver;
  /** A person with all roles. */
  readonly human: Client;
  /** May start work, never approve. */
  readonly agent: Client;
  /** Answers the name of the action. */
  addAction(action: ActionDocument): Promise<string>;
  use(actionName: string, more?: Partial<ParamsInputOf<'_cleveragents/plan/use'>>): Promise<PlanView>;
  status(planId: string): Promise<PlanView>;
  /** Reads the plan until it is as asked; says how it stood when it never was. */
  until(planId: string, condition: (plan: PlanView) => boolean): Promise<PlanView>;
  /** The one approval that is pending. */
  pending(planId: string): Promise<ApprovalView>;
  approve(approval: ApprovalView, grant?: JsonObject): Promise<PlanView>;
  totalPlans(): Promise<number>;
  /** For `afterEach`: every plan that was made so far has a chain that verifies. Answers how many there are. */
  verifyAll(): Promise<number>;
  /** Tree digest of a project's head. */
  headOf(project: string): Promise<string>;
  /** Runs the `agents` command as a person does, to its end; throws what it wrote when it fails. */
  agents(args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function startWorld(options: StartServerOptions = {}): Promise<World> {
  const [server, receiver] = await Promise.all([startServer({ entry: 'test', ...options }), startReceiver()]);
  return makeWorld(server, receiver);
}

/** The same with a server and a receiver that are there, so that one can be replaced under the other. */
export function makeWorld<S extends RunningServer>(server: S, receiver: Receiver): World<S> {
  const { url, key, agent_key: agentKey } = server.connection;
  const human = createClient({ url, key });
  const agent = createClient({ url, key: agentKey });
  const status = (planId: string): Promise<PlanView> => human.call('_cleveragents/plan/status', { plan_id: planId });

  const until = async (planId: string, condition: (plan: PlanView) => boolean): Promise<PlanView> => {
    const deadline = Date.now() + 20_000;
    for (;;) {
      const plan = await status(planId);
      if (condition(plan)) return plan;
      if (Date.now() > deadline) throw new Error(`the plan did not get there in 20 s: ${JSON.stringify(plan, null, 1)}`);
      await sleep(25);
    }
  };
  const pending = async (planId: string): Promise<ApprovalView> => {
    const plan = await until(planId, (each) => each.pending.length > 0);
    const [approval] = plan.pending;
    expect(plan.pending).toHaveLength(1);
    if (approval === undefined) throw new Error('nothing is pending');
    return approval;
  };

  return {
    server,
    receiver,
    human,
    agent,
    addAction: async (action) => (await human.call('_cleveragents/action/add', { action })).name,
    use: (actionName, more = {}) => agent.call('_cleveragents/plan/use', { action_name: actionName, ...more }),
    status,
    until,
    pending,
    approve: async (approval, grant) => {
      const { approval_id, digest } = approval;
      const more = grant === undefined ? {} : { grant };
      return (await human.call('_cleveragents/approval/decide', { approval_id, decision: 'approve', digest, ...more })).plan;
    },
    totalPlans: async () => (await human.call('_cleveragents/plan/list', { page_size: 1 })).total_size,
    verifyAll: async () => {
      const plans = await allPlans(human);
      const verdicts = await inTurns(plans, (planId) => human.call('_cleveragents/plan/guard/audit/verify', { plan_id: planId }));
      expect(verdicts.filter((verdict) => !verdict.valid)).toEqual([]);
      return plans.length;
    },
    headOf: async (name) => (await human.call('_cleveragents/project/show', { name })).head,
    agents: async (args) => {
      const { code, stdout, stderr } = await runAgents(args, { url, key });
      if (code !== 0) throw new Error(`agents ${args.join(' ')} ended with ${code}\n${stdout}\n${stderr}`);
      return stdout;
    },
    stop: async () => {
      await server.stop();
      await receiver.close();
    },
  };
}

async function allPlans(client: Client): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let token = ''; ; ) {
    const page: ResultOf<'_cleveragents/plan/list'> = await client.call('_cleveragents/plan/list', {
      page_size: 100,
      ...(token === '' ? {} : { page_token: token }),
    });
    ids.push(...page.plans.map((plan) => plan.plan_id));
    if (page.next_page_token === '') return ids;
    token = page.next_page_token;
  }
}

/** A few at a time. */
async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += 16) results.push(...(await Promise.all(items.slice(start, start + 16).map(work))));
  return results;
}

/** How a command of the `agents` program ended. */
export interface AgentsRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The `agents` program as a person runs it who has told his shell where the server is. */
export async function runAgents(args: readonly string[], { url, key }: { readonly url: string; readonly key: string }): Promise<AgentsRun> {
  const child = spawn(process.execPath, [join(REPOSITORY, 'bin/agents.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CLEVERAGENTS_URL: url, CLEVERAGENTS_SERVER_TOKEN: key },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined: it is not JSON. */
  readonly body: { readonly jsonrpc?: unknown; readonly id?: unknown; readonly result?: unknown; readonly error?: RawError } | undefined;
}

export interface RawError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** One HTTP request as the test words it; nothing is checked or repaired on the way. */
export async function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<RawAnswer> {
  const response = await fetch(`${url}/a2a`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parse(text) };
}

function parse(text: string): RawAnswer['body'] {
  try {
    return JSON.parse(text) as RawAnswer['body'];
  } catch {
    return undefined;
  }
}
