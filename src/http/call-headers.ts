import { type Codec, selectCodec } from '../a2a/codec.ts';
import { EXTENSION_HEADERS, EXTENSION_URI, parseExtensionsHeader } from '../a2a/extension.ts';
import type { Presented } from '../app/authenticate.ts';
import type { Settings } from '../app/services.ts';
import { invalidField, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { isLocal } from './local.ts';
import { traceIdOf } from './trace-id.ts';

/** What the headers (and the query) of a JSON-RPC request say beside its body. */
export interface CallHeaders {
  /** The translation of the version that the request names, or that it means by naming none. */
  readonly codec: Result<Codec, Refusal>;
  readonly isVersionNamed: boolean;
  /** Every extension that the client named, in either header. */
  readonly declared: readonly string[];
  /** Whether our extension is among them. */
  readonly activated: boolean;
  /** Those that are in force, in the headers in which they were named: confirmed in the same ones. */
  readonly confirmed: readonly ConfirmedExtensions[];
  readonly idempotencyKey: Result<string | null, Refusal>;
  /** `Last-Event-ID` as a position in the log; anything else than a number is ignored. */
  readonly lastEventId: number | null;
  readonly presented: Presented;
  /** What the request is recorded under. */
  readonly traceId: string;
}

export interface ConfirmedExtensions {
  readonly header: string;
  /** URIs with commas between. */
  readonly value: string;
}

export function readCallHeaders(
  request: Request,
  { requiredExtensions: required, protocolVersions: served }: Pick<Settings, 'requiredExtensions' | 'protocolVersions'>,
): CallHeaders {
  const { headers } = request;
  const named = EXTENSION_HEADERS.map((header) => ({ header, uris: parseExtensionsHeader(headers.get(header)) }));
  const version = { versionHeader: headers.get('a2a-version'), versionQuery: queryValue(request.url, 'a2a-version') };
  const declared = [...new Set(named.flatMap(({ uris }) => uris))];
  return {
    codec: selectCodec({ ...version, served }),
    isVersionNamed: [version.versionHeader, version.versionQuery].some((text) => (text?.trim() ?? '') !== ''),
    declared,
    activated: declared.includes(EXTENSION_URI),
    confirmed: named.flatMap(({ header, uris }) => {
      const value = uris.filter((uri) => uri === EXTENSION_URI || required.includes(uri)).join(', ');
      return value === '' ? [] : [{ header, value }];
    }),
    idempotencyKey: idempotencyKeyOf(headers.get('idempotency-key')),
    lastEventId: lastEventIdOf(headers.get('last-event-id')),
    presented: {
      authorization: headers.get('authorization') ?? undefined,
      apiKey: headers.get('x-api-key') ?? undefined,
      local: isLocal(request),
    },
    traceId: traceIdOf(headers.get('traceparent')),
  };
}

/** Names of service parameters are compared without case (1.0 specification section 3.2.6). */
function queryValue(url: string, name: string): string | null {
  if (!url.includes('?')) return null;
  for (const [key, value] of new URL(url).searchParams) if (key.toLowerCase() === name) return value;
  return null;
}

function idempotencyKeyOf(header: string | null): Result<string | null, Refusal> {
  const key = header?.trim() ?? '';
  if (key === '') return ok(null);
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return ok(key);
  return err(invalidField('Idempotency-Key', 'must be at most 255 printable ASCII characters'));
}

function lastEventIdOf(header: string | null): number | null {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : null;
}
