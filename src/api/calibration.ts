import * as z from 'zod';
import { RISK_CLASSES } from '../core/tool.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { nameReference, optional } from './schemas.ts';

/** Of nothing, the counts are 0 and the shares null. */
const share = z.object({
  n: z.number(),
  ok: z.number(),
  ok_share: z.number().nullable(),
  mean_confidence: z.number().nullable(),
});

const score = share.extend({
  /** Mean of (confidence − what happened)², what happened being 1 or 0: 0 is perfect, 0.25 is what always saying one half gets. */
  brier: z.number().nullable(),
  /** Ten, from 0 to 1; `to` belongs to the next band, except 1. */
  bands: z.array(share.extend({ from: z.number(), to: z.number() })),
});
export type CalibrationScoreView = z.output<typeof score>;

/** How often what was decided at some confidence went well; what counts as an outcome is said in core/plan/outcomes.ts. */
export const profileCalibration = defineOperation({
  name: '_cleveragents/profile/calibration',
  summary: 'Whether confidence keeps its word: bands of confidence against what really happened, per operation class',
  role: 'viewer',
  params: z.strictObject({
    action: optional(nameReference.meta({ description: 'Only plans of this action' })),
    project: optional(nameReference.meta({ description: 'Only plans on this project' })),
    actor: optional(nameReference.meta({ description: 'Only what this actor proposed' })),
  }),
  result: z.object({
    overall: score,
    /** All six operation classes, from the least risk. */
    classes: z.array(score.extend({ class: z.enum(RISK_CLASSES) })),
    /** The newest decisions count, so many at most. */
    at_most: z.number(),
  }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['automation-profile', 'calibration'], examples: ['', '--project example --action commands'] },
});
