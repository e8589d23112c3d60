import { DurableObject } from 'cloudflare:workers';
import type {
  AuditStore,
  BudgetRef,
  Budgets,
  HeadsQuery,
  OrgLog,
  OutcomeStore,
  OutsideCommand,
  PlanDiff,
  PlanFeedItem,
  PlanHeads,
  PlanIndex,
  PlanRetirement,
  Projects,
  PushParts,
  RetireOrder,
} from '../app/ports.ts';
import type { AuditKeys } from '../core/audit/ed25519.ts';
import { signHead } from '../core/audit/head.ts';
import type { Recall, RecallReply } from '../core/budget/protocol.ts';
import type { JsonValue } from '../core/json.ts';
import { damagedLog, type LogDamage, type LogVerdict } from '../core/plan/chain.ts';
import { checkpointsOf, type PlanCheckpoints } from '../core/plan/checkpoint.ts';
import type { Command, CreateCommand, Traced } from '../core/plan/commands.ts';
import { type Decided, decide } from '../core/plan/decide.ts';
import type { LogRow } from '../core/plan/events.ts';
import { evolve } from '../core/plan/evolve.ts';
import type { ExternalAnswers, ExternalCommand } from '../core/plan/external/commands.ts';
import { nextTask } from '../core/plan/next-task.ts';
import type { CallDecision } from '../core/plan/outcomes.ts';
import { type ActorRef, haltOf, type Plan } from '../core/plan/plan.ts';
import { type PlanSnapshot, type PlanUpdate, snapshotOf, updateOf } from '../core/plan/snapshot.ts';
import type { DecideContext, MoneyAbove } from '../core/plan/work.ts';
import type { PushOrder, PushStatus } from '../core/push/push-config.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { outsideFactsOf } from '../engine/outside-facts.ts';
import { PlanWorkspace } from '../engine/plan-workspace.ts';
import { type EngineParts, HALTED, type PlanHost, runPlan } from '../engine/run-plan.ts';
import { HaltWatch, UNHEARD_PAUSE_MS, type WatchPorts } from './plan/halt-watch.ts';
import { HeadReporter } from './plan/head-reporter.ts';
import { HeadStore } from './plan/head-store.ts';
import { KeyMemory } from './plan/key-memory.ts';
import { auditRowOf, indexRowOf, outcomeRowOf, spendOf } from './plan/outbox-rows.ts';
import { PlanLeases } from './plan/plan-leases.ts';
import { PlanStore } from './plan/plan-store.ts';
import { PushDesk } from './plan/push-desk.ts';
import { retirePlan } from './plan/retirement.ts';
import { isSound, lastReadable, openLog, readableRows, verifyLog } from './plan/verify-log.ts';
import { sha256 } from './sha256.ts';

/** What the object needs from the rest of the deployment. */
export interface PlanObjectParts {
  readonly index: PlanIndex;
  readonly audit: AuditStore;
  readonly auditKeys: AuditKeys;
  readonly outcomes: OutcomeStore;
  readonly projects: Projects;
  readonly budgets: Budgets;
  readonly orgLog: OrgLog;
  readonly halts: WatchPorts['halts'];
  readonly floors: WatchPorts['floors'];
  readonly toolbox: EngineParts['toolbox'];
  readonly findActor: EngineParts['findActor'];
  readonly push: PushParts;
}

/** Steps run for so long in one alarm; the next alarm goes on. */
const WORK_MS = 10_000;

/** If the process dies, the plan is looked at again after this; alarms of one object never overlap, so a long call is not doubled. */
const WATCHDOG_MS = 5_000;

const FLUSH_RETRY_MS = 5_000;

/** While the loop runs the leases are looked at so often. */
const RESTING_MS = 2_000;
const FLUSH_BATCH = 200;

/** A refusal says what is left, so few rounds are needed; a plan that others outrun again and again is told to come back. */
const MAX_MONEY_ROUNDS = 16;

const ASKED_NOBODY = { refused: null, isUnreachable: false, isLimited: null } as const;

/** A plan that is run here tries for so long to reach the budgets above it. */
const BUSY_MS = 60_000;

type PlanDecision = Pick<Decided, 'result' | 'answer' | 'lack'>;

/** While a plan works, its head is signed after so many rows; whenever it rests, at once. */
const SIGN_EVERY = 64;

/**
 * One plan: isolated, single-writer, asleep while it waits (design sections 1 and 3).
 *
 * Promise: a command is decided and committed in one synchronous transaction; what it opened is done by the alarm loop; whatever was
 * acknowledged survives a crash at any point, and no step of a script is performed twice.
 */
export abstract class PlanObjectBase<Env = unknown> extends DurableObject<Env> implements PlanHost {
  readonly sha256 = sha256;
  private readonly store: PlanStore;
  private readonly headStore: HeadStore;
  private readonly keys: KeyMemory;
  /** Null while there is no plan here, and where the log was damaged: a plan whose log cannot be trusted acts on nothing. */
  private current: Plan | null;
  private damage: LogDamage | null;
  private workspace: PlanWorkspace | null = null;
  private abort = new AbortController();
  private readonly leases: PlanLeases;
  private readonly watch = new HaltWatch(
    {
      plan: () => this.current,
      execute: (command) => this.executeWithMoney(command),
      flushedSeq: () => this.store.flushedSeq(),
      report: (problem, cause) => this.report(problem, cause),
    },
    () => this.parts(),
  );
  private readonly headReporter = new HeadReporter({
    sql: this.ctx.storage.sql,
    orgLog: () => this.parts().orgLog,
    nowMs: () => this.nowMs(),
    report: (problem, cause) => this.report(problem, cause),
  });
  private readonly push: PushDesk;
  private isWorking = false;
  /** Since when the loop asks for money and nobody answers. */
  private busySinceMs: number | null = null;
  /** The loop is left alone until then, whatever the state says is due. Somebody's command ends the pause. */
  private pausedUntilMs = 0;
  private flushing: Promise<void> | null = null;
  /** After a failure the loop does not try with every step. */
  private flushPausedUntilMs = 0;
  /** What the index was told of the plan's spending; null: not known since the object was loaded. */
  private toldSpend: string | null = null;

  /** Bindings of this deployment; called when something is needed, never in the constructor. */
  protected abstract parts(): PlanObjectParts;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.store = new PlanStore(ctx.storage.sql);
    this.headStore = new HeadStore(ctx.storage.sql);
    this.keys = new KeyMemory(ctx.storage.sql, this.store);
    const { plan: opened, damage } = openLog(this.store, this.headStore);
    this.current = opened;
    this.damage = damage;
    this.leases = new PlanLeases(
      {
        sql: ctx.storage.sql,
        transact: (write) => this.ctx.storage.transactionSync(write),
        parent: (org, ref) => this.parts().budgets.node(org, ref),
        nowMs: () => this.nowMs(),
        stepped: () => void this.rearm(),
        report: (problem, cause) => this.report(problem, cause),
      },
      opened,
    );
    this.push = new PushDesk({
      sql: ctx.storage.sql,
      transact: (write) => this.ctx.storage.transactionSync(write),
      plan: () => this.current,
      rows: (afterSeq) => this.store.rows(afterSeq, Number.MAX_SAFE_INTEGER),
      load: (digest) => this.store.json(digest),
      parts: () => this.parts().push,
      nowMs: () => this.nowMs(),
      record: ({ traceId, ...change }, by, write) =>
        this.commit({ type: 'record_push', by, change, ...(traceId === undefined ? {} : { traceId }) }, ASKED_NOBODY, [], write).result,
      stepped: () => void this.rearm(),
      background: (work) => this.ctx.waitUntil(work),
      report: (problem, cause) => this.report(problem, cause),
    });
    const retired = damage === null ? null : this.store.retirement();
    if (retired !== null) this.leases.resume({ org: retired.org, id: retired.planId });
    if (damage !== null) this.damage = closedFor(damage, retired);
    if (damage !== null) this.report('the log of the plan is damaged; nothing is decided on it', damagedLog(damage).message);
    this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'));
    if (retired !== null) void this.ctx.blockConcurrencyWhile(() => this.rearm());
    if (this.current !== null) {
      const plan = this.current;
      // Whoever wakes the object re-arms it: an alarm that was lost must not leave a plan asleep for ever.
      void this.ctx.blockConcurrencyWhile(async () => {
        const alarm = await this.ctx.storage.getAlarm();
        const at = this.wakeAt(plan);
        if (at !== null && (alarm === null || alarm < this.nowMs())) await this.ctx.storage.setAlarm(Math.max(at, this.nowMs()));
      });
    }
  }

  /* ---------------------------------------------------------------- RPC */

  async create(command: CreateCommand): Promise<Result<PlanSnapshot, Refusal>> {
    const result = this.execute(command);
    if (!result.ok) return result;
    await this.flush();
    await this.rearm();
    return this.damage === null ? ok(this.snapshot()) : err(damagedLog(this.damage));
  }

  /** Null: there is no such plan here. */
  async command(command: OutsideCommand): Promise<Result<PlanSnapshot, Refusal> | null> {
    if (this.current === null) return null;
    this.pausedUntilMs = 0;
    const unheard = await this.watch.refusal(command);
    if (unheard !== null) return err(unheard);
    const { result } = await this.decideWithMoney(command);
    await this.flush();
    await this.rearm();
    if (this.damage !== null) return err(damagedLog(this.damage));
    return result.ok ? ok(this.snapshot()) : result;
  }

  /** Answers as soon as the decision is committed: nothing on the way of a call waits for D1. Null: there is no such plan here. */
  async external<C extends ExternalCommand>(command: C): Promise<Result<ExternalAnswers[C['type']], Refusal> | null> {
    if (this.current === null) return null;
    const unheard = await this.watch.refusal(command);
    if (unheard !== null) return err(unheard);
    const { result, answer } = await this.decideWithMoney(this.withFacts(command));
    this.ctx.waitUntil(this.flush().then(() => this.rearm()));
    return result.ok ? ok(answer as ExternalAnswers[C['type']]) : result;
  }

  /** Of a tool that is registered here its arguments say what the call touches. */
  private withFacts(command: ExternalCommand): ExternalCommand {
    if (command.type !== 'authorize') return command;
    const facts = outsideFactsOf(this.parts().toolbox, command.request);
    return facts === null ? command : { ...command, facts };
  }

  /** A budget above wants back what is unused. Answered at once and without a call (design section 10, liveness). Null: no such plan here. */
  async recall(from: BudgetRef, recall: Recall): Promise<RecallReply | null> {
    return this.damage === null || this.damage.retired !== undefined ? this.leases.recalled(from, recall) : null;
  }

  async value(digest: string): Promise<JsonValue | null> {
    return this.current === null ? null : this.store.json(digest);
  }

  async read(): Promise<PlanSnapshot | null> {
    return this.current === null ? null : this.snapshot();
  }

  /** Of a damaged log: what can be read of it. Rows that are long are fewer than were asked for. */
  async log(afterSeq: number, limit: number): Promise<readonly LogRow[] | null> {
    return this.current === null && this.damage === null ? null : [...readableRows(this.store, afterSeq, limit, MAX_PAGE_CHARACTERS)];
  }

  async diff(): Promise<PlanDiff | null> {
    if (this.current === null) return null;
    const { input, diff } = await this.files().diff(this.current);
    return {
      digest: input.digest,
      base: input.base,
      result: input.result,
      files: diff.files.map(({ patch: _patch, ...file }) => file),
      additions: input.additions,
      deletions: input.deletions,
      patch: input.patch,
    };
  }

  async checkpoints(): Promise<PlanCheckpoints | null> {
    return this.current === null ? null : checkpointsOf(this.current);
  }

  async verify(org: string, planId: string): Promise<LogVerdict | null> {
    if (this.current === null && this.damage === null) return null;
    const parts = verifyLog(this.store, { org, planId }, () => ({ plan: this.current, damage: this.damage }));
    for (let part = parts.next(); ; part = parts.next()) {
      if (part.done) return part.value;
      // Whatever else is asked of the plan has its turn in between.
      await scheduler.wait(0);
    }
  }

  /** What is wrong with the log that this object was opened with. Null: nothing, or there is no log. */
  async damaged(): Promise<LogDamage | null> {
    return this.damage;
  }

  /** Null: there is no plan here, or its log is whole. */
  async retire(order: RetireOrder): Promise<PlanRetirement | null> {
    if (this.damage === null) return null;
    const { store, leases } = this;
    const made = retirePlan({ store, leases, transact: (write) => this.ctx.storage.transactionSync(write) }, this.damage, order);
    this.damage = closedFor(this.damage, made);
    this.leases.sweep();
    await this.rearm();
    return made;
  }

  isSound(): boolean {
    return isSound(this.store, this.current);
  }

  async heads({ sign, after }: HeadsQuery): Promise<PlanHeads | null> {
    const plan = this.current;
    if (this.damage !== null) return { ...lastReadable(this.store), signed: this.headStore.list(after), damage: this.damage };
    if (plan === null) return null;
    if (sign) await this.signRow(plan.seq, plan.headHash);
    return { seq: plan.seq, hash: plan.headHash, signed: this.headStore.list(after), damage: null };
  }

  async setPush(order: PushOrder & Traced): Promise<Result<PushStatus, Refusal> | null> {
    return this.changePush(() => this.push.set(order));
  }

  async pushes(): Promise<readonly PushStatus[] | null> {
    return this.current === null ? null : this.push.list();
  }

  async deletePush(id: string, by: ActorRef): Promise<Result<boolean, Refusal> | null> {
    return this.changePush(() => this.push.remove(id, by));
  }

  async retryPush(id: string, sequence: number | null, by: ActorRef): Promise<Result<PushStatus, Refusal> | null> {
    return this.changePush(() => this.push.retry(id, sequence, by));
  }

  private async changePush<T>(change: () => Result<T, Refusal>): Promise<Result<T, Refusal> | null> {
    if (this.current === null) return null;
    const result = change();
    await this.flush();
    await this.rearm();
    return this.damage === null ? result : err(damagedLog(this.damage));
  }

  async wake(): Promise<void> {
    if (this.current === null) return;
    const at = this.wakeAt(this.current);
    if (at !== null && !this.isWorking) await this.ctx.storage.setAlarm(Math.max(at, this.nowMs()));
  }

  /** The feed: a hibernating WebSocket, so that a follower costs nothing while nothing happens. `?after=` resumes behind a row. */
  override async fetch(request: Request): Promise<Response> {
    const plan = this.current;
    if (plan === null) return new Response(null, { status: 404 });
    if (request.headers.get('upgrade') !== 'websocket') return new Response(null, { status: 426 });
    const after = new URL(request.url).searchParams.get('after');
    const updates = after === null ? null : this.updatesAfter(Number(after));
    if (updates !== null && !Array.isArray(updates)) return Response.json(updates, { status: 409 });
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    if (updates === null) send(server, { kind: 'snapshot', snapshot: this.snapshot() });
    else for (const update of updates) send(server, { kind: 'update', update });
    if (plan.terminal) server.close(1000, 'ended');
    return new Response(null, { status: 101, webSocket: client });
  }

  override webSocketClose(socket: WebSocket): void {
    socket.close();
  }

  /* ---------------------------------------------------------------- the loop */

  override async alarm(): Promise<void> {
    if (this.damage?.retired !== undefined) {
      this.leases.sweep();
      await this.rearm();
      return;
    }
    if (this.isWorking || this.current === null) return;
    this.isWorking = true;
    // A long call must not keep money that it does not use, nor what was charged to itself.
    const resting = setInterval(() => {
      this.leases.rest();
      this.push.kick();
    }, RESTING_MS);
    try {
      await this.ctx.storage.setAlarm(this.nowMs() + WATCHDOG_MS);
      this.leases.sweep();
      this.push.kick();
      // What the session and the org say comes before the first effect; where it cannot be read, there is none.
      const isIdle = nextTask(this.current, this.nowMs()).kind === 'sleep';
      const heard = isIdle || (await this.watch.renew());
      this.pausedUntilMs = heard ? ((await runPlan(this, this.engine(), this.files(), WORK_MS)) ?? 0) : this.nowMs() + UNHEARD_PAUSE_MS;
      await this.flush();
    } catch (cause) {
      this.report('the plan loop failed', cause);
    } finally {
      clearInterval(resting);
      this.isWorking = false;
      await this.rearm();
    }
  }

  plan(): Plan | null {
    return this.current;
  }

  /**
   * Decides against the state at this moment and commits in one transaction; there is no wait between reading and writing. What would
   * have to ask a budget above for money is refused instead.
   */
  execute(command: Command): Result<null, Refusal> {
    const decided = this.commit(command, ASKED_NOBODY, []);
    return decided.lack === undefined ? decided.result : this.commit(command, { ...ASKED_NOBODY, isUnreachable: true }, []).result;
  }

  async executeWithMoney(command: Command): Promise<Result<null, Refusal>> {
    const decided = await this.decideWithMoney(command);
    if (decided.lack === undefined) {
      this.busySinceMs = null;
      return decided.result;
    }
    this.busySinceMs ??= this.nowMs();
    // Nobody waits for ever for a budget that does not answer: what is not covered is refused then, and the trail says why.
    if (this.nowMs() - this.busySinceMs < BUSY_MS) return decided.result;
    this.busySinceMs = null;
    return this.execute(command);
  }

  /** As often as money has to be asked for: nothing is held while it is, and each time the decision is made anew from the state of that moment. */
  private async decideWithMoney(command: Command): Promise<PlanDecision> {
    let refused: MoneyAbove['refused'] = null;
    let isLimited: boolean | null = null;
    let tickets: readonly string[] = [];
    for (let round = 1; ; round += 1) {
      const decided = this.commit(command, { refused, isUnreachable: false, isLimited }, tickets);
      this.leases.release(tickets);
      if (decided.lack === undefined || round === MAX_MONEY_ROUNDS) return decided;
      tickets = [];
      const { needMicroUsd, limits } = decided.lack;
      if (limits) {
        isLimited = await this.leases.isLimited();
        if (isLimited === null) return decided;
      }
      const obtained = needMicroUsd === 0 ? null : await this.leases.obtain(needMicroUsd);
      if (obtained?.kind === 'busy') return decided;
      if (obtained?.kind === 'ready') tickets = obtained.tickets;
      if (obtained?.kind === 'refused') refused = { needMicroUsd, refusal: obtained.refusal };
    }
  }

  /** `tickets`: money that was put aside for this decision. `also`: what is written with it. */
  private commit(
    command: Command & Traced,
    above: Omit<MoneyAbove, 'freeMicroUsd'>,
    tickets: readonly string[],
    also: () => void = () => {},
  ): PlanDecision {
    if (this.damage !== null) return { result: err(damagedLog(this.damage)) };
    const before = this.current;
    const now = new Date(Math.max(this.nowMs(), before === null ? 0 : Date.parse(before.updatedAt))).toISOString();
    const money = { ...above, freeMicroUsd: this.leases.freeMicroUsd(tickets) };
    const context = { now, sha256, catalogue: this.parts().toolbox.catalogue, money, ...this.keyed(command, Date.parse(now)) };
    const decided = decide(before, command, context);
    const { rows, plan } = decided;
    if (rows.length === 0 || plan === null) return decided;
    const tooLarge = [...decided.blobs.values()].find((bytes) => bytes.byteLength > MAX_BLOB_BYTES);
    if (tooLarge !== undefined) {
      const message = `a value has ${tooLarge.byteLength} bytes; at most ${MAX_BLOB_BYTES} are kept in one piece`;
      return { result: err({ kind: 'too_large', message, limitBytes: MAX_BLOB_BYTES }) };
    }
    const following = this.leases.follow(plan, tickets);
    this.ctx.storage.transactionSync(() => {
      this.store.append(rows, decided.blobs, plan);
      this.keys.remember(rows);
      this.leases.write(following);
      also();
      if (!this.isWorking) {
        const at = this.wakeAt(plan);
        if (at !== null) void this.ctx.storage.setAlarm(Math.max(at, this.nowMs()));
      }
    });
    this.current = plan;
    this.leases.act(plan, following);
    if (plan.terminal && before?.terminal !== true) this.abort.abort();
    else if (haltOf(plan) !== null && (before === null || haltOf(before) === null)) {
      this.abort.abort(HALTED);
      // Calls made after the halt is cleared listen to this one.
      this.abort = new AbortController();
    }
    this.publish(before, rows);
    if (before !== null) this.push.follow(before);
    if (this.isWorking) this.push.kick();
    if (this.isWorking && this.nowMs() >= this.flushPausedUntilMs) void this.flush();
    return decided;
  }

  /** What the log says of the idempotency key that a command carries. */
  private keyed(command: Command, nowMs: number): Pick<DecideContext, 'keyed'> {
    const key = command.type === 'authorize' && this.current?.external !== undefined ? command.request.idempotencyKey : null;
    return key === null ? {} : { keyed: this.keys.about(key, nowMs) };
  }

  blob(digest: string): Uint8Array | null {
    return this.store.blob(digest);
  }

  nowMs(): number {
    return Date.now();
  }

  breathe(): Promise<void> {
    return scheduler.wait(0);
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  report(problem: string, cause: unknown): void {
    console.error(
      JSON.stringify({
        level: 'error',
        plan_id: this.current?.id,
        problem,
        cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      }),
    );
  }

  /* ---------------------------------------------------------------- inside */

  private snapshot(): PlanSnapshot {
    if (this.current === null) throw new Error('no plan');
    return snapshotOf(this.current, (digest) => this.store.json(digest));
  }

  private engine(): EngineParts {
    const { toolbox, findActor } = this.parts();
    return { toolbox, findActor, project: this.project() };
  }

  private project() {
    const plan = this.current;
    return plan?.project ? this.parts().projects.project(plan.org, plan.project.name) : null;
  }

  private files(): PlanWorkspace {
    this.workspace ??= new PlanWorkspace({ project: this.project(), ownBlob: (digest) => this.store.blob(digest), sha256 });
    return this.workspace;
  }

  /** When this plan has something to do next; now if the outbox is behind. */
  private wakeAt(plan: Plan): number | null {
    const now = this.nowMs();
    const task = nextTask(plan, now);
    const due = task.kind === 'sleep' ? task.atMs : Math.max(now, this.pausedUntilMs);
    const outbox = this.store.flushedSeq() < plan.seq ? now + FLUSH_RETRY_MS : null;
    const at = [due, outbox, this.leases.wakeAtMs, this.push.wakeAtMs(plan.seq)].filter((each) => each !== null);
    return at.length === 0 ? null : Math.min(...at);
  }

  /** Sets the one alarm to what is due next; what is set already is left. While the loop runs, its watchdog stands. */
  private async rearm(): Promise<void> {
    try {
      const alarm = await this.ctx.storage.getAlarm();
      if (this.isWorking) return;
      const now = this.nowMs();
      const at = this.current !== null ? this.wakeAt(this.current) : this.damage?.retired === undefined ? null : this.leases.wakeAtMs;
      if (at === null) {
        if (alarm !== null) await this.ctx.storage.deleteAlarm();
      } else if (alarm !== at && (at > now || alarm === null || alarm > now + 1)) {
        await this.ctx.storage.setAlarm(Math.max(at, now + 1));
      }
    } catch (cause) {
      this.report('the alarm could not be set', cause);
    }
  }

  private publish(before: Plan | null, rows: readonly LogRow[]): void {
    const sockets = this.ctx.getWebSockets();
    if (sockets.length === 0) return;
    let state = before;
    for (const row of rows) {
      const after = evolve(state, row);
      const update = updateOf(state, row, after, (digest) => this.store.json(digest));
      state = after;
      if (update === null) continue;
      for (const socket of sockets) send(socket, { kind: 'update', update });
    }
    if (state?.terminal === true) for (const socket of sockets) socket.close(1000, 'ended');
  }

  /** What is wrong with the log instead, where it cannot be told from its beginning. */
  private updatesAfter(seq: number): readonly PlanUpdate[] | LogDamage {
    const updates: PlanUpdate[] = [];
    let state: Plan | null = null;
    try {
      for (const row of this.store.rows(0, Number.MAX_SAFE_INTEGER)) {
        const after = evolve(state, row);
        const update = row.seq > seq ? updateOf(state, row, after, (digest) => this.store.json(digest)) : null;
        state = after;
        if (update !== null) updates.push(update);
      }
      return updates;
    } catch (cause) {
      this.report('the log of the plan cannot be told', cause);
      return { seq: (state?.seq ?? 0) + 1, problem: 'changed', detail: 'the row cannot be read' };
    }
  }

  /** Brings index, audit trail and outcomes in D1 up to the log; one at a time, and again while there is more. Failures are retried by the alarm. */
  private flush(): Promise<void> {
    this.flushing ??= this.flushAll().finally(() => {
      this.flushing = null;
    });
    return this.flushing;
  }

  /** For good, restarts included: nothing is decided on this log any more. */
  private stopDamaged(damage: LogDamage): void {
    this.store.setDamage(damage);
    this.report('the log of the plan is damaged; nothing is decided on it', damagedLog(damage).message);
    this.damage = damage;
    this.current = null;
    this.abort.abort();
  }

  private async flushAll(): Promise<void> {
    try {
      for (;;) {
        const plan = this.current;
        if (plan === null) return;
        const from = this.store.flushedSeq();
        if (from >= plan.seq) return;
        const rows = [...this.store.rows(from, FLUSH_BATCH)];
        const last = rows.at(-1);
        if (last === undefined) return;
        // The cursor goes by what the rows say of themselves: one in another's place would lead it round and round.
        const misplaced = rows.findIndex((row, at) => row.seq !== from + 1 + at);
        if (misplaced >= 0) {
          this.stopDamaged({
            seq: from + 1 + misplaced,
            problem: 'changed',
            detail: `another row stands where row ${from + 1 + misplaced} belongs`,
          });
          return;
        }
        const { index, audit, outcomes } = this.parts();
        const entries = rows.flatMap((row) => auditRowOf(plan, row) ?? []);
        const judged = rows.flatMap((row) => outcomeRowOf(plan, row, (callId, seq) => this.decisionOf(callId, seq)) ?? []);
        const found = plan.terminal && last.seq === plan.seq ? await this.checkAtEnd(plan) : null;
        const reported = this.headReporter.report(plan, last, () => [...this.store.rows(0, 1)][0], found === null ? null : found.valid);
        // At the same time: whoever sent a command waits for the flush. All may be repeated.
        await Promise.all([entries.length > 0 && audit.append(entries), judged.length > 0 && outcomes.record(judged)]);
        // The object writes the index and nobody else: where that knows more, rows of the log are gone.
        const spend = spendOf(plan);
        const isTold = this.toldSpend === spend.key;
        if (!(await index.upsert(indexRowOf(plan, this.wakeAtForIndex(plan)), isTold ? undefined : spend.told))) {
          this.stopDamaged({ seq: plan.seq + 1, problem: 'truncated', detail: 'the index knows of rows behind the end of the log' });
          return;
        }
        this.toldSpend = spend.key;
        const unreported = await reported;
        if (unreported !== null) throw unreported;
        // Before the cursor moves: after a crash in between the batch comes again, and with it the signature.
        const isDue = !this.isWorking || this.current?.state !== 'running' || last.seq - this.headStore.newestSeq() >= SIGN_EVERY;
        if (isDue) await this.signRow(last.seq, last.hash);
        this.store.setFlushedSeq(last.seq);
        if (found !== null && !found.valid)
          this.stopDamaged({ seq: found.seq, problem: found.problem, detail: 'found when the plan ended' });
      }
    } catch (cause) {
      this.flushPausedUntilMs = this.nowMs() + FLUSH_RETRY_MS;
      this.report('the outbox could not be flushed; it is retried', cause);
    }
  }

  /** The whole log, once more when the plan has ended: nobody may ever ask for it afterwards. Null: it is too long for that. */
  private async checkAtEnd({ org, id, seq }: Plan): Promise<LogVerdict | null> {
    return seq > CHECKED_AT_END_ROWS ? null : this.verify(org, id);
  }

  /**
   * Signs that the log has this row, once, and only if it really is in the log. A deployment that cannot sign goes on working; what it
   * could not sign is signed when somebody asks for the head.
   */
  private async signRow(seq: number, hash: string): Promise<void> {
    const plan = this.current;
    if (plan === null || this.headStore.newestSeq() >= seq) return;
    try {
      const [row] = this.store.rows(seq - 1, 1);
      if (row?.seq !== seq || row.hash !== hash) throw new Error(`row ${seq} of the log is not the one that the plan ends with`);
      const at = new Date(this.nowMs()).toISOString();
      const head = await signHead(this.parts().auditKeys, { v: 1, org: plan.org, plan_id: plan.id, seq, hash, at });
      if (head !== null) this.headStore.add(head);
    } catch (cause) {
      this.report('the head could not be signed', cause);
    }
  }

  /** The last decision of a call before a row; calls are settled soon after they are decided, so this looks back over a few rows. */
  private decisionOf(callId: string, beforeSeq: number): CallDecision | null {
    for (const row of this.store.rowsBefore(beforeSeq)) if (row.type === 'call_decided' && row.data.call.id === callId) return row;
    return null;
  }

  private wakeAtForIndex(plan: Plan): string | null {
    const task = nextTask(plan, this.nowMs());
    const at = task.kind === 'sleep' ? task.atMs : this.nowMs();
    return at === null ? null : new Date(at).toISOString();
  }
}

/** A plan of so many rows is verified when it ends: some milliseconds for a hundred rows. Longer ones are when somebody asks for it. */
const CHECKED_AT_END_ROWS = 2_000;

/** A page of the log ends with the row with which it is this long: far below what a message between objects may hold. */
const MAX_PAGE_CHARACTERS = 2_000_000;

/** Largest value that a plan keeps in one piece; a batch between objects carries it. */
const MAX_BLOB_BYTES = 8 * 1024 * 1024;

function closedFor(damage: LogDamage, retired: PlanRetirement | null): LogDamage {
  return retired === null ? damage : { ...damage, retired: { by: retired.by, at: retired.at } };
}

function send(socket: WebSocket, item: PlanFeedItem): void {
  try {
    socket.send(JSON.stringify(item));
  } catch {
    // The follower is gone; the platform reports its close.
  }
}
