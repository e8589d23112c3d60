// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * Every operation that is registered, and every method of both A2A versions, with input of every wrong kind: the answer is always a
 * JSON-RPC response, never an internal error, and the server lives and keeps its promises afterwards.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { METHODS as METHODS_0_3 } from '../../src/a2a/v0_3/names.ts';
import { METHODS as METHODS_1_0 } from '../../src/a2a/v1_0/names.ts';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { OPERATION_NAMES, OPERATIONS } from '../../src/api/operations.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { baseOf, hostileTexts, type Known } from './hostile.ts';
import { startWorld, type World } from './world.ts';

const SEED = 20_261_130;
const INPUTS = 40;
const AT_ONCE = 8;

/** What a message may hold under the extension's URI. */
const START: JsonObject = {
  action: 'hello',
  arguments: { name: 'Ada' },
  project: 'example',
  automation_profile: 'supervised',
  guardrails: { max_steps: 1, tool_denylist: ['write_file'], actor_limits: { max_retries_per_failure: 1 } },
};

/** The id of the test's own key. */
const PERSON = 'dev-person';

let world: World;
let known: Known;
beforeAll(async () => {
  world = await startWorld();
  const { plan_id } = await world.use('edit-three-files', { session_id: 'fuzz' });
  const approval = await world.pending(plan_id);
  known = {
    plan_id,
    approval_id: approval.approval_id,
    digest: approval.digest,
    action_name: 'hello',
    arguments: { name: 'Ada' },
    project: 'example',
    name: 'example',
    path: 'README.md',
    session_id: 'fuzz',
    key_id: 'nobody',
    page_token: '',
    automation_profile: 'supervised',
    environment_profile: 'manual',
    action: {
      name: 'fuzzed',
      description: 'Made of noise',
      arguments: { type: 'object', properties: { word: { type: 'string', pattern: '^a*$' } }, required: ['word'] },
      actor: 'scripted/steps',
      project: 'example',
      automation_profile: 'supervised',
      guardrails: { max_total_cost: 1, tool_denylist: ['write_*'], max_steps: 5 },
      apply: 'project',
      strategize: [{ decide: { type: 'strategy_choice', question: 'How?', chosen: 'So', alternatives: ['Not'] } }],
      execute: [
        { id: 'a', call: { tool: 'read_file', arguments: { path: 'README.md' } }, cost_usd: 0.1, confidence: 0.5 },
        { calls: [{ tool: 'write_file', arguments: { path: 'x.md', content: '${steps.a.result}' } }] },
        { artifact: { name: 'a', parts: [{ text: '${args.word}' }] } },
      ],
    },
  };
});
afterAll(async () => {
  await world.stop();
});

test.each(OPERATION_NAMES)('%s answers whatever it is asked', async (name) => {
  const texts = hostileTexts(baseOf(OPERATIONS[name], known), { seed: SEED, count: INPUTS });
  await inTurns(texts, (params, index) => {
    // A key that revoked itself would make every later answer a 401.
    if (params.includes(PERSON)) return Promise.resolve();
    return answers(name, params, index % 2 === 0 ? {} : { 'a2a-version': '1.0' });
  });
});

describe.each(['1.0', '0.3'] as const)('in A2A %s', (version) => {
  const isNew = version === '1.0';
  const methods = isNew ? METHODS_1_0 : METHODS_0_3;

  test.each([...methods.keys()])('%s answers whatever it is asked', async (method) => {
    // Several names of what is refused as a whole need no more.
    const inputs = method.toLowerCase().includes('push') ? INPUTS / 4 : INPUTS;
    const bases = [standardBase(version, {}), standardBase(version, { metadata: { [EXTENSION_URI]: START } })];
    const texts = bases.flatMap((base) => hostileTexts(base, { seed: SEED + 1, count: inputs / bases.length }));
    await inTurns(texts, (params) => answers(method, params, isNew ? { 'a2a-version': '1.0' } : {}));
  });
});

test.each<[string, JsonObject]>([
  ['read_file', { path: 'README.md', start_line: 1, line_count: 5 }],
  ['write_file', { path: 'new.md', content: 'text', encoding: 'utf-8', executable: false }],
  ['edit_file', { path: 'README.md', old_text: 'a', new_text: 'b', replace_all: true }],
  ['delete_file', { path: 'README.md' }],
  ['move_file', { from: 'README.md', to: 'READ.md' }],
  ['list_directory', { path: 'src', recursive: true }],
  ['search_code', { query: 'greet', path_glob: 'src/**', ignore_case: true, max_results: 5 }],
])('the tool %s takes whatever a plan calls it with, and the plan comes to a stand', async (tool, base) => {
  const calls = hostileTexts(base, { seed: SEED + 2, count: 3 * INPUTS })
    .filter((text) => text.startsWith('{') && text.length < 400 && !text.includes('${'))
    .slice(0, INPUTS)
    .map((text) => ({ tool, arguments: JSON.parse(text) as JsonObject }));
  const name = await world.addAction({
    name: `calls-${tool}`,
    description: 'Noise for a tool',
    actor: 'scripted/steps',
    project: 'example',
    automation_profile: 'full-auto',
    apply: 'none',
    execute: [{ calls }],
  });
  const { plan_id } = await world.use(name);
  const plan = await world.until(plan_id, ({ state, pending }) => pending.length > 0 || !['queued', 'running', 'complete'].includes(state));
  expect(plan.budget.reserved_usd).toBe(0);
  const { files } = await world.human.call('_cleveragents/plan/diff', { plan_id });
  expect(files.filter(({ path }) => path.startsWith('/') || path.split('/').includes('..') || path.includes('\0'))).toEqual([]);
});

test('after all that the service works, and every chain verifies', async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
  const plan = await world.use('hello');
  await world.until(plan.plan_id, (each) => each.state === 'applied');
  expect({}).not.toHaveProperty('polluted');
  expect(world.server.stderr()).not.toContain('"level":"error"');
  expect(world.server.stderr()).not.toContain('incident');
});

/** The members of all standard methods in one: what a method does not know it ignores. */
function standardBase(version: ProtocolVersion, more: JsonObject): JsonObject {
  const isNew = version === '1.0';
  const message: JsonObject = {
    ...(isNew ? { role: 'ROLE_USER' } : { kind: 'message', role: 'user' }),
    messageId: 'm',
    contextId: 'fuzz-messages',
    parts: isNew
      ? [{ text: 'read README.md' }, { data: { a: [1] }, filename: 'a.json' }]
      : [
          { kind: 'text', text: 'read README.md' },
          { kind: 'data', data: { a: [1] } },
        ],
    extensions: [EXTENSION_URI],
    referenceTaskIds: ['x'],
    ...more,
  };
  return {
    id: known['plan_id'] ?? '',
    taskId: known['plan_id'] ?? '',
    message,
    configuration: { historyLength: 1, blocking: false, returnImmediately: true, acceptedOutputModes: ['text/plain'] },
    historyLength: 1,
    contextId: 'fuzz-messages',
    pageSize: 5,
    pageToken: '',
    statusTimestampAfter: '2026-01-01T00:00:00Z',
    url: 'https://example.com/hook',
    metadata: { reason: 'none' },
  };
}

async function answers(method: string, params: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const { url, key } = world.server.connection;
  const what = `${method} ${params.slice(0, 2000)}`;
  const stop = new AbortController();
  const response = await fetch(`${url}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: `{"jsonrpc":"2.0","id":"x","method":${JSON.stringify(method)},"params":${params}}`,
    signal: stop.signal,
  });
  expect(response.status, what).toBeLessThan(500);
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const body = isStream ? await firstEvent(response) : await response.text();
  if (isStream) stop.abort();
  const answer = JSON.parse(body) as { jsonrpc: unknown; id: unknown; result?: unknown; error?: { code: number; message: string } };
  expect([answer.jsonrpc, answer.id], what).toEqual(['2.0', 'x']);
  expect('result' in answer, what).toBe(!('error' in answer));
  if (answer.error === undefined) return;
  expect(answer.error.code, `${what}\n${body}`).not.toBe(-32603);
  expect(answer.error.code, what).toBeOneOf([-32600, -32601, -32602, -32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008]);
  expect(answer.error.message, what).not.toBe('');
}

async function firstEvent(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const event = /^data: ?(.*)\n/m.exec(text)?.[1];
    if (event !== undefined) return event;
  }
  throw new Error(`the stream ended without an event: ${text}`);
}

async function inTurns(texts: readonly string[], work: (text: string, index: number) => Promise<void>): Promise<void> {
  for (let start = 0; start < texts.length; start += AT_ONCE) {
    await Promise.all(texts.slice(start, start + AT_ONCE).map((text, offset) => work(text, start + offset)));
  }
}
