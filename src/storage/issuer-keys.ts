import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { StorageUnavailable } from '../app/ports.ts';

/**
 * The signing keys of an identity provider: fetched when they are first needed, kept for a while, fetched again for a key id that is not
 * among them. Whoever makes tokens up must not make us ask the provider with each of them: there is a pause between two fetches, and who
 * comes while one is under way waits for it.
 */
export interface IssuerKeysOptions {
  readonly url: URL;
  readonly nowMs: () => number;
  readonly timeoutMs?: number;
  /** Told of each fetch that failed; a caller learns only that it did. */
  readonly report?: (cause: unknown) => void;
}

const TIMEOUT_MS = 3_000;

/** Kept without asking. */
const FRESH_MS = 10 * 60_000;

/** Kept while the provider does not answer; a key that it took back is believed no longer than that. */
const STALE_MS = 60 * 60_000;

/** At least so long between two fetches for unknown key ids. */
const PAUSE_MS = 30_000;

/** At least so long after a fetch that failed. */
const RETRY_MS = 5_000;

const MAX_CHARACTERS = 256 * 1024;

/** A function for `jwtVerify`. Throws `StorageUnavailable` while the keys are not to be had, jose's errors when none fits. */
export function makeIssuerKeys(options: IssuerKeysOptions): JWTVerifyGetKey {
  const { nowMs, timeoutMs = TIMEOUT_MS } = options;
  let known: { readonly find: JWTVerifyGetKey; readonly fetchedMs: number } | null = null;
  let failedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | null = null;

  const isFresh = (): boolean => known !== null && nowMs() - known.fetchedMs < FRESH_MS;
  const isUsable = (): boolean => known !== null && nowMs() - known.fetchedMs < STALE_MS;
  const ask = async (): Promise<void> => {
    try {
      known = { find: createLocalJWKSet(await fetchKeys(options)), fetchedMs: nowMs() };
    } catch (cause) {
      failedMs = nowMs();
      options.report?.(cause);
    }
  };
  const load = async (): Promise<void> => {
    if (nowMs() - failedMs < RETRY_MS) return;
    // A fetch belongs to the request that began it, and ends with it: whoever waits for another's does so for a time only.
    if (underWay !== null && (await isDoneWithin(underWay, timeoutMs))) return;
    const asked = ask();
    underWay = asked;
    await asked;
    if (underWay === asked) underWay = null;
  };

  return async (header, token) => {
    if (!isFresh()) await load();
    const current = known;
    if (current === null || !isUsable()) throw new StorageUnavailable('the keys of the identity provider', new Error('they did not come'));
    try {
      return await current.find(header, token);
    } catch (error) {
      const mayAsk = error instanceof errors.JWKSNoMatchingKey && nowMs() - current.fetchedMs >= PAUSE_MS;
      if (!mayAsk) throw error;
      await load();
      return (known ?? current).find(header, token);
    }
  };
}

async function isDoneWithin(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooLate = new Promise<boolean>((late) => {
    timer = setTimeout(() => late(false), ms);
  });
  const isDone = await Promise.race([work.then(() => true), tooLate]);
  clearTimeout(timer);
  return isDone;
}

async function fetchKeys({ url, timeoutMs = TIMEOUT_MS }: IssuerKeysOptions): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    // Keys come from the address that was configured and from nowhere else.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const text = await response.text();
  if (text.length > MAX_CHARACTERS) throw new Error('the key set is too large');
  return JSON.parse(text) as JSONWebKeySet;
}
