import * as z from 'zod';
import { HALT_LEVELS } from '../core/plan/plan.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { planId, text, timestamp } from './schemas.ts';

/** The levels whose switch this service has. What another level needs to be named by is a further optional member here. */
const target = {
  level: z.enum(['plan'], 'must be plan').meta({ description: 'What is halted' }),
  plan_id: planId,
};

export const haltView = z.object({
  level: z.enum(['plan']),
  plan_id: planId,
  /** Whether anything is authorised now: false only when no level above is halted either. */
  halted: z.boolean(),
  /** Every switch that is set, the plan's own and those above it. */
  halts: z.array(
    z.object({
      level: z.enum(HALT_LEVELS),
      reason: z.string(),
      /** Grows with each setting and clearing at its level. */
      epoch: z.number(),
      halted_by: z.string(),
      halted_at: timestamp,
    }),
  ),
});
export type HaltView = z.output<typeof haltView>;

const errors = [...COMMON_ERRORS, 'not_found', 'invalid_state'] as const;
const positional = ['level', 'plan_id'];

export const haltSet = defineOperation({
  name: '_cleveragents/halt/set',
  change: {
    type: 'halt_set',
    subject: ['level', 'plan_id', 'session_id', 'reason'],
    shownBy: '_cleveragents/halt/show',
    recorded: ['halted', 'halts'],
    unrecorded: 'goes_ahead',
  },
  summary: 'The kill switch: from its answer on nothing is authorised, free calls included; what was sent settles',
  role: 'operator',
  params: z.strictObject({ ...target, reason: text(2000).meta({ description: 'Why; shown to everybody who looks at the plan' }) }),
  result: haltView,
  errors,
  idempotent: true,
  cli: { command: ['halt', 'set'], positional, examples: ['plan 01HXRCF1ABCDE12345678901AB --reason "pays twice"'] },
});

export const haltClear = defineOperation({
  name: '_cleveragents/halt/clear',
  change: {
    type: 'halt_cleared',
    subject: ['level', 'plan_id', 'session_id'],
    shownBy: '_cleveragents/halt/show',
    recorded: ['halted', 'halts'],
  },
  summary: 'Lift the kill switch: the plan goes on where it stood',
  role: 'approver',
  freshKey: true,
  params: z.strictObject(target),
  result: haltView,
  errors,
  idempotent: true,
  cli: { command: ['halt', 'clear'], positional, examples: ['plan 01HXRCF1ABCDE12345678901AB'] },
});

export const haltShow = defineOperation({
  name: '_cleveragents/halt/show',
  summary: 'Whether anything is halted, at which level, why and by whom',
  role: 'viewer',
  params: z.strictObject(target),
  result: haltView,
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['halt', 'show'], positional },
});
