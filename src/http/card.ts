import { selectCodec } from '../a2a/codec.ts';
import { type CardRequest, cardShape, extendedCard, publicCard } from '../app/agent-card.ts';
import type { Services } from '../app/services.ts';
import type { JsonObject } from '../core/json.ts';
import type { Principal } from '../core/principal.ts';
import { conditionalJson } from './conditional.ts';
import type { ModificationTimes } from './modification-times.ts';
import { originOf } from './origin.ts';
import { MAX_BODY_BYTES } from './request-body.ts';

/** Where the card is: the path of A2A since 0.3, and the older one. */
export const CARD_PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

/**
 * The public Agent Card. A client that names version 1.0 gets the pure 1.0 card, everybody else one that both versions read: the card is
 * how a client learns what to ask for, so no header makes it refuse.
 */
export async function answerCard(request: Request, services: Services, times: ModificationTimes): Promise<Response> {
  const codec = selectCodec({ versionHeader: request.headers.get('a2a-version') });
  const shape = cardShape(codec.ok ? codec.value.version : null, services.settings);
  const { origin, isConfigured } = originOf(request, services.settings);
  const text = JSON.stringify(await publicCard({ origin, shape }, services));
  const hash = services.sha256(text);
  return conditionalJson(request, {
    text,
    hash,
    modifiedAt: times.note(`${origin} ${shape}`, hash, services.clock.nowMs()),
    // Where the addresses in the card come from the request, a cache must keep one card for each host.
    vary: isConfigured ? ['A2A-Version'] : ['A2A-Version', 'Host'],
  });
}

/** The card of a caller who is known and may see it. */
export function extendedCardOf(principal: Principal, request: CardRequest, services: Services): Promise<JsonObject> {
  return extendedCard({ ...request, principal, maxBodyBytes: MAX_BODY_BYTES }, services);
}

/**
 * An extended card as a document of its own: for its caller's cache only, and another one for every key. Whether the caller may see it was
 * decided before.
 */
export function extendedCardDocument(request: Request, card: JsonObject, services: Services, times: ModificationTimes): Response {
  const text = JSON.stringify(card);
  const hash = services.sha256(text);
  const { headers } = request;
  const caller = services.sha256(JSON.stringify([headers.get('authorization'), headers.get('x-api-key')]));
  const { origin, isConfigured } = originOf(request, services.settings);
  return conditionalJson(request, {
    text,
    hash,
    modifiedAt: times.note(`${origin} ${'protocolVersion' in card ? 'hybrid' : '1.0'} ${caller}`, hash, services.clock.nowMs()),
    vary: ['A2A-Version', 'Authorization', 'X-API-Key', ...(isConfigured ? [] : ['Host'])],
    isPrivate: true,
  });
}
