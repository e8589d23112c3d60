import { canonicalJson, type JsonObject, type JsonValue } from '../core/json.ts';
import type { CallFacts } from '../core/plan/commands.ts';
import type { AuthorizeRequest } from '../core/plan/external/commands.ts';
import { isWriteClass } from '../core/tool.ts';
import { MAX_PATH_BYTES } from '../core/workspace/path.ts';
import { DEFAULT_PROTECTED_PATHS, isProtectedPath } from '../core/workspace/protected-paths.ts';
import type { Toolbox } from './tools/toolbox.ts';
import { validateArguments } from './tools/validate-arguments.ts';

/**
 * What is known of a call that an executor outside wants to make, or that is only asked about: `protectedPaths` are those of the project of
 * its plan, where that is run here. Of a tool that is registered here its arguments say which paths and
 * hosts it touches; of the executor's own tools, and of the tree that it works on, nothing is known. Null: nothing at all.
 */
export function outsideFactsOf(
  toolbox: Toolbox,
  { toolName, arguments: args, isWrite }: Pick<AuthorizeRequest, 'toolName' | 'arguments' | 'isWrite'>,
  protectedPaths: readonly string[] | null = null,
): CallFacts | null {
  const tool = typeof toolName === 'string' ? toolbox.find(toolName) : null;
  if (tool === null) return null;
  const writes = isWriteClass(tool.spec.riskClass) || isWrite === true;
  const paths = writes ? (tool.paths?.(inSomeTree(args)) ?? []) : [];
  const hosts = tool.hosts?.(args) ?? null;
  return {
    // A schema is the executor's business, unless it hides what the call would change.
    issues: writes && tool.paths !== undefined ? issuesOf(tool.spec.parameters, args, paths) : [],
    known: 0,
    newInKnownFolder: 0,
    unknown: paths.length,
    protectedPaths: paths.filter((path) => (protectedPaths === null ? isProtectedAnywhere(path) : isProtectedPath(protectedPaths, path))),
    ...(hosts === null ? {} : { hosts: [...new Set(hosts)] }),
    bytes: writes ? canonicalJson(args).length : 0,
  };
}

function issuesOf(schema: JsonObject, args: JsonObject, paths: readonly string[]): CallFacts['issues'] {
  const issues = validateArguments(schema, args);
  return issues.length > 0 || paths.length > 0 ? issues : [{ field: 'arguments', message: 'name no path that can be read' }];
}

/** Where the root of the project is, only the executor knows: below any directory of the path. */
function isProtectedAnywhere(path: string): boolean {
  const names = path.split('/');
  return names.some((_name, at) => isProtectedPath(DEFAULT_PROTECTED_PATHS, names.slice(at).join('/')));
}

/** An executor names paths as its own system does: absolute, with a drive, with `..` in it. A tool here reads those of a tree. */
function inSomeTree(args: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, asTreePath(value)]));
}

function asTreePath(value: JsonValue): JsonValue {
  if (typeof value !== 'string' || value.length > MAX_PATH_BYTES) return value;
  const names: string[] = [];
  for (const name of value.replace(/^[A-Za-z]:/, '').split(/[\\/]/)) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return names.join('/');
}
