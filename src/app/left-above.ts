import { dayOf } from '../core/budget/window.ts';
import type { PublicPlan } from '../core/plan/snapshot.ts';
import { type BudgetRef, StorageUnavailable } from './ports.ts';
import type { Services } from './services.ts';

/** What is not spent yet at the levels above a plan, in micro-USD; only those that have a cap. */
export interface LeftAbove {
  readonly session?: number;
  readonly org?: number;
  readonly profile?: number;
}

/** What was read of a level is good for so long, so that a busy stream does not ask with every event. */
export const FRESH_MS = 1_000;

/** A level that does not answer for so long is left out. */
const ANSWER_MS = 2_000;

/**
 * What is left of the budgets above plans, so that a calling agent sees it without our operations (design section 11): at each level the
 * smallest over its windows, at most `FRESH_MS` old. One reader serves one answer or one stream and asks each level once for all of the
 * plans in it. Nothing of a plan that has ended, and nothing of a level that does not answer: it is information, and a task is shown
 * without it.
 */
export class LeftReader {
  private readonly services: Services;
  private readonly read = new Map<string, { readonly atMs: number; readonly room: Promise<Room> }>();

  constructor(services: Services) {
    this.services = services;
  }

  async of({ org, sessionId, terminal, profile, policy }: PublicPlan): Promise<LeftAbove> {
    if (terminal) return {};
    const brought = policy.profileCapMicroUsd?.value;
    const [session, ofOrg, ofProfile] = await Promise.all([
      this.roomAt(org, { kind: 'session', id: sessionId }),
      this.roomAt(org, { kind: 'org' }),
      // The limit is the one that is locked in the plan; the node knows what all plans under the profile have spent.
      brought === undefined ? null : this.roomAt(org, { kind: 'profile', name: profile.name }),
    ]);
    const left = { session: session.left, org: ofOrg.left, profile: leftOf(brought, ofProfile) };
    return Object.fromEntries(Object.entries(left).filter(([, microUsd]) => microUsd !== null));
  }

  private roomAt(org: string, ref: BudgetRef): Promise<Room> {
    const key = JSON.stringify([org, ref]);
    const nowMs = this.services.clock.nowMs();
    const known = this.read.get(key);
    if (known !== undefined && nowMs - known.atMs < FRESH_MS) return known.room;
    const room = answerOf(readRoom(org, ref, this.services));
    this.read.set(key, { atMs: nowMs, room });
    return room;
  }
}

interface Room {
  /** Null: no window has a cap, or nobody answered. */
  readonly left: number | null;
  readonly spentMicroUsd: number | null;
}

const UNKNOWN: Room = { left: null, spentMicroUsd: null };

function leftOf(capMicroUsd: number | undefined, room: Room | null): number | null {
  return capMicroUsd === undefined || room === null || room.spentMicroUsd === null ? null : Math.max(0, capMicroUsd - room.spentMicroUsd);
}

async function readRoom(org: string, ref: BudgetRef, { budgets, clock }: Services): Promise<Room> {
  try {
    const { caps } = await budgets.node(org, ref).show(dayOf(clock.nowMs()));
    // What is leased and not charged is somebody's only until somebody else needs it.
    const left = caps.flatMap(({ capMicroUsd, spentMicroUsd }) => (capMicroUsd === null ? [] : [Math.max(0, capMicroUsd - spentMicroUsd)]));
    const total = caps.find(({ window }) => window === 'total');
    return { left: left.length === 0 ? null : Math.min(...left), spentMicroUsd: total?.spentMicroUsd ?? null };
  } catch (cause) {
    if (cause instanceof StorageUnavailable) return UNKNOWN;
    throw cause;
  }
}

/** A stream is not held up by a level that is silent. */
function answerOf(room: Promise<Room>): Promise<Room> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(UNKNOWN), ANSWER_MS);
    room.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
