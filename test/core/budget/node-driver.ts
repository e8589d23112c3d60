import {
  askEnded,
  closeAcknowledged,
  freedAcknowledged,
  recallEnded,
  receiveAsk,
  receiveClose,
  receiveFreed,
  receiveRecall,
  setCaps,
  sweepNode,
} from '../../../src/core/budget/node.ts';
import type { NodeOutput, NodeStep } from '../../../src/core/budget/node-draft.ts';
import {
  type Account,
  accountKey,
  type Caps,
  loadNode,
  NO_CAPS,
  NO_ROWS,
  type NodeChange,
  type NodeLevel,
  type NodeState,
} from '../../../src/core/budget/node-state.ts';
import type { Ask, AskAnswer, Counts, RecallReply } from '../../../src/core/budget/protocol.ts';

export const NOON = Date.UTC(2026, 10, 3, 12);
export const TODAY = '2026-11-03';

/** One node and a clock; `out` is what the last message made it send, `wrote` what it had to commit before. */
export class NodeDriver {
  state: NodeState;
  nowMs = NOON;
  out: readonly NodeOutput[] = [];
  wrote: readonly NodeChange[] = [];
  private calls = 0;

  constructor(level: NodeLevel, caps: Partial<Caps> = {}) {
    this.state = loadNode(level, { ...NO_ROWS, caps: { ...NO_CAPS, ...caps } });
  }

  /** Answers the call, by which the answer can be found later. */
  ask(child: string, need: number, more: Partial<Ask> & { readonly seen?: Counts } = {}): string {
    this.calls += 1;
    const call = `ask${this.calls}`;
    const counts = this.account(child, more.day ?? TODAY);
    this.take(
      receiveAsk(this.state, { call, child, ask: { day: TODAY, seen: counts, need, want: need, capMicroUsd: null, ...more } }, this.nowMs),
    );
    return call;
  }

  recall(g: number, max: number, call = `recall${this.nowMs}`, aside = false): void {
    const recall = { day: TODAY, g, max, ...(aside ? { aside } : {}) };
    this.take(receiveRecall(this.state, { call, recall }, this.nowMs));
  }

  /** Ends the newest recall that was sent to a child. */
  reply(child: string, reply: Partial<RecallReply> | null): void {
    const call = this.recalls.findLast((each) => each.child === child)?.call ?? -1;
    this.take(recallEnded(this.state, call, reply === null ? null : { day: TODAY, r: 0, s: 0, v: 0, left: 0, ...reply }, this.nowMs));
  }

  above(answer: AskAnswer | null): void {
    this.take(askEnded(this.state, this.asks.at(-1)?.call ?? -1, answer, this.nowMs));
  }

  freed(child: string, r: number, s: number, v = 0, day = TODAY): void {
    this.take(receiveFreed(this.state, { child, freed: { day, r, s, v } }, this.nowMs));
  }

  close(child: string, s: number, v = 0, day = TODAY): void {
    this.take(receiveClose(this.state, { child, close: { day, s, v } }, this.nowMs));
  }

  caps(caps: Partial<Caps>): void {
    this.take(setCaps(this.state, { call: 'caps', caps: { ...NO_CAPS, ...caps } }, this.nowMs));
  }

  sweep(): void {
    this.take(sweepNode(this.state, this.nowMs));
  }

  acknowledgeClose(s: number, v = 0, day = TODAY): void {
    this.take(closeAcknowledged(this.state, { day, s, v }, this.nowMs));
  }

  acknowledgeFreed(r: number, s: number, v: number): void {
    this.take(freedAcknowledged(this.state, { day: TODAY, r, s, v }, this.nowMs));
  }

  crash(): void {
    this.state = loadNode(this.state.level, {
      caps: this.state.caps,
      accounts: this.state.accounts.values(),
      closed: this.state.closed.values(),
      spent: this.state.spent.values(),
      leases: this.state.leases.values(),
    });
  }

  /** What the last message answered to a call. */
  answer(call: string): AskAnswer | undefined {
    return this.out.flatMap((output) => (output.kind === 'answer' && output.call === call ? [output.answer] : []))[0];
  }

  sent<K extends NodeOutput['kind']>(kind: K): readonly Extract<NodeOutput, { kind: K }>[] {
    return this.out.filter((output): output is Extract<NodeOutput, { kind: K }> => output.kind === kind);
  }

  account(child: string, day = TODAY): Counts {
    const { g, r, s, v }: Counts = this.state.accounts.get(accountKey(child, day)) ?? ({ g: 0, r: 0, s: 0, v: 0 } as Account);
    return { g, r, s, v };
  }

  private recalls: readonly Extract<NodeOutput, { kind: 'recall' }>[] = [];
  private asks: readonly Extract<NodeOutput, { kind: 'ask' }>[] = [];

  private take(step: NodeStep): void {
    this.state = step.state;
    this.out = step.outputs;
    this.wrote = step.changes;
    this.recalls = [...this.recalls, ...this.sent('recall')];
    this.asks = [...this.asks, ...this.sent('ask')];
  }
}
