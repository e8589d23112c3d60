import type { BudgetCapsAnswer, BudgetCapsChange, BudgetCapsOptions, BudgetNodeView } from '../../app/ports.ts';
import {
  askEnded,
  closeAcknowledged,
  freedAcknowledged,
  nextSweepMs,
  patienceEnded,
  patienceEndsMs,
  recallEnded,
  receiveAsk,
  receiveClose,
  receiveFreed,
  receiveRecall,
  setCaps,
  sweepNode,
} from '../../core/budget/node.ts';
import type { NodeOutput, NodeStep } from '../../core/budget/node-draft.ts';
import { type Caps, isLooserCap, loadNode, type NodeLevel, type NodeState, showNode } from '../../core/budget/node-state.ts';
import { type Ask, type AskAnswer, type Close, type Freed, type Recall, type RecallReply, TIMEOUT_MS } from '../../core/budget/protocol.ts';
import { CAP_WINDOWS, type Day, dayOf, sameWindow } from '../../core/budget/window.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { dueWarnings } from './budget-warning.ts';
import type { NodeName, NodeStore } from './node-store.ts';

/** Whom a node speaks to. */
export interface NodeLinks {
  /** The node above; null for a root. */
  readonly parent: NodeParent | null;
  /** Null: there is no such child. */
  recall(child: string, recall: Recall): Promise<RecallReply | null>;
}

export interface NodeParent {
  ask(child: string, ask: Ask): Promise<AskAnswer>;
  freed(child: string, freed: Freed): Promise<void>;
  close(child: string, close: Close): Promise<void>;
}

export interface NodeRunnerParts {
  readonly level: NodeLevel;
  readonly store: NodeStore;
  links(name: NodeName): NodeLinks;
  nowMs(): number;
  /** One transaction; what it wrote is durable before anything of the step is seen outside. */
  transact(write: () => void): void;
  /** After each step: when it has to be looked at again may have changed. */
  stepped(): void;
  /** A window was found to be nearly used up, for the first time under its cap. The store has the mark. */
  warned(): void;
  /** Those that were held by a cap of this node may get money again: the cap was raised, or its window is a new one. */
  moreMoney(name: NodeName): void;
  report(problem: string, cause: unknown): void;
}

/**
 * Runs a budget node (core/budget) inside an object.
 *
 * Promise: each message is one step: decided from the state of that moment, its rows committed in one transaction, then its outputs sent
 * in order. No step waits for anything. The end of every call that a step sent is reported, also when nobody answered in time, so the
 * node is never stuck; and an ask that waits is answered when its patience ends, whatever happens meanwhile.
 */
export class NodeRunner {
  private readonly parts: NodeRunnerParts;
  private state: NodeState;
  private readonly asks = new Map<string, (answer: AskAnswer) => void>();
  private readonly recalls = new Map<string, (reply: RecallReply) => void>();
  private readonly capCalls = new Map<string, (unreached: readonly string[]) => void>();
  /** Calls of this incarnation; one before it may still be on its way somewhere. */
  private readonly incarnation = crypto.randomUUID();
  private calls = 0;
  private patience: ReturnType<typeof setTimeout> | null = null;

  constructor(parts: NodeRunnerParts) {
    this.parts = parts;
    this.state = loadNode(parts.level, parts.store.rows());
  }

  ask(name: NodeName, child: string, ask: Ask): Promise<AskAnswer> {
    return new Promise((resolve, reject) => {
      const call = this.newCall();
      this.asks.set(call, resolve);
      try {
        this.step(name, receiveAsk(this.state, { call, child, ask }, this.parts.nowMs()));
      } catch (cause) {
        this.asks.delete(call);
        reject(cause);
      }
    });
  }

  recall(name: NodeName, recall: Recall): Promise<RecallReply> {
    return new Promise((resolve, reject) => {
      const call = this.newCall();
      this.recalls.set(call, resolve);
      try {
        this.step(name, receiveRecall(this.state, { call, recall }, this.parts.nowMs()));
      } catch (cause) {
        this.recalls.delete(call);
        reject(cause);
      }
    });
  }

  /** Answers when every holder has heard of it or was not reached. */
  setCaps(
    name: NodeName,
    change: BudgetCapsChange,
    { mayLoosen, again }: BudgetCapsOptions,
  ): Promise<Result<BudgetCapsAnswer, 'would_loosen' | 'would_change'>> {
    const before = this.state.caps;
    const caps = { ...before, ...change };
    if (again === true && CAP_WINDOWS.some((window) => caps[window] !== before[window])) return Promise.resolve(err('would_change'));
    const loosened = CAP_WINDOWS.some((window) => isLooserCap(caps[window], before[window]));
    if (loosened && !mayLoosen) return Promise.resolve(err('would_loosen'));
    return new Promise((resolve, reject) => {
      const call = this.newCall();
      this.capCalls.set(call, (unreached) => resolve(ok({ loosened, caps, unreached })));
      try {
        this.step(name, setCaps(this.state, { call, caps }, this.parts.nowMs()));
        if (loosened) this.parts.moreMoney(name);
      } catch (cause) {
        this.capCalls.delete(call);
        reject(cause);
      }
    });
  }

  /** Acknowledged by returning. */
  freed(name: NodeName, child: string, freed: Freed): void {
    this.step(name, receiveFreed(this.state, { child, freed }, this.parts.nowMs()));
  }

  /** Acknowledged by returning. */
  close(name: NodeName, child: string, close: Close): void {
    this.step(name, receiveClose(this.state, { child, close }, this.parts.nowMs()));
  }

  show(day: Day | null): BudgetNodeView {
    const at = day ?? dayOf(this.parts.nowMs());
    const { caps, children } = showNode(this.state, at);
    const biggestFirst = [...children].sort(
      (one, other) =>
        other.spentMicroUsd + other.leasedMicroUsd - one.spentMicroUsd - one.leasedMicroUsd || (one.child < other.child ? -1 : 1),
    );
    return {
      day: at,
      caps,
      children: biggestFirst.slice(0, MAX_SHOWN_CHILDREN),
      childCount: children.length,
      warnings: this.parts.store.warnings(),
    };
  }

  caps(): Caps {
    return this.state.caps;
  }

  /** When `sweep` is due; null while nothing depends on time. */
  wakeAtMs(): number | null {
    return nextSweepMs(this.state, this.parts.nowMs());
  }

  sweep(): void {
    const name = this.parts.store.name();
    // Nothing was ever stored: nothing can be due.
    if (name !== null) this.step(name, sweepNode(this.state, this.parts.nowMs()));
  }

  /* ---------------------------------------------------------------- inside */

  /** Notes the day; where a window with a cap of its own has begun with it, those that were held by the last one may go on. */
  private followDay(name: NodeName): void {
    const { store } = this.parts;
    const today = dayOf(this.parts.nowMs());
    const before = store.lastDay();
    if (store.name() === null || before === today) return;
    store.setLastDay(today);
    const isNew = CAP_WINDOWS.some((window) => this.state.caps[window] !== null && !sameWindow(window, before ?? today, today));
    if (isNew) this.parts.moreMoney(name);
  }

  private newCall(): string {
    this.calls += 1;
    return `${this.incarnation}.${this.calls}`;
  }

  /** Commit, then send. Nothing is awaited between the state that was decided from and here. */
  private step(name: NodeName, { state, changes, outputs }: NodeStep): void {
    const { store } = this.parts;
    const marks = changes.length === 0 ? [] : dueWarnings(state, store.warnings(), this.parts.nowMs());
    if (changes.length > 0 || marks.length > 0) {
      try {
        this.parts.transact(() => {
          store.write(name, changes);
          for (const mark of marks) store.putWarning(name, mark);
        });
      } catch (cause) {
        store.reload();
        throw cause;
      }
    }
    this.state = state;
    for (const output of outputs) this.send(name, output);
    if (marks.length > 0) this.parts.warned();
    this.followDay(name);
    this.keepPatience(name);
    this.parts.stepped();
  }

  private send(name: NodeName, output: NodeOutput): void {
    switch (output.kind) {
      case 'answer':
        take(this.asks, output.call)?.(output.answer);
        return;
      case 'recall_reply':
        take(this.recalls, output.call)?.(output.reply);
        return;
      case 'caps_set':
        take(this.capCalls, output.call)?.(output.unreached);
        return;
      case 'recall':
        // A child that says it does not exist counts as not reached. It can only be one that lost everything it had: what it used of
        // its lease is not known then, and silence never frees money.
        this.call(
          this.parts.level === 'org' ? TIMEOUT_MS.sessionRecall : TIMEOUT_MS.planRecall,
          () => this.parts.links(name).recall(output.child, output.recall),
          (reply) => this.step(name, recallEnded(this.state, output.call, reply, this.parts.nowMs())),
          () => {},
        );
        return;
      case 'ask': {
        const ended = (answer: AskAnswer | null): void => this.step(name, askEnded(this.state, output.call, answer, this.parts.nowMs()));
        this.call(TIMEOUT_MS.orgAsk, () => this.parent(name).ask(name.id, output.ask), ended, ended);
        return;
      }
      case 'freed': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(name, freedAcknowledged(this.state, output.freed, this.parts.nowMs()));
        };
        this.call(
          TIMEOUT_MS.orgAsk,
          () =>
            this.parent(name)
              .freed(name.id, output.freed)
              .then(() => true as const),
          ended,
          ended,
        );
        return;
      }
      case 'close': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(name, closeAcknowledged(this.state, output.close, this.parts.nowMs()));
        };
        this.call(
          TIMEOUT_MS.orgAsk,
          () =>
            this.parent(name)
              .close(name.id, output.close)
              .then(() => true as const),
          ended,
          ended,
        );
      }
    }
  }

  private parent(name: NodeName): NodeParent {
    const { parent } = this.parts.links(name);
    if (parent === null) throw new Error('a root has nobody above it');
    return parent;
  }

  /** `done` runs once: with the reply, or with null after the timeout or a failure. `late` runs for a reply that comes after that. */
  private call<T>(timeoutMs: number, send: () => Promise<T | null>, done: (reply: T | null) => void, late: (reply: T) => void): void {
    let isOpen = true;
    const end = (reply: T | null): void => {
      try {
        if (isOpen) {
          isOpen = false;
          clearTimeout(timer);
          done(reply);
        } else if (reply !== null) late(reply);
      } catch (cause) {
        this.parts.report('a reply to a budget node could not be taken in', cause);
      }
    };
    const timer = setTimeout(() => end(null), timeoutMs);
    const started = async (): Promise<T | null> => send();
    started().then(end, (cause: unknown) => {
      this.parts.report('a budget node did not reach the other side', cause);
      end(null);
    });
  }

  /** While somebody waits a call is open, so a timer costs nothing. */
  private keepPatience(name: NodeName): void {
    if (this.patience !== null) clearTimeout(this.patience);
    this.patience = null;
    const endsMs = patienceEndsMs(this.state);
    if (endsMs === null) return;
    this.patience = setTimeout(
      () => {
        this.patience = null;
        try {
          this.step(name, patienceEnded(this.state, this.parts.nowMs()));
        } catch (cause) {
          this.parts.report('a budget node could not end the wait of an ask', cause);
        }
      },
      Math.max(1, endsMs - this.parts.nowMs()),
    );
  }
}

/** Children that one answer lists, biggest first. */
export const MAX_SHOWN_CHILDREN = 100;

function take<T>(waiting: Map<string, T>, call: string): T | undefined {
  const found = waiting.get(call);
  waiting.delete(call);
  return found;
}
