import type { JsonValue } from '../json.ts';
import type { FieldIssue } from '../refusal.ts';
import type { ScriptStep } from './script.ts';
import { stepKind } from './script.ts';
import { parseTemplate, textsIn } from './template.ts';

/** The actor that walks through an action's own steps; with any other, steps would be ignored without a word. */
export const SCRIPTED_STEPS = 'scripted/steps';

interface Script {
  readonly actor: string;
  readonly strategize?: readonly ScriptStep[];
  readonly execute?: readonly ScriptStep[];
}

/**
 * What is wrong with the steps of an action that one step alone does not show: order, ids, and templates that can never be filled.
 * `argumentNames` is null when the arguments' schema leaves open which there are.
 */
export function findScriptIssues(script: Script, argumentNames: ReadonlySet<string> | null): readonly FieldIssue[] {
  const issues: FieldIssue[] = [...placementIssues(script)];
  /** Kinds of the steps so far, by id: a template can only refer back. */
  const earlier = new Map<string, string>();
  const everyId = new Set(stepsOf(script).flatMap(({ step }) => (step.id === undefined ? [] : [step.id])));
  for (const { step, field } of stepsOf(script)) {
    for (const { path, text } of templatesOf(step, field)) {
      const message = templateIssue(text, earlier, everyId, argumentNames);
      if (message !== null) issues.push({ field: path, message });
    }
    if (step.id === undefined) continue;
    if (earlier.has(step.id)) issues.push({ field: `${field}.id`, message: `another step has the id '${step.id}' already` });
    earlier.set(step.id, stepKind(step));
  }
  return issues.slice(0, 50);
}

function placementIssues({ actor, strategize, execute }: Script): readonly FieldIssue[] {
  const issues: FieldIssue[] = [];
  if (actor !== SCRIPTED_STEPS) {
    const message = `only the actor ${SCRIPTED_STEPS} runs steps; this action has the actor ${actor}`;
    if (strategize !== undefined) issues.push({ field: 'strategize', message });
    if (execute !== undefined) issues.push({ field: 'execute', message });
    return issues;
  }
  if ((execute?.length ?? 0) === 0) issues.push({ field: 'execute', message: `the actor ${SCRIPTED_STEPS} needs at least one step` });
  for (const [index, step] of (strategize ?? []).entries()) {
    const kind = stepKind(step);
    // The gate on tool calls (execute_command) stands in the phase execute; a call before it would pass ungated.
    if (kind === 'call' || kind === 'calls') {
      issues.push({ field: `strategize[${index}].${kind}`, message: 'tools are called in execute; strategize decides, asks and explains' });
    }
    if (kind === 'reply') issues.push({ field: `strategize[${index}].reply`, message: 'a reply is the only step of execute' });
  }
  const reply = (execute ?? []).findIndex((step) => stepKind(step) === 'reply');
  if (reply >= 0 && ((execute?.length ?? 0) > 1 || (strategize?.length ?? 0) > 0)) {
    issues.push({ field: `execute[${reply}].reply`, message: 'an action that replies has no other step' });
  }
  return issues;
}

function stepsOf({ strategize, execute }: Script): readonly { readonly step: ScriptStep; readonly field: string }[] {
  return [
    ...(strategize ?? []).map((step, index) => ({ step, field: `strategize[${index}]` })),
    ...(execute ?? []).map((step, index) => ({ step, field: `execute[${index}]` })),
  ];
}

/** The texts of a step in which templates are filled: all of what it does, but not the name of a tool or its own id. */
function* templatesOf(step: ScriptStep, field: string): Generator<{ readonly path: string; readonly text: string }> {
  const kind = stepKind(step);
  const body = step[kind] as unknown as JsonValue;
  for (const found of textsIn(body, `${field}.${kind}`)) {
    if (found.text.includes('${')) yield found;
  }
}

function templateIssue(
  text: string,
  earlier: ReadonlyMap<string, string>,
  everyId: ReadonlySet<string>,
  argumentNames: ReadonlySet<string> | null,
): string | null {
  const pieces = parseTemplate(text);
  if (!pieces.ok) return pieces.error;
  for (const piece of pieces.value) {
    if (typeof piece === 'string' || piece.kind === 'input') continue;
    if (piece.kind === 'args') {
      if (argumentNames === null || argumentNames.has(piece.name)) continue;
      const declared = [...argumentNames].join(', ') || 'none';
      return `template ${piece.text} names an argument that the action does not declare (declared: ${declared})`;
    }
    const kind = earlier.get(piece.id);
    if (kind === undefined) {
      const why = everyId.has(piece.id) ? 'which comes later' : 'which does not exist';
      return `template ${piece.text} refers to step '${piece.id}', ${why}`;
    }
    if (piece.member === 'result' && kind !== 'call' && kind !== 'calls' && kind !== 'ask') {
      return `template ${piece.text} refers to step '${piece.id}', and a step that does '${kind}' has no result`;
    }
  }
  return null;
}
