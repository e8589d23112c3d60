import * as z from 'zod';
import type { JsonObject, JsonValue } from '../json.ts';
import { isToolName } from '../names.ts';
import { DECISION_TYPES } from '../plan/proposal.ts';

/**
 * The steps of a script (design section 12): what the actor `scripted/steps` walks through.
 *
 * Promise: a parsed step does exactly one thing, has no member that this file does not know, and names only tools that can exist.
 */

/** The things a step can do; each step has exactly one of these members. */
export const STEP_KINDS = ['decide', 'call', 'calls', 'say', 'reply', 'ask', 'artifact'] as const;

export type StepKind = (typeof STEP_KINDS)[number];

export const MAX_STEPS_PER_PHASE = 500;

/** Calls in one batch. */
export const MAX_CALLS_PER_STEP = 200;

const MAX_TEXT_CHARACTERS = 20_000;

/** Text that says something, at most `max` characters. */
export function nonBlankText(max: number): z.ZodString {
  return z.string('must be text').max(max, `must have at most ${max} characters`).regex(/\S/, 'must not be blank');
}

/** Any object. That all of it is JSON has been checked before, for the document as a whole. */
export const AnyObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
);

const AnyJson = z.custom<JsonValue>((value) => value !== undefined, 'is missing');

/** Ids cannot hold '[', so that the ids which unnamed steps get (`execute[2]`) never meet them. */
const StepId = z
  .string('must be text')
  .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, 'must have 1 to 64 letters, digits, "_" or "-", and begin with a letter or "_"');

const CostUsd = z
  .number('must be a number of USD')
  .min(0, 'must not be negative')
  .max(1_000_000, 'must be at most 1000000')
  .refine((value) => Number(value.toFixed(6)) === value, 'must have at most 6 decimals');

const StatedConfidence = z.number('must be a number').min(0, 'must be from 0 to 1').max(1, 'must be from 0 to 1');

const ToolName = z
  .string('must be the name of a tool')
  .refine(isToolName, 'must be the name of a tool: letters, digits, "_", ".", "/", ":", "-"');

const OneCall = z.strictObject({ tool: ToolName, arguments: z.exactOptional(AnyObject) }, 'must be an object with a tool');

const BatchCall = z.strictObject(
  {
    tool: ToolName,
    arguments: z.exactOptional(AnyObject),
    cost_usd: z.exactOptional(CostUsd),
    confidence: z.exactOptional(StatedConfidence),
  },
  'must be an object with a tool',
);

const Decide = z.strictObject({
  type: z.enum(DECISION_TYPES, `must be one of ${DECISION_TYPES.join(', ')}`),
  question: nonBlankText(4000),
  chosen: nonBlankText(4000),
  alternatives: z.exactOptional(z.array(nonBlankText(4000), 'must be a list').max(20, 'must have at most 20 entries')),
  rationale: z.exactOptional(z.string('must be text').max(4000, 'must have at most 4000 characters')),
});

const Part = z
  .strictObject({
    text: z.exactOptional(z.string('must be text')),
    data: z.exactOptional(AnyJson),
    url: z.exactOptional(nonBlankText(4000)),
    raw: z.exactOptional(z.base64('must be base64')),
    media_type: z.exactOptional(nonBlankText(200)),
    filename: z.exactOptional(nonBlankText(500)),
  })
  .superRefine((part, context) => {
    requireExactlyOne(part, ['text', 'data', 'url', 'raw'], context);
  });

const Artifact = z
  .strictObject({
    id: z.exactOptional(nonBlankText(200)),
    name: z.exactOptional(nonBlankText(500)),
    description: z.exactOptional(nonBlankText(4000)),
    parts: z.exactOptional(z.array(Part, 'must be a list').min(1, 'must not be empty').max(50, 'must have at most 50 entries')),
    text: z.exactOptional(z.string('must be text')),
    data: z.exactOptional(AnyJson),
    append: z.exactOptional(z.boolean('must be true or false')),
    last_chunk: z.exactOptional(z.boolean('must be true or false')),
  })
  .superRefine((artifact, context) => {
    requireExactlyOne(artifact, ['parts', 'text', 'data'], context);
  });

export const ScriptStep = z
  .strictObject(
    {
      id: z.exactOptional(StepId),
      decide: z.exactOptional(Decide),
      call: z.exactOptional(OneCall),
      calls: z.exactOptional(
        z
          .array(BatchCall, 'must be a list of calls')
          .min(1, 'must not be empty')
          .max(MAX_CALLS_PER_STEP, `must have at most ${MAX_CALLS_PER_STEP} entries`),
      ),
      say: z.exactOptional(nonBlankText(MAX_TEXT_CHARACTERS)),
      reply: z.exactOptional(nonBlankText(MAX_TEXT_CHARACTERS)),
      ask: z.exactOptional(nonBlankText(MAX_TEXT_CHARACTERS)),
      artifact: z.exactOptional(Artifact),
      cost_usd: z.exactOptional(CostUsd),
      confidence: z.exactOptional(StatedConfidence),
      on_refused: z.exactOptional(z.enum(['fail', 'continue'], 'must be "fail" or "continue"')),
    },
    'must be an object',
  )
  .superRefine((step, context) => {
    if (!requireExactlyOne(step, STEP_KINDS, context)) return;
    if (step.cost_usd !== undefined && step.call === undefined) {
      const message = step.calls ? 'in a batch the cost stands at each call' : 'only a call has a cost';
      context.addIssue({ code: 'custom', path: ['cost_usd'], message });
    }
    if (step.confidence !== undefined && !step.call && !step.calls && !step.decide) {
      context.addIssue({ code: 'custom', path: ['confidence'], message: 'only decisions and calls have a confidence' });
    }
    if (step.on_refused !== undefined && (step.say !== undefined || step.reply !== undefined || step.artifact !== undefined)) {
      context.addIssue({ code: 'custom', path: ['on_refused'], message: 'nothing can refuse this step' });
    }
  });
export type ScriptStep = z.infer<typeof ScriptStep>;

export const ScriptSteps = z
  .array(ScriptStep, 'must be a list of steps')
  .max(MAX_STEPS_PER_PHASE, `must have at most ${MAX_STEPS_PER_PHASE} steps`);

/** What a parsed step does. */
export function stepKind(step: ScriptStep): StepKind {
  const kind = STEP_KINDS.find((candidate) => step[candidate] !== undefined);
  if (kind === undefined) throw new TypeError('a parsed step does one thing');
  return kind;
}

/** The name of a step in results and messages: its id, or its place (`execute[2]`). */
export function stepIdOf(step: ScriptStep, phase: 'strategize' | 'execute', index: number): string {
  return step.id ?? `${phase}[${index}]`;
}

function requireExactlyOne<T extends object>(value: T, members: readonly (keyof T & string)[], context: z.RefinementCtx<T>): boolean {
  const present = members.filter((member) => value[member] !== undefined);
  if (present.length === 1) return true;
  const found = present.length === 0 ? 'it has none' : `it has ${present.join(' and ')}`;
  context.addIssue({ code: 'custom', path: [], message: `must have exactly one of ${members.join(', ')}; ${found}` });
  return false;
}
