import type { JsonObject } from '../../../src/core/json.ts';
import { applyChanges, type Change, NO_CHANGES, withChange } from '../../../src/core/workspace/changes.ts';
import { treeDigest } from '../../../src/core/workspace/tree.ts';
import type { Tool, ToolOutcome } from '../../../src/engine/tools/tool.ts';
import { makeTreeWorkspace } from '../../../src/engine/tools/tree-workspace.ts';
import { validateArguments } from '../../../src/engine/tools/validate-arguments.ts';
import { contentOf, sha256, type TestFiles, treeOf } from '../../core/workspace/trees.ts';

/** The outcome of a call, and the text of every file as it is once its writes are committed (a link as `→ target`, an executable with `*`). */
export interface Ran {
  readonly outcome: ToolOutcome;
  readonly files: Readonly<Record<string, string>>;
}

/** Validates the arguments, performs the call on a workspace of these files and commits what it asks for, as a plan does. */
export async function run(tool: Tool, files: TestFiles, args: JsonObject): Promise<Ran> {
  const issues = validateArguments(tool.spec.parameters, args);
  if (issues.length > 0) throw new Error(`invalid arguments: ${JSON.stringify(issues)}`);
  const base = treeOf(files);
  const digestBefore = treeDigest(sha256, base);
  const known = contentOf(files);
  const workspace = makeTreeWorkspace(base, async (blob) => known(blob) ?? null);
  const outcome = await tool.perform(args, { workspace, signal: new AbortController().signal, idempotencyKey: 'key', sha256 });
  if (treeDigest(sha256, base) !== digestBefore) throw new Error('the tool changed the tree itself');

  const written = new Map<string, Uint8Array>();
  let changes = NO_CHANGES;
  for (const write of outcome.status === 'succeeded' ? (outcome.writes ?? []) : []) {
    let change: Change = { kind: 'delete' };
    if (write.kind === 'put') {
      const blob = sha256(write.bytes);
      written.set(blob, write.bytes);
      change = { kind: 'write', mode: write.mode, blob, sizeBytes: write.bytes.length };
    }
    changes = withChange(changes, write.path, change);
  }
  const after = applyChanges(base, changes);
  if (!after.ok) throw new Error(`the writes make no tree: ${after.error.message}`);
  const shown: Record<string, string> = {};
  for (const { path, mode, blob } of after.value.entries.values()) {
    const bytes = written.get(blob) ?? known(blob);
    if (bytes === undefined) throw new Error(`lost ${path}`);
    shown[path] =
      { '100644': '', '100755': '*', '120000': '→ ' }[mode] + new TextDecoder('utf-8', { fatal: false, ignoreBOM: true }).decode(bytes);
  }
  return { outcome, files: shown };
}

/** The result of a call that must succeed. */
export async function resultOf(tool: Tool, files: TestFiles, args: JsonObject): Promise<unknown> {
  const { outcome } = await run(tool, files, args);
  if (outcome.status !== 'succeeded') throw new Error(outcome.error.message);
  return outcome.result;
}
