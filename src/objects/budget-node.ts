import { DurableObject } from 'cloudflare:workers';
import type { BudgetCapsChange, BudgetCapsOptions, BudgetNodePort, BudgetNodeView, BudgetWarning } from '../app/ports.ts';
import type { NodeLevel } from '../core/budget/node-state.ts';
import { type Ask, type AskAnswer, type Close, type Freed, REPEAT_MS } from '../core/budget/protocol.ts';
import type { Day } from '../core/budget/window.ts';
import { type NodeLinks, NodeRunner } from './node/node-runner.ts';
import { type NodeName, NodeStore } from './node/node-store.ts';

/**
 * An object that is a budget node (design section 10): a session, an org, or what an org spends under a profile.
 *
 * Promise: the methods are the messages of the protocol, one step each; what they answer is committed before it is seen. A node that
 * was never told anything that counts stores nothing. One alarm serves everything that an object of this kind has to do later.
 */
export abstract class BudgetNodeBase<Env = unknown> extends DurableObject<Env> {
  protected readonly store: NodeStore;
  protected readonly node: NodeRunner;
  /** The alarm that is set; undefined: not known yet. */
  private alarmAtMs: number | null | undefined;

  constructor(ctx: DurableObjectState, env: Env, level: NodeLevel) {
    super(ctx, env);
    this.store = new NodeStore(ctx.storage.sql);
    this.node = new NodeRunner({
      level,
      store: this.store,
      links: (name) => this.links(name),
      nowMs: () => this.nowMs(),
      transact: (write) => this.ctx.storage.transactionSync(write),
      stepped: () => this.rearm(),
      warned: () => void this.tellWarnings(),
      moreMoney: (name) => this.moreMoney(name),
      report: (problem, cause) => this.report(problem, cause),
    });
    // Whoever wakes the object re-arms it: an alarm that was lost must not leave money leased for ever.
    if (this.store.name() !== null) {
      void this.ctx.blockConcurrencyWhile(async () => {
        this.alarmAtMs = await this.ctx.storage.getAlarm();
        this.rearm();
      });
    } else this.alarmAtMs = null;
  }

  /** Whom this node speaks to in this deployment; called when something is to be sent, never in the constructor. */
  protected abstract links(name: NodeName): NodeLinks;

  /* ---------------------------------------------------------------- RPC */

  ask(name: NodeName, child: string, ask: Ask): Promise<AskAnswer> {
    return this.node.ask(name, child, ask);
  }

  async freed(name: NodeName, child: string, freed: Freed): Promise<void> {
    this.node.freed(name, child, freed);
  }

  async close(name: NodeName, child: string, close: Close): Promise<void> {
    this.node.close(name, child, close);
  }

  setCaps(name: NodeName, change: BudgetCapsChange, options: BudgetCapsOptions): ReturnType<BudgetNodePort['setCaps']> {
    return this.node.setCaps(name, change, options);
  }

  async show(day: Day | null): Promise<BudgetNodeView> {
    return this.node.show(day);
  }

  /* ---------------------------------------------------------------- time */

  /** Never throws: an alarm that fails a few times never comes again. */
  override async alarm(): Promise<void> {
    this.alarmAtMs = null;
    try {
      this.node.sweep();
      await this.wake();
      await this.tellWarnings();
    } catch (cause) {
      this.report('what was due could not be done', cause);
    }
    this.rearm();
  }

  /** What else is due when the alarm comes. */
  protected async wake(): Promise<void> {}

  /** When `wake` is due, beside what the budget needs; null: not. */
  protected otherWakeAtMs(): number | null {
    return null;
  }

  /** Sets the one alarm to what is due first. One that is set earlier stands: it looks again when it comes. */
  protected rearm(): void {
    if (this.alarmAtMs === undefined) return;
    const due = [this.node.wakeAtMs(), this.otherWakeAtMs(), this.untoldAtMs()].filter((at) => at !== null);
    if (due.length === 0) return;
    const atMs = Math.max(Math.min(...due), this.nowMs() + 1);
    if (this.alarmAtMs !== null && this.alarmAtMs <= atMs) return;
    this.alarmAtMs = atMs;
    this.ctx.storage.setAlarm(atMs).catch((cause: unknown) => {
      this.alarmAtMs = null;
      this.report('the alarm could not be set', cause);
    });
  }

  /* ---------------------------------------------------------------- for those below */

  /**
   * Puts into the org's log that a window is nearly used up: 90 % of its cap is spent. Once per window and
   * cap; where it fails it comes again, and the same entry twice is one.
   */
  protected abstract recordWarning(name: NodeName, mark: BudgetWarning): Promise<void>;

  private telling = false;

  private async tellWarnings(): Promise<void> {
    const name = this.store.name();
    if (name === null || this.telling) return;
    this.telling = true;
    try {
      for (let marks = this.store.untoldWarnings(); marks.length > 0; marks = this.store.untoldWarnings()) {
        for (const mark of marks) {
          await this.recordWarning(name, mark);
          this.store.markTold(mark);
        }
      }
    } catch (cause) {
      this.report('a warning could not be recorded; it is tried again', cause);
    } finally {
      this.telling = false;
      this.rearm();
    }
  }

  private untoldAtMs(): number | null {
    return this.store.untoldWarnings().length === 0 ? null : this.nowMs() + REPEAT_MS;
  }

  /** Plans that were held by a cap of this node may go on. In the turn of what it follows from. */
  protected moreMoney(_name: NodeName): void {}

  protected nowMs(): number {
    return Date.now();
  }

  protected report(problem: string, cause: unknown): void {
    console.error(
      JSON.stringify({
        level: 'error',
        node: this.store.name(),
        problem,
        cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      }),
    );
  }
}
