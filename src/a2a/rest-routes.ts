import type { Operation } from './operations.ts';
import type { ProtocolVersion } from './version.ts';

/**
 * The HTTP+JSON binding as paths (contract section 12): in 1.0 at the root and under `/{tenant}`, in 0.3 under `/v1`, which is no tenant. Matched on the path
 * as it was sent, since a literal colon before a verb and an encoded one in an id are not the same.
 */
export type RestMatch =
  | {
      readonly kind: 'route';
      readonly operation: Operation;
      /** For messages and logs: `GET /tasks/{id}`. */
      readonly name: string;
      /** What the path says, by the names of the operation's parameters. */
      readonly variables: Readonly<Record<string, string>>;
    }
  /** The path is known; `allow` lists what is possible there. */
  | { readonly kind: 'other_method'; readonly allow: string };

type Row = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, operation: Operation];

/** Of two paths that fit, the first counts: a verb is no part of an id. Subscribe is POST in prose and GET in the protos: both are real. */
const SHARED: readonly Row[] = [
  ['POST', '/message:send', 'send'],
  ['POST', '/message:stream', 'stream'],
  ['POST', '/tasks/{id}:cancel', 'cancel'],
  ['POST', '/tasks/{id}:subscribe', 'subscribe'],
  ['GET', '/tasks/{id}:subscribe', 'subscribe'],
  ['GET', '/tasks/{id}', 'get'],
  ['GET', '/tasks', 'list'],
  ['POST', '/tasks/{taskId}/pushNotificationConfigs', 'pushCreate'],
  ['GET', '/tasks/{taskId}/pushNotificationConfigs', 'pushList'],
  ['GET', '/tasks/{taskId}/pushNotificationConfigs/{id}', 'pushGet'],
  ['DELETE', '/tasks/{taskId}/pushNotificationConfigs/{id}', 'pushDelete'],
];

const ROUTES: Readonly<Record<ProtocolVersion, { readonly prefixes: readonly string[]; readonly rows: readonly Row[] }>> = {
  '1.0': { prefixes: ['', '/{tenant}'], rows: [...SHARED, ['GET', '/extendedAgentCard', 'extendedCard']] },
  '0.3': { prefixes: ['/v1'], rows: [...SHARED, ['GET', '/card', 'extendedCard']] },
};

/** What a path is in a version; null where the version has no such path. HEAD goes where GET does, but never opens a stream. */
export function matchRest(version: ProtocolVersion, method: string, path: string): RestMatch | null {
  const first = COMPILED[version].find(({ pattern }) => pattern.test(path));
  if (first === undefined) return null;
  const here = COMPILED[version].filter(({ template }) => template === first.template);
  const asked = method === 'HEAD' ? 'GET' : method;
  const route = here.find((each) => each.method === asked && !(method === 'HEAD' && each.operation === 'subscribe'));
  if (route === undefined) return { kind: 'other_method', allow: allowed(here) };
  const found = route.pattern.exec(path)?.groups ?? {};
  return {
    kind: 'route',
    operation: route.operation,
    name: `${route.method} ${route.template}`,
    variables: Object.fromEntries(Object.entries(found).map(([name, text]) => [name, decoded(text)])),
  };
}

interface CompiledRow {
  readonly method: string;
  readonly template: string;
  readonly operation: Operation;
  readonly pattern: RegExp;
}

const COMPILED: Readonly<Record<ProtocolVersion, readonly CompiledRow[]>> = { '1.0': compiled('1.0'), '0.3': compiled('0.3') };

function compiled(version: ProtocolVersion): readonly CompiledRow[] {
  const { prefixes, rows } = ROUTES[version];
  return prefixes.flatMap((prefix) =>
    rows.map(([method, path, operation]) => {
      const template = `${prefix}${path}`;
      return {
        method,
        template,
        operation,
        pattern: new RegExp(`^${template.replace('{tenant}', '(?!v1/){tenant}').replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`),
      };
    }),
  );
}

function allowed(rows: readonly CompiledRow[]): string {
  const methods = rows.flatMap(({ method, operation }) => (method === 'GET' && operation !== 'subscribe' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}

/** What is no percent-encoded text stays as it is: it is the id of nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
