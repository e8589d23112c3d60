/**
 * Whether the state that another service has kept of a plan is one that there can have been (guards.md "Persisting Guardrail State"): what
 * contradicts itself is refused as a whole, by the name of the member that cannot be right.
 */
import type { JsonObject } from '../../json.ts';
import { addMicroUsd, parseCostUsd, toUsd } from '../../money.ts';
import type { ImportedState } from './commands.ts';

export interface ImportIssue {
  /** Inside `metadata`. */
  readonly field: string;
  readonly message: string;
}

/** What the counters are at least, by what the entries say happened. */
interface Shown {
  readonly allowed: number;
  readonly denied: number;
  readonly stepCount: number;
  readonly spentMicroUsd: number;
}

/** The counters to take over: those that came, and where none came what the entries show. */
export interface ImportCounters extends Shown {
  readonly maxEntries: number | null;
}

export function importCounters(state: ImportedState, now: string): { readonly issue: ImportIssue } | { readonly counters: ImportCounters } {
  const trail = (member: string, message: string) => ({ issue: { field: `guardrail_audit_trail.${member}`, message } });
  const guardrails = (member: string, message: string) => ({ issue: { field: `autonomy_guardrails.${member}`, message } });
  const { entries, maxEntries } = state;
  for (const [at, entry] of entries.entries()) {
    const expected = resultOf(String(entry['event_type']));
    if (expected !== null && entry['result'] !== expected)
      return trail(`entries.${at}.result`, `must be ${expected}: that is what ${String(entry['event_type'])} says`);
    if (Date.parse(String(entry['timestamp'])) > Date.parse(now)) return trail(`entries.${at}.timestamp`, 'must not be in the future');
  }
  if (maxEntries !== null && entries.length > maxEntries)
    return trail('entries', `must be at most ${maxEntries}, as max_entries says; there are ${entries.length}`);
  const shown = shownBy(entries);
  const { allowed = shown.allowed, denied = shown.denied } = counted(state);
  if (allowed < shown.allowed) return trail('allowed_count', `must be at least ${shown.allowed}: so many of the entries are allowed`);
  if (denied < shown.denied) return trail('denied_count', `must be at least ${shown.denied}: so many of the entries are denied`);
  const evicted = allowed + denied - entries.length;
  if (state.evicted !== null && state.evicted !== evicted)
    return trail('evicted_count', `must be ${evicted}: allowed_count and denied_count without the entries that are there`);
  const spent = state.budgetSpentUsd === null ? { ok: true as const, value: shown.spentMicroUsd } : parseCostUsd(state.budgetSpentUsd);
  if (!spent.ok) return guardrails('budget_spent', spent.error);
  if (spent.value < shown.spentMicroUsd)
    return guardrails('budget_spent', `must be at least ${toUsd(shown.spentMicroUsd)}: so much was spent by the entries of the trail`);
  const stepCount = state.stepCount ?? shown.stepCount;
  if (stepCount < shown.stepCount)
    return guardrails('step_count', `must be at least ${shown.stepCount}: the trail has an entry that allows this step`);
  if (state.startTime !== null && state.startTime > now) return guardrails('start_time', 'must not be in the future');
  return { counters: { allowed, denied, stepCount, spentMicroUsd: spent.value, maxEntries } };
}

function counted({ allowed, denied }: ImportedState): { readonly allowed?: number; readonly denied?: number } {
  return { ...(allowed === null ? {} : { allowed }), ...(denied === null ? {} : { denied }) };
}

/** Every type of event says what its result was. */
function resultOf(eventType: string): 'allowed' | 'denied' | null {
  if (/_(allowed|granted)$/.test(eventType)) return 'allowed';
  return /_(blocked|required)$/.test(eventType) ? 'denied' : null;
}

function shownBy(entries: readonly JsonObject[]): Shown {
  const passed = entries.filter((entry) => entry['result'] === 'allowed');
  return {
    allowed: passed.length,
    denied: entries.length - passed.length,
    stepCount: passed.reduce((steps, entry) => Math.max(steps, stepOf(entry)), 0),
    spentMicroUsd: addMicroUsd(...passed.map(spentBy)),
  };
}

/** The step that an entry has begun: one that was checked, or that of a call of an executor outside. A plan that is run here may take a step again. */
function stepOf({ event_type: type, context }: JsonObject): number {
  const { current_step: checked, step, on_behalf_of: behalf } = asObject(context);
  if (type === 'step_allowed') return asCount(checked);
  return type === 'call_allowed' && behalf === undefined ? asCount(step) : 0;
}

/** What `check_tool_budget` has spent; calls say in other places what they cost. */
function spentBy({ event_type: type, guard_name: guard, context }: JsonObject): number {
  const { check, tool_cost: cost } = asObject(context);
  if (type !== 'budget_allowed' || (check ?? guard) !== 'tool_budget' || typeof cost !== 'number') return 0;
  const parsed = parseCostUsd(cost);
  return parsed.ok ? parsed.value : 0;
}

const asObject = (value: JsonObject[string] | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};

const asCount = (value: JsonObject[string] | undefined): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
