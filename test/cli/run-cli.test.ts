import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ApprovalView, PlanView } from '../../src/api/views.ts';
import type { CliIo } from '../../src/cli/cli-io.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { Refused, type Service, serve } from './service.ts';

const PLAN = '01HXRCF1ABCDE12345678901AB';
const APPROVAL = `${PLAN}.7`;
const DIGEST = 'd'.repeat(64);
const AT = '2026-11-30T12:00:00Z';

const approval: ApprovalView = {
  approval_id: APPROVAL,
  plan_id: PLAN,
  kind: 'gate',
  status: 'pending',
  digest: DIGEST,
  reason: 'select_tool asks',
  gate: 'select_tool',
  threshold: 1,
  confidence: 0.5,
  diff: {
    digest: 'e'.repeat(64),
    base: 'b',
    result: 'r',
    files: [{ path: 'notes.md', status: 'added', additions: 1, deletions: 0 }],
    additions: 1,
    deletions: 0,
    patch: '--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+hello\n',
  },
  opened_at: AT,
  expires_at: null,
};

const planIn = (state: PlanView['state'], pending: readonly ApprovalView[] = []): PlanView => ({
  plan_id: PLAN,
  task_id: PLAN,
  action_name: 'commands',
  project: 'example',
  session_id: 's',
  phase: 'execute',
  state,
  task_state: 'working',
  attempt: 1,
  profile: { name: 'supervised', level: 'action', digest: DIGEST },
  budget: {
    cap_usd: 1,
    cap_source: 'tool_budget',
    spent_usd: 0.25,
    reserved_usd: 0,
    overrun_usd: 0,
    remaining_usd: 0.75,
    exhausted: false,
  },
  steps: { used: 2, limit: 10 },
  wall_clock: { worked_seconds: 3, limit_seconds: null },
  pending: [...pending],
  created_at: AT,
  updated_at: AT,
  seq: 9,
  head_hash: DIGEST,
});

const folders: string[] = [];
const services: Service[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  for (const service of services.splice(0)) await service.close();
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'cli-'));
  folders.push(path);
  return path;
}

async function start(operations: Readonly<Record<string, (params: JsonObject) => unknown>>): Promise<Service> {
  const service = await serve(operations);
  services.push(service);
  return service;
}

interface Ran {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

async function run(argv: readonly string[], given: Partial<CliIo> = {}): Promise<Ran> {
  const out: Buffer[] = [];
  let err = '';
  const io: CliIo = {
    cwd: given.cwd ?? folder(),
    env: {},
    isTerminal: false,
    out: (data) => out.push(Buffer.from(data)),
    err: (text) => {
      err += text;
    },
    ...given,
  };
  const exitCode = await runCli(argv, io, '1.2.3');
  return { exitCode, out: Buffer.concat(out).toString('utf8'), err };
}

const notFound = (): never => {
  throw new Refused({ kind: 'not_found', message: 'Plan not found', entity: 'plan', id: PLAN, details: { plan_id: PLAN } });
};

describe('exit codes', () => {
  const refusing = (refusal: ConstructorParameters<typeof Refused>[0]) => (): never => {
    throw new Refused(refusal);
  };
  it.each<readonly [string, () => unknown, number]>([
    ['0 for a plan that runs', () => planIn('running'), 0],
    ['0 for a plan that was applied', () => planIn('applied'), 0],
    ['1 for a plan that failed', () => planIn('errored'), 1],
    ['5 for a plan that waits', () => planIn('waiting', [approval]), 5],
    ['3 for an unknown plan', notFound, 3],
    ['4 for a plan in the wrong state', refusing({ kind: 'invalid_state', message: 'm' }), 4],
    ['4 for something that exists', refusing({ kind: 'already_exists', message: 'm', entity: 'plan', id: 'x' }), 4],
    ['2 for wrong parameters', refusing({ kind: 'invalid', message: 'm', issues: [] }), 2],
    ['1 for a missing role', refusing({ kind: 'forbidden', message: 'm' }), 1],
    ['1 for an exhausted budget', refusing({ kind: 'budget_exceeded', message: 'm' }), 1],
  ])('are %s', async (_, status, exitCode) => {
    const { url } = await start({ '_cleveragents/plan/status': status });
    const json = await run(['plan', 'status', PLAN, '--url', url, '--format', 'json']);
    expect(json.exitCode).toBe(exitCode);
    const envelope = JSON.parse(json.out) as { readonly exit_code: number };
    expect(Object.keys(envelope)).toEqual(['command', 'status', 'exit_code', 'data', 'timing', 'messages']);
    expect(envelope.exit_code).toBe(exitCode);
    expect((await run(['plan', 'status', PLAN, '--url', url])).exitCode).toBe(exitCode);
  });

  it('are 2 for a command that cannot be understood, in JSON too', async () => {
    expect((await run(['plan', 'fly'])).exitCode).toBe(2);
    const json = await run(['plan', 'fly', '--format=json']);
    expect(JSON.parse(json.out)).toMatchObject({ status: 'error', exit_code: 2, messages: [{ level: 'error' }] });
  });

  it('are 2 with the flag named when a value is out of bounds, and nothing is sent', async () => {
    const { url, calls } = await start({});
    const ran = await run(['plan', 'list', '--page-size', '500', '--url', url]);
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toContain('--page-size: must be 1 to 100');
    expect(calls).toEqual([]);
  });

  it('are 1 when nothing listens', async () => {
    const ran = await run(['plan', 'use', 'a', '--url', 'http://127.0.0.1:1']);
    expect(ran).toMatchObject({ exitCode: 1 });
    expect(ran.err).toContain('cannot be reached');
  });
});

describe('the error in JSON', () => {
  it('has code, message and data of the service', async () => {
    const { url } = await start({ '_cleveragents/plan/status': notFound });
    const { out, err } = await run(['plan', 'status', PLAN, '--url', url, '--format', 'json']);
    expect(JSON.parse(out)).toMatchObject({
      command: 'plan status',
      data: { error: { name: 'ResourceNotFoundError', code: -32001, message: 'Plan not found', data: { plan_id: PLAN } } },
    });
    expect(err).toBe('');
  });
});

describe('where the server is', () => {
  const health = { '_cleveragents/health/check': () => ({ status: 'ok', version: '1', checks: [] }) };

  it('is found in the folder above, with the key of the person', async () => {
    const service = await start(health);
    const root = folder();
    mkdirSync(join(root, '.cleveragents'));
    mkdirSync(join(root, 'deep/er'), { recursive: true });
    writeFileSync(
      join(root, '.cleveragents/connection.json'),
      JSON.stringify({ url: service.url, org: 'dev', key: 'ca_p_1', agent_key: 'ca_a_1' }),
    );
    expect((await run(['health', 'check'], { cwd: join(root, 'deep/er') })).exitCode).toBe(0);
    expect(service.calls[0]?.authorization).toBe('Bearer ca_p_1');
  });

  it("is taken from flags before environment before file, and the file's key goes to the file's server only", async () => {
    const inFile = await start(health);
    const inEnv = await start(health);
    const inFlag = await start(health);
    const root = folder();
    mkdirSync(join(root, '.cleveragents'));
    writeFileSync(
      join(root, '.cleveragents/connection.json'),
      JSON.stringify({ url: inFile.url, org: 'dev', key: 'local', agent_key: 'a' }),
    );
    const env = { CLEVERAGENTS_URL: inEnv.url };
    await run(['health', 'check'], { cwd: root, env });
    expect(inEnv.calls.map((call) => call.authorization)).toEqual([undefined]);
    await run(['health', 'check'], { cwd: root, env: { ...env, CLEVERAGENTS_SERVER_TOKEN: 'token' } });
    expect(inEnv.calls[1]?.authorization).toBe('Bearer token');
    await run(['health', 'check', '--url', inFlag.url, '--key', 'flag'], { cwd: root, env });
    expect(inFlag.calls[0]?.authorization).toBe('Bearer flag');
    expect(inFile.calls).toEqual([]);
  });

  it('is asked for when it is not known', async () => {
    expect(await run(['health', 'check'])).toMatchObject({ exitCode: 2, err: expect.stringContaining('npm start') });
  });
});

describe('plan use', () => {
  it('sends the environment profile as its own lowest level', async () => {
    const { url, calls } = await start({ '_cleveragents/plan/use': () => planIn('running') });
    await run(['plan', 'use', 'commands', '--arg', 'text=read README.md', '--url', url], {
      env: { CLEVERAGENTS_AUTOMATION_PROFILE: 'auto' },
    });
    expect(calls[0]?.params).toEqual({ action_name: 'commands', arguments: { text: 'read README.md' }, environment_profile: 'auto' });
  });
});

describe('plan apply', () => {
  const operations = {
    '_cleveragents/plan/status': () => planIn('waiting', [approval]),
    '_cleveragents/plan/apply': () => planIn('applied'),
  };

  it('shows the diff and its digest, and sends exactly that digest', async () => {
    const { url, calls } = await start(operations);
    const ran = await run(['plan', 'apply', PLAN, '--url', url]);
    expect(ran.exitCode).toBe(0);
    expect(ran.err).toContain('+hello');
    expect(ran.err).toContain(DIGEST);
    expect(calls.at(-1)).toMatchObject({ method: '_cleveragents/plan/apply', params: { plan_id: PLAN, digest: DIGEST, approve: true } });
  });

  it('asks a person who is there, and sends nothing after a no', async () => {
    const { url, calls } = await start(operations);
    const asked: string[] = [];
    const confirm = (question: string): Promise<boolean> => {
      asked.push(question);
      return Promise.resolve(false);
    };
    expect((await run(['plan', 'apply', PLAN, '--url', url], { confirm })).exitCode).toBe(2);
    expect(asked).toEqual(['Apply these changes?']);
    expect(calls.map((call) => call.method)).toEqual(['_cleveragents/plan/status']);
    expect((await run(['plan', 'apply', PLAN, '--url', url, '--yes'], { confirm })).exitCode).toBe(0);
    expect(asked).toHaveLength(1);
  });

  it('sends a digest that was given without looking for another', async () => {
    const { url, calls } = await start(operations);
    await run(['plan', 'apply', PLAN, '--digest', 'f'.repeat(64), '--url', url]);
    expect(calls.map((call) => call.params)).toEqual([{ plan_id: PLAN, digest: 'f'.repeat(64), approve: true }]);
  });
});

describe('plan execute', () => {
  it('approves its own gates only', async () => {
    const gate: ApprovalView = { ...approval, gate: 'create_tool', digest: 'a'.repeat(64) };
    const { url, calls } = await start({
      '_cleveragents/plan/status': () => planIn('waiting', [approval, gate]),
      '_cleveragents/plan/execute': () => planIn('running'),
    });
    await run(['plan', 'execute', PLAN, '--url', url]);
    expect(calls.at(-1)?.params).toEqual({ plan_id: PLAN, digest: 'a'.repeat(64) });
  });

  it('sends no digest when nothing of its own is pending', async () => {
    const { url, calls } = await start({
      '_cleveragents/plan/status': () => planIn('waiting', [approval]),
      '_cleveragents/plan/execute': () => planIn('running'),
    });
    await run(['plan', 'execute', PLAN, '--url', url]);
    expect(calls.at(-1)?.params).toEqual({ plan_id: PLAN });
  });
});

describe('approvals', () => {
  const call: ApprovalView = {
    approval_id: APPROVAL,
    plan_id: PLAN,
    kind: 'call',
    status: 'pending',
    digest: DIGEST,
    reason: "Tool 'counter' is on the denylist.\u001b[2Jgone \u202etxt",
    guard: 'denylist',
    call: { tool: 'counter', arguments: { by: 1 }, class: 'external_write' },
    opened_at: AT,
    expires_at: AT,
  };
  const withApproval = (pending: ApprovalView) => ({
    '_cleveragents/approval/list': (params: JsonObject) =>
      params['page_token'] === undefined
        ? { approvals: [{ ...pending, approval_id: `${PLAN}.1` }], next_page_token: 'more' }
        : { approvals: [pending], next_page_token: '' },
    '_cleveragents/approval/decide': () => ({ approval: { ...pending, status: 'approved' }, plan: planIn('running') }),
  });

  it('show what is approved before the digest of exactly that is sent', async () => {
    const { url, calls } = await start(withApproval(call));
    const ran = await run(['approvals', 'approve', APPROVAL, '--reason', 'fine', '--url', url]);
    expect(ran.exitCode).toBe(0);
    expect(ran.err).toContain('counter (external_write) {"by":1}');
    expect(calls.at(-1)).toMatchObject({
      method: '_cleveragents/approval/decide',
      params: { approval_id: APPROVAL, decision: 'approve', digest: DIGEST, reason: 'fine' },
    });
  });

  it('never print characters that move the cursor or turn the text', async () => {
    const { url } = await start(withApproval(call));
    const ran = await run(['approvals', 'approve', APPROVAL, '--url', url]);
    for (const character of ['\u001b', '\u202e']) expect(`${ran.out}${ran.err}`).not.toContain(character);
    expect(ran.err).toContain('\\u{1b}[2Jgone \\u{202e}txt');
  });

  it('send the suggested grant of a limit, or the one that was given', async () => {
    const { url, calls } = await start(withApproval({ ...call, kind: 'limit', suggested_grant: { cost_usd: 0.5 } }));
    await run(['approvals', 'approve', APPROVAL, '--url', url]);
    expect(calls.at(-1)?.params['grant']).toEqual({ cost_usd: 0.5 });
    await run(['approvals', 'approve', APPROVAL, '--cost-usd', '2', '--url', url]);
    expect(calls.at(-1)?.params['grant']).toEqual({ cost_usd: 2 });
    expect((await run(['approvals', 'approve', APPROVAL, '--cost-usd', '2', '--calls', '1', '--url', url])).exitCode).toBe(2);
  });

  it('deny and answer with the digest too', async () => {
    const { url, calls } = await start(withApproval(call));
    await run(['approvals', 'deny', APPROVAL, '--url', url]);
    expect(calls.at(-1)?.params).toEqual({ approval_id: APPROVAL, decision: 'deny', digest: DIGEST });
    await run(['approvals', 'answer', APPROVAL, 'the second', '--url', url]);
    expect(calls.at(-1)?.params).toEqual({ approval_id: APPROVAL, decision: 'answer', digest: DIGEST, text: 'the second' });
  });

  it('that are not pending are not found', async () => {
    const { url } = await start(withApproval(call));
    const ran = await run(['approvals', 'approve', `${PLAN}.99`, '--url', url]);
    expect(ran.exitCode).toBe(3);
    expect(ran.err).toContain('is not pending');
  });
});

describe('views', () => {
  it('of a plan show where it stands, what it used and what to do next', async () => {
    const { url } = await start({ '_cleveragents/plan/status': () => planIn('waiting', [approval]) });
    const { out } = await run(['plan', 'status', PLAN, '--url', url]);
    for (const shown of [
      PLAN,
      'execute/waiting',
      'supervised (from action)',
      '$0.25 of $1.00 (tool_budget)',
      '2 of 10',
      `approvals approve ${APPROVAL}`,
    ]) {
      expect(out).toContain(shown);
    }
  });

  it('have colours on a terminal, and none with NO_COLOR or in a pipe', async () => {
    const { url } = await start({ '_cleveragents/plan/status': () => planIn('running') });
    const argv = ['plan', 'status', PLAN, '--url', url];
    expect((await run(argv, { isTerminal: true })).out).toContain('\u001b[');
    expect((await run(argv, { isTerminal: true, env: { NO_COLOR: '1' } })).out).not.toContain('\u001b[');
    expect((await run(argv)).out).not.toContain('\u001b[');
  });

  it('of a diff are the patch, byte for byte where it holds only text', async () => {
    const patch = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\tc\r\n';
    const files = [{ path: 'x', status: 'modified', binary: false, additions: 1, deletions: 1 }];
    const totals = { files: 1, additions: 1, deletions: 1, binary: 0 };
    const { url } = await start({
      '_cleveragents/plan/diff': () => ({ plan_id: PLAN, base: 'b', result: 'r', digest: DIGEST, files, totals, patch }),
    });
    const { out } = await run(['plan', 'diff', PLAN, '--url', url]);
    expect(out.startsWith(patch)).toBe(true);
    expect(out).toContain(`digest ${DIGEST}`);
  });

  it('of a trail that was changed say so and fail', async () => {
    const { url } = await start({
      '_cleveragents/plan/guard/audit/verify': () => ({
        plan_id: PLAN,
        valid: false,
        entries: 9,
        head: DIGEST,
        head_signature: 'valid',
        trail: 'complete',
        first_bad_seq: 4,
        problem: 'hash differs',
      }),
    });
    expect(await run(['plan', 'guard', 'verify', PLAN, '--url', url])).toMatchObject({
      exitCode: 1,
      out: expect.stringContaining('NOT VALID at row 4: hash differs'),
    });
  });

  it('of lists without a view of their own are tables', async () => {
    const { url } = await start({
      'session.list': () => ({
        sessions: [{ session_id: 's1', actor_name: null, status: 'open', created_at: AT, closed_at: null }],
        next_page_token: '',
      }),
    });
    const { out } = await run(['session', 'list', '--url', url]);
    expect(out.split('\n')[0]).toMatch(/^session_id +actor_name +status +created_at +closed_at$/);
    expect(out).toMatch(/s1 +- +open/);
  });

  it('of a list beside other members are a table below them, without columns that a table cannot hold', async () => {
    const entries = [
      { path: 'a', mode: '100644', digest: 'x', size_bytes: 1, extra: { a: 1 } },
      { path: 'b', mode: '100644', digest: 'y', size_bytes: 2, extra: null },
    ];
    const { url } = await start({ '_cleveragents/project/tree': () => ({ name: 'p', head: 'h', entries, next_page_token: 'n' }) });
    const { out } = await run(['project', 'tree', 'p', '--url', url]);
    expect(out).toMatch(/^name: p\nhead: h\npath +mode +digest +size_bytes\na +100644 +x +1\nb +100644 +y +2\nmore with --page-token n\n$/);
  });

  it('of what is not found name it', async () => {
    const { url } = await start({ '_cleveragents/plan/status': notFound });
    expect((await run(['plan', 'status', PLAN, '--url', url])).err).toBe(`error: Plan not found (plan_id ${PLAN})\n`);
  });

  it('of a file are its bytes', async () => {
    const { url } = await start({
      '_cleveragents/project/file/read': () => ({
        name: 'p',
        head: 'h',
        path: 'a',
        mode: '100644',
        digest: DIGEST,
        size_bytes: 3,
        base64: Buffer.from('a\u0000\n').toString('base64'),
      }),
    });
    expect((await run(['project', 'read', 'p', 'a', '--url', url])).out).toBe('a\u0000\n');
  });
});

describe('action add', () => {
  it('reads the document from a file and says when it is none', async () => {
    const { url, calls } = await start({ '_cleveragents/action/add': (params) => ({ name: 'n', document: params['action'] }) });
    const cwd = folder();
    writeFileSync(join(cwd, 'a.json'), '{"name":"n"}');
    writeFileSync(join(cwd, 'b.json'), '{');
    expect((await run(['action', 'add', 'a.json', '--url', url], { cwd })).exitCode).toBe(0);
    expect(calls[0]?.params).toEqual({ action: { name: 'n' } });
    expect(await run(['action', 'add', 'b.json', '--url', url], { cwd })).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('b.json is not JSON'),
    });
    expect(await run(['action', 'add', 'c.json', '--url', url], { cwd })).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('c.json cannot be read'),
    });
  });
});

describe('settings', () => {
  it('are sent as what they look like', async () => {
    const { url, calls } = await start({
      '_cleveragents/config/set': () => ({ scope: 'org', project: null, key: 'k', value: true, is_default: false, meaning: 'm' }),
    });
    await run(['config', 'set', 'approvals.require_digest', 'true', '--url', url]);
    await run(['config', 'set', 'core.automation-profile', 'supervised', '--scope', 'project', '--project', 'p', '--url', url]);
    await run(['config', 'set', 'core.default-action', 'null', '--url', url]);
    expect(calls.map((call) => call.params)).toEqual([
      { key: 'approvals.require_digest', value: true },
      { key: 'core.automation-profile', value: 'supervised', scope: 'project', project: 'p' },
      { key: 'core.default-action', value: null },
    ]);
  });
});

describe('help', () => {
  it('is no failure, and names the exit codes', async () => {
    const ran = await run(['--help']);
    expect(ran.exitCode).toBe(0);
    expect(ran.out).toContain('5 the plan waits for approval');
    expect((await run(['--version'])).out).toBe('1.2.3\n');
  });
});
