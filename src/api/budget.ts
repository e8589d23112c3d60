/** Budgets: what is capped, spent and leased at each level, and the caps of org and session (design sections 7 and 10). */
import * as z from 'zod';
import { CAP_WINDOWS } from '../core/budget/window.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { nameReference, optional, planId, sessionId, timestamp, usdAmount } from './schemas.ts';

export const BUDGET_LEVELS = ['org', 'session', 'plan', 'profile'] as const;
export type BudgetLevel = (typeof BUDGET_LEVELS)[number];

/** One cap of a level for one window, in USD. cap = spent + leased + remaining, but for an excess. */
const budgetWindow = z.object({
  window: z.enum(CAP_WINDOWS),
  /** Null: not limited. */
  cap_usd: z.number().nullable(),
  /** Charged, as far as it was told: exact once those below have returned their leases. */
  spent_usd: z.number(),
  /** Of a plan: reserved for calls. Above plans: handed out and not charged, that is reserved there or not used yet. */
  leased_usd: z.number(),
  /** Held for calls that were authorised and are not settled; part of leased. Above plans: as they told it last (`told`), at most leased. */
  reserved_usd: z.number(),
  remaining_usd: z.number().nullable(),
  /** How far spent and leased are above the cap: tools charged more than was reserved, or the cap was lowered. */
  excess_usd: z.number(),
  /** Nothing that costs anything is authorised. */
  exceeded: z.boolean(),
  /** When it was reported as nearly used up, under the cap in force. */
  warned_at: timestamp.nullable(),
});

export const budgetView = z.object({
  level: z.enum(BUDGET_LEVELS),
  /** Org, session, plan or profile. */
  id: z.string(),
  /** The UTC day whose windows these are. */
  day: z.string(),
  windows: z.array(budgetWindow),
  /** Those below that took something, over all days, the biggest first; at most 100. */
  children: z.array(
    z.object({
      level: z.enum(['session', 'plan']),
      id: z.string(),
      spent_usd: z.number(),
      leased_usd: z.number(),
      /** As it was told last (`told`), at most leased. */
      reserved_usd: z.number(),
    }),
  ),
  /** All of them, also those that are not listed. */
  child_count: z.number(),
  /**
   * Above plans: spending by tool and by plan over all days, the biggest first, at most 100 of each. Plans tell it: each writes down all
   * of its own after what it commits, usually within a second, and again later where that failed; `as_of` says how far it was then. The
   * windows hear the same by another way, so while plans work the sums differ by what is on its way; once they rest they are equal.
   */
  told: z
    .object({
      /** Sums over all plans, also those that are not listed. */
      spent_usd: z.number(),
      reserved_usd: z.number(),
      /** Without a tool: what no call accounts for, and a plan's tools after its first 64. */
      tools: z.array(z.object({ tool: z.string().nullable(), spent_usd: z.number(), reserved_usd: z.number() })),
      tool_count: z.number(),
      plans: z.array(
        z.object({ plan_id: z.string(), session_id: z.string(), spent_usd: z.number(), reserved_usd: z.number(), as_of: timestamp }),
      ),
      plan_count: z.number(),
    })
    .optional(),
  /** Of a plan. */
  plan: z
    .object({
      session_id: z.string(),
      profile: z.string(),
      /** The setting that bound the cap; absent without one. */
      cap_source: z.string().optional(),
      granted_usd: z.number(),
      overrun_usd: z.number(),
      /** Charges by the UTC day on which they were reserved: what session and org count. */
      days: z.array(z.object({ day: z.string(), spent_usd: z.number() })),
      /** Exact: the sums are those of the plan. Without a tool: what an executor outside told, what was imported. */
      tools: z.array(z.object({ tool: z.string().nullable(), calls: z.number(), spent_usd: z.number(), reserved_usd: z.number() })),
    })
    .optional(),
});
export type BudgetView = z.output<typeof budgetView>;

/** A UTC day. */
const utcDay = z.iso.date({ error: 'must be a day, for example 2026-11-30' });

const usdCap = usdAmount.nullable();

export const budgetShow = defineOperation({
  name: '_cleveragents/budget/show',
  summary: 'Cap, spent, reserved, leased and remaining of an org, session, plan or profile, by window, by child, by plan and by tool',
  role: 'viewer',
  params: z.strictObject({
    level: z.enum(BUDGET_LEVELS, 'must be org, session, plan or profile').meta({ description: 'Whose budget' }),
    session_id: optional(sessionId),
    plan_id: optional(planId),
    profile: optional(nameReference.meta({ description: 'Name of the automation profile' })),
    day: optional(utcDay.meta({ description: 'UTC day whose windows are shown; today when absent' })),
  }),
  result: budgetView,
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['budget', 'show'], positional: ['level'], examples: ['org', 'plan --plan-id 01HXRCF1ABCDE12345678901AB'] },
});

/**
 * Lowering that of a session is any operator's: it only tightens. Raising or removing a cap lets more be spent, as an approval does, so it
 * needs the right to approve, which no agent's key has. A cap of the org stops all of its plans, as its kill switch does: lowering it needs
 * the right to approve too, raising and removing it is its admins'. The state decides which of them a change is.
 */
export const budgetSet = defineOperation({
  name: '_cleveragents/budget/set',
  change: {
    type: 'budget_caps_changed',
    subject: ['level', 'session_id', 'total_usd', 'monthly_usd', 'daily_usd'],
    shownBy: '_cleveragents/budget/show',
    within: 'budget',
    recorded: ['windows'],
  },
  summary:
    'Set, raise, lower or remove the caps of a session, or (people who approve) of the org; answers when those below have heard of it',
  role: 'operator',
  alternativeRoles: ['approver'],
  freshKey: true,
  params: z.strictObject({
    level: z.enum(['org', 'session'], 'must be org or session').meta({ description: 'Whose caps' }),
    session_id: optional(sessionId),
    total_usd: optional(usdCap.meta({ description: 'Cap on everything ever spent; null removes it' })),
    monthly_usd: optional(usdCap.meta({ description: 'Cap of each month, in UTC; null removes it' })),
    daily_usd: optional(usdCap.meta({ description: 'Cap of each day, in UTC; null removes it' })),
    drop: optional(
      z
        .array(z.enum(CAP_WINDOWS, 'must be total, monthly or daily'))
        .max(CAP_WINDOWS.length)
        .meta({ description: 'Windows whose cap is removed' }),
    ),
  }),
  result: z.object({
    budget: budgetView,
    /** Sessions or plans that may go on under the old cap until their next contact, since they could not be reached. */
    unreached: z.array(z.string()),
    /** Plans that a raised cap may set going and that could not be told; they go on when they are asked to. */
    not_told: z.array(z.string()),
  }),
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  idempotent: true,
  cli: {
    command: ['budget', 'set'],
    positional: ['level'],
    examples: ['org --monthly-usd 100', 'session --session-id s1 --drop total'],
  },
});
