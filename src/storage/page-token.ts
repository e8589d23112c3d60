import type { PlanListQuery } from '../app/ports.ts';
import { invalidField, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';

/** How long a page token is good. Earlier states of plans are kept for longer than this, so a walk in progress never misses one. */
export const PAGE_TOKEN_TTL_SECONDS = 3_600;

/** Where a walk through a list stands, and which moment it shows. */
export interface PlanPageToken {
  /** The last change of any plan that the walk sees. */
  readonly lastMove: number;
  /** When the first page was made, in seconds of the store's own clock. */
  readonly takenAtSeconds: number;
  /** Size of the whole list at that moment. */
  readonly totalSize: number;
  /** The last row that was answered. */
  readonly statusAt: string;
  readonly planId: string;
}

/**
 * The token is opaque to callers and carries no authority: every query names its org again, and an altered token can only spoil the
 * page of the one who altered it. It holds the filters, since going on with other filters would lose rows in silence.
 */
export function encodePageToken(token: PlanPageToken, query: PlanListQuery): string {
  const { lastMove, takenAtSeconds, totalSize, statusAt, planId } = token;
  return toBase64Url(JSON.stringify([1, lastMove, takenAtSeconds, totalSize, statusAt, planId, filtersOf(query)]));
}

/** Refused (`invalid`, naming `page_token`): text that this store did not make, or made for other filters. */
export function decodePageToken(text: string, query: PlanListQuery): Result<PlanPageToken, Refusal> {
  const parsed = parse(text);
  if (!Array.isArray(parsed) || parsed.length !== 7) return err(foreignToken());
  const [version, lastMove, takenAtSeconds, totalSize, statusAt, planId, filters]: unknown[] = parsed;
  if (version !== 1 || !isCount(lastMove) || !isCount(takenAtSeconds) || !isCount(totalSize)) return err(foreignToken());
  if (typeof statusAt !== 'string' || typeof planId !== 'string') return err(foreignToken());
  if (JSON.stringify(filters) !== JSON.stringify(filtersOf(query))) {
    return err(invalidField('page_token', 'belongs to a list with other filters; repeat them, or start again without a token'));
  }
  return ok({ lastMove, takenAtSeconds, totalSize, statusAt, planId });
}

export function expiredToken(): Refusal {
  return invalidField('page_token', 'has expired; start again without a token');
}

function foreignToken(): Refusal {
  return invalidField('page_token', 'is not a token of this list; use next_page_token of the page before');
}

function filtersOf(query: PlanListQuery): readonly (string | boolean | null)[] {
  return [
    query.org,
    query.sessionId ?? null,
    query.actionName ?? null,
    query.project ?? null,
    query.phase ?? null,
    query.state ?? null,
    query.taskState ?? null,
    query.statusAtOrAfter ?? null,
    query.withPendingApprovals === true,
  ];
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function parse(text: string): unknown {
  if (text.length > 4_096 || !/^[A-Za-z0-9_-]+$/.test(text)) return null;
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return JSON.parse(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(binary, (unit) => unit.charCodeAt(0))),
    );
  } catch {
    return null;
  }
}

function toBase64Url(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
