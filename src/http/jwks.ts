import { CARD_JWKS_PATH } from '../app/agent-card.ts';
import type { Services } from '../app/services.ts';
import { conditionalJson } from './conditional.ts';

export const JWKS_PATH = '/.well-known/jwks.json';

/** Both key sets. A key of one never stands in the other: what signs the card must not be taken for what signs the trail. */
export const JWKS_PATHS = [JWKS_PATH, CARD_JWKS_PATH] as const;

/** The public keys that sign, and have signed, the heads of logs; or those that sign the cards. Empty where the deployment does not sign. */
export function answerJwks(request: Request, path: (typeof JWKS_PATHS)[number], { auditKeys, cardSigner, sha256 }: Services): Response {
  const text = JSON.stringify({ keys: path === JWKS_PATH ? auditKeys.publicKeys : cardSigner.publicKeys });
  return conditionalJson(request, { text, hash: sha256(text), vary: [] });
}
