import type { Services } from '../app/services.ts';
import { conditionalJson } from './conditional.ts';

export const JWKS_PATH = '/.well-known/jwks.json';

/** The public keys that sign, and have signed, the heads of logs. Empty where the deployment does not sign. */
export function answerJwks(request: Request, { auditKeys, sha256 }: Services): Response {
  const text = JSON.stringify({ keys: auditKeys.publicKeys });
  return conditionalJson(request, { text, hash: sha256(text), vary: [] });
}
