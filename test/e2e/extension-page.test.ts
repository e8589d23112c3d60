/**
 * docs/extension.md is a specification: every example in it is a request that is sent to a real server, in order, or the answer that comes
 * back. What a server shows and the page does not name is missing there.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApprovalAnswer, EXTENSION_URI, StartPlan } from '../../src/a2a/extension.ts';
import { APPROVING_TEXTS, DENYING_TEXTS } from '../../src/a2a/plain-decision.ts';
import { OPERATION_NAMES } from '../../src/api/operations.ts';
import { GUARDRAIL_SETTINGS } from '../../src/core/guardrail-settings.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { post } from './world.ts';

const page = await readFile(new URL('../../docs/extension.md', import.meta.url), 'utf8');

interface Block {
  readonly kind: string;
  readonly by: string;
  readonly value: JsonObject;
}

const blocks: readonly Block[] = [...page.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, info = '', text = '']) => {
  const [language, kind = '', by = ''] = info.split(' ');
  expect(language).toBe('json');
  return { kind, by, value: JSON.parse(text) as JsonObject };
});

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

/** A word in capitals stands for a value that is only known when it comes; `…` for any text. */
const NAMES: ReadonlySet<string> = new Set(['TASK_ID', 'CONTEXT_ID', 'APPROVAL_ID', 'DIGEST']);

/** What the page says must be so; what else is in the answer may be. */
function expectLike(said: JsonValue, real: JsonValue | undefined, names: Map<string, string>, path: string): void {
  if (typeof said === 'string' && NAMES.has(said)) {
    expect(typeof real, path).toBe('string');
    names.set(said, String(real));
  } else if (typeof said === 'string' && said.includes('…')) {
    const pattern = said.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    expect(real, path).toMatch(new RegExp(`^${pattern.join('[\\s\\S]*')}$`));
  } else if (Array.isArray(said)) {
    expect(Array.isArray(real), path).toBe(true);
    for (const [index, item] of said.entries()) expectLike(item, (real as readonly JsonValue[])[index], names, `${path}[${index}]`);
  } else if (typeof said === 'object' && said !== null) {
    expect(typeof real, path).toBe('object');
    for (const [name, value] of Object.entries(said)) expectLike(value, (real as JsonObject)[name], names, `${path}.${name}`);
  } else {
    expect(real, path).toBe(said);
  }
}

/** The members that tables of the page name in their first column. */
const documented = new Set(
  [...page.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)),
);

/** Every object of the extension in an answer: data parts of approvals, and metadata under the URI that the agent wrote. */
function shownIn(value: unknown): readonly JsonObject[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(shownIn);
  const own = value as JsonObject;
  if (own['role'] === 'ROLE_USER' || own['role'] === 'user') return [];
  if (typeof own['approval_id'] === 'string') return [own];
  const under = own[EXTENSION_URI];
  return [...(under === undefined ? [] : [under as JsonObject]), ...Object.values(own).flatMap(shownIn)];
}

describe('the page of the extension', () => {
  test('has requests that are answered as it says, in order', async () => {
    const names = new Map<string, string>();
    let answer: JsonValue | undefined;
    let sent = 0;
    let compared = 0;
    for (const { kind, by, value } of blocks) {
      if (kind === 'send') {
        const body = JSON.stringify(value).replace(/"(TASK_ID|CONTEXT_ID|APPROVAL_ID|DIGEST)"/g, (_all, name: string) => {
          expect(names.has(name), name).toBe(true);
          return JSON.stringify(names.get(name));
        });
        const key = by === 'person' ? server.connection.key : server.connection.agent_key;
        const version = /^[A-Z]/.test(String(value['method'])) ? { 'a2a-version': '1.0' } : {};
        const response = await post(server.url, body, { authorization: `Bearer ${key}`, 'a2a-extensions': EXTENSION_URI, ...version });
        expect(response.headers.get('a2a-extensions')).toBe(EXTENSION_URI);
        answer = response.body as unknown as JsonValue;
        sent += 1;
        for (const shown of shownIn(answer)) {
          expect(Object.keys(shown).filter((name) => !documented.has(name))).toEqual([]);
        }
      } else if (kind === 'answer') {
        expectLike(value, answer, names, `answer ${String(value['id'])}`);
        compared += 1;
      }
    }
    expect([sent, compared]).toEqual([7, 7]);
  });

  test('declares the extension as the card does, and names methods that there are', async () => {
    const declared = blocks.filter(({ kind }) => kind === 'card').map(({ value }) => value);
    expect(declared).toHaveLength(1);
    const card = (await (await fetch(`${server.url}/.well-known/agent-card.json`)).json()) as {
      capabilities: { extensions: JsonObject[] };
    };
    expectLike(declared[0] ?? {}, card.capabilities.extensions[0], new Map(), 'extension');
    const methods = [...page.matchAll(/`(_cleveragents\/[\w/]+|rpc\.\w+)`/g)].map(([, name = '']) => name);
    expect(methods.filter((name) => !(OPERATION_NAMES as readonly string[]).includes(name))).toEqual([]);
  });

  test('names every member that a message may carry, and every text that decides', () => {
    for (const name of [...Object.keys(StartPlan.shape), ...Object.keys(ApprovalAnswer.shape)]) expect(documented).toContain(name);
    for (const name of GUARDRAIL_SETTINGS) expect(page).toContain(`\`${name.split('.')[0]}\``);
    const list = (label: string) =>
      [...(new RegExp(`^- ${label}: (.+)$`, 'm').exec(page)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, text]) => text);
    expect(list('approves')).toEqual([...APPROVING_TEXTS]);
    expect(list('denies')).toEqual([...DENYING_TEXTS]);
  });
});
