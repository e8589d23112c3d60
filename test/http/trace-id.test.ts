/** Which trace a request is recorded under: its own, where it brings one. */
import { describe, expect, it } from 'vitest';
import type { OutsideCommand, PlanPort } from '../../src/app/ports.ts';
import type { Traced } from '../../src/core/plan/commands.ts';
import { traceIdOf } from '../../src/http/trace-id.ts';
import { call, deploy } from './deployment.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

describe('the trace id of a request', () => {
  it.each([
    ['version 00', `00-${TRACE}-${PARENT}-01`],
    ['not sampled', `00-${TRACE}-${PARENT}-00`],
    ['space around it', ` 00-${TRACE}-${PARENT}-01 `],
    ['a later version with more behind', `cc-${TRACE}-${PARENT}-01-what-comes-later`],
  ])('is that of its header: %s', (_, header) => {
    expect(traceIdOf(header)).toBe(TRACE);
  });

  it.each([
    ['none', null],
    ['empty', ''],
    ['no header of that kind', 'hello'],
    ['the version that is none', `ff-${TRACE}-${PARENT}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['a parent of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['upper case', `00-${TRACE.toUpperCase()}-${PARENT}-01`],
    ['too short', `00-${TRACE.slice(1)}-${PARENT}-01`],
    ['without flags', `00-${TRACE}-${PARENT}`],
    ['very long', `00-${TRACE}${'a'.repeat(100_000)}`],
  ])('is a new one where the header is no trace: %s', (_, header) => {
    const made = traceIdOf(header);
    expect(made).toMatch(/^[0-9a-f]{32}$/);
    expect(made).not.toBe(TRACE);
    expect(traceIdOf(header)).not.toBe(made);
  });
});

it('goes with every command that a request gives to a plan, and with no other request', async () => {
  const given: (OutsideCommand & Traced)[] = [];
  const { app, addKey, services } = deploy({
    services: {
      plans: {
        plan: (org, planId) => ({
          ...deploy().services.plans.plan(org, planId),
          command: async (command): ReturnType<PlanPort['command']> => {
            given.push(command);
            return null;
          },
        }),
      },
    },
  });
  const key = await addKey();
  const planId = services.ids.ulid();
  const cancel = (headers: Record<string, string>) => call(app, '_cleveragents/plan/cancel', { plan_id: planId }, { key, headers });
  await cancel({ traceparent: `00-${TRACE}-${PARENT}-01` });
  await cancel({});
  await call(app, 'CancelTask', { id: planId }, { key, headers: { traceparent: `00-${TRACE}-${PARENT}-01`, 'a2a-version': '1.0' } });
  expect(given.map((command) => command.type)).toEqual(['cancel', 'cancel', 'cancel']);
  expect(given.map((command) => command.traceId)).toEqual([TRACE, expect.stringMatching(/^[0-9a-f]{32}$/), TRACE]);
  expect(given[1]?.traceId).not.toBe(TRACE);
});
