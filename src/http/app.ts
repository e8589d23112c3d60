import { type Context, Hono } from 'hono';
import { createPrincipalCache } from '../app/principal-cache.ts';
import type { Services } from '../app/services.ts';
import { answerCard, CARD_PATHS } from './card.ts';
import { crossOrigin } from './cross-origin.ts';
import type { Edge } from './edge.ts';
import { STREAM_TIMING, type StreamTiming } from './event-stream.ts';
import { failureOf, type Report, reportToConsole } from './failure.ts';
import { answerHome } from './home-page.ts';
import { answerJwks, JWKS_PATHS } from './jwks.ts';
import { createModificationTimes } from './modification-times.ts';
import { answerOpenRpc, OPEN_RPC_PATH } from './open-rpc.ts';
import { answerRest, findRest, isRestPath, refuseRest } from './rest.ts';
import { answerRpc } from './rpc.ts';
import { securityHeaders } from './security-headers.ts';

export interface AppOptions {
  /** Where failures that are ours are written. Default: one line of JSON to the console. */
  readonly report?: Report;
  readonly streamTiming?: StreamTiming;
}

/** Where JSON-RPC is answered. Some clients put a slash behind the card's address and follow no redirect. */
const RPC_PATHS = ['/', '/a2a', '/a2a/'] as const;

/**
 * The HTTP edge as a function of its services. Make it once per isolate: it keeps the verified keys. `services` is asked once per request.
 *
 * Promise: every answer that is not the page or a stream is JSON; nothing that a client sends makes an answer 500.
 */
export function createApp<E extends object>(services: (env: E) => Services, options: AppOptions = {}): Hono<{ Bindings: E }> {
  const { report = reportToConsole, streamTiming = STREAM_TIMING } = options;
  const principals = createPrincipalCache();
  const times = createModificationTimes();
  const app = new Hono<{ Bindings: E }>();

  // A Host header can make an address that is none; everything behind this may take the request's URL for one.
  app.use(async (context, next) => {
    if (!URL.canParse(context.req.raw.url)) return plainError(context, 400, 'The Host header is not a host name');
    await next();
    return undefined;
  });
  app.use(securityHeaders);
  for (const path of [...CARD_PATHS, OPEN_RPC_PATH, ...JWKS_PATHS, '/health', ...RPC_PATHS]) app.use(path, crossOrigin);
  app.use((context, next) =>
    isRestPath(new URL(context.req.raw.url).pathname, services(context.env).settings) ? crossOrigin(context, next) : next(),
  );

  const edgeOf = (env: E): Edge => ({ services: services(env), principals, report, streamTiming });
  for (const path of RPC_PATHS) app.post(path, (context) => answerRpc(context.req.raw, edgeOf(context.env)));
  for (const path of CARD_PATHS) app.get(path, (context) => answerCard(context.req.raw, services(context.env), times));
  app.get(OPEN_RPC_PATH, (context) => answerOpenRpc(context.req.raw, services(context.env)));
  for (const path of JWKS_PATHS) app.get(path, (context) => answerJwks(context.req.raw, path, services(context.env)));
  app.get('/', (context) => answerHome(context.req.raw, services(context.env)));
  app.get('/health', (context) => context.json({ status: 'ok', version: services(context.env).settings.version }));

  for (const path of [...CARD_PATHS, OPEN_RPC_PATH, ...JWKS_PATHS, '/health']) app.all(path, methodNotAllowed('GET, HEAD, OPTIONS'));
  app.all('/', methodNotAllowed('GET, HEAD, POST, OPTIONS'));
  for (const path of ['/a2a', '/a2a/']) app.all(path, methodNotAllowed('POST, OPTIONS'));

  // The router takes a colon in a pattern for a parameter: these paths, whose verbs stand behind one, have a table of their own.
  app.all('*', (context) => {
    const { raw } = context.req;
    const edge = edgeOf(context.env);
    const found = findRest(raw, edge);
    if (found === null) return context.notFound();
    if (found.kind === 'other_method') return methodNotAllowed(found.allow)(context);
    return found.kind === 'refused' ? refuseRest(raw, found.headers, found.refusal) : answerRest(raw, found, edge, times);
  });

  app.notFound((context) =>
    plainError(
      context,
      404,
      'Nothing is here. JSON-RPC is at /a2a, HTTP+JSON at /message:send, the Agent Card at /.well-known/agent-card.json',
    ),
  );
  app.onError((error, context) => {
    const called = `${context.req.method} ${context.req.path}`;
    const failure = failureOf(error, { report, newId: () => crypto.randomUUID(), called });
    if (failure.kind !== 'unavailable')
      return plainError(context, 500, 'Internal error', failure.kind === 'incident' ? { incident_id: failure.incidentId } : {});
    context.header('retry-after', String(failure.retryAfterSeconds));
    return plainError(context, 503, failure.message);
  });
  return app;
}

function methodNotAllowed(allow: string): (context: Context) => Response {
  return (context) => {
    context.header('allow', allow);
    return plainError(context, 405, `${context.req.method} is not possible here; possible: ${allow}`);
  };
}

function plainError(
  context: Context,
  code: 400 | 404 | 405 | 500 | 503,
  message: string,
  more: Readonly<Record<string, string>> = {},
): Response {
  return context.json({ error: { code, message, ...more } }, code);
}
