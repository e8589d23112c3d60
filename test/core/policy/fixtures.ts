import { combinePolicies, type GuardPolicy } from '../../../src/core/guard-policy.ts';
import type { GuardFacts, GuardRequest } from '../../../src/core/guards/guard.ts';
import { NO_GRANTS } from '../../../src/core/guards/guard.ts';
import type { RiskClass, ToolCatalogue, ToolSpec } from '../../../src/core/tool.ts';
import { makeToolCatalogue } from '../../../src/core/tool.ts';

/** A tool of a given name and class; everything else is unremarkable. */
export function tool(name: string, riskClass: RiskClass = 'read', rest: Partial<ToolSpec> = {}): ToolSpec {
  return {
    name,
    aliases: [],
    summary: name,
    riskClass,
    parameters: { type: 'object' },
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    ...rest,
  };
}

export function catalogueOf(...specs: readonly ToolSpec[]): ToolCatalogue {
  const made = makeToolCatalogue(specs);
  if (!made.ok) throw new Error(made.error.message);
  return made.value;
}

export const CATALOGUE = catalogueOf(
  tool('read_file'),
  tool('write_file', 'write'),
  tool('delete_file', 'write', { aliases: ['rm_file'] }),
  tool('shell_exec', 'unsafe'),
  tool('fs.delete', 'write'),
  tool('db.read'),
  tool('db.readAll'),
  tool('http_post', 'external_write', { scope: 'external', skillCategory: 'network' }),
);

/** A policy that restricts nothing. */
export const OPEN_POLICY: GuardPolicy = {
  ...combinePolicies([]),
  requireSandbox: false,
  requireCheckpoints: false,
  allowUnsafeTools: true,
};

/** A call that an open policy allows. */
export function requestOf(toolName: unknown, rest: Partial<GuardRequest> = {}): GuardRequest {
  return {
    toolName,
    catalogue: CATALOGUE,
    unknownTools: 'refuse',
    riskClass: null,
    costMicroUsd: 0,
    skillCategory: null,
    operation: null,
    protectedPaths: [],
    changesOutside: false,
    ...rest,
  };
}

/** The first call of a plan that runs. */
export function factsOf(rest: Partial<GuardFacts> = {}): GuardFacts {
  return {
    running: true,
    halted: null,
    workedMs: 0,
    stepNumber: 1,
    callsInStep: 0,
    callsInInvocation: 0,
    retriesOfCall: 0,
    spentMicroUsd: 0,
    reservedMicroUsd: 0,
    overrunMicroUsd: 0,
    upperRefusal: null,
    grants: NO_GRANTS,
    tainted: false,
    approvedGuards: new Map(),
    ...rest,
  };
}
