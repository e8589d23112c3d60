/** A receiver of notifications inside workerd: what arrived, in order, and what it answers. */
import { ulid } from 'ulid';
import type { Principal } from '../../src/core/principal.ts';
import type { PushOrder, PushStatus } from '../../src/core/push/push-config.ts';
import { RECEIVERS } from '../worker/test-worker.ts';
import { callerOf, pause, planOf } from './plan-support.ts';

export interface Arrived {
  readonly path: string;
  readonly headers: Headers;
  readonly id: string;
  readonly sequence: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of two wires, compared member by member.
  readonly body: any;
}

export interface TestReceiver {
  readonly url: string;
  readonly arrived: Arrived[];
  /** Said from now on; called with the number of the arrival, from 1. */
  answer: (nth: number, arrived: Arrived) => Promise<Response> | Response;
}

export const answered = (status: number, headers: Record<string, string> = {}): Response => new Response(null, { status, headers });

export function openReceiver(): TestReceiver {
  const host = `${ulid().toLowerCase()}.example.com`;
  const receiver: TestReceiver = { url: `https://${host}/hook?key=in-the-query`, arrived: [], answer: () => answered(204) };
  RECEIVERS.set(host, async (url, init) => {
    const headers = new Headers(init.headers);
    const text = String(init.body);
    const arrival: Arrived = {
      path: new URL(url).pathname,
      headers,
      id: headers.get('idempotency-key') ?? '',
      sequence: Number(headers.get('x-a2a-notification-sequence')),
      text,
      body: JSON.parse(text),
    };
    receiver.arrived.push(arrival);
    return receiver.answer(receiver.arrived.length, arrival);
  });
  return receiver;
}

export async function register(
  principal: Principal,
  planId: string,
  order: Partial<PushOrder> & Pick<PushOrder, 'target'>,
): Promise<PushStatus> {
  const made = await planOf(principal, planId).setPush({ wire: '1.0', by: callerOf(principal).actor, ...order });
  if (made?.ok !== true) throw new Error(JSON.stringify(made));
  return made.value;
}

export async function pushesOf(principal: Principal, planId: string): Promise<readonly PushStatus[]> {
  const pushes = await planOf(principal, planId).pushes();
  if (pushes === null) throw new Error('there is no such plan');
  return pushes;
}

/** Looks at the receiver alone, so that the plan is not woken by being looked at. */
export async function untilArrived(receiver: TestReceiver, holds: (arrived: readonly Arrived[]) => boolean, ms = 15_000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!holds(receiver.arrived)) {
    if (performance.now() > deadline)
      throw new Error(
        `${receiver.arrived.length} arrived: ${receiver.arrived.map(({ id, text }) => `${id} ${text.slice(0, 120)}`).join('\n')}`,
      );
    await pause(10);
  }
}

/** Reads the plan until one of its webhooks is as asked. */
export async function untilPush(
  principal: Principal,
  planId: string,
  holds: (status: PushStatus) => boolean,
  id = planId,
): Promise<PushStatus> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const status = (await pushesOf(principal, planId)).find((each) => each.id === id);
    if (status !== undefined && holds(status)) return status;
    if (performance.now() > deadline) throw new Error(`the webhook did not get there: ${JSON.stringify(status)}`);
    await pause(20);
  }
}
