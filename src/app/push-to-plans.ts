/**
 * One word to every live plan of an org or of a session: a halt, a floor, a cap that was raised.
 *
 * Promise: whoever is not named as unreached has acknowledged. Live are the plans that the index does not know as ended; one that is made
 * while this goes on reads what holds before it acts.
 */
import { type OutsideCommand, type PlanIndex, type Plans, StorageUnavailable } from './ports.ts';

/** `sessionId` null: all plans of the org. */
export interface PushTarget {
  readonly org: string;
  readonly sessionId: string | null;
}

export interface Pushed {
  /** Plans that acknowledged. */
  readonly reached: number;
  /** Ids of those that did not: not reached, or busy. */
  readonly unreached: readonly string[];
}

/** A part of a walk over the plans; `next` is where the next part begins, null at the end. */
export interface PushedPage extends Pushed {
  readonly next: string | null;
}

interface Through {
  readonly planIndex: Pick<PlanIndex, 'listLive'>;
  readonly plans: Plans;
}

/** Plans that are told in one part. */
const PAGE = 200;

/** Plans that are told at the same time. */
const AT_ONCE = 16;

/** A plan that has not answered by then counts as not reached; it may have heard it all the same. */
const PATIENCE_MS = 5_000;

/** Tells them all. Throws only where it is not known which plans there are. */
export async function pushToPlans(of: PushTarget, command: OutsideCommand, through: Through): Promise<Pushed> {
  const unreached: string[] = [];
  let reached = 0;
  for (let after: string | null = ''; after !== null; ) {
    const page: PushedPage = await pushPage(of, after, command, through);
    reached += page.reached;
    unreached.push(...page.unreached);
    after = page.next;
  }
  return { reached, unreached };
}

/** Tells the plans whose ids come after `afterPlanId`, as many as one part holds. */
export async function pushPage(of: PushTarget, afterPlanId: string, command: OutsideCommand, through: Through): Promise<PushedPage> {
  const planIds = await through.planIndex.listLive({ ...of, afterPlanId, limit: PAGE });
  const left = [...planIds];
  const unreached: string[] = [];
  let reached = 0;
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, left.length) }, async () => {
      for (let planId = left.shift(); planId !== undefined; planId = left.shift()) {
        const answer = await tell(of.org, planId, command, through.plans);
        if (answer === 'unreached') unreached.push(planId);
        if (answer === 'reached') reached += 1;
      }
    }),
  );
  return { reached, unreached: unreached.toSorted(), next: planIds.length < PAGE ? null : (planIds.at(-1) ?? null) };
}

/** A plan that has ended, or that is not there yet, needs to hear nothing. */
async function tell(
  org: string,
  planId: string,
  command: OutsideCommand,
  plans: Plans,
): Promise<'reached' | 'unreached' | 'not_concerned'> {
  try {
    const answer = await within(PATIENCE_MS, plans.plan(org, planId).command(command));
    if (answer === null) return 'not_concerned';
    if (answer.ok) return 'reached';
    return answer.error.kind === 'unavailable' ? 'unreached' : 'not_concerned';
  } catch (error) {
    // A plan that breaks over it must not keep the others from hearing it, and it has not heard it.
    if (!(error instanceof StorageUnavailable))
      console.error(
        JSON.stringify({ level: 'error', plan_id: planId, problem: 'a plan broke over a word from above', cause: String(error) }),
      );
    return 'unreached';
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new StorageUnavailable('plans.command', new Error(`no answer in ${ms} ms`))), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
