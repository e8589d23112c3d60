/**
 * Every guard and gate on every path on which a call or a phase can come to be decided (design invariant 5). A row is a guard or gate that
 * refuses, a column a way in; each cell is a real plan. What refuses is a policy floor of the org, so that the same row binds every way in,
 * also one that is under way when the floor is set. A new way in is one more entry of `PATHS`.
 */
import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { findOperation, OPERATION_NAMES, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { formatApiKey } from '../../src/core/api-key.ts';
import { GUARDS } from '../../src/core/guards/guards.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { Principal } from '../../src/core/principal.ts';
import { THRESHOLD_NAMES } from '../../src/core/profile.ts';
import worker from '../worker/test-worker.ts';
import {
  addAction,
  addProject,
  approve,
  evict,
  fileOf,
  isSettled,
  logOf,
  newOrg,
  now,
  onlyPending,
  pendingOf,
  performed,
  rowsOf,
  services,
  sha256,
  stateOf,
  track,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

/* ---------------------------------------------------------------- rows */

interface Row {
  readonly name: string;
  /** What the org demands; null: it halts everything. */
  readonly floor: JsonObject | null;
  readonly tool: string;
  readonly args?: JsonObject;
  /** Steps before the guarded one. */
  readonly before?: readonly object[];
  /** How often the guarded tool may have run: a limit on retries lets the first attempt pass. */
  readonly ran?: number;
  /** A gate instead of a guard. */
  readonly gate?: true;
  readonly strategize?: readonly object[];
  readonly onProject?: true;
  /** Somebody else changes the same file meanwhile: what the plan has written cannot be applied. */
  readonly collides?: true;
  /** What an admin has turned off before any plan is made. */
  readonly off?: 'sandbox.checkpoint.enabled';
  /** Paths on which the row cannot come up, with the reason. */
  readonly not?: Readonly<Partial<Record<string, string>>>;
}

const NOT_MADE = 'a plan that requires what is turned off is not made at all (start-plan.test.ts)';
const DECIDED_BEFORE = 'the gate is behind the plan when this path begins';

const rails = (guardrails: JsonObject): JsonObject => ({ guardrails });
const safety = (members: JsonObject): JsonObject => ({ safety: members });
const ask = (name: string): JsonObject => ({ threshold_minima: { [name]: 1 } });

const ROWS: readonly Row[] = [
  { name: 'state', floor: null, tool: 'test/counter' },
  { name: 'wall_clock', floor: rails({ max_wall_clock_seconds: 0 }), tool: 'test/counter' },
  { name: 'step_limit', floor: rails({ max_steps: 0 }), tool: 'test/counter' },
  { name: 'actor_tool_calls', floor: rails({ actor_limits: { max_tool_calls_per_invocation: 0 } }), tool: 'test/counter' },
  {
    name: 'retry_limit',
    floor: safety({ max_retries_per_step: 0 }),
    tool: 'test/fail_transient',
    ran: 1,
    not: { 'a guard revision': 'a question is about a first attempt' },
  },
  { name: 'denylist', floor: rails({ tool_denylist: ['test/*'] }), tool: 'test/counter' },
  {
    name: 'tool',
    floor: {},
    tool: 'test/nobody',
    not: { 'guard/authorize': 'tools of an executor outside are its own; names that are none are in guard-service.test.ts' },
  },
  { name: 'allowlist', floor: rails({ tool_allowlist: [] }), tool: 'test/counter' },
  { name: 'unsafe_tools', floor: safety({ allow_unsafe_tools: false }), tool: 'test/unsafe' },
  {
    name: 'skill_category',
    floor: safety({ allowed_skill_categories: ['other'] }),
    tool: 'test/counter',
  },
  { name: 'sandbox', floor: safety({ require_sandbox: true }), tool: 'test/external_write' },
  {
    name: 'checkpoint',
    floor: safety({ require_checkpoints: true }),
    tool: 'test/external_write',
    off: 'sandbox.checkpoint.enabled',
    not: {
      'message/send 1.0': NOT_MADE,
      'message/send 0.3': NOT_MADE,
      'message/stream 1.0': NOT_MADE,
      'message/stream 0.3': NOT_MADE,
      'POST /message:send 1.0': NOT_MADE,
      'POST /v1/message:send 0.3': NOT_MADE,
      'POST /message:stream 1.0': NOT_MADE,
      'POST /v1/message:stream 0.3': NOT_MADE,
      'a replay under an Idempotency-Key': NOT_MADE,
      'plan/use': NOT_MADE,
      'guard/authorize': 'an executor outside keeps its own files',
    },
  },
  {
    name: 'protected_path',
    floor: {},
    tool: 'write_file',
    args: { path: '.github/x.yml', content: 'x' },
    onProject: true,
  },
  {
    name: 'taint',
    floor: safety({ tainted_write_hosts: [] }),
    tool: 'test/external_write',
    before: [{ call: { tool: 'test/outside', arguments: {} } }],
  },
  { name: 'budget_cap', floor: rails({ max_total_cost: 0 }), tool: 'test/priced' },
  { name: 'tool_call_limit', floor: rails({ max_tool_calls_per_step: 0 }), tool: 'test/counter' },
  { name: 'write_approval', floor: rails({ require_approval_for_writes: true }), tool: 'test/external_write' },
  { name: 'confirmation', floor: rails({ required_confirmations: ['test/counter'] }), tool: 'test/counter' },
  { name: 'step_approval', floor: safety({ require_human_approval: true }), tool: 'test/counter' },
];

const QUESTION = { ask: 'Go on?' };

const GATE_ROWS: readonly Row[] = [
  {
    name: 'decompose_task',
    floor: ask('decompose_task'),
    tool: 'test/counter',
    gate: true,
    not: {
      'plan/execute': DECIDED_BEFORE,
      'a structured answer': DECIDED_BEFORE,
      'a plain answer': DECIDED_BEFORE,
      'a new start': DECIDED_BEFORE,
      'a guard revision': DECIDED_BEFORE,
      'guard/authorize': DECIDED_BEFORE,
    },
  },
  {
    name: 'edit_code',
    floor: ask('edit_code'),
    tool: 'test/counter',
    gate: true,
    strategize: [{ decide: { type: 'strategy_choice', question: 'How?', chosen: 'so', alternatives: [], rationale: 'it is' } }],
    not: {
      'plan/execute': DECIDED_BEFORE,
      'a structured answer': DECIDED_BEFORE,
      'a plain answer': DECIDED_BEFORE,
      'a new start': DECIDED_BEFORE,
      'a guard revision': DECIDED_BEFORE,
      'guard/authorize': DECIDED_BEFORE,
    },
  },
  {
    name: 'create_tool',
    floor: ask('create_tool'),
    tool: 'test/counter',
    gate: true,
    not: {
      'plan/execute': 'execute is the approval of this gate',
      'a structured answer': DECIDED_BEFORE,
      'a plain answer': DECIDED_BEFORE,
      'a new start': DECIDED_BEFORE,
      'a guard revision': DECIDED_BEFORE,
      'guard/authorize': DECIDED_BEFORE,
    },
  },
  {
    name: 'execute_command',
    floor: ask('execute_command'),
    tool: 'test/counter',
    gate: true,
    not: { 'a guard revision': 'a person who has approved the call has passed its gate' },
  },
  {
    name: 'select_tool',
    floor: ask('select_tool'),
    tool: 'write_file',
    args: { path: 'a.txt', content: 'new' },
    onProject: true,
    gate: true,
    not: { 'guard/authorize': 'an executor outside applies elsewhere' },
  },
  {
    name: 'access_network',
    floor: ask('access_network'),
    tool: 'write_file',
    args: { path: 'a.txt', content: 'new' },
    before: [QUESTION],
    onProject: true,
    collides: true,
    gate: true,
    not: {
      'guard/authorize': 'an executor outside applies elsewhere',
      'a guard revision': 'the plan is armed and answered before its apply, as in every other column',
    },
  },
  {
    name: 'modify_config',
    floor: ask('modify_config'),
    tool: 'test/fail_transient',
    ran: 1,
    gate: true,
    not: {
      'guard/authorize': 'an executor outside retries by itself; retry_limit counts it',
      'a guard revision': 'a question is about a first attempt',
    },
  },
];

/* ---------------------------------------------------------------- one plan */

class Cell {
  readonly row: Row;
  readonly person: Principal;
  /** With the person's rights, over HTTP. */
  readonly key: string;
  readonly label = ulid();
  project = '';

  constructor(row: Row, person: Principal, key: string) {
    this.row = row;
    this.person = person;
    this.key = key;
  }

  static async make(row: Row): Promise<Cell> {
    const person = await newOrg();
    const id = ulid();
    const secret = `${ulid()}${ulid()}`;
    await services.keys.create({
      org: person.org,
      id,
      name: 'p',
      kind: 'human',
      roles: [...person.roles],
      secretHash: sha256(secret),
      createdAt: now(),
      expiresAt: null,
      revokedAt: null,
    });
    const cell = new Cell(row, person, formatApiKey({ id, secret }));
    // Whoever starts the plan answers in it as well.
    await services.config.set(person.org, 'org', 'approvals.separate_requester', false);
    if (row.off !== undefined) await call(person, '_cleveragents/config/set', { key: row.off, value: false });
    if (row.onProject === true) cell.project = await addProject(person, { 'a.txt': 'old' });
    return cell;
  }

  get guarded(): object {
    const { tool, args } = this.row;
    return { call: { tool, arguments: args ?? { label: this.label } } };
  }

  /** An action whose last step is the guarded one. */
  action(first: readonly object[] = []): Promise<string> {
    const { before = [], strategize, onProject } = this.row;
    return addAction(this.person, {
      name: `a-${ulid().toLowerCase()}`,
      ...(strategize === undefined ? {} : { strategize }),
      execute: [...first, ...before, this.guarded],
      apply: onProject === true ? 'project' : 'none',
      ...(onProject === true ? { project: this.project } : {}),
    });
  }

  /** From here on the row's guard or gate refuses, also in a plan that is there already. */
  async arm(): Promise<void> {
    if (this.row.floor === null) await call(this.person, '_cleveragents/halt/set', { level: 'org', reason: 'stop everything' });
    else await call(this.person, '_cleveragents/org/policy/set', { policy: this.row.floor });
  }

  async use(action: string, rest: Partial<ParamsInputOf<'_cleveragents/plan/use'>> = {}): Promise<string> {
    const plan = await call(this.person, '_cleveragents/plan/use', { action_name: action, automation_profile: 'full-auto', ...rest });
    track(this.person, plan.plan_id);
    await until(this.person, plan.plan_id, isSettled);
    return plan.plan_id;
  }

  /** One request of a wire client. */
  async http(version: '1.0' | '0.3', method: string, params: JsonObject, headers: Record<string, string> = {}): Promise<string> {
    return this.post('/a2a', { jsonrpc: '2.0', id: 1, method, params }, { 'a2a-version': version, ...headers });
  }

  async post(path: string, body: JsonObject, headers: Record<string, string>): Promise<string> {
    const request = new Request(`http://edge.test${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.key}`, ...headers },
      body: JSON.stringify(body),
    });
    const fetch = worker.fetch;
    if (fetch === undefined) throw new Error('the Worker answers no requests');
    const response = await fetch(request as never, env as never, createExecutionContext());
    return response.text();
  }

  async answerQuestion(planId: string): Promise<void> {
    const question = pendingOf(await until(this.person, planId, isSettled)).find(({ kind }) => kind === 'question');
    if (question === undefined) throw new Error('there is no question');
    const { id: approval_id, digest } = question;
    await call(this.person, '_cleveragents/approval/decide', { approval_id, digest, decision: 'answer', text: 'yes' });
  }

  /** Somebody else changes the file while the plan waits at its question; then the plan goes on. */
  async collide(planId: string): Promise<void> {
    await until(this.person, planId, (snapshot) => pendingOf(snapshot).some(({ kind }) => kind === 'question'));
    const project = services.projects.project(this.person.org, this.project);
    const bytes = new TextEncoder().encode('moved');
    const blob = sha256(bytes);
    await project.putBlobs([{ digest: blob, bytes }]);
    const entry = { mode: '100644', blob, sizeBytes: bytes.byteLength } as const;
    const head = await project.head();
    const done = await project.commit({
      commitId: ulid(),
      expectedHead: head?.head ?? null,
      mode: 'patch',
      changes: [{ path: 'a.txt', entry }],
      message: 'by somebody else',
      by: this.person.keyId,
    });
    if (!done.ok || done.value.status !== 'committed') throw new Error(JSON.stringify(done));
    await this.answerQuestion(planId);
  }

  /** The one plan of the org. */
  async planId(): Promise<string> {
    const { plans } = await call(this.person, '_cleveragents/plan/list', {});
    const [plan, other] = plans;
    if (plan === undefined || other !== undefined) throw new Error(`${plans.length} plans`);
    track(this.person, plan.plan_id);
    return plan.plan_id;
  }
}

function message(version: '1.0' | '0.3', action: string): JsonObject {
  const metadata = { [EXTENSION_URI]: { action, automation_profile: 'full-auto' } };
  const base = { messageId: ulid(), metadata };
  return version === '1.0'
    ? { message: { ...base, role: 'ROLE_USER', parts: [{ text: 'go' }] } }
    : { message: { ...base, kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'go' }] } };
}

/* ---------------------------------------------------------------- columns */

/** Brings the row's call or phase to its decision, and answers the plan. */
type Path = (cell: Cell) => Promise<string>;

const METHODS = {
  '1.0': { send: 'SendMessage', stream: 'SendStreamingMessage' },
  '0.3': { send: 'message/send', stream: 'message/stream' },
} as const;

const overTheWire =
  (version: '1.0' | '0.3', kind: 'send' | 'stream', times = 1): Path =>
  async (cell) => {
    const action = await cell.action();
    await cell.arm();
    const params = message(version, action);
    const headers = times > 1 ? { 'idempotency-key': ulid() } : {};
    const answers: string[] = [];
    for (let time = 0; time < times; time += 1) answers.push(await cell.http(version, METHODS[version][kind], params, headers));
    expect(answers[0]).not.toMatch(/"id":1,"error":/);
    return cell.planId();
  };

/** The same message by HTTP+JSON; 0.3 has the shapes of its proto there. */
const overRest =
  (version: '1.0' | '0.3', kind: 'send' | 'stream'): Path =>
  async (cell) => {
    const metadata = { [EXTENSION_URI]: { action: await cell.action(), automation_profile: 'full-auto' } };
    const base = { messageId: ulid(), role: 'ROLE_USER', metadata };
    await cell.arm();
    const body =
      version === '1.0' ? { message: { ...base, parts: [{ text: 'go' }] } } : { message: { ...base, content: [{ text: 'go' }] } };
    const path = `${version === '1.0' ? '' : '/v1'}/message:${kind}`;
    const answer = await cell.post(path, body, version === '1.0' ? { 'a2a-version': version } : {});
    expect(answer).toContain('"task":');
    return cell.planId();
  };

/** A plan that waits at a question of its own, armed meanwhile. */
const answered =
  (reply: (cell: Cell, planId: string) => Promise<unknown>): Path =>
  async (cell) => {
    const planId = await cell.use(await cell.action([QUESTION]));
    expect(onlyPending(await until(cell.person, planId, isSettled)).kind).toBe('question');
    await cell.arm();
    await reply(cell, planId);
    return planId;
  };

const PATHS: ReadonlyMap<string, Path> = new Map<string, Path>([
  ['message/send 1.0', overTheWire('1.0', 'send')],
  ['message/send 0.3', overTheWire('0.3', 'send')],
  ['message/stream 1.0', overTheWire('1.0', 'stream')],
  ['message/stream 0.3', overTheWire('0.3', 'stream')],
  ['POST /message:send 1.0', overRest('1.0', 'send')],
  ['POST /v1/message:send 0.3', overRest('0.3', 'send')],
  ['POST /message:stream 1.0', overRest('1.0', 'stream')],
  ['POST /v1/message:stream 0.3', overRest('0.3', 'stream')],
  ['a replay under an Idempotency-Key', overTheWire('1.0', 'send', 3)],
  [
    'plan/use',
    async (cell) => {
      const action = await cell.action();
      await cell.arm();
      // What is halted makes no plan at all by this operation.
      return cell.row.floor === null ? '' : cell.use(action);
    },
  ],
  [
    'plan/execute',
    async (cell) => {
      await call(cell.person, '_cleveragents/config/set', { key: 'sandbox.strategy', value: 'none' });
      await call(cell.person, '_cleveragents/config/set', { key: 'sandbox.checkpoint.enabled', value: false });
      await call(cell.person, '_cleveragents/profile/add', {
        profile: {
          name: 'gated',
          extends: 'trusted',
          decompose_task: 0,
          create_tool: 1,
          edit_code: 0,
          execute_command: 0,
          select_tool: 0,
          modify_config: 0,
          safety: { allow_unsafe_tools: true, require_sandbox: false, require_checkpoints: false },
        },
      });
      // The profile may go without a sandbox; the plan has one all the same.
      await call(cell.person, '_cleveragents/config/set', { key: 'sandbox.strategy', value: null });
      const planId = await cell.use(await cell.action(), { automation_profile: 'gated' });
      expect(onlyPending(await until(cell.person, planId, isSettled)).gate).toBe('create_tool');
      await cell.arm();
      const approval = onlyPending(await until(cell.person, planId, isSettled));
      await call(cell.person, '_cleveragents/plan/execute', { plan_id: planId, digest: approval.digest }).catch(refusedByHalt(cell));
      return planId;
    },
  ],
  [
    // To an object that was out of memory meanwhile: what it resumes passes the same guards.
    'a structured answer',
    answered(async (cell, planId) => {
      await evict(cell.person, planId);
      await cell.answerQuestion(planId);
    }),
  ],
  [
    'a plain answer',
    answered((cell, planId) =>
      cell.http('0.3', 'message/send', {
        message: { kind: 'message', messageId: ulid(), role: 'user', taskId: planId, parts: [{ kind: 'text', text: 'yes' }] },
        configuration: { blocking: false },
      }),
    ),
  ],
  [
    'a new start',
    async (cell) => {
      const first = { call: { tool: 'test/fail_first', arguments: { label: `first-${cell.label}` } } };
      const planId = await cell.use(await cell.action([first]));
      expect((await until(cell.person, planId, isSettled)).plan.state).toBe('errored');
      await cell.arm();
      await call(cell.person, '_cleveragents/plan/execute', { plan_id: planId }).catch(refusedByHalt(cell));
      return planId;
    },
  ],
  [
    'a guard revision',
    async (cell) => {
      const planId = await cell.use(await cell.action(), { guardrails: { required_confirmations: [cell.row.tool] } });
      await until(cell.person, planId, isSettled);
      await cell.arm();
      // A gate comes after the question about the call, which the new policy has asked anew.
      if (cell.row.gate === true) await approve(cell.person, planId, onlyPending(await until(cell.person, planId, isSettled)));
      return planId;
    },
  ],
  [
    'guard/authorize',
    async (cell) => {
      const planId = ulid();
      const { person, row } = cell;
      await call(person, '_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'full-auto' });
      track(person, planId);
      await cell.arm();
      for (const step of (row.before ?? []) as readonly { readonly call: { readonly tool: string; readonly arguments: JsonObject } }[]) {
        const earlier = { plan_id: planId, tool_name: step.call.tool, arguments: step.call.arguments, cost_usd: 0.1 };
        const { decision_id } = await call(person, '_cleveragents/guard/authorize', earlier);
        await call(person, '_cleveragents/guard/settle', { decision_id, outcome: 'succeeded' });
      }
      const request = { plan_id: planId, tool_name: row.tool, arguments: row.args ?? { label: cell.label }, cost_usd: 0.1 };
      if (row.ran === 1) {
        const { decision_id } = await call(person, '_cleveragents/guard/authorize', request);
        await call(person, '_cleveragents/guard/settle', { decision_id, outcome: 'failed' });
      }
      expect(await call(person, '_cleveragents/guard/authorize', request)).toMatchObject({ allowed: false });
      return planId;
    },
  ],
]);

/** A halted plan takes no go-ahead; everything else does. */
const refusedByHalt =
  ({ row }: Cell) =>
  (cause: unknown): null => {
    if (row.floor !== null || !String(cause).includes('halted')) throw cause;
    return null;
  };

/* ---------------------------------------------------------------- what holds in every cell */

async function expectRefused(cell: Cell, path: string, planId: string): Promise<void> {
  const { person, row } = cell;
  const isOutside = path === 'guard/authorize';
  if (planId !== '') {
    if (row.collides === true) await cell.collide(planId);
    const { plan } = isOutside
      ? await until(person, planId, () => true)
      : await until(person, planId, (each) => isSettled(each) || isHalted(cell));
    expect(plan.state, 'the plan waits, or it was refused').not.toMatch(/applied|complete/);
    if (row.onProject !== true || row.gate !== true) expect((await stateOf(person, planId)).changes, 'nothing is written').toEqual([]);
    await expectNamed(cell, path, planId);
  }
  expect(performed(cell.label)).toHaveLength(isOutside ? 0 : (row.ran ?? 0));
  if (row.onProject === true) {
    expect(await fileOf(person, cell.project, 'a.txt')).toBe(row.collides === true && planId !== '' ? 'moved' : 'old');
    expect(await fileOf(person, cell.project, '.github/x.yml')).toBeNull();
  }
}

const isHalted = ({ row }: Cell): boolean => row.floor === null;

/** The trail names what refused. */
async function expectNamed({ person, row }: Cell, path: string, planId: string): Promise<void> {
  if (row.gate === true) {
    const asked = await rowsOf(person, planId, 'approval_opened');
    const decided = await rowsOf(person, planId, 'call_decided');
    const named = [
      ...asked.map(({ data }) => data.approval.gate),
      ...decided.flatMap(({ data }) =>
        data.allowed ? [] : data.guards.filter(({ allowed }) => !allowed).map(({ limitField }) => limitField ?? null),
      ),
    ];
    expect(named).toContain(row.name);
    return;
  }
  if (row.floor === null && path !== 'guard/authorize') {
    const rows = await logOf(person, planId);
    expect(
      rows.map(({ type }) => type).filter((type) => type === 'halted' || type === 'plan_rejected'),
      'the halt is on record',
    ).not.toEqual([]);
    expect(rows.filter((each) => each.type === 'call_decided' && each.data.allowed && each.data.call.tool === row.tool)).toEqual([]);
    return;
  }
  const decided = await rowsOf(person, planId, 'call_decided');
  const refusals = decided.flatMap(({ data }) =>
    data.allowed ? [] : data.guards.filter(({ allowed }) => !allowed).map(({ guard }) => guard),
  );
  expect(refusals).toContain(row.name);
}

describe.each([...PATHS])('by %s', (path, bring) => {
  const rows = [...ROWS, ...GATE_ROWS].filter((row) => row.not?.[path] === undefined);
  it.each(rows.map((row) => [row.name, row] as const))(
    '%s refuses: it is named, nothing runs, the plan waits or is refused',
    async (_name, row) => {
      const cell = await Cell.make(row);
      const planId = await bring(cell);
      await expectRefused(cell, path, planId);
      if (planId !== '') expect((await stateOf(cell.person, planId)).ledger.reservations.length).toBe(0);
    },
  );
});

/** Gates at which nothing arrives yet: what would bring a plan to them is not there. Each becomes a row with it. */
const GATES_TO_COME: Readonly<Record<string, string>> = {
  create_file: 'validations: the automatic fix of one that failed',
  delete_content: 'validations: the automatic revision of the strategy',
  install_dependency: 'child plans: to spawn one',
  approve_plan: 'checkpoints: the automatic restore of one',
};

/** Ways in that are not there yet. Each becomes a column with it. */
const PATHS_TO_COME: Readonly<Record<string, string>> = {
  webhook: 'triggers',
  schedule: 'triggers',
  'a child plan': 'child plans',
  'a restored checkpoint': 'corrections, checkpoints and rollback',
  stdio: 'the stdio transport',
};

/** Names under which these would be offered; the legacy names of operations are the same rows and need no columns of their own. */
const OPERATIONS_TO_COME = /^_cleveragents\/(?:trigger|hook|schedule|checkpoint|plan\/(?:rollback|correct|spawn|resume|retry))(?:\/|$)/;

it('has a row for every guard and every gate, and leaves out no cell without a reason', () => {
  expect(ROWS.map(({ name }) => name)).toEqual(GUARDS.map(({ name }) => name));
  const gates = [...GATE_ROWS.map(({ name }) => name), ...Object.keys(GATES_TO_COME)];
  expect([...gates].sort()).toEqual([...THRESHOLD_NAMES].sort());
  for (const path of PATHS.keys()) expect(Object.keys(PATHS_TO_COME)).not.toContain(path);
  // Whoever brings one of them brings its column.
  expect(OPERATION_NAMES.filter((name) => OPERATIONS_TO_COME.test(name))).toEqual([]);
  for (const { not = {} } of [...ROWS, ...GATE_ROWS]) {
    for (const path of Object.keys(not)) expect([...PATHS.keys()]).toContain(path);
  }
});
