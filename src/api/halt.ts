import * as z from 'zod';
import { HALT_LEVELS } from '../core/plan/plan.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { optional, planId, sessionId, text, timestamp } from './schemas.ts';

/** A session and a plan are named by their ids, the org by the key; an id that the level does not go by is refused. */
const target = {
  level: z
    .enum(HALT_LEVELS, 'must be plan, session or org')
    .meta({ description: 'What is halted: a plan, all plans of a session, all of the org' }),
  plan_id: optional(planId),
  session_id: optional(sessionId),
};

export const haltView = z.object({
  level: z.enum(HALT_LEVELS),
  plan_id: planId.optional(),
  session_id: sessionId.optional(),
  /** Whether anything is authorised now: false only when no level above is halted either. */
  halted: z.boolean(),
  /** Every switch that is set, the own one and those above it. */
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
  /** Of set and clear: whether every live plan has acknowledged. If not, those that have not are told until they have. */
  done: z.boolean().optional(),
  /** How many live plans have acknowledged. */
  reached: z.number().optional(),
  /** Ids of the live plans that have not. */
  unreached: z.array(planId).optional(),
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
    recorded: ['halted', 'halts', 'done', 'unreached'],
    unrecorded: 'goes_ahead',
  },
  summary: 'The kill switch of a plan, a session or the org: once done, nothing is authorised, free calls included; what was sent settles',
  role: 'operator',
  params: z.strictObject({ ...target, reason: text(2000).meta({ description: 'Why; shown to everybody who looks at the plan' }) }),
  result: haltView,
  errors,
  idempotent: true,
  cli: {
    command: ['halt', 'set'],
    positional,
    examples: [
      'plan 01HXRCF1ABCDE12345678901AB --reason "pays twice"',
      'session --session-id nightly --reason "wrong project"',
      'org --reason "a key leaked"',
    ],
  },
});

export const haltClear = defineOperation({
  name: '_cleveragents/halt/clear',
  change: {
    type: 'halt_cleared',
    subject: ['level', 'plan_id', 'session_id'],
    shownBy: '_cleveragents/halt/show',
    recorded: ['halted', 'halts', 'done', 'unreached'],
  },
  summary: 'Lift the kill switch of a plan, a session or the org: the plans go on where they stood',
  role: 'approver',
  freshKey: true,
  params: z.strictObject(target),
  result: haltView,
  errors,
  idempotent: true,
  cli: { command: ['halt', 'clear'], positional, examples: ['plan 01HXRCF1ABCDE12345678901AB', 'org'] },
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
