import { describe, expect, it } from 'vitest';
import type { Operation } from '../../src/api/operation.ts';
import { OPERATIONS } from '../../src/api/operations.ts';
import { parseParams } from '../../src/api/parse-params.ts';

const PLAN = '01HXRCF1ABCDE12345678901AB';
const DIGEST = 'a'.repeat(64);

const issuesOf = (operation: Operation, params: unknown): readonly { readonly field: string; readonly message: string }[] => {
  const parsed = parseParams(operation, params);
  if (parsed.ok) throw new Error('expected a refusal');
  if (parsed.error.kind !== 'invalid') throw new Error(`expected invalid, got ${parsed.error.kind}`);
  return parsed.error.issues;
};

const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);

describe('parseParams', () => {
  it('fills in defaults', () => {
    expect(parseParams(OPERATIONS['_cleveragents/plan/list'], undefined)).toEqual({ ok: true, value: { page_size: 50 } });
  });

  it('keeps arguments exactly as they came, members named __proto__ included', () => {
    const params: unknown = JSON.parse('{"action_name":"a","arguments":{"__proto__":{"x":1},"constructor":2}}');
    const parsed = parseParams(OPERATIONS['_cleveragents/plan/use'], params);
    if (!parsed.ok) throw new Error(parsed.error.message);
    expect(JSON.stringify(parsed.value.arguments)).toBe('{"__proto__":{"x":1},"constructor":2}');
  });

  it.each([
    ['a list', []],
    ['a text', 'x'],
    ['a number', 1],
  ])('refuses %s in the place of the parameters', (_, params) => {
    expect(issuesOf(OPERATIONS['_cleveragents/health/check'], params)).toEqual([{ field: 'params', message: 'must be an object' }]);
  });

  it('accepts 64 levels and refuses more without recursion', () => {
    const use = OPERATIONS['_cleveragents/plan/use'];
    expect(parseParams(use, { action_name: 'a', arguments: nested(63) }).ok).toBe(true);
    expect(issuesOf(use, { action_name: 'a', arguments: nested(64) })[0]?.message).toContain('nest');
    expect(issuesOf(use, { action_name: 'a', arguments: nested(100_000) })[0]?.message).toContain('nest');
  });

  const use = OPERATIONS['_cleveragents/plan/use'];
  const decide = OPERATIONS['_cleveragents/approval/decide'];
  const commit = OPERATIONS['_cleveragents/project/commit'];
  const aCommit = { name: 'p', commit_id: 'c', expected_head: null, mode: 'patch' };
  const aChange = (path: string) => ({ ...aCommit, changes: [{ path, entry: null }] });

  it.each<readonly [string, Operation, unknown, string, string]>([
    ['an absent plan id', OPERATIONS['_cleveragents/plan/status'], {}, 'plan_id', 'is required'],
    ['a malformed plan id', OPERATIONS['_cleveragents/plan/status'], { plan_id: 'latest' }, 'plan_id', 'must be a plan id'],
    ['a plan id of the wrong type', OPERATIONS['_cleveragents/plan/status'], { plan_id: 7 }, 'plan_id', 'must be a string, not a number'],
    [
      'a number that only JSON can write',
      use,
      JSON.parse('{"action_name":"a","arguments":{"n":1e999}}'),
      'arguments.n',
      'must be a finite number',
    ],
    [
      'a number that only JSON can write, deep in a profile',
      OPERATIONS['_cleveragents/profile/add'],
      JSON.parse('{"profile":{"name":"p","guard":{"max_retries":[1,1e999]}}}'),
      'profile.guard.max_retries.1',
      'must be a finite number',
    ],
    [
      'a list that is a text',
      use,
      { action_name: 'a', guardrails: { tool_denylist: 'x' } },
      'guardrails.tool_denylist',
      'must be an array, not a string',
    ],
    [
      'a grant above every bound',
      decide,
      { approval_id: `${PLAN}.3`, decision: 'approve', grant: { cost_usd: 1e12 } },
      'grant.cost_usd',
      'must be at most 1000000000',
    ],
    ['arguments that are a list', use, { action_name: 'a', arguments: [] }, 'arguments', 'JSON object'],
    ['a reserved session id', use, { action_name: 'a', session_id: 'task_1' }, 'session_id', 'reserved'],
    ['an unknown guardrail', use, { action_name: 'a', guardrails: { max_cost: 1 } }, 'guardrails.max_cost', 'unknown field'],
    ['a runtime counter', use, { action_name: 'a', guardrails: { step_count: 1 } }, 'guardrails.step_count', 'unknown field'],
    ['a negative budget', use, { action_name: 'a', guardrails: { tool_budget: -1 } }, 'guardrails.tool_budget', 'negative'],
    [
      'a tool name that is no text',
      use,
      { action_name: 'a', guardrails: { tool_denylist: ['a', 5] } },
      'guardrails.tool_denylist.1',
      'text',
    ],
    ['a blank list entry', use, { action_name: 'a', guardrails: { tool_denylist: [''] } }, 'guardrails.tool_denylist.0', 'blank'],
    ['a lone surrogate', use, { action_name: 'a\ud800' }, 'action_name', 'well-formed'],
    ['an approval id without number', decide, { approval_id: PLAN, decision: 'approve' }, 'approval_id', '<plan id>.<number>'],
    ['an unknown decision', decide, { approval_id: `${PLAN}.3`, decision: 'yes' }, 'decision', 'approve, deny or answer'],
    ['an answer without text', decide, { approval_id: `${PLAN}.3`, decision: 'answer' }, 'text', 'needs a text'],
    ['an empty grant', decide, { approval_id: `${PLAN}.3`, decision: 'approve', grant: {} }, 'grant', 'exactly one'],
    ['two grants', decide, { approval_id: `${PLAN}.3`, decision: 'approve', grant: { calls: 1, steps: 1 } }, 'grant', 'exactly one'],
    ['a grant with a denial', decide, { approval_id: `${PLAN}.3`, decision: 'deny', grant: { calls: 1 } }, 'grant', 'only an approval'],
    ['an upper-case digest', decide, { approval_id: `${PLAN}.3`, decision: 'approve', digest: 'A'.repeat(64) }, 'digest', 'lower-case'],
    ['a path upwards', commit, aChange('a/../../b'), 'changes.0.path', "'..'"],
    ['an absolute path', commit, aChange('/etc/passwd'), 'changes.0.path', 'relative'],
    ['a drive', commit, aChange('C:/x'), 'changes.0.path', 'relative'],
    ['a path with NUL', commit, aChange('a\0b'), 'changes.0.path', 'NUL'],
    ['an overlong path', commit, aChange('a'.repeat(1025)), 'changes.0.path', '1024'],
    ['a path with empty segments', commit, aChange('a//b'), 'changes.0.path', 'empty'],
    [
      'a file that is too large',
      commit,
      { ...aCommit, changes: [{ path: 'a', entry: { mode: '100644', digest: DIGEST, size_bytes: 1048577 } }] },
      'changes.0.entry.size_bytes',
      'at most',
    ],
    [
      'an odd base64',
      OPERATIONS['_cleveragents/project/blob/put'],
      { name: 'p', blobs: [{ digest: DIGEST, base64: 'abc' }] },
      'blobs.0.base64',
      'base64',
    ],
    ['a page of 101', OPERATIONS['_cleveragents/plan/list'], { page_size: 101 }, 'page_size', '1 to 100'],
    ['an unknown setting', OPERATIONS['_cleveragents/config/get'], { key: 'core.colour' }, 'key', 'must be one of'],
    [
      'a setting of the wrong type',
      OPERATIONS['_cleveragents/config/set'],
      { key: 'approvals.require_digest', value: 'yes' },
      'value',
      'true or false',
    ],
    [
      'a setting at the wrong level',
      OPERATIONS['_cleveragents/config/set'],
      { scope: 'project', project: 'p', key: 'core.default-action', value: 'a' },
      'scope',
      'org',
    ],
    ['a project setting without project', OPERATIONS['_cleveragents/config/list'], { scope: 'project' }, 'project', 'required'],
    [
      'a local time',
      OPERATIONS['_cleveragents/key/create'],
      { name: 'k', kind: 'agent', roles: ['viewer'], expires_at: 'tomorrow' },
      'expires_at',
      'ISO 8601',
    ],
    [
      'an unknown role',
      OPERATIONS['_cleveragents/key/create'],
      { name: 'k', kind: 'agent', roles: ['root'] },
      'roles.0',
      'viewer, operator',
    ],
  ])('refuses %s by its field', (_, operation, params, field, message) => {
    const issues = issuesOf(operation, params);
    expect(issues.map((issue) => issue.field)).toContain(field);
    expect(issues.find((issue) => issue.field === field)?.message).toContain(message);
  });

  it('says of each field what is wrong first, and only that', () => {
    const issues = issuesOf(OPERATIONS['_cleveragents/approval/decide'], {
      approval_id: `${PLAN}.3`,
      decision: 'approve',
      grant: { calls: -0.5 },
    });
    expect(issues).toEqual([{ field: 'grant.calls', message: 'must be a whole number' }]);
  });

  it('reports at most twenty issues of a very wrong body', () => {
    const params = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, index]));
    const unknown = issuesOf(OPERATIONS['_cleveragents/health/check'], params);
    expect(unknown).toHaveLength(20);
  });

  it('shortens field names that are very long', () => {
    const issue = issuesOf(OPERATIONS['_cleveragents/health/check'], { ['x'.repeat(100_000)]: 1 })[0];
    expect(issue?.field.length).toBeLessThanOrEqual(200);
  });
});
