import { describe, expect, it } from 'vitest';
import { matchesFolded } from '../../../src/core/names.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import { makeToolbox } from '../../../src/engine/tools/toolbox.ts';
import { WORKSPACE_TOOL_PACKAGE, WORKSPACE_TOOLS } from '../../../src/engine/tools/workspace-tools.ts';

function toolNamed(name: string, aliases: readonly string[] = []): Tool {
  return {
    spec: {
      name,
      aliases,
      summary: 'For a test',
      riskClass: 'read',
      parameters: { type: 'object' },
      priceMicroUsd: 0,
      scope: 'workspace',
      idempotent: true,
    },
    perform: async () => ({ status: 'succeeded', result: name }),
  };
}

function workspaceBox() {
  const box = makeToolbox([WORKSPACE_TOOL_PACKAGE]);
  if (!box.ok) throw new Error(box.error.message);
  return box.value;
}

describe('the toolbox', () => {
  it('holds the seven workspace tools, free of charge and without effects outside', () => {
    const specs = workspaceBox().catalogue.specs();
    expect(specs.map((spec) => [spec.name, spec.riskClass])).toEqual([
      ['read_file', 'read'],
      ['write_file', 'write'],
      ['edit_file', 'write'],
      ['delete_file', 'write'],
      ['move_file', 'write'],
      ['list_directory', 'read'],
      ['search_code', 'read'],
    ]);
    for (const spec of specs)
      expect(spec).toMatchObject({ priceMicroUsd: 0, scope: 'workspace', idempotent: true, parameters: { additionalProperties: false } });
  });

  it('finds a tool by its aliases too, and by nothing else', () => {
    const box = workspaceBox();
    expect(box.find('rm_file')).toBe(box.find('delete_file'));
    for (const tool of WORKSPACE_TOOLS) for (const name of [tool.spec.name, ...tool.spec.aliases]) expect(box.find(name)).toBe(tool);
    for (const name of ['', 'READ_FILE', 'read_file ', 'shell_exec', 'network_request', 'constructor', '__proto__'])
      expect(box.find(name)).toBeNull();
  });

  it('lets the deny list of the source documents deny the tool it means', () => {
    const { catalogue } = workspaceBox();
    const denied = ['shell_exec', 'rm_file', 'network_request'].map((entry) => catalogue.canonical(entry) ?? entry);
    expect(
      catalogue
        .specs()
        .filter((spec) => denied.some((entry) => matchesFolded(entry, spec.name)))
        .map((spec) => spec.name),
    ).toEqual(['delete_file']);
  });

  it('joins packages and refuses a name that two of them use, an alias included', () => {
    const own = { name: 'own', tools: [toolNamed('greet')] };
    const joined = makeToolbox([WORKSPACE_TOOL_PACKAGE, own]);
    expect(joined.ok && joined.value.find('greet')).toBe(own.tools[0]);
    for (const clash of [toolNamed('read_file'), toolNamed('rm_file'), toolNamed('greet', ['delete_file'])]) {
      expect(makeToolbox([WORKSPACE_TOOL_PACKAGE, { name: 'own', tools: [clash] }])).toMatchObject({
        ok: false,
        error: { kind: 'invalid' },
      });
    }
  });

  it('is empty without packages', () => {
    const box = makeToolbox([]);
    expect(box.ok && [box.value.find('read_file'), box.value.catalogue.specs()]).toEqual([null, []]);
  });

  it('names the paths a call touches, both of a move, and none of a search', () => {
    const box = workspaceBox();
    expect(box.find('move_file')?.paths?.({ from: 'a', to: 'b/c' })).toEqual(['a', 'b/c']);
    expect(box.find('list_directory')?.paths?.({ path: 'src/' })).toEqual(['src']);
    expect(box.find('edit_file')?.paths?.({ path: '../x' })).toEqual([]);
    expect(box.find('search_code')?.paths).toBeUndefined();
  });
});
