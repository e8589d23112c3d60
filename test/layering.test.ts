/**
 * The dependency rule, derived from what every file under src/ imports. The table below is the rule; the first half of the
 * tests shows that a violation is reported, the last test applies the rule to the tree.
 */
import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';
import { describe, expect, test } from 'vitest';

const COMPUTED = '(computed)';

const SRC = resolve(fileURLToPath(import.meta.url), '../../src');

/** Which layer may import which. `app/ports` is the part of app that states what it needs; it is open to more layers than app is. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  a2a: ['core'],
  api: ['core', 'a2a'],
  app: ['api', 'a2a', 'core'],
  engine: ['core', 'app/ports'],
  objects: ['engine', 'core', 'app/ports'],
  storage: ['core', 'app/ports'],
  http: ['app', 'api', 'a2a', 'core'],
  client: ['api', 'a2a'],
  console: ['client', 'api'],
  cli: ['client', 'api'],
  'compose.ts': ['core', 'a2a', 'api', 'app', 'engine', 'objects', 'storage', 'http', 'client', 'console'],
  'worker.ts': ['core', 'a2a', 'api', 'app', 'engine', 'objects', 'storage', 'http', 'client', 'console', 'compose.ts'],
};

/** Which packages are kept to certain layers. Any other package may be imported anywhere. The first row that matches decides. */
const PACKAGES: readonly { readonly matches: (specifier: string) => boolean; readonly name: string; readonly layers: readonly string[] }[] =
  [
    { name: 'cloudflare:*', matches: (s) => s.startsWith('cloudflare:'), layers: ['objects', 'storage', 'compose.ts', 'worker.ts'] },
    { name: 'hono', matches: (s) => isPackage(s, 'hono') || s.startsWith('@hono/'), layers: ['http', 'console'] },
    { name: 'drizzle', matches: (s) => /^drizzle-[a-z]+(\/|$)/.test(s), layers: ['storage', 'objects'] },
    { name: 'node:crypto', matches: (s) => s === 'node:crypto' || s === 'crypto', layers: ['cli', 'objects'] },
    { name: 'node:*', matches: (s) => s.startsWith('node:') || isBuiltin(s), layers: ['cli'] },
  ];

describe('the dependency rule reports', () => {
  const cases: readonly (readonly [title: string, path: string, source: string, violation: string])[] = [
    ['an import of an outer layer', 'core/plan.ts', `import { handle } from '../app/dispatch.ts';`, 'core must not import app'],
    ['a type import like any other', 'core/plan.ts', `import type { Row } from '../api/row.ts';`, 'core must not import api'],
    ['an export from another layer', 'api/rows.ts', `export { handle } from '../app/dispatch.ts';`, 'api must not import app'],
    ['an import for its side effect', 'core/plan.ts', `import '../http/server.ts';`, 'core must not import http'],
    ['a dynamic import', 'core/plan.ts', `const late = await import('../engine/loop.ts');`, 'core must not import engine'],
    ['a type query', 'core/plan.ts', `type Late = typeof import('../engine/loop.ts');`, 'core must not import engine'],
    ['a dynamic import that hides its module', 'core/plan.ts', `const late = await import(name);`, 'an import must name its module'],
    ['an import over several lines', 'a2a/card.ts', `import {\n  type Row,\n  rows,\n} from '../api/rows.ts';`, 'a2a must not import api'],
    [
      'app from engine, apart from its ports',
      'engine/loop.ts',
      `import { handle } from '../app/dispatch.ts';`,
      'engine must not import app',
    ],
    ['core from the command line', 'cli/main.ts', `import { money } from '../core/money.ts';`, 'cli must not import core'],
    ['storage from objects', 'objects/plan-object.ts', `import { rows } from '../storage/d1.ts';`, 'objects must not import storage'],
    ['an import of the entry', 'http/server.ts', `import worker from '../worker.ts';`, 'http must not import worker.ts'],
    [
      'an import of the entry by the composition',
      'compose.ts',
      `import worker from './worker.ts';`,
      'compose.ts must not import worker.ts',
    ],
    ['an import of the composition', 'app/dispatch.ts', `import { compose } from '../compose.ts';`, 'app must not import compose.ts'],
    [
      'a version folder imported by a neighbour',
      'a2a/card.ts',
      `import { decode } from './v1_0/decode.ts';`,
      'only a2a/codec.ts imports a2a/v1_0',
    ],
    [
      'a version folder imported by app',
      'app/dispatch.ts',
      `import { decode } from '../a2a/v0_3/decode.ts';`,
      'only a2a/codec.ts imports a2a/v0_3',
    ],
    ['one version in another', 'a2a/v1_0/decode.ts', `import { decode } from '../v0_3/decode.ts';`, 'only a2a/codec.ts imports a2a/v0_3'],
    [
      'the runtime module in core',
      'core/plan.ts',
      `import { DurableObject } from 'cloudflare:workers';`,
      'core must not import cloudflare:*',
    ],
    ['the runtime module in http', 'http/server.ts', `import { env } from 'cloudflare:workers';`, 'http must not import cloudflare:*'],
    ['hono outside the edge', 'app/dispatch.ts', `import type { Context } from 'hono';`, 'app must not import hono'],
    ['a part of hono outside the edge', 'app/dispatch.ts', `import { cors } from 'hono/cors';`, 'app must not import hono'],
    ['drizzle outside storage', 'app/ports.ts', `import { sql } from 'drizzle-orm';`, 'app must not import drizzle'],
    [
      'a Node module outside the command line',
      'core/digest.ts',
      `import { createHash } from 'node:crypto';`,
      'core must not import node:crypto',
    ],
    ['a Node module without its prefix', 'app/files.ts', `import { readFile } from 'fs/promises';`, 'app must not import node:*'],
    [
      'any Node module but crypto in objects',
      'objects/plan-object.ts',
      `import { Buffer } from 'node:buffer';`,
      'objects must not import node:*',
    ],
    [
      'an import from outside src',
      'core/plan.ts',
      `import { seed } from '../../test/support/seed.ts';`,
      'must not import code from outside src',
    ],
    ['a folder that is no layer', 'helpers/strings.ts', `import { money } from '../core/money.ts';`, 'helpers is not a layer'],
    [
      'an import of a folder that is no layer',
      'core/plan.ts',
      `import { trim } from '../helpers/strings.ts';`,
      'core must not import helpers',
    ],
  ];
  test.each(cases)('%s', (_title, path, source, violation) => {
    expect(violationsOf(path, source)).toEqual([expect.stringContaining(violation)]);
  });
});

describe('the dependency rule accepts', () => {
  const cases: readonly (readonly [title: string, path: string, source: string])[] = [
    ['neighbours', 'core/plan/evolve.ts', `import { events } from './events.ts';\nimport { money } from '../money.ts';`],
    ['the ports of app in engine', 'engine/loop.ts', `import type { PlanPort } from '../app/ports.ts';`],
    ['a file in the folder of the ports', 'storage/d1.ts', `import type { PlanPort } from '../app/ports/plan-port.ts';`],
    [
      'the codec on version folders',
      'a2a/codec.ts',
      `import { decode } from './v1_0/decode.ts';\nimport { decode as old } from './v0_3/decode.ts';`,
    ],
    [
      'a version on itself and on what versions share',
      'a2a/v1_0/decode.ts',
      `import { part } from './part.ts';\nimport { model } from '../model.ts';`,
    ],
    [
      'the runtime and its digests in objects',
      'objects/plan-object.ts',
      `import { DurableObject } from 'cloudflare:workers';\nimport { createHash } from 'node:crypto';`,
    ],
    ['packages that belong to nobody', 'core/profile.ts', `import * as z from 'zod';\nimport { ulid } from 'ulid';`],
    [
      'SQL and JSON from outside src',
      'objects/schema.ts',
      `import sql from '../../migrations/0001.sql';\nimport manifest from '../../package.json';`,
    ],
    [
      'words in comments',
      'core/plan.ts',
      `/**\n * import('../app/dispatch.ts') would be wrong.\n */\n// import('../app/dispatch.ts')\nexport const one = 1;`,
    ],
  ];
  test.each(cases)('%s', (_title, path, source) => {
    expect(violationsOf(path, source)).toEqual([]);
  });
});

test('every file under src keeps the dependency rule', async () => {
  const files = (await readdir(SRC, { recursive: true })).filter((name) => /\.tsx?$/.test(name));
  expect(files.length).toBeGreaterThan(0);
  const violations = await Promise.all(
    files.map(async (name) => violationsOf(name.replaceAll('\\', '/'), await readFile(join(SRC, name), 'utf8'))),
  );
  expect(violations.flat().sort()).toEqual([]);
});

/** What is wrong with the imports of one file. `path` is relative to src. */
function violationsOf(path: string, source: string): readonly string[] {
  const layer = layerOf(path);
  const allowed = LAYERS[layer];
  if (allowed === undefined) return [`${path}: ${layer} is not a layer`];
  return specifiersOf(path, source).flatMap((specifier) => {
    if (specifier === COMPUTED) return [`${path}: an import must name its module`];
    const problem = specifier.startsWith('.') ? relativeProblem(path, layer, allowed, specifier) : packageProblem(layer, specifier);
    return problem === undefined ? [] : [`${path}: ${problem} (${specifier})`];
  });
}

function relativeProblem(path: string, layer: string, allowed: readonly string[], specifier: string): string | undefined {
  const target = posix.join(posix.dirname(path), specifier);
  if (target.startsWith('../')) return /\.(sql|json)$/.test(target) ? undefined : `${layer} must not import code from outside src`;
  const version = versionFolderOf(target);
  if (version !== undefined && path !== 'a2a/codec.ts' && versionFolderOf(path) !== version) return `only a2a/codec.ts imports ${version}`;
  const targetLayer = layerOf(target);
  if (targetLayer === layer || allowed.includes(targetLayer)) return undefined;
  if (allowed.includes('app/ports') && /^app\/ports(\.ts$|\/)/.test(target)) return undefined;
  return `${layer} must not import ${targetLayer}`;
}

function packageProblem(layer: string, specifier: string): string | undefined {
  const rule = PACKAGES.find(({ matches }) => matches(specifier));
  return rule === undefined || rule.layers.includes(layer) ? undefined : `${layer} must not import ${rule.name}`;
}

/** The first folder of a path, or the file itself where it lies in src. */
function layerOf(path: string): string {
  return path.split('/')[0] ?? path;
}

function versionFolderOf(path: string): string | undefined {
  return /^a2a\/v\d[^/]*(?=\/)/.exec(path)?.[0];
}

function isPackage(specifier: string, name: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`);
}

/** The nodes of the syntax tree that name a module, type queries included. */
const NAMES_A_MODULE = new Set(['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration', 'ImportExpression', 'TSImportType']);

/** Every module a source names. A dynamic import that computes its name answers `COMPUTED`, which no rule could judge. */
function specifiersOf(path: string, source: string): readonly string[] {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const found: string[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, source: named } = node as { readonly type?: unknown; readonly source?: unknown };
    if (typeof type === 'string' && NAMES_A_MODULE.has(type) && typeof named === 'object' && named !== null) {
      found.push('value' in named && typeof named.value === 'string' ? named.value : COMPUTED);
    }
    Object.values(node).forEach(visit);
  };
  visit(program);
  return found;
}
