/**
 * Entry of the Worker under test: the product with the test tools, and switches: one that takes D1 away from the plans' objects, and one
 * that breaks the calls between objects.
 */
import {
  type BudgetHolder,
  type BudgetHolders,
  type Budgets,
  type CommitOutcome,
  type CommitRequest,
  StorageUnavailable,
} from '../../src/app/ports.ts';
import { compose } from '../../src/compose.ts';
import type { Recall, RecallReply } from '../../src/core/budget/protocol.ts';
import type { PushTiming } from '../../src/core/push/judge-attempt.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { err, type Result } from '../../src/core/result.ts';
import type { OrgObjectParts } from '../../src/objects/org-object.ts';
import type { PlanObjectParts } from '../../src/objects/plan-object.ts';
import type { ProfileBudgetObjectParts } from '../../src/objects/profile-budget-object.ts';
import type { SessionObjectParts } from '../../src/objects/session-object.ts';
import { TEST_TOOL_PACKAGE } from './test-tools.ts';

const parts = compose({ toolPackages: [TEST_TOOL_PACKAGE] });

/** What is broken at the moment, by org, so that tests do not disturb each other. */
export const FAULTS = {
  d1: new Set<string>(),
  /** Judges every call between budget nodes and plans of an org. */
  between: new Map<string, (call: BetweenObjects) => BetweenFault | null>(),
  /** Orgs whose plans cannot read what their session and org say. */
  orders: new Set<string>(),
  /** Stands around the commits of an org's plans to their projects. */
  commits: new Map<
    string,
    (request: CommitRequest, commit: () => Promise<Result<CommitOutcome, Refusal>>) => Promise<Result<CommitOutcome, Refusal>>
  >(),
  /** Ids of plans that no word from above reaches. */
  deaf: new Set<string>(),
};

/** Receivers of notifications, by host: what they answer. Any other host cannot be reached. */
export const RECEIVERS = new Map<string, (url: string, init: RequestInit) => Promise<Response>>();

/** Short, so that pauses are tested and not waited for; an org may have others. */
const SHORT: PushTiming = { timeoutMs: 300, pauseMs: 20, maxPauseMs: 200, maxAgeMs: 86_400_000 };
export const PUSH_TIMINGS = new Map<string, Partial<PushTiming>>();

/** A call from one object to another: `session.ask` is what a plan asks a session. */
export interface BetweenObjects {
  readonly operation: `${'plan' | 'session' | 'org' | 'profile'}.${'ask' | 'freed' | 'close' | 'recall'}`;
  /** The child that asks or is recalled from. */
  readonly child: string;
}

/** It fails before it was done; it was done and its answer is lost; it was done and done again; it never answers. */
export type BetweenFault = 'before' | 'after' | 'twice' | 'silence';

/** Plans that a test plays itself, by org and plan id: what they answer to a recall. */
export const PLAYED = new Map<string, (from: 'session' | 'profile', recall: Recall) => RecallReply>();

export const playedKey = (org: string, planId: string): string => JSON.stringify([org, planId]);

async function disturbed<T>(org: string, call: BetweenObjects, send: () => Promise<T>): Promise<T> {
  const fault = FAULTS.between.get(org)?.(call) ?? null;
  const lost = () => new StorageUnavailable(call.operation, new Error('broken by a test'));
  if (fault === 'before') throw lost();
  if (fault === 'silence') return new Promise(() => {});
  const answer = await send();
  if (fault === 'after') throw lost();
  return fault === 'twice' ? send() : answer;
}

export function disturbedBudgets(real: Budgets): Budgets {
  return {
    node(org, ref) {
      const node = real.node(org, ref);
      return {
        ...node,
        ask: (child, ask) => disturbed(org, { operation: `${ref.kind}.ask`, child }, () => node.ask(child, ask)),
        freed: (child, freed) => disturbed(org, { operation: `${ref.kind}.freed`, child }, () => node.freed(child, freed)),
        close: (child, close) => disturbed(org, { operation: `${ref.kind}.close`, child }, () => node.close(child, close)),
      };
    },
  };
}

function disturbedHolders(real: BudgetHolders): BudgetHolders {
  return {
    recall: (org, holder, recall) =>
      disturbed(org, { operation: `${holder.kind}.recall`, child: holder.id }, async () => {
        const played = playedBy(org, holder);
        return played === null ? real.recall(org, holder, recall) : played(recall);
      }),
  };
}

function playedBy(org: string, holder: BudgetHolder): ((recall: Recall) => RecallReply) | null {
  if (holder.kind !== 'plan') return null;
  const { kind } = holder.from;
  const played = PLAYED.get(playedKey(org, holder.id));
  return played === undefined || kind === 'org' ? null : (recall) => played(kind, recall);
}

function failIfBroken(org: string, operation: string): void {
  if (FAULTS.d1.has(org)) throw new StorageUnavailable(operation, new Error('switched off by a test'));
}

export class PlanObject extends parts.PlanObject {
  override async command(command: Parameters<InstanceType<typeof parts.PlanObject>['command']>[0]) {
    const isFromAbove = command.type === 'halt' || command.type === 'clear_halt' || command.type === 'apply_floor';
    if (isFromAbove && FAULTS.deaf.has(this.plan()?.id ?? ''))
      return err<Refusal>({ kind: 'unavailable', message: 'switched off by a test', retryAfterSeconds: 1 });
    return super.command(command);
  }

  protected override parts(): PlanObjectParts {
    const real = super.parts();
    // A server of its own, whose receivers are there.
    const isReal = real.push.rules.allowLoopback;
    return {
      ...real,
      budgets: disturbedBudgets(real.budgets),
      push: {
        ...real.push,
        timing: { ...SHORT, ...(isReal ? { timeoutMs: 3_000 } : {}), ...PUSH_TIMINGS.get(this.plan()?.org ?? '') },
        fetch: async (url, init) => {
          const receiver = RECEIVERS.get(new URL(url).host);
          if (receiver === undefined && isReal) return real.push.fetch(url, init);
          if (receiver === undefined) throw new TypeError('no such host');
          const tooLate = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason)));
          return Promise.race([receiver(url, init), tooLate]);
        },
      },
      projects: {
        project: (org, name) => {
          const port = real.projects.project(org, name);
          const commit = (request: CommitRequest) => {
            const around = FAULTS.commits.get(org);
            return around === undefined ? port.commit(request) : around(request, () => port.commit(request));
          };
          return { ...port, commit };
        },
      },
      halts: {
        current: async (org, sessionId) => {
          if (FAULTS.orders.has(org)) throw new StorageUnavailable('halts.current', new Error('switched off by a test'));
          return real.halts.current(org, sessionId);
        },
      },
      outcomes: {
        ...real.outcomes,
        record: async (rows) => {
          for (const row of rows) failIfBroken(row.org, 'outcomes.record');
          await real.outcomes.record(rows);
        },
      },
      index: {
        ...real.index,
        upsert: async (row, spend) => {
          failIfBroken(row.org, 'plans.upsert');
          return real.index.upsert(row, spend);
        },
      },
      audit: {
        ...real.audit,
        append: async (rows) => {
          for (const row of rows) failIfBroken(row.org, 'audit.append');
          await real.audit.append(rows);
        },
      },
    };
  }
}

export class SessionObject extends parts.SessionObject {
  protected override parts(): SessionObjectParts {
    const real = super.parts();
    return { ...real, budgets: disturbedBudgets(real.budgets), holders: disturbedHolders(real.holders) };
  }
}

export class OrgObject extends parts.OrgObject {
  protected override parts(): OrgObjectParts {
    const real = super.parts();
    const audit = {
      ...real.audit,
      append: async (rows: Parameters<typeof real.audit.append>[0]) => {
        for (const row of rows) failIfBroken(row.org, 'audit.append');
        await real.audit.append(rows);
      },
    };
    return { ...real, holders: disturbedHolders(real.holders), audit };
  }
}

export class ProfileBudgetObject extends parts.ProfileBudgetObject {
  protected override parts(): ProfileBudgetObjectParts {
    const real = super.parts();
    return { ...real, holders: disturbedHolders(real.holders) };
  }
}

export { ProjectObject } from '../../src/objects/project-object.ts';
export const connect = parts.connect;
export default parts.worker;
