import { canonicalJson, type JsonObject } from '../core/json.ts';
import type { CallFacts } from '../core/plan/commands.ts';
import type { Plan } from '../core/plan/plan.ts';
import { isWriteClass } from '../core/tool.ts';
import { parentsOf } from '../core/workspace/path.ts';
import { matchesPathGlob } from '../core/workspace/path-glob.ts';
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
    protectedPaths: writes ? paths.filter((path) => protectedGlobs(plan).some((glob) => matchesPathGlob(glob, foldPath(path)))) : [],
    ...(hosts === null ? {} : { hosts: [...new Set(hosts)] }),
    bytes: writes ? canonicalJson(call.arguments).length : 0,
  };
}

/** Always protected, whatever a project's settings say: what git runs. */
const ALWAYS_PROTECTED = ['.git/**', '**/.git/**'] as const;

function protectedGlobs(plan: Plan): readonly string[] {
  return [...ALWAYS_PROTECTED, ...(plan.project?.protectedPaths ?? [])].map(foldPath);
}

/** One spelling for what some file system takes for the same name: case, composition, and characters that do not show. */
function foldPath(path: string): string {
  return path
    .normalize('NFKC')
    .replaceAll(/[\u200B-\u200F\u2060\uFEFF]/g, '')
    .toLowerCase();
}
