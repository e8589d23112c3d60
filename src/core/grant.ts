import * as z from 'zod';

/** More of exactly one exhausted limit: what a human's approval of a limit gives (design section 12). Amounts in USD, times in seconds. */
export const Grant = z
  .strictObject({
    cost_usd: z.exactOptional(
      z
        .number('must be a number')
        .min(0.000001, 'must be at least 0.000001')
        .max(1_000_000_000, 'must be at most 1000000000')
        .meta({ description: 'Raise the budget by so many USD' }),
    ),
    calls: z.exactOptional(
      z
        .int('must be a whole number')
        .min(1, 'must be at least 1')
        .max(1_000_000, 'must be at most 1000000')
        .meta({ description: 'Allow so many more calls in this step' }),
    ),
    steps: z.exactOptional(
      z
        .int('must be a whole number')
        .min(1, 'must be at least 1')
        .max(1_000_000, 'must be at most 1000000')
        .meta({ description: 'Allow so many more steps' }),
    ),
    seconds: z.exactOptional(
      z
        .number('must be a number')
        .positive('must be more than 0')
        .max(31_536_000, 'must be at most 31536000')
        .meta({ description: 'Allow so many more seconds of work' }),
    ),
    retries: z.exactOptional(
      z
        .int('must be a whole number')
        .min(1, 'must be at least 1')
        .max(1000, 'must be at most 1000')
        .meta({ description: 'Allow so many more retries' }),
    ),
  })
  .refine((grant) => Object.keys(grant).length === 1, 'must hold exactly one of cost_usd, calls, steps, seconds, retries')
  .meta({ description: 'What a limit is raised by: exactly one of the members' });
export type Grant = z.infer<typeof Grant>;
