import { type Floors, type Halts, StorageUnavailable } from '../../app/ports.ts';
import { commandOfWord, unheard } from '../../core/halt-word.ts';
import type { OrgPolicy } from '../../core/org-policy.ts';
import type { Command } from '../../core/plan/commands.ts';
import { wouldAct } from '../../core/plan/decide/halt.ts';
import type { Plan } from '../../core/plan/plan.ts';
import type { Refusal } from '../../core/refusal.ts';
import type { Result } from '../../core/result.ts';

/** What the watch needs of the plan's object. */
export interface WatchHost {
  plan(): Plan | null;
  execute(command: Command): Promise<Result<null, Refusal>>;
  /** Log position up to which the index knows the plan. */
  flushedSeq(): number;
  report(problem: string, cause: unknown): void;
}

export interface WatchPorts {
  readonly halts: Pick<Halts, 'current'>;
  readonly floors: Pick<Floors, 'current'>;
}

/** How soon a plan that does not know what holds tries again. */
export const UNHEARD_PAUSE_MS = 2_000;

/** A node that has not answered by then counts as not reached. */
const PATIENCE_MS = 5_000;

/**
 * What the session and the org of a plan say: their kill switches and the org's policy floor (design section 7).
 *
 * Promise: a plan acts on nothing between its waking up and its having read what holds, and reads it again at every alarm. So a word that
 * was said while the plan slept, was made, or was not reached is recorded before the first effect, free ones included. Where what holds
 * cannot be read, the plan does nothing.
 */
export class HaltWatch {
  private readonly host: WatchHost;
  private readonly ports: () => WatchPorts;
  /** The session whose word was read since the object woke up; null: none yet. */
  private readFor: string | null = null;
  /** Moves to another session that were asked for: what was read before one is of no use after it, also where the plan comes back. */
  private moves = 0;
  /** The floor that was bound last; one that binds already needs no decision. */
  private floorVersion = 0;

  constructor(host: WatchHost, ports: () => WatchPorts) {
    this.host = host;
    this.ports = ports;
  }

  /**
   * Reads what holds and records what the plan has not heard. False: it could not be read. What is read counts until the plan changes its
   * session, and only once the index knows which one that is: whoever tells a session's plans finds them there.
   */
  async renew(): Promise<boolean> {
    const plan = this.host.plan();
    if (plan === null || plan.terminal) return true;
    const { org, sessionId } = plan;
    const { moves } = this;
    const isIndexed = this.host.flushedSeq() >= this.sessionSince(plan);
    try {
      const { halts, floors } = this.ports();
      const [words, floor] = await within(PATIENCE_MS, Promise.all([halts.current(org, sessionId), floors.current(org)]));
      for (const word of unheard(this.host.plan()?.halts ?? [], words)) await this.host.execute(commandOfWord(word, sessionId));
      if (floor !== null && floor.version > this.floorVersion) {
        const bound = await this.host.execute({ type: 'apply_floor', by: floor.by, floor: floor.policy as OrgPolicy });
        // Busy: what has to be decided anew under the floor cannot be decided yet. A plan that has ended meanwhile needs none.
        if (!bound.ok && bound.error.kind === 'unavailable') return false;
        this.floorVersion = floor.version;
      }
    } catch (cause) {
      this.host.report('what holds above could not be read; nothing is done until it is', cause);
      return false;
    }
    this.readFor = isIndexed && moves === this.moves ? sessionId : null;
    return true;
  }

  /** Reads what holds if this was not done since the object woke up. */
  async ensure(): Promise<boolean> {
    const plan = this.host.plan();
    return plan === null || plan.terminal || this.readFor === plan.sessionId || (await this.renew());
  }

  /** Why a command that came in is not decided: one that lets the plan act has to wait for what holds. Null: it may be. */
  async refusal(command: Command): Promise<Refusal | null> {
    const plan = this.host.plan();
    if (plan === null) return null;
    if (command.type === 'associate') {
      this.moves += 1;
      this.readFor = null;
    }
    const waits = mayLetAct(plan, command);
    if (waits === 'no' || (await this.ensure()) || waits === 'if it can') return null;
    return {
      kind: 'unavailable',
      message: 'the plan does not reach its session and its org now, which may have halted it; repeat the call in a moment',
      retryAfterSeconds: UNHEARD_PAUSE_MS / 1000,
      details: { plan_id: plan.id },
    };
  }

  /** A plan whose executor is outside can be moved to another session; since when it is in this one, at the latest. */
  private sessionSince(plan: Plan): number {
    return plan.external === undefined ? 0 : plan.seq;
  }
}

/**
 * Whether something may be authorised after a command. What only stops or says no is taken at once. What changes the guards may let a call
 * through that was asked about, and may be what somebody tightens in a hurry: what it lets through still waits for the next alarm.
 */
function mayLetAct(plan: Plan, command: Command): 'yes' | 'if it can' | 'no' {
  switch (command.type) {
    case 'create':
      return 'no';
    case 'authorize':
    case 'check':
    case 'clear_halt':
    case 'retry_budget':
      return 'yes';
    case 'revise_guard':
    case 'apply_floor':
      return 'if it can';
    default:
      return wouldAct(plan, command) ? 'yes' : 'no';
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new StorageUnavailable('halts.current', new Error(`no answer in ${ms} ms`))), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
