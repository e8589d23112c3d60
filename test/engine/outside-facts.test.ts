import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.ts';
import { outsideFactsOf } from '../../src/engine/outside-facts.ts';
import { makeToolbox } from '../../src/engine/tools/toolbox.ts';
import { WORKSPACE_TOOL_PACKAGE } from '../../src/engine/tools/workspace-tools.ts';
import { TEST_TOOL_PACKAGE } from '../worker/test-tools.ts';

const made = makeToolbox([WORKSPACE_TOOL_PACKAGE, TEST_TOOL_PACKAGE]);
if (!made.ok) throw new Error(made.error.message);
const toolbox = made.value;

const factsOf = (toolName: string, args: JsonObject, isWrite: boolean | null = null) =>
  outsideFactsOf(toolbox, { toolName, arguments: args, isWrite });

describe('what is known of a call of an executor outside', () => {
  it.each([
    '.github/x.yml',
    './.github/workflows/x.yml',
    '/home/me/repo/.github/x.yml',
    'C:\\repo\\.GitHub\\x.yml',
    'src/../.github/x.yml',
    'src//.github/x.yml',
    '/repo/.git/hooks/pre-commit',
    '.env',
    '/repo/app/.env.local',
    '.gi\u200Bt/config',
  ])('%s is protected wherever the root of its project is', (path) => {
    expect(factsOf('write_file', { path, content: 'x' })?.protectedPaths).toHaveLength(1);
    expect(factsOf('move_file', { from: 'a.txt', to: path })?.protectedPaths).toHaveLength(1);
  });

  it.each(['a.txt', 'src/github/x.yml', '/repo/src/environment.ts', 'docs/.gitignore'])('%s is not', (path) => {
    expect(factsOf('write_file', { path, content: 'x' })).toMatchObject({ protectedPaths: [], issues: [], unknown: 1 });
  });

  it('names no protected path of what only reads, unless the executor says that it writes', () => {
    expect(factsOf('read_file', { path: '.env' })?.protectedPaths).toEqual([]);
    expect(factsOf('read_file', { path: '.env' }, true)?.protectedPaths).toEqual(['.env']);
  });

  it.each([
    [{}, 'arguments.path'],
    [{ file: '.github/x.yml', content: 'x' }, 'arguments.file'],
    [{ path: 'a.txt', content: 'x', target: '.github/x.yml' }, 'arguments.target'],
    [{ path: 7, content: 'x' }, 'arguments.path'],
    [{ path: 'a\u0000b', content: 'x' }, 'arguments'],
    [{ path: '/', content: 'x' }, 'arguments'],
  ] as const)('arguments %j of a write say no path, which is an issue', (args, field) => {
    expect(factsOf('write_file', args)?.issues.map((issue) => issue.field)).toContain(field);
  });

  it('leaves the schema to the executor where no path is hidden by it', () => {
    expect(factsOf('read_file', { file: 'a.txt' })?.issues).toEqual([]);
    expect(factsOf('test/external_write', { anything: 1 })?.issues).toEqual([]);
  });

  it('knows the hosts that the arguments name, and no others', () => {
    expect(factsOf('test/external_write', { url: 'https://a.test:8443/x', host: 'b.test' })?.hosts).toEqual(['a.test', 'b.test']);
    expect(factsOf('test/external_write', {})?.hosts).toBeUndefined();
  });

  it("knows nothing of the executor's own tools", () => {
    expect(factsOf('own.write', { path: '.github/x.yml' }, true)).toBeNull();
    expect(outsideFactsOf(toolbox, { ...REQUEST, toolName: undefined })).toBeNull();
  });
});

const REQUEST = { toolName: 'x', arguments: {}, isWrite: null, costUsd: null, step: null, operation: null, idempotencyKey: null } as const;
