/**
 * Tools for tests only, passed to `compose` by the Worker under test. What they do outside is a POST to a receiver of the test
 * (argument `url`), so that a test counts real effects, over crashes too; without a receiver they only record in this isolate.
 */
import { hostOf } from '../../src/core/host.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';
import type { RiskClass } from '../../src/core/tool.ts';
import type { Tool, ToolContext, ToolOutcome, ToolPackage } from '../../src/engine/tools/tool.ts';

/** What was performed in this isolate, in order. */
export const PERFORMED: { readonly tool: string; readonly key: string; readonly args: JsonObject }[] = [];

const ARGUMENTS: JsonObject = {
  type: 'object',
  properties: {
    url: { type: 'string', description: 'Receiver that the effect is posted to' },
    host: { type: 'string', description: 'A host that the call says it reaches; nothing is sent there' },
    label: { type: 'string' },
    ms: { type: 'number', minimum: 0, maximum: 60_000 },
    cost_usd: { description: "What the tool reports; 'number:NaN' reports a number that JSON does not have" },
    times: { type: 'number' },
    characters: { type: 'number' },
    depth: { type: 'number' },
    padding: { type: 'string' },
  },
  additionalProperties: false,
};

interface TestTool {
  readonly name: string;
  readonly riskClass: RiskClass;
  readonly scope?: 'workspace' | 'external';
  readonly idempotent?: boolean;
  readonly priceMicroUsd?: number;
  readonly perform?: (args: JsonObject, context: ToolContext) => Promise<ToolOutcome>;
}

const failures = new Map<string, number>();

const TOOLS: readonly TestTool[] = [
  {
    name: 'test/counter',
    riskClass: 'external_read',
    perform: async (args, context) =>
      msOf(args) > 0 ? takeTime(args, context) : { status: 'succeeded', result: { done: 'test/counter' } },
  },
  {
    name: 'test/outside',
    riskClass: 'external_read',
    perform: async () => ({ status: 'succeeded', result: { text: 'from somewhere else' }, taint: 'web' }),
  },
  { name: 'test/priced', riskClass: 'external_read', priceMicroUsd: 100_000 },
  { name: 'test/unsafe', riskClass: 'unsafe', scope: 'workspace' },
  { name: 'test/external_write', riskClass: 'external_write', idempotent: true, perform: takeTime },
  { name: 'test/external_once', riskClass: 'external_write', idempotent: false, perform: takeTime },
  { name: 'test/slow', riskClass: 'external_read', idempotent: true, priceMicroUsd: 0, perform: takeTime },
  { name: 'test/slow_priced', riskClass: 'external_read', idempotent: true, priceMicroUsd: 100_000, perform: takeTime },
  {
    name: 'test/deaf',
    riskClass: 'external_read',
    idempotent: true,
    perform: async (args) => {
      await new Promise((resolve) => setTimeout(resolve, msOf(args)));
      return { status: 'succeeded', result: { waited_ms: msOf(args) } };
    },
  },
  {
    name: 'test/large_result',
    riskClass: 'external_read',
    perform: async (args) => ({
      status: 'succeeded',
      result: { text: 'x'.repeat(Number(args['characters'] ?? 0)), nested: nested(Number(args['depth'] ?? 0)) },
    }),
  },
  {
    name: 'test/fail_transient',
    riskClass: 'external_read',
    idempotent: true,
    priceMicroUsd: 100_000,
    perform: async (args, { idempotencyKey }) => {
      const before = failures.get(idempotencyKey) ?? 0;
      failures.set(idempotencyKey, before + 1);
      const times = typeof args['times'] === 'number' ? args['times'] : Number.POSITIVE_INFINITY;
      if (before < times)
        return { status: 'failed', error: { code: 'busy', message: 'the receiver is busy', transient: true }, dispatched: true };
      return { status: 'succeeded', result: { failures: before } };
    },
  },
  {
    name: 'test/fail_first',
    riskClass: 'external_read',
    perform: async ({ label }) => {
      const key = `first ${String(label)}`;
      const before = failures.get(key) ?? 0;
      failures.set(key, before + 1);
      return before > 0
        ? { status: 'succeeded', result: { failures: before } }
        : { status: 'failed', error: { code: 'gone', message: 'not yet', transient: false }, dispatched: true };
    },
  },
  {
    name: 'test/fail_permanent',
    riskClass: 'external_read',
    perform: async () => ({
      status: 'failed',
      error: { code: 'gone', message: 'there is no such thing', transient: false },
      dispatched: false,
    }),
  },
];

export const TEST_TOOL_PACKAGE: ToolPackage = {
  name: 'test',
  tools: TOOLS.map(
    (tool): Tool => ({
      spec: {
        name: tool.name,
        aliases: [],
        summary: `Test tool ${tool.name}`,
        riskClass: tool.riskClass,
        parameters: ARGUMENTS,
        priceMicroUsd: tool.priceMicroUsd ?? 0,
        scope: tool.scope ?? 'external',
        idempotent: tool.idempotent ?? false,
        skillCategory: 'test',
      },
      hosts: hostsOf,
      perform: async (args, context) => {
        PERFORMED.push({ tool: tool.name, key: context.idempotencyKey, args });
        await post(args['url'], tool.name, args, context);
        const outcome = (await tool.perform?.(args, context)) ?? ({ status: 'succeeded', result: { done: tool.name } } as const);
        return 'cost_usd' in args ? { ...outcome, costUsd: reported(args['cost_usd']) } : outcome;
      },
    }),
  ),
};

/** The receiver's host, and what the call says beside it. */
function hostsOf({ url, host }: JsonObject): readonly string[] | null {
  const hosts = [...(typeof url === 'string' ? [hostOf(url) ?? ''] : []), ...(typeof host === 'string' ? [host] : [])];
  return hosts.length === 0 ? null : hosts;
}

/** Waits `ms`, and stops when it is told to. */
async function takeTime(args: JsonObject, { signal }: ToolContext): Promise<ToolOutcome> {
  const ms = msOf(args);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('stopped', 'AbortError'));
    });
  });
  return { status: 'succeeded', result: { waited_ms: ms } };
}

function msOf(args: JsonObject): number {
  return typeof args['ms'] === 'number' ? args['ms'] : 0;
}

function nested(depth: number): JsonValue {
  let value: JsonValue = 0;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}

function reported(cost: unknown): unknown {
  return typeof cost === 'string' && cost.startsWith('number:') ? Number(cost.slice('number:'.length)) : cost;
}

async function post(url: unknown, tool: string, args: JsonObject, { idempotencyKey, signal }: ToolContext): Promise<void> {
  if (typeof url !== 'string') return;
  await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify({ tool, args }),
    signal,
  });
}
