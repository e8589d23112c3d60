import { openRpcDocument } from '../api/openrpc.ts';
import type { Services } from '../app/services.ts';
import { conditionalJson } from './conditional.ts';
import { originOf } from './origin.ts';

export const OPEN_RPC_PATH = '/openrpc.json';

/** The operations beside A2A's own, as an OpenRPC document. */
export function answerOpenRpc(request: Request, { settings, sha256 }: Services): Response {
  const { origin, isConfigured } = originOf(request, settings);
  const text = JSON.stringify(openRpcDocument({ version: settings.version, url: `${origin}/a2a` }));
  return conditionalJson(request, { text, hash: sha256(text), vary: isConfigured ? [] : ['Host'] });
}
