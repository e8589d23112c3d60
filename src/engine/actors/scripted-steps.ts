import type { ScriptStep } from '../../core/action/script.ts';
import { stepIdOf, stepKind } from '../../core/action/script.ts';
import { SCRIPTED_STEPS } from '../../core/action/script-check.ts';
import type { TemplateScope } from '../../core/action/template.ts';
import { resolveTemplates } from '../../core/action/template.ts';
import type { JsonValue } from '../../core/json.ts';
import type { ContentPart, Proposal, ProposedArtifact, ProposedCall, StepResult } from '../../core/plan/proposal.ts';
import type { Result } from '../../core/result.ts';
import { err, ok } from '../../core/result.ts';
import type { Actor, ActorContext } from './actor.ts';

/**
 * The actor `scripted/steps`: walks through the steps that the action itself holds, in order.
 *
 * It understands no language: guidance does not change the script, and a phase that is run again runs the same steps. The cursor is the
 * index of the step that comes next. An action without steps for a phase has nothing to do in it.
 */
export const scriptedSteps: Actor = {
  name: SCRIPTED_STEPS,
  propose: (context) => Promise.resolve(proposeStep(context)),
  immediateReply(context) {
    const step = context.action.execute?.[0];
    if (step?.reply === undefined) return null;
    const text = resolveTemplates(step.reply, scopeOf(context));
    return text.ok ? asText(text.value) : null;
  },
};

function proposeStep(context: ActorContext): Proposal {
  const { phase, action, cursor, last } = context;
  const steps = (phase === 'strategize' ? action.strategize : action.execute) ?? [];
  const index = cursor ?? 0;
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index > steps.length) {
    return { kind: 'fail', message: `the script cannot go on: ${JSON.stringify(cursor)} is not a place in its ${steps.length} steps` };
  }
  const previous = steps[index - 1];
  if (previous !== undefined && last !== null && last.status !== 'succeeded' && (previous.on_refused ?? 'fail') === 'fail') {
    const reason = last.reason ?? 'no reason was given';
    return { kind: 'fail', message: `step '${stepIdOf(previous, phase, index - 1)}' ${verbOf(last.status)}: ${reason}` };
  }
  const step = steps[index];
  if (step === undefined) return { kind: 'done' };
  const stepId = stepIdOf(step, phase, index);
  const proposal = proposalOf(step, stepId, scopeOf(context), index + 1);
  return proposal.ok ? proposal.value : { kind: 'fail', message: `step '${stepId}': ${proposal.error}` };
}

function verbOf(status: 'failed' | 'refused'): string {
  return status === 'failed' ? 'failed' : 'was refused';
}

/** The step with its templates filled, as a proposal; an error names the template that has no value. */
function proposalOf(step: ScriptStep, stepId: string, scope: TemplateScope, cursor: number): Result<Proposal, string> {
  const kind = stepKind(step);
  // A step was checked to be JSON when the action was added.
  const filled = resolveTemplates(step[kind] as unknown as JsonValue, scope);
  if (!filled.ok) return filled;
  const body = { ...step, [kind]: filled.value } as ScriptStep;
  switch (kind) {
    case 'say':
    case 'reply':
      // Whoever makes a plan of a replying action (by plan/use, say) gets the text as a message of the plan.
      return ok({ kind: 'say', stepId, text: asText(filled.value), cursor });
    case 'ask':
      return ok({ kind: 'ask', stepId, question: asText(filled.value), cursor });
    case 'decide':
      return body.decide === undefined
        ? unreadable(kind)
        : ok({ kind: 'decide', stepId, decision: decisionOf(body.decide, step.confidence), cursor });
    case 'call':
      return body.call === undefined ? unreadable(kind) : callsOf([{ ...body.call, ...pick(step, ['cost_usd']) }]);
    case 'calls':
      return body.calls === undefined ? unreadable(kind) : callsOf(body.calls);
    case 'artifact':
      return body.artifact === undefined
        ? unreadable(kind)
        : ok({ kind: 'artifact', stepId, artifact: artifactOf(body.artifact, stepId), cursor });
  }

  function callsOf(calls: NonNullable<ScriptStep['calls']>): Result<Proposal, string> {
    const proposed = calls.map((call) => proposedCall(call, step.confidence));
    return ok({ kind: 'calls', stepId, calls: proposed, onRefused: step.on_refused ?? 'fail', cursor });
  }
}

function unreadable(kind: string): Result<Proposal, string> {
  return err(`${kind} cannot be read`);
}

function proposedCall(call: NonNullable<ScriptStep['calls']>[number], stepConfidence: number | undefined): ProposedCall {
  const confidences = [call.confidence, stepConfidence].filter((value) => value !== undefined);
  return {
    tool: call.tool,
    arguments: call.arguments ?? {},
    ...(call.cost_usd === undefined ? {} : { declaredCostUsd: call.cost_usd }),
    ...(confidences.length === 0 ? {} : { statedConfidence: Math.min(...confidences) }),
  };
}

function decisionOf(
  decide: NonNullable<ScriptStep['decide']>,
  confidence: number | undefined,
): Extract<Proposal, { kind: 'decide' }>['decision'] {
  return {
    type: decide.type,
    question: asText(decide.question),
    chosen: asText(decide.chosen),
    alternatives: (decide.alternatives ?? []).map(asText),
    rationale: asText(decide.rationale ?? ''),
    ...(confidence === undefined ? {} : { statedConfidence: confidence }),
  };
}

function artifactOf(artifact: NonNullable<ScriptStep['artifact']>, stepId: string): ProposedArtifact {
  const { id, name, description, append, last_chunk } = artifact;
  return {
    artifactId: asText(id ?? stepId),
    ...(name === undefined ? {} : { name: asText(name) }),
    ...(description === undefined ? {} : { description: asText(description) }),
    parts: partsOf(artifact),
    ...(append === undefined ? {} : { append }),
    ...(last_chunk === undefined ? {} : { lastChunk: last_chunk }),
  };
}

function partsOf({ text, data, parts }: NonNullable<ScriptStep['artifact']>): readonly ContentPart[] {
  if (text !== undefined) return [{ kind: 'text', text: asText(text) }];
  if (data !== undefined) return [{ kind: 'data', data }];
  return (parts ?? []).map((part): ContentPart => {
    const common = {
      ...(part.media_type === undefined ? {} : { mediaType: asText(part.media_type) }),
      ...(part.filename === undefined ? {} : { filename: asText(part.filename) }),
    };
    if (part.text !== undefined) return { ...common, kind: 'text', text: asText(part.text) };
    if (part.url !== undefined) return { ...common, kind: 'url', url: asText(part.url) };
    if (part.raw !== undefined) return { ...common, kind: 'raw', base64: asText(part.raw) };
    return { ...common, kind: 'data', data: part.data ?? null };
  });
}

/** Where a text is needed, a template of one value gives that value as text: JSON unless it is text already. */
function asText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function scopeOf(context: ActorContext): TemplateScope {
  return { arguments: context.arguments, input: context.input, results: resultsOf(context) };
}

/** A batch of one has a list as its result, like any batch, so that `${steps.x.result.0}` does not depend on how many calls it has. */
function resultsOf({ action, results }: ActorContext): ReadonlyMap<string, StepResult> {
  const batchesOfOne = (action.execute ?? []).filter((step) => step.id !== undefined && step.calls?.length === 1);
  if (batchesOfOne.length === 0) return results;
  const adapted = new Map(results);
  for (const { id = '' } of batchesOfOne) {
    const result = results.get(id);
    if (result !== undefined) adapted.set(id, { ...result, value: [result.value] });
  }
  return adapted;
}

function pick<T extends object, K extends keyof T>(value: T, keys: readonly K[]): Partial<Pick<T, K>> {
  const picked: Partial<Pick<T, K>> = {};
  for (const key of keys) if (value[key] !== undefined) picked[key] = value[key];
  return picked;
}
