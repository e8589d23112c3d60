import { cors } from 'hono/cors';

/**
 * Pages of any origin may read the card and call the endpoint (A2A clients in browsers). Credentials are never sent by the browser itself:
 * a page needs a key of its own, so that nobody can borrow a visitor's.
 */
export const crossOrigin = cors({
  origin: '*',
  allowMethods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
  allowHeaders: [
    'content-type',
    'authorization',
    'x-api-key',
    'a2a-version',
    'a2a-extensions',
    'x-a2a-extensions',
    'idempotency-key',
    'last-event-id',
  ],
  exposeHeaders: ['a2a-extensions', 'x-a2a-extensions', 'etag', 'last-modified', 'retry-after', 'www-authenticate', 'link'],
  maxAge: 86_400,
});
