/** A document that clients may keep and ask for again. */
export interface Document {
  /** JSON text. */
  readonly text: string;
  /** Hash of the text. */
  readonly hash: string;
  /** When the text became what it is; whole seconds. Absent where nobody knows. */
  readonly modifiedAt?: Date | undefined;
  /** Request headers, beside the address, on which the text depends. */
  readonly vary: readonly string[];
  /** For the cache of this caller only. */
  readonly isPrivate?: boolean | undefined;
}

/** How long a copy may be used without asking. */
const MAX_AGE_SECONDS = 300;

/**
 * The document, or 304 when the client has it (RFC 9110 section 13.2.2: If-None-Match decides where it is present). If-Modified-Since is
 * compared for equality: a text that comes back in an older form would else be taken for the one that the client has.
 */
export function conditionalJson(request: Request, { text, hash, modifiedAt, vary, isPrivate }: Document): Response {
  const etag = `"${hash}"`;
  const headers = new Headers({ etag, 'cache-control': `${isPrivate === true ? 'private' : 'public'}, max-age=${MAX_AGE_SECONDS}` });
  if (vary.length > 0) headers.set('vary', vary.join(', '));
  if (modifiedAt !== undefined) headers.set('last-modified', modifiedAt.toUTCString());
  if (isKnown(request.headers, etag, modifiedAt)) return new Response(null, { status: 304, headers });
  headers.set('content-type', 'application/json');
  return new Response(text, { headers });
}

function isKnown(headers: Headers, etag: string, modifiedAt: Date | undefined): boolean {
  const tags = headers.get('if-none-match');
  if (tags !== null) {
    return tags.split(',').some((tag) => {
      const known = tag.trim();
      return known === '*' || known.replace(/^W\//, '') === etag;
    });
  }
  const since = headers.get('if-modified-since');
  return since !== null && modifiedAt !== undefined && Date.parse(since) === modifiedAt.getTime();
}
