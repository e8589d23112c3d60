import type { Operation } from '../a2a/operations.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { Settings } from './services.ts';

/**
 * Refuses a message of a client that has not named every extension that this deployment requires (-32008). Only messages: a client that
 * has none of them may still read, cancel and subscribe, and learns from the card what to name.
 */
export function requireExtensions(
  operation: Operation,
  declared: readonly string[],
  { requiredExtensions }: Pick<Settings, 'requiredExtensions'>,
): Result<null, Refusal> {
  if (operation !== 'send' && operation !== 'stream') return ok(null);
  const missing = requiredExtensions.filter((uri) => !declared.includes(uri));
  if (missing.length === 0) return ok(null);
  return err({
    kind: 'invalid',
    message: `this agent requires extensions that the request does not name: ${missing.join(', ')}; send the header A2A-Extensions`,
    issues: [],
    details: { reason: 'EXTENSION_SUPPORT_REQUIRED', missing_extensions: missing },
  });
}
