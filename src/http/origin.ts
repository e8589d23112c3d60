import type { Settings } from '../app/services.ts';

/**
 * The public origin of the service, without a trailing slash: what is configured, else the address that the request came to. Forwarding
 * headers are never believed, since any client can send them.
 */
export function originOf(request: Request, settings: Settings): { readonly origin: string; readonly isConfigured: boolean } {
  if (settings.publicUrl !== null) return { origin: settings.publicUrl.replace(/\/+$/, ''), isConfigured: true };
  return { origin: new URL(request.url).origin, isConfigured: false };
}
