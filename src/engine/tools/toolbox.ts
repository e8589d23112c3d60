import type { Refusal } from '../../core/refusal.ts';
import { ok, type Result } from '../../core/result.ts';
import { makeToolCatalogue, type ToolCatalogue } from '../../core/tool.ts';
import type { Tool, ToolPackage } from './tool.ts';

/** All tools of a service: `catalogue` is what the policy sees, `find` gives the one that performs, by canonical name or alias. */
export interface Toolbox {
  readonly catalogue: ToolCatalogue;
  find(name: string): Tool | null;
}

/** Joins tool packages. Refused as `makeToolCatalogue` refuses: a name used twice over all packages, or a look-alike of another. */
export function makeToolbox(packages: readonly ToolPackage[]): Result<Toolbox, Refusal> {
  const tools = packages.flatMap((tools) => tools.tools);
  const catalogue = makeToolCatalogue(tools.map((tool) => tool.spec));
  if (!catalogue.ok) return catalogue;
  const byName = new Map(tools.map((tool) => [tool.spec.name, tool]));
  return ok({
    catalogue: catalogue.value,
    find: (name) => byName.get(catalogue.value.canonical(name) ?? '') ?? null,
  });
}
