import type { PlanFeedItem, PlanPort, Plans } from '../app/ports.ts';
import { StorageUnavailable } from '../app/ports.ts';
import { objectName, reachObject as reach } from './objects.ts';

/** What a plan's object offers over RPC. */
type PlanRpc = Omit<PlanPort, 'follow'> & { fetch(request: Request): Promise<Response> };

/** Pause before a lost feed is taken up again, with jitter, so that a restarted object is not met by all its followers at once. */
const RECONNECT_MS = 200;

/** The objects of all plans. Asking for one that does not exist makes nothing. */
export function makePlans(namespace: DurableObjectNamespace): Plans {
  return {
    plan(org, planId) {
      // A stub stays broken after its object was reset, so each call takes a new one.
      const open = (): PlanRpc => namespace.getByName(objectName(org, 'plan', planId)) as unknown as PlanRpc;
      return {
        create: (command) => reach('plans.create', () => open().create(command)),
        command: (command) => reach('plans.command', () => open().command(command)),
        read: () => reach('plans.read', () => open().read()),
        log: (afterSeq, limit) => reach('plans.log', () => open().log(afterSeq, limit)),
        diff: () => reach('plans.diff', () => open().diff()),
        verify: () => reach('plans.verify', () => open().verify()),
        wake: () => reach('plans.wake', () => open().wake()),
        follow: (options) => follow(open, options),
      };
    },
  };
}

type FollowOptions = Parameters<PlanPort['follow']>[0];

async function follow(open: () => PlanRpc, options: FollowOptions): Promise<AsyncIterable<PlanFeedItem> | null> {
  const socket = await connect(open, options.afterSeq);
  return socket === null ? null : deliver(open, socket, options);
}

/** Null: no such plan. */
async function connect(open: () => PlanRpc, afterSeq: number | null): Promise<WebSocket | null> {
  const url = afterSeq === null ? 'https://plan/feed' : `https://plan/feed?after=${afterSeq}`;
  const response = await reach('plans.follow', () => open().fetch(new Request(url, { headers: { upgrade: 'websocket' } })));
  if (response.status === 404) return null;
  const socket = response.webSocket;
  if (socket === null) throw new StorageUnavailable('plans.follow', new Error(`status ${response.status}`));
  socket.accept();
  return socket;
}

/** Items in the order of the log, each once, over any number of connections. Ends when the plan has ended, on abort, and after `maxMs`. */
async function* deliver(open: () => PlanRpc, first: WebSocket, { afterSeq, signal, maxMs }: FollowOptions): AsyncGenerator<PlanFeedItem> {
  const deadline = Date.now() + maxMs;
  let seen = afterSeq;
  let socket: WebSocket | null = first;
  while (socket !== null) {
    const lost: boolean = yield* drain(socket, signal, deadline, (item) => {
      const seq = item.kind === 'snapshot' ? item.snapshot.plan.seq : item.update.seq;
      if (seen !== null && seq <= seen && item.kind === 'update') return false;
      seen = seq;
      return true;
    });
    if (!lost || signal.aborted || Date.now() >= deadline) return;
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS * (1 + Math.random())));
    socket = await connect(open, seen);
  }
}

/** Yields what one connection brings. Answers true if it was lost while the plan may go on. */
async function* drain(
  socket: WebSocket,
  signal: AbortSignal,
  deadline: number,
  isNew: (item: PlanFeedItem) => boolean,
): AsyncGenerator<PlanFeedItem, boolean> {
  const queue: PlanFeedItem[] = [];
  let closed: 'ended' | 'lost' | 'stopped' | null = null;
  let notify = (): void => {};
  const wake = (): void => notify();
  socket.addEventListener('message', (event) => {
    if (typeof event.data === 'string' && event.data !== 'pong') queue.push(JSON.parse(event.data) as PlanFeedItem);
    wake();
  });
  socket.addEventListener('close', (event) => {
    closed ??= event.code === 1000 ? 'ended' : 'lost';
    wake();
  });
  socket.addEventListener('error', () => {
    closed ??= 'lost';
    wake();
  });
  const stop = (): void => {
    closed ??= 'stopped';
    wake();
  };
  signal.addEventListener('abort', stop);
  const timer = setTimeout(stop, Math.max(0, deadline - Date.now()));
  try {
    for (;;) {
      const item = queue.shift();
      if (item !== undefined) {
        if (isNew(item)) yield item;
        continue;
      }
      if (closed !== null) return closed === 'lost';
      if (signal.aborted) return false;
      await new Promise<void>((resolve) => {
        notify = resolve;
      });
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    try {
      socket.close(1000, 'done');
    } catch {
      // Already closed.
    }
  }
}
