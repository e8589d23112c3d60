import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { count, jsonObject, optional, planId, timestamp } from './schemas.ts';

/** The policy floor of the org: what no profile, action, plan or approval can loosen. */
export const orgPolicyView = z.object({
  /** 0 as long as none was set. */
  version: z.number(),
  digest: z.string(),
  /** `guardrails`, `threshold_minima`, `safety`; what is left out is not bound. */
  policy: jsonObject,
  updated_at: timestamp.nullable(),
  /** Key id. */
  updated_by: z.string().nullable(),
  /** Of set: whether every live plan is bound by it. If not, those that are not are told until they are, and before they act when they wake. */
  done: z.boolean().optional(),
  /** How many live plans have acknowledged. */
  reached: z.number().optional(),
  /** Ids of the live plans that have not. */
  unreached: z.array(planId).optional(),
});
export type OrgPolicyView = z.output<typeof orgPolicyView>;

export const orgPolicyShow = defineOperation({
  name: '_cleveragents/org/policy/show',
  summary: 'The policy floor of the org, which no profile, plan or approval can loosen',
  role: 'viewer',
  params: z.strictObject({}),
  result: orgPolicyView,
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['org', 'policy', 'show'] },
});

export const orgPolicySet = defineOperation({
  name: '_cleveragents/org/policy/set',
  change: { type: 'policy_changed', subject: [], shownBy: '_cleveragents/org/policy/show', recorded: ['version', 'digest', 'policy'] },
  summary: 'Replace the policy floor of the org; it binds new plans and tightens those that are live',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({
    policy: jsonObject.meta({ description: 'The whole floor: guardrails, threshold_minima, safety; {} removes it' }),
    expected_version: optional(count(1e9).meta({ description: 'Refused when the floor in force has another version' })),
  }),
  result: orgPolicyView,
  errors: [...COMMON_ERRORS, 'invalid_state'],
  cli: { command: ['org', 'policy', 'set'], positional: ['policy'], examples: ['floor.json'] },
});
