import type { MiddlewareHandler } from 'hono';

/** What every answer forbids a browser to do with it. An answer that says its own policy keeps it. */
const HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
];

export const securityHeaders: MiddlewareHandler = async (context, next) => {
  await next();
  for (const [name, value] of HEADERS) if (!context.res.headers.has(name)) context.res.headers.set(name, value);
};
