import { canonicalJson, type JsonObject } from '../core/json.ts';
import type { CallFacts } from '../core/plan/commands.ts';
import type { Plan } from '../core/plan/plan.ts';
import { isWriteClass } from '../core/tool.ts';
import { parentsOf } from '../core/workspace/path.ts';
import { isProtectedPath } from '../core/workspace/protected-paths.ts';
import { isDirectory, type Tree } from '../core/workspace/tree.ts';
import type { Toolbox } from './tools/toolbox.ts';
import { validateArguments } from './tools/validate-arguments.ts';

/** What is known of a call before it is decided: whether its arguments fit, how familiar its paths are, which of them are protected. */
export function callFactsOf(
  toolbox: Toolbox,
  plan: Plan,
  tree: Tree,
  call: { readonly tool: string; readonly arguments: JsonObject },
): CallFacts {
  const spec = toolbox.catalogue.find(call.tool)?.spec ?? null;
  const tool = spec === null ? null : toolbox.find(spec.name);
  if (spec === null || tool === null) return { issues: [], known: 0, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 0 };
  const paths = tool.paths?.(call.arguments) ?? [];
  const read = new Set(plan.readPaths);
  const hosts = tool.hosts?.(call.arguments) ?? null;
  let known = 0;
  let newInKnownFolder = 0;
  for (const path of paths) {
    if (path === '' || tree.entries.has(path) || read.has(path) || isDirectory(tree, path)) known += 1;
    else if (isDirectory(tree, parentsOf(path).at(-1) ?? '')) newInKnownFolder += 1;
  }
  const writes = isWriteClass(spec.riskClass);
  return {
    issues: validateArguments(spec.parameters, call.arguments),
    known,
    newInKnownFolder,
    unknown: paths.length - known - newInKnownFolder,
    protectedPaths: writes ? paths.filter((path) => isProtectedPath(plan.project?.protectedPaths ?? [], path)) : [],
    ...(hosts === null ? {} : { hosts: [...new Set(hosts)] }),
    bytes: writes ? canonicalJson(call.arguments).length : 0,
  };
}
