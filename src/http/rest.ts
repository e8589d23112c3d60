import { REST_CODECS } from '../a2a/codec.ts';
import { restError, restIncident } from '../a2a/rest-error.ts';
import { matchRest, type RestMatch } from '../a2a/rest-routes.ts';
import { sseFrame } from '../a2a/sse.ts';
import type { ProtocolVersion } from '../a2a/version.ts';
import type { Settings } from '../app/services.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, type Result } from '../core/result.ts';
import { type Answer, callTools, openCall } from './call.ts';
import { type CallHeaders, readCallHeaders } from './call-headers.ts';
import { extendedCardDocument } from './card.ts';
import type { Edge } from './edge.ts';
import type { Failure } from './failure.ts';
import type { ModificationTimes } from './modification-times.ts';
import { answerHeaders, failureHeaders, streamResponse } from './response.ts';
import { readRestParams } from './rest-params.ts';
import { callStandard } from './standard-call.ts';

/** Whether a path belongs to the HTTP+JSON binding of a version that is served. */
export const isRestPath = (path: string, { protocolVersions }: Pick<Settings, 'protocolVersions'>): boolean =>
  protocolVersions.some((version) => matchRest(version, 'GET', path) !== null);

/**
 * The route of a request in the version that it names; null where no version has the path. The paths of one version say nothing to the
 * other: who asks for one of them without its version is told which to name.
 */
export function findRest(request: Request, edge: Edge): RestRequest | RestRefusal | null {
  const { settings } = edge.services;
  const headers = readCallHeaders(request, settings);
  const { pathname: path } = new URL(request.url);
  const served = settings.protocolVersions.filter((version) => matchRest(version, request.method, path) !== null);
  if (served.length === 0) return null;
  if (!headers.codec.ok) return { kind: 'refused', headers, refusal: headers.codec.error };
  const { version } = headers.codec.value;
  const match = matchRest(version, request.method, path);
  if (match === null) return { kind: 'refused', headers, refusal: otherVersion(version, served, settings) };
  return match.kind === 'route' ? { ...match, version, headers } : { ...match, headers };
}

export type RestRequest = Extract<RestMatch, { kind: 'route' }> & { readonly version: ProtocolVersion; readonly headers: CallHeaders };

export type RestRefusal = { readonly headers: CallHeaders } & (
  | Extract<RestMatch, { kind: 'other_method' }>
  | { readonly kind: 'refused'; readonly refusal: Refusal }
);

/** Answers one HTTP+JSON request. Never throws. */
export async function answerRest(request: Request, found: RestRequest, edge: Edge, times: ModificationTimes): Promise<Response> {
  const { version, headers, operation } = found;
  const type = mediaTypeOf(request, version);
  const tools = callTools(request, edge, found.name);
  const params = await readRestParams(request, found.variables);
  if (!params.ok) return failed(params.error.refusal, { version, type, headers, status: params.error.status });
  const answer = await run(found, params.value, tools);
  if (!answer.ok) return failed(answer.error, { version, type, headers });
  if (answer.value.kind === 'stream') return streamResponse(answer.value.body, headers.confirmed);
  const { result, nextPageToken } = answer.value;
  if (operation === 'extendedCard') return extendedCardDocument(request, result as JsonObject, edge.services, times);
  const more = answerHeaders(headers.confirmed);
  // 0.3 lists tasks as a bare list: without this nobody could read on.
  if (Array.isArray(result) && nextPageToken !== undefined) more.set('link', nextPage(request.url, nextPageToken));
  return json(result, 200, type, more);
}

/** A request that no operation answers, in the shape of the newest version: which one its sender reads is what is not known. */
export function refuseRest(request: Request, headers: CallHeaders, refusal: Refusal): Response {
  return failed(refusal, { version: '1.0', type: mediaTypeOf(request, '1.0'), headers });
}

async function run(
  { version, headers, operation, name }: RestRequest,
  params: JsonObject,
  tools: ReturnType<typeof callTools>,
): Promise<Result<Answer, Failure>> {
  const call = openCall(tools, headers, REST_CODECS[version]);
  if (!call.ok) return call;
  try {
    return await callStandard({
      ...call.value,
      operation,
      called: name,
      params,
      frames: {
        event: (data, id) => sseFrame({ data, id }),
        failure: (failure) => sseFrame({ event: 'error', data: errorOf(failure, version).body }),
      },
    });
  } catch (error) {
    return err(tools.failureOf(error));
  }
}

interface FailedOptions {
  readonly version: ProtocolVersion;
  readonly type: string;
  readonly headers: CallHeaders;
  /** In the place of the error's own. */
  readonly status?: number | undefined;
}

function failed(failure: Failure, { version, type, headers, status }: FailedOptions): Response {
  const { httpStatus, body } = errorOf(failure, version, status);
  return json(body, httpStatus, type, failureHeaders(failure, headers.confirmed));
}

function errorOf(failure: Failure, version: ProtocolVersion, status?: number) {
  return failure.kind === 'incident' ? restIncident(failure.incidentId, { version }) : restError(failure, { version }, status);
}

function json(body: JsonValue, status: number, type: string, headers: Headers): Response {
  headers.set('content-type', type);
  return new Response(JSON.stringify(body), { status, headers });
}

/** The media type of A2A 1.0 for those who name it; everybody else reads plain JSON (contract section 14, choice 4). */
function mediaTypeOf({ headers }: Request, version: ProtocolVersion): string {
  const named = [headers.get('content-type'), ...(headers.get('accept') ?? '').split(',')];
  const isNamed = named.some((type) => type?.split(';')[0]?.trim().toLowerCase() === A2A_MEDIA_TYPE && !/;\s*q=0(\.0*)?\s*$/i.test(type));
  return version === '1.0' && isNamed ? A2A_MEDIA_TYPE : 'application/json';
}

const A2A_MEDIA_TYPE = 'application/a2a+json';

/** RFC 8288. */
function nextPage(asked: string, token: string): string {
  const { pathname, searchParams } = new URL(asked);
  for (const name of ['pageToken', 'page_token']) searchParams.delete(name);
  searchParams.set('pageToken', token);
  return `<${pathname}?${searchParams}>; rel="next"`;
}

function otherVersion(asked: ProtocolVersion, served: readonly ProtocolVersion[], { protocolVersions }: Settings): Refusal {
  const [only = '1.0'] = served;
  const elsewhere = protocolVersions.includes('0.3') ? '; A2A 0.3 is under /v1' : '';
  const where = only === '1.0' ? `send the header A2A-Version: 1.0${elsewhere}` : 'send no header A2A-Version';
  return {
    kind: 'invalid',
    message: `A2A ${asked} is not spoken at this address, but ${served.join(', ')}: ${where}`,
    issues: [],
    details: { reason: 'VERSION_NOT_SUPPORTED', supported_versions: [...served] },
  };
}
