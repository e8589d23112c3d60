/**
 * Bad input over real HTTP: each gets the right code and a message that names the field, and changes nothing. What is wrong is said in
 * the words of the caller's version; nothing is ever an internal error.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';
import { startTwoOrgs, type TwoOrgs } from './two-orgs.ts';
import { post, type RawAnswer } from './world.ts';

/** A well-formed id that nothing has. */
const UNKNOWN = '01HXRCF1ABCDEFGHJKMNPQRSTV';

const DIGEST = '0'.repeat(64);

let orgs: TwoOrgs;
/** A plan of ours that waits for its apply, and one of the other org. */
let ours: string;
let foreign: string;
let foreignApproval: string;
beforeAll(async () => {
  orgs = await startTwoOrgs();
  const { world, stranger } = orgs;
  const document = { name: 'adder', description: 'Adds', actor: 'scripted/steps', apply: 'none' as const };
  const action = { ...document, arguments: SCHEMA, execute: [{ artifact: { text: 'done' } }] };
  await world.addAction(action);
  await world.human.call('session.create', { session_id: 'ours' });
  ours = (await world.use('edit-three-files')).plan_id;
  await world.pending(ours);

  await stranger.call('_cleveragents/action/add', {
    action: { ...action, name: 'theirs', automation_profile: 'manual', arguments: { type: 'object' } },
  });
  await stranger.call('_cleveragents/project/create', { name: 'theirs' });
  await stranger.call('session.create', { session_id: 'theirs' });
  const plan = await stranger.call('_cleveragents/plan/use', { action_name: 'theirs', session_id: 'theirs' });
  foreign = plan.plan_id;
  foreignApproval = plan.pending[0]?.approval_id ?? '';
  expect(foreignApproval).not.toBe('');
});
afterAll(async () => {
  await orgs.world.stop();
  expect(orgs.log.filter((line) => line.includes('incident') || line.includes('"level":"error"'))).toEqual([]);
});

let before: string;
beforeAll(async () => {
  before = await everything();
});
afterEach(async () => {
  expect(await everything(), 'bad input changes nothing').toBe(before);
});
afterAll(async () => {
  // The two plans of the set-up, as they were: every time of theirs is in what was compared.
  expect(await orgs.world.verifyAll()).toBe(2);
});

const SCHEMA = {
  type: 'object',
  properties: { count: { type: 'integer', minimum: 1 }, word: { type: 'string', maxLength: 5 } },
  required: ['count'],
  additionalProperties: false,
};

/** All that this org has, as one text. */
async function everything(): Promise<string> {
  const { human } = orgs.world;
  const all = await Promise.all([
    human.call('_cleveragents/plan/list', {}),
    human.call('_cleveragents/action/list', {}),
    human.call('_cleveragents/project/list', {}),
    human.call('_cleveragents/project/show', { name: 'example' }),
    human.call('session.list', {}),
    human.call('_cleveragents/key/list', {}),
    human.call('_cleveragents/config/list', {}),
    human.call('_cleveragents/approval/list', {}),
  ]);
  return JSON.stringify(all);
}

async function send(body: string, more: Readonly<Record<string, string>> = {}): Promise<RawAnswer> {
  const { url, key } = orgs.world.server.connection;
  const answer = await post(url, body, { authorization: `Bearer ${key}`, ...more });
  expect(answer.status).toBeLessThan(500);
  expect(answer.body?.jsonrpc).toBe('2.0');
  expect(answer.body?.error?.code).not.toBe(-32603);
  return answer;
}

const call = (method: string, params: JsonValue, more: Readonly<Record<string, string>> = {}): Promise<RawAnswer> =>
  send(JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params }), more);

/** The fields that an error names, in whichever shape its version has. */
function fieldsOf({ body }: RawAnswer): readonly string[] {
  const data = body?.error?.data;
  const lists = Array.isArray(data)
    ? (data as JsonObject[]).flatMap((each) => (each['fieldViolations'] ?? []) as JsonObject[])
    : (((data as JsonObject | undefined)?.['issues'] ?? []) as JsonObject[]);
  return lists.map((issue) => String(issue['field']));
}

describe('the envelope', () => {
  test.each([
    ['no JSON', '{', -32700],
    ['nothing', '', -32700],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}]', -32600],
    ['a text', '"hello"', -32600],
    ['null', 'null', -32600],
    ['no jsonrpc', '{"id":1,"method":"GetTask"}', -32600],
    ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600],
    ['an object as id', '{"jsonrpc":"2.0","id":{},"method":"GetTask"}', -32600],
    ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}', -32600],
    ['no method', '{"jsonrpc":"2.0","id":1}', -32600],
    ['a number as method', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['a list as params', '{"jsonrpc":"2.0","id":1,"method":"_cleveragents/plan/list","params":[]}', -32602],
    ['a text as params', '{"jsonrpc":"2.0","id":1,"method":"_cleveragents/plan/list","params":"all"}', -32602],
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"_cleveragents/plan/erase","params":{}}', -32601],
    ['an unknown standard method', '{"jsonrpc":"2.0","id":1,"method":"EraseTask","params":{}}', -32601],
    ['a name of a prototype', '{"jsonrpc":"2.0","id":1,"method":"constructor","params":{}}', -32601],
  ] as const)('with %s is refused', async (_what, body, code) => {
    for (const headers of [{}, { 'a2a-version': '1.0' }]) {
      const answer = await send(body, headers);
      expect(answer.body?.error?.code).toBe(code);
      expect(answer.body?.id).toBe(body.includes('"id":1,') || body.includes('"id":1}') ? (body.startsWith('[') ? null : 1) : null);
    }
  });

  test('nested 65, a thousand or 300,000 deep is refused', async () => {
    for (const depth of [65, 1_000, 300_000]) {
      const nested = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
      const answer = await send(
        `{"jsonrpc":"2.0","id":1,"method":"_cleveragents/plan/use","params":{"action_name":"adder","arguments":${nested}}}`,
      );
      expect(answer.body?.error?.code).toBeOneOf([-32602, -32700]);
    }
  });

  test.each(['1.0', '0.3'] as const)('of 5 MB is refused with 413 in %s', async (version) => {
    const method = version === '1.0' ? 'SendMessage' : 'message/send';
    // A real client: it writes all of it, and then has to find the answer.
    const answer = await call(method, { message: 'x'.repeat(5_000_000) }, versionHeader(version));
    expect(answer.status).toBe(413);
    expect(answer.body?.error?.code).toBe(-32600);
    expect(answer.body?.error?.message).toContain('larger than 4194304 bytes');
  });

  test('in another version, another type, with another key or none is refused', async () => {
    const { url } = orgs.world.server.connection;
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: '_cleveragents/plan/list', params: {} });
    expect((await send(body, { 'a2a-version': '9.9' })).body?.error?.code).toBe(-32007);
    expect((await call('GetTask', { id: ours }, { 'a2a-version': '9.9' })).body?.error?.code).toBe(-32009);
    expect((await send(body, { 'content-type': 'text/plain' })).status).toBe(415);
    for (const authorization of ['', 'Bearer', 'Basic eDp5', 'Bearer ca_x_y', `Bearer ca_dev-person_${'x'.repeat(43)}`, 'Bearer \u00e9']) {
      const answer = await post(url, body, authorization === '' ? {} : { authorization });
      expect(answer.status, authorization).toBe(401);
      expect(answer.headers.get('www-authenticate')).toContain('Bearer');
      expect(answer.body?.error?.code).toBe(-32002);
    }
    const { agent_key: agentKey } = orgs.world.server.connection;
    const forbidden = await call('_cleveragents/key/list', {}, { authorization: `Bearer ${agentKey}` });
    expect([forbidden.status, forbidden.body?.error?.code]).toEqual([403, -32003]);
  });
});

describe('parameters of our own operations', () => {
  const nested = (depth: number): JsonValue => (depth === 0 ? 1 : { a: nested(depth - 1) });
  const action = (more: JsonObject): JsonObject => ({
    action: { name: 'new', description: 'New', actor: 'scripted/steps', apply: 'none', ...more },
  });
  const step = (more: JsonObject): JsonObject => action({ execute: [{ call: { tool: 'read_file', arguments: { path: 'a' }, ...more } }] });
  const commit = (path: JsonValue): JsonObject => ({
    name: 'example',
    commit_id: 'bad',
    expected_head: null,
    mode: 'patch',
    changes: [{ path, entry: null }],
  });

  test.each<[string, string, JsonValue, number, string | null]>([
    ['no action', '_cleveragents/plan/use', {}, -32602, 'action_name'],
    ['a number as action', '_cleveragents/plan/use', { action_name: 7 }, -32602, 'action_name'],
    ['an unknown field', '_cleveragents/plan/use', { action_name: 'adder', actoin: 1 }, -32602, 'actoin'],
    ['an unknown action', '_cleveragents/plan/use', { action_name: 'nothing' }, -32001, null],
    ["another org's action", '_cleveragents/plan/use', { action_name: 'theirs' }, -32001, null],
    ['a missing argument', '_cleveragents/plan/use', { action_name: 'adder', arguments: {} }, -32602, 'arguments.count'],
    [
      'an argument of the wrong type',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 'one' } },
      -32602,
      'arguments.count',
    ],
    [
      'an argument below its minimum',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 0 } },
      -32602,
      'arguments.count',
    ],
    [
      'an argument that is too long',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1, word: 'toolong' } },
      -32602,
      'arguments.word',
    ],
    [
      'an unknown argument',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1, other: 1 } },
      -32602,
      'arguments.other',
    ],
    ['a list as arguments', '_cleveragents/plan/use', { action_name: 'adder', arguments: [] }, -32602, 'arguments'],
    ['deep arguments', '_cleveragents/plan/use', { action_name: 'adder', arguments: { count: nested(64) } }, -32602, 'params'],
    [
      'an unknown profile',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, automation_profile: 'yolo' },
      -32602,
      'automation_profile',
    ],
    [
      'an unknown profile of the environment',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, environment_profile: 'yolo' },
      -32602,
      'environment_profile',
    ],
    ['an unknown project', '_cleveragents/plan/use', { action_name: 'adder', arguments: { count: 1 }, project: 'nowhere' }, -32001, null],
    ["another org's project", '_cleveragents/plan/use', { action_name: 'adder', arguments: { count: 1 }, project: 'theirs' }, -32001, null],
    [
      'a tool name that is a number',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, guardrails: { tool_denylist: [5] } },
      -32602,
      'guardrails.tool_denylist.0',
    ],
    [
      'a negative budget',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, guardrails: { max_total_cost: -1 } },
      -32602,
      'guardrails.max_total_cost',
    ],
    [
      'a budget as text',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, guardrails: { tool_budget: '1' } },
      -32602,
      'guardrails.tool_budget',
    ],
    [
      'an unknown limit',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, guardrails: { max_cost: 1 } },
      -32602,
      'guardrails.max_cost',
    ],
    [
      'a session name with a space',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, session_id: 'a b' },
      -32602,
      'session_id',
    ],
    [
      'a reserved session name',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, session_id: `task_${UNKNOWN}` },
      -32602,
      'session_id',
    ],
    [
      'an empty idempotency key',
      '_cleveragents/plan/use',
      { action_name: 'adder', arguments: { count: 1 }, idempotency_key: '' },
      -32602,
      'idempotency_key',
    ],
    ['no plan', '_cleveragents/plan/status', {}, -32602, 'plan_id'],
    ['a plan id that is none', '_cleveragents/plan/status', { plan_id: 'latest' }, -32602, 'plan_id'],
    ['a plan id of the wrong type', '_cleveragents/plan/status', { plan_id: ['x'] }, -32602, 'plan_id'],
    ['an unknown plan', '_cleveragents/plan/cancel', { plan_id: UNKNOWN }, -32001, null],
    ['a wrong digest', '_cleveragents/plan/apply', { plan_id: UNKNOWN, digest: 'abc' }, -32602, 'digest'],
    ['an unknown phase', '_cleveragents/plan/list', { phase: 'lunch' }, -32602, 'phase'],
    ['a page size of 0', '_cleveragents/plan/list', { page_size: 0 }, -32602, 'page_size'],
    ['a fraction as page size', '_cleveragents/plan/list', { page_size: 1.5 }, -32602, 'page_size'],
    ['a page token of nobody', '_cleveragents/plan/list', { page_token: 'x' }, -32602, 'page_token'],
    ['blank guidance', '_cleveragents/plan/prompt', { plan_id: UNKNOWN, guidance: '' }, -32602, 'guidance'],
    [
      'an unknown approval',
      '_cleveragents/approval/decide',
      { approval_id: `${UNKNOWN}.4`, decision: 'approve', digest: DIGEST },
      -32001,
      null,
    ],
    ['an approval id that is none', '_cleveragents/approval/decide', { approval_id: 'it', decision: 'approve' }, -32602, 'approval_id'],
    ['an unknown decision', '_cleveragents/approval/decide', { approval_id: `${UNKNOWN}.4`, decision: 'perhaps' }, -32602, 'decision'],
    [
      'a grant of nothing',
      '_cleveragents/approval/decide',
      { approval_id: `${UNKNOWN}.4`, decision: 'approve', grant: {} },
      -32602,
      'grant',
    ],
    ['an unknown profile', '_cleveragents/profile/show', { name: 'yolo' }, -32001, null],
    ['no document', '_cleveragents/action/add', {}, -32602, 'action'],
    ['a blank name', '_cleveragents/action/add', action({ name: '' }), -32602, 'action.name'],
    ['an unknown actor', '_cleveragents/action/add', action({ actor: 'nobody' }), -32602, 'action.actor'],
    ['an unknown member', '_cleveragents/action/add', action({ exceute: [] }), -32602, 'action.exceute'],
    ['an action that exists', '_cleveragents/action/add', action({ name: 'hello', execute: [{ say: 'hi' }] }), -32005, null],
    ['a tool name that is a number', '_cleveragents/action/add', step({ tool: 5 }), -32602, 'action.execute[0].call.tool'],
    ['a tool name that is null', '_cleveragents/action/add', step({ tool: null }), -32602, 'action.execute[0].call.tool'],
    [
      'a tool name that is an object',
      '_cleveragents/action/add',
      step({ tool: { name: 'read_file' } }),
      -32602,
      'action.execute[0].call.tool',
    ],
    ['an unknown tool', '_cleveragents/action/add', step({ tool: 'read_mind' }), -32602, 'action.execute[0].call.tool'],
    [
      'a schema that is none',
      '_cleveragents/action/add',
      action({ arguments: { type: 'objekt' }, execute: [{ say: 'hi' }] }),
      -32602,
      'action.arguments.type',
    ],
    ['a path with ..', '_cleveragents/project/commit', commit('../outside'), -32602, 'changes.0.path'],
    ['a path with .. inside', '_cleveragents/project/commit', commit('a/../../outside'), -32602, 'changes.0.path'],
    ['an absolute path', '_cleveragents/project/commit', commit('/etc/passwd'), -32602, 'changes.0.path'],
    ['a path with NUL', '_cleveragents/project/commit', commit('a\0b'), -32602, 'changes.0.path'],
    ['an overlong path', '_cleveragents/project/commit', commit('a/'.repeat(3000)), -32602, 'changes.0.path'],
    ['a path that is a number', '_cleveragents/project/commit', commit(5), -32602, 'changes.0.path'],
    ['a path with .. to read', '_cleveragents/project/file/read', { name: 'example', path: '../secret' }, -32602, 'path'],
    ['a path with a backslash to read', '_cleveragents/project/file/read', { name: 'example', path: '..\\secret' }, -32602, 'path'],
    ['an unknown file', '_cleveragents/project/file/read', { name: 'example', path: 'nothing.md' }, -32001, null],
    ['a head that has moved', '_cleveragents/project/commit', { ...commit('README.md'), expected_head: DIGEST }, -32004, null],
    [
      'a blob that is not base64',
      '_cleveragents/project/blob/put',
      { name: 'example', blobs: [{ digest: DIGEST, base64: '?' }] },
      -32602,
      'blobs.0.base64',
    ],
    [
      'a blob with another digest',
      '_cleveragents/project/blob/put',
      { name: 'example', blobs: [{ digest: DIGEST, base64: 'aGk=' }] },
      -32602,
      'blobs.0.digest',
    ],
    ['an unknown project', '_cleveragents/project/show', { name: 'nowhere' }, -32001, null],
    ['a project name with a slash at the end', '_cleveragents/project/create', { name: 'bad/' }, -32602, 'name'],
    ['a project that exists', '_cleveragents/project/create', { name: 'example' }, -32005, null],
    ['an unknown session', 'session.show', { session_id: 'nobody' }, -32001, null],
    ['a session of the wrong type', 'session.create', { session_id: 5 }, -32602, 'session_id'],
    ['an unknown role', '_cleveragents/key/create', { name: 'k', kind: 'human', roles: ['king'] }, -32602, 'roles.0'],
    ['an unknown kind', '_cleveragents/key/create', { name: 'k', kind: 'robot', roles: ['viewer'] }, -32602, 'kind'],
    ['an unknown key', '_cleveragents/key/revoke', { key_id: 'nobody' }, -32001, null],
    ['an unknown setting', '_cleveragents/config/set', { key: 'core.colour', value: 'red' }, -32602, 'key'],
    ['a setting of the wrong type', '_cleveragents/config/set', { key: 'approvals.require_digest', value: 'yes' }, -32602, 'value'],
  ])('%s in %s is refused', async (_what, method, params, code, field) => {
    for (const headers of [{}, { 'a2a-version': '1.0' }]) {
      const answer = await call(method, params, headers);
      expect([answer.body?.error?.code, answer.status]).toEqual([code, 200]);
      if (field === null) continue;
      expect(fieldsOf(answer)).toContain(field);
      expect(answer.body?.error?.message).toContain(field);
    }
  });
});

describe.each(['1.0', '0.3'] as const)('messages and tasks in %s', (version) => {
  const isNew = version === '1.0';
  const names = isNew
    ? {
        send: 'SendMessage',
        stream: 'SendStreamingMessage',
        get: 'GetTask',
        cancel: 'CancelTask',
        subscribe: 'SubscribeToTask',
        list: 'ListTasks',
      }
    : {
        send: 'message/send',
        stream: 'message/stream',
        get: 'tasks/get',
        cancel: 'tasks/cancel',
        subscribe: 'tasks/resubscribe',
        list: 'tasks/list',
      };
  const text = (value: JsonValue): JsonObject => (isNew ? { text: value } : { kind: 'text', text: value });
  const data = (value: JsonObject): JsonObject => (isNew ? { data: value } : { kind: 'data', data: value });
  const message = (more: JsonObject): JsonObject => ({
    message: {
      ...(isNew ? { role: 'ROLE_USER' } : { kind: 'message', role: 'user' }),
      messageId: 'm',
      parts: [text('write bad.md: bad')],
      ...more,
    },
  });
  const start = (more: JsonObject): JsonObject =>
    message({ metadata: { [EXTENSION_URI]: { action: 'adder', arguments: { count: 1 }, ...more } } });
  const ofTask = (method: string, params: JsonValue): Promise<RawAnswer> => call(method, params, versionHeader(version));
  const our = (name: string): string => `message.metadata.${EXTENSION_URI}.${name}`;

  test.each<[string, JsonValue, string]>([
    ['no message', {}, 'message'],
    ['a text as message', { message: 'hello' }, 'message'],
    ['no parts', message({ parts: [] }), 'message.parts'],
    ['parts that are none', message({ parts: 'hello' }), 'message.parts'],
    ['a part of nothing', message({ parts: [{}] }), 'message.parts.0'],
    ['a number as text', message({ parts: [text(5)] }), 'message.parts.0.text'],
    ['an unknown role', message({ role: 'king' }), 'message.role'],
    ['no messageId', message({ messageId: null }), 'message.messageId'],
    ['a context with a space', message({ contextId: 'a b' }), 'message.contextId'],
    ['metadata that is a list', message({ metadata: [] }), 'message.metadata'],
    ['an extension that is a text', message({ metadata: { [EXTENSION_URI]: 'adder' } }), `message.metadata.${EXTENSION_URI}`],
    ['an unknown action', start({ action: 'nothing' }), our('action')],
    ["another org's action", start({ action: 'theirs' }), our('action')],
    ['a number as action', start({ action: 5 }), our('action')],
    ['an unknown member', start({ guardrial: {} }), our('guardrial')],
    ['arguments that miss the schema', start({ arguments: { count: 'one' } }), 'arguments.count'],
    ['an unknown profile', start({ automation_profile: 'yolo' }), our('automation_profile')],
    ['a tool name that is no text', start({ guardrails: { tool_denylist: [null] } }), our('guardrails.tool_denylist.0')],
    ['an unknown project', start({ project: 'nowhere' }), our('project')],
    [
      'an answer without a digest',
      message({ parts: [data({ approval_id: `${UNKNOWN}.1`, decision: 'approve' })] }),
      'message.parts.0.data.digest',
    ],
    [
      'an answer that is none',
      message({ parts: [data({ approval_id: `${UNKNOWN}.1`, decision: 'maybe', digest: DIGEST })] }),
      'message.parts.0.data.decision',
    ],
    [
      'an answer to nothing',
      message({ parts: [data({ approval_id: `${UNKNOWN}.1`, decision: 'approve', digest: DIGEST })] }),
      'message.parts.0.data.approval_id',
    ],
  ])('%s is refused by send and stream, and starts nothing', async (_what, params, field) => {
    for (const method of [names.send, names.stream]) {
      const answer = await ofTask(method, params);
      expect(answer.headers.get('content-type')).toContain('application/json');
      expect(answer.body?.error?.code).toBe(-32602);
      expect(`${answer.body?.error?.message} ${fieldsOf(answer).join(' ')}`).toContain(field);
    }
  });

  test('unknown and foreign tasks are the same to every method', async () => {
    for (const method of [names.get, names.cancel, names.subscribe]) {
      for (const id of [UNKNOWN, 'latest', '../x']) {
        const unknown = await ofTask(method, { id });
        expect(unknown.body?.error?.code).toBe(-32001);
        const theirs = await ofTask(method, { id: foreign });
        expect(JSON.stringify(theirs.body).replaceAll(foreign, id)).toBe(JSON.stringify(unknown.body));
      }
    }
    for (const taskId of [UNKNOWN, foreign]) {
      expect((await ofTask(names.send, message({ taskId }))).body?.error?.code).toBe(-32001);
      expect((await ofTask(names.stream, message({ contextId: `task_${taskId}` }))).body?.error?.code).toBe(-32001);
    }
    expect((await ofTask(names.list, { contextId: 'theirs' })).body?.result).toMatchObject({ tasks: [] });
  });

  test.each<[string, JsonValue, string]>([
    ['no id', {}, 'id'],
    ['a number as id', { id: 5 }, 'id'],
    ['a negative history length', { id: UNKNOWN, historyLength: -1 }, 'historyLength'],
    ['a history length that is none', { id: UNKNOWN, historyLength: 'all' }, 'historyLength'],
  ])('%s is refused by get', async (_what, params, field) => {
    const answer = await ofTask(names.get, params);
    expect(answer.body?.error?.code).toBe(-32602);
    expect(answer.body?.error?.message).toContain(field);
  });

  test.each<[string, JsonValue]>([
    ['a page size of 0', { pageSize: 0 }],
    ['a page size of a million', { pageSize: 1_000_000 }],
    ['a page token of nobody', { pageToken: 'x' }],
    ['an unknown state', { status: 'DOING_FINE' }],
    ['a time that is none', { statusTimestampAfter: 'yesterday' }],
  ])('%s is refused by list', async (_what, params) => {
    expect((await ofTask(names.list, params)).body?.error?.code).toBe(-32602);
  });
});

test('a foreign plan answers every operation exactly like one that never was', async () => {
  const methods = [
    'status',
    'diff',
    'artifacts',
    'tree',
    'execute',
    'apply',
    'cancel',
    'guard/show',
    'guard/audit',
    'guard/audit/verify',
    'profile/show',
  ];
  for (const method of methods) {
    const [theirs, unknown] = await Promise.all([
      call(`_cleveragents/plan/${method}`, { plan_id: foreign }),
      call(`_cleveragents/plan/${method}`, { plan_id: UNKNOWN }),
    ]);
    expect(unknown.body?.error?.code).toBe(-32001);
    expect(JSON.stringify(theirs.body).replaceAll(foreign, UNKNOWN)).toBe(JSON.stringify(unknown.body));
  }
  const approve = { approval_id: foreignApproval, decision: 'approve', digest: DIGEST };
  expect((await call('_cleveragents/approval/decide', approve)).body?.error?.code).toBe(-32001);
  expect((await call('session.close', { session_id: 'theirs', cancel_plans: true })).body?.error?.code).toBe(-32001);
  expect((await call('_cleveragents/project/tree', { name: 'theirs' })).body?.error?.code).toBe(-32001);
  // And the other org still has what it had.
  expect(await orgs.stranger.call('_cleveragents/plan/status', { plan_id: foreign })).toMatchObject({ state: 'waiting' });
});

const versionHeader = (version: ProtocolVersion): Readonly<Record<string, string>> => (version === '1.0' ? { 'a2a-version': '1.0' } : {});
