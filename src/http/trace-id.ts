/**
 * The trace id of a request: that of its `traceparent` header (W3C Trace Context, version 00 and later ones that begin like it), or a new
 * one. A header that is no such thing is taken as absent, as the recommendation says; it never refuses a request.
 */
export function traceIdOf(header: string | null): string {
  const found = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/.exec(header?.trim() ?? '');
  const [, traceId = NONE, parentId = NONE] = found ?? [];
  return isZero(traceId) || isZero(parentId) ? newTraceId() : traceId;
}

const NONE = '0';

const isZero = (id: string): boolean => /^0+$/.test(id);

function newTraceId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
