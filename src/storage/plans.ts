import type { PlanFeedItem, PlanPort, PlanRetirement, Plans, RetireOrder } from '../app/ports.ts';
import { LogDamaged, StorageUnavailable } from '../app/ports.ts';
import { damagedLog, type LogDamage, type LogVerdict } from '../core/plan/chain.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, type Result } from '../core/result.ts';
import { objectName, reachObject as reach } from './objects.ts';

/** What a plan's object offers over RPC. */
type PlanRpc = Omit<PlanPort, 'follow' | 'verify' | 'retire'> & {
  retire(order: RetireOrder): Promise<PlanRetirement | null>;
  verify(org: string, planId: string): Promise<LogVerdict | null>;
  /** Why an object that answers null is no plan: its log was damaged. Null: there is none. */
  damaged(): Promise<LogDamage | null>;
  fetch(request: Request): Promise<Response>;
};

/** Pause before a lost feed is taken up again, with jitter, so that a restarted object is not met by all its followers at once. */
const RECONNECT_MS = 200;
const MAX_RECONNECT_MS = 10_000;

/** The objects of all plans. Asking for one that does not exist makes nothing. */
export function makePlans(namespace: DurableObjectNamespace): Plans {
  return {
    plan(org, planId) {
      // A stub stays broken after its object was reset, so each call takes a new one.
      const open = (): PlanRpc => namespace.getByName(objectName(org, 'plan', planId)) as unknown as PlanRpc;
      // Asked only where there is no plan to answer: whether there was one.
      const unlessDamaged = async <T>(answer: Promise<T | null>): Promise<T | null> => (await answer) ?? (await throwIfDamaged(open));
      const refusedIfDamaged = async <T>(answer: Promise<Result<T, Refusal> | null>): Promise<Result<T, Refusal> | null> =>
        (await answer) ?? (await refusalIfDamaged(open));
      return {
        create: (command) => reach('plans.create', () => open().create(command)),
        command: (command) => refusedIfDamaged(reach('plans.command', () => open().command(command))),
        external: (command) => refusedIfDamaged(reach('plans.external', () => open().external(command))),
        value: (digest) => unlessDamaged(reach('plans.value', () => open().value(digest))),
        read: () => unlessDamaged(reach('plans.read', () => open().read())),
        log: (afterSeq, limit) => reach('plans.log', () => open().log(afterSeq, limit)),
        diff: () => unlessDamaged(reach('plans.diff', () => open().diff())),
        checkpoints: () => unlessDamaged(reach('plans.checkpoints', () => open().checkpoints())),
        verify: () => reach('plans.verify', () => open().verify(org, planId)),
        heads: (options) => reach('plans.heads', () => open().heads(options)),
        retire: (order) => reach('plans.retire', () => open().retire({ ...order, org, planId })),
        setPush: (order) => refusedIfDamaged(reach('plans.setPush', () => open().setPush(order))),
        pushes: () => unlessDamaged(reach('plans.pushes', () => open().pushes())),
        deletePush: (id, by) => refusedIfDamaged(reach('plans.deletePush', () => open().deletePush(id, by))),
        retryPush: (id, sequence, by) => refusedIfDamaged(reach('plans.retryPush', () => open().retryPush(id, sequence, by))),
        wake: () => reach('plans.wake', () => open().wake()),
        follow: (options) => follow(open, options),
      };
    },
  };
}

async function refusalIfDamaged(open: () => PlanRpc) {
  const damage = await reach('plans.damaged', () => open().damaged());
  return damage === null ? null : err(damagedLog(damage));
}

async function throwIfDamaged(open: () => PlanRpc): Promise<null> {
  const damaged = await refusalIfDamaged(open);
  if (damaged !== null) throw new LogDamaged(damaged.error);
  return null;
}

type FollowOptions = Parameters<PlanPort['follow']>[0];

async function follow(open: () => PlanRpc, options: FollowOptions): Promise<AsyncIterable<PlanFeedItem> | null> {
  if (options.signal.aborted) return (async function* () {})();
  const feed = await connect(open, options.afterSeq);
  if (feed === null) return null;
  // Whoever asked may go before the first item is read; the object must not keep a follower that nobody is behind.
  options.signal.addEventListener('abort', feed.stop, { once: true });
  if (options.signal.aborted) feed.stop();
  return deliver(open, feed, options);
}

/** One connection to a plan's feed. What arrives is kept until it is taken. */
interface Feed {
  /** Waits for the next item; null when the connection is over. */
  next(): Promise<PlanFeedItem | null>;
  /** Why it is over: the plan has ended, the connection was lost, or this side ended it. */
  readonly closed: () => 'ended' | 'lost' | 'stopped' | null;
  readonly stop: () => void;
}

/** Null: no such plan. */
async function connect(open: () => PlanRpc, afterSeq: number | null): Promise<Feed | null> {
  const url = afterSeq === null ? 'https://plan/feed' : `https://plan/feed?after=${afterSeq}`;
  const response = await reach('plans.follow', () => open().fetch(new Request(url, { headers: { upgrade: 'websocket' } })));
  if (response.status === 404) return throwIfDamaged(open);
  if (response.status === 409) throw new LogDamaged(damagedLog(await response.json<LogDamage>()));
  const socket = response.webSocket;
  if (socket === null) throw new StorageUnavailable('plans.follow', new Error(`status ${response.status}`));
  return feedOf(socket);
}

function feedOf(socket: WebSocket): Feed {
  const queue: PlanFeedItem[] = [];
  let closed: 'ended' | 'lost' | 'stopped' | null = null;
  let notify = (): void => {};
  const close = (why: 'ended' | 'lost' | 'stopped'): void => {
    closed ??= why;
    try {
      socket.close(1000, 'done');
    } catch {
      // Already closed.
    }
    notify();
  };
  // Listeners come before the socket is accepted: what is sent at once would be lost otherwise.
  socket.addEventListener('message', (event) => {
    if (typeof event.data === 'string') queue.push(JSON.parse(event.data) as PlanFeedItem);
    notify();
  });
  socket.addEventListener('close', (event) => close(event.code === 1000 ? 'ended' : 'lost'));
  socket.addEventListener('error', () => close('lost'));
  socket.accept();
  return {
    async next() {
      for (;;) {
        const item = closed === 'stopped' ? undefined : queue.shift();
        if (item !== undefined) return item;
        if (closed !== null) return null;
        await new Promise<void>((resolve) => {
          notify = resolve;
        });
      }
    },
    closed: () => closed,
    stop: () => close('stopped'),
  };
}

/** Items in the order of the log, each once, over any number of connections. Ends when the plan has ended, on abort, and after `maxMs`. */
async function* deliver(open: () => PlanRpc, first: Feed, { afterSeq, signal, maxMs }: FollowOptions): AsyncGenerator<PlanFeedItem> {
  const deadline = Date.now() + maxMs;
  let seen = afterSeq;
  let feed: Feed | null = first;
  while (feed !== null) {
    const { next, closed, stop } = feed;
    const timer = setTimeout(stop, Math.max(0, deadline - Date.now()));
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    try {
      for (let item = await next(); item !== null; item = await next()) {
        const seq = item.kind === 'snapshot' ? item.snapshot.plan.seq : item.update.seq;
        if (seen !== null && seq <= seen) continue;
        seen = seq;
        yield item;
      }
    } finally {
      clearTimeout(timer);
      stop();
      signal.removeEventListener('abort', stop);
    }
    if (closed() !== 'lost') return;
    feed = await reconnect(open, seen, signal, deadline);
  }
}

/** Takes a lost feed up again. An object that cannot be reached yet is tried again, as long as somebody waits. */
async function reconnect(open: () => PlanRpc, seen: number | null, signal: AbortSignal, deadline: number): Promise<Feed | null> {
  for (let pauseMs = RECONNECT_MS; !signal.aborted && Date.now() < deadline; pauseMs = Math.min(MAX_RECONNECT_MS, pauseMs * 2)) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs * (1 + Math.random())));
    try {
      return await connect(open, seen);
    } catch (cause) {
      if (!(cause instanceof StorageUnavailable)) throw cause;
    }
  }
  return null;
}
