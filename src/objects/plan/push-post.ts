import type { PushParts } from '../../app/ports.ts';
import type { Attempt } from '../../core/push/judge-attempt.ts';
import { checkPushUrl } from '../../core/push/push-url.ts';
import type { StoredPush } from './push-store.ts';

/** What goes with one notification. */
export interface Delivery {
  /** The same for each attempt, after a crash too. */
  readonly id: string;
  /** Rises by one with each notification of a webhook. */
  readonly sequence: number;
  readonly body: string;
}

/**
 * Posts one notification. Where it leads is judged again, redirects are not followed, an answer is waited for so long and no longer, and
 * nothing of its body is read. Throws nothing: what went wrong is the answer, without a word of what was sent.
 */
export async function postNotification(
  { wire, target }: StoredPush,
  { id, sequence, body }: Delivery,
  parts: PushParts,
): Promise<Attempt | { readonly kind: 'forbidden' }> {
  const url = checkPushUrl(target.url, parts.rules);
  if (!url.ok) return { kind: 'forbidden' };
  const headers = new Headers({
    'content-type': wire === '1.0' ? 'application/a2a+json' : 'application/json',
    'user-agent': parts.userAgent,
    'idempotency-key': id,
    'x-a2a-notification-id': id,
    'x-a2a-notification-sequence': String(sequence),
    ...(wire === '1.0' ? { 'a2a-version': wire } : {}),
  });
  const { token, authentication } = target;
  if (token !== undefined) headers.set('x-a2a-notification-token', token);
  if (authentication?.credentials !== undefined)
    headers.set('authorization', `${schemeOf(authentication.schemes)} ${authentication.credentials}`);
  const signal = AbortSignal.timeout(parts.timing.timeoutMs);
  try {
    const response = await parts.fetch(url.value.href, { method: 'POST', headers, body, redirect: 'manual', signal });
    await response.body?.cancel().catch(() => undefined);
    return { kind: 'answered', status: response.status, retryAfter: response.headers.get('retry-after') };
  } catch {
    return { kind: 'unanswered', problem: signal.aborted ? 'timeout' : 'unreachable' };
  }
}

/** A 0.3 client may list several of which the credentials are for one; most of them are tokens. */
function schemeOf(schemes: readonly string[]): string {
  return schemes.find((scheme) => scheme.toLowerCase() === 'bearer') ?? schemes[0] ?? 'Bearer';
}
