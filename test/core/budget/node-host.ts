import { isDeepStrictEqual } from 'node:util';
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
  type Caps,
  type ClosedAccount,
  loadNode,
  type NodeLevel,
  type NodeState,
  type Spent,
} from '../../../src/core/budget/node-state.ts';
import {
  type Ask,
  type AskAnswer,
  type Close,
  type Freed,
  type LeaseRow,
  type Recall,
  type RecallReply,
  TIMEOUT_MS,
} from '../../../src/core/budget/protocol.ts';
import type { Party } from './network.ts';
import type { World } from './world.ts';

/** Whatever stands below a node and can be recalled. */
export interface Holder extends Party {
  deliverRecall(call: string, recall: Recall, respond: (reply: RecallReply) => void): void;
}

/** A session or org object: rows that survive, a state that does not, and the calls of others that wait. */
export class NodeHost implements Holder {
  readonly id: string;
  readonly level: NodeLevel;
  readonly parent: NodeHost | null;
  readonly children = new Map<string, Holder>();
  incarnation = 0;
  state: NodeState;
  readonly rows = {
    caps: { total: null, monthly: null, daily: null } as Caps,
    accounts: new Map<string, Account>(),
    closed: new Map<string, ClosedAccount>(),
    spent: new Map<string, Spent>(),
    leases: new Map<string, LeaseRow>(),
  };
  private readonly world: World;
  private waiting = new Map<string, { readonly sinceMs: number; readonly respond: (answer: AskAnswer) => void; readonly ask: Ask }>();
  private recalls = new Map<string, (reply: RecallReply) => void>();
  private capCalls = new Map<string, (unreached: readonly string[]) => void>();

  constructor(world: World, id: string, level: NodeLevel, parent: NodeHost | null, caps: Caps) {
    this.world = world;
    this.id = id;
    this.level = level;
    this.parent = parent;
    this.rows.caps = caps;
    this.state = this.load();
    parent?.children.set(id, this);
  }

  deliverAsk(call: string, child: string, ask: Ask, respond: (answer: AskAnswer) => void): void {
    this.step(() => {
      this.waiting.set(call, { sinceMs: this.world.nowMs, respond, ask });
      return receiveAsk(this.state, { call, child, ask }, this.world.nowMs);
    });
  }

  deliverRecall(call: string, recall: Recall, respond: (reply: RecallReply) => void): void {
    this.step(() => {
      this.recalls.set(call, respond);
      return receiveRecall(this.state, { call, recall }, this.world.nowMs);
    });
  }

  deliverFreed(child: string, freed: Freed, acknowledge: () => void): void {
    if (this.step(() => receiveFreed(this.state, { child, freed }, this.world.nowMs))) acknowledge();
  }

  deliverClose(child: string, close: Close, acknowledge: () => void): void {
    if (this.step(() => receiveClose(this.state, { child, close }, this.world.nowMs))) acknowledge();
  }

  deliverCaps(call: string, caps: Caps, done: (unreached: readonly string[]) => void): void {
    this.step(() => {
      this.capCalls.set(call, done);
      return setCaps(this.state, { call, caps }, this.world.nowMs);
    });
  }

  sweep(): void {
    this.step(() => sweepNode(this.state, this.world.nowMs));
  }

  crash(): void {
    this.incarnation += 1;
    this.waiting = new Map();
    this.recalls = new Map();
    this.capCalls = new Map();
    this.state = this.load();
    this.world.crashes += 1;
  }

  waitingSince(): readonly number[] {
    return [...this.waiting.values()].map((each) => each.sinceMs);
  }

  /** Commit, then send; false if the object died before its outputs were seen. */
  private step(transition: () => NodeStep): boolean {
    const { network, random } = this.world;
    if (random.chance(network.faults.crashBefore)) {
      this.crash();
      return false;
    }
    const before = this.state;
    const frozen = this.world.deepChecks ? structuredClone(before) : before;
    const { state, changes, outputs } = transition();
    this.world.judgeGrants(this, before, state);
    if (!isDeepStrictEqual(before, frozen)) throw new Error(`${this.id}: a transition changed the state it was given`);
    for (const change of changes) {
      if (change.table === 'caps') this.rows.caps = change.row;
      else {
        const table = this.table(change.table);
        if (change.row === null) table.delete(change.key);
        else table.set(change.key, change.row);
      }
    }
    this.state = state;
    if (this.world.deepChecks && !isDeepStrictEqual(durable(state), durable(this.load()))) {
      throw new Error(`${this.id}: what is durable in the state is not what was committed`);
    }
    if (random.chance(network.faults.crashAfter)) {
      this.crash();
      this.world.check();
      return false;
    }
    for (const output of outputs) this.send(output);
    this.world.check();
    return true;
  }

  private send(output: NodeOutput): void {
    const { network } = this.world;
    switch (output.kind) {
      case 'answer': {
        const waiting = this.waiting.get(output.call);
        this.waiting.delete(output.call);
        if (waiting === undefined) return;
        if (output.answer.kind === 'refused') this.world.judgeRefusal(this, waiting.ask, output.answer.refusal);
        waiting.respond(output.answer);
        return;
      }
      case 'recall_reply': {
        const respond = this.recalls.get(output.call);
        this.recalls.delete(output.call);
        respond?.(output.reply);
        return;
      }
      case 'caps_set': {
        const done = this.capCalls.get(output.call);
        this.capCalls.delete(output.call);
        done?.(output.unreached);
        return;
      }
      case 'recall': {
        const child = this.children.get(output.child);
        if (child === undefined) throw new Error(`${this.id} recalls from ${output.child}, which it does not have`);
        const name = `${this.id}#${this.incarnation}.${output.call}`;
        network.call<RecallReply>(
          `${this.level}.recall`,
          this,
          child,
          this.level === 'org' ? TIMEOUT_MS.sessionRecall : TIMEOUT_MS.planRecall,
          (respond) => child.deliverRecall(name, output.recall, respond),
          (reply) => this.step(() => recallEnded(this.state, output.call, reply, this.world.nowMs)),
          () => {},
        );
        return;
      }
      case 'ask': {
        const { parent } = this;
        if (parent === null) throw new Error('an org asks nobody');
        const ended = (answer: AskAnswer | null): void => void this.step(() => askEnded(this.state, output.call, answer, this.world.nowMs));
        const name = `${this.id}#${this.incarnation}.${output.call}`;
        network.call<AskAnswer>(
          'session.ask',
          this,
          parent,
          TIMEOUT_MS.orgAsk,
          (respond) => parent.deliverAsk(name, this.id, output.ask, respond),
          ended,
          ended,
        );
        return;
      }
      case 'freed': {
        const { parent } = this;
        if (parent === null) throw new Error('an org returns to nobody');
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(() => freedAcknowledged(this.state, output.freed, this.world.nowMs));
        };
        network.call<true>(
          'session.freed',
          this,
          parent,
          TIMEOUT_MS.orgAsk,
          (respond) => parent.deliverFreed(this.id, output.freed, () => respond(true)),
          ended,
          ended,
        );
        return;
      }
      case 'close': {
        const { parent } = this;
        if (parent === null) throw new Error('an org closes with nobody');
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(() => closeAcknowledged(this.state, output.close, this.world.nowMs));
        };
        network.call<true>(
          'session.close',
          this,
          parent,
          TIMEOUT_MS.orgAsk,
          (respond) => parent.deliverClose(this.id, output.close, () => respond(true)),
          ended,
          ended,
        );
      }
    }
  }

  private load(): NodeState {
    const { caps, accounts, closed, spent, leases } = this.rows;
    return loadNode(this.level, {
      caps,
      accounts: accounts.values(),
      closed: closed.values(),
      spent: spent.values(),
      leases: leases.values(),
    });
  }

  private table(name: 'account' | 'closed' | 'spent' | 'lease'): Map<string, unknown> {
    switch (name) {
      case 'account':
        return this.rows.accounts as Map<string, unknown>;
      case 'closed':
        return this.rows.closed as Map<string, unknown>;
      case 'spent':
        return this.rows.spent as Map<string, unknown>;
      case 'lease':
        return this.rows.leases as Map<string, unknown>;
    }
  }
}

function durable({ caps, accounts, closed, spent, leases }: NodeState) {
  return { caps, accounts, closed, spent, leases };
}
