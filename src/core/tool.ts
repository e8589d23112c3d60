import type { JsonObject } from './json.ts';
import { findLookAlike, isToolName } from './names.ts';
import type { Refusal } from './refusal.ts';
import { invalidField } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';

/** What a call can do, from harmless to dangerous. The order is the order of risk. */
export const RISK_CLASSES = ['read', 'write', 'external_read', 'external_write_revertible', 'external_write', 'unsafe'] as const;

export type RiskClass = (typeof RISK_CLASSES)[number];

/** A tool as the policy sees it: what it is called, what it can do, what it costs. Who performs it is elsewhere. */
export interface ToolSpec {
  /** The canonical name, plain ASCII. */
  readonly name: string;
  /** Other names of the same tool; lists and calls may use them, decisions are made on the canonical name. */
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly riskClass: RiskClass;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  readonly priceMicroUsd: number;
  /** `external`: the effect leaves the workspace, so a sent-marker is committed before it. */
  readonly scope: 'workspace' | 'external';
  /** Whether repeating a call with the same idempotency key does nothing twice. */
  readonly idempotent: boolean;
  readonly skillCategory?: string;
}

/** The tools that a plan can name. Lookups accept aliases; a name that is not there is unknown, and unknown is refused. */
export interface ToolCatalogue {
  find(name: string): { readonly spec: ToolSpec } | null;
  canonical(name: string): string | null;
  specs(): readonly ToolSpec[];
}

/** Builds a catalogue. Refused: names that are not plain ASCII, a name used twice, a name that looks like another, an impossible price. */
export function makeToolCatalogue(specs: readonly ToolSpec[]): Result<ToolCatalogue, Refusal> {
  const byName = new Map<string, ToolSpec>();
  for (const spec of specs) {
    if (!Number.isSafeInteger(spec.priceMicroUsd) || spec.priceMicroUsd < 0) {
      return err(invalidField('price', `tool '${spec.name}' needs a price of zero or more`));
    }
    for (const name of [spec.name, ...spec.aliases]) {
      if (!isToolName(name))
        return err(invalidField('name', `tool name ${JSON.stringify(name)} is not plain ASCII of the form name.part/part`));
      if (byName.has(name)) return err(invalidField('name', `tool name '${name}' is used twice`));
      const other = findLookAlike(name, byName.keys());
      if (other !== null) return err(invalidField('name', `tool name '${name}' looks like '${other}'`));
      byName.set(name, spec);
    }
  }
  const all = [...specs];
  return ok({
    find: (name) => {
      const spec = byName.get(name);
      return spec === undefined ? null : { spec };
    },
    canonical: (name) => byName.get(name)?.name ?? null,
    specs: () => all,
  });
}

/** The riskier of two classes. */
export function riskierOf(first: RiskClass, second: RiskClass): RiskClass {
  return RISK_CLASSES.indexOf(first) >= RISK_CLASSES.indexOf(second) ? first : second;
}

/** Whether a call of this class changes something. An unsafe tool may do anything, so it counts. */
export function isWriteClass(riskClass: RiskClass): boolean {
  return riskClass !== 'read' && riskClass !== 'external_read';
}
