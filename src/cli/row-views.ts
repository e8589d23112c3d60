import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { OperationName, ResultOf } from '../api/operations.ts';
import { UsageError } from './cli-io.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { addEnvironmentProfile, bindApply, bindExecute, exitCodeOfPlan } from './plan-hooks.ts';
import { renderApprovals } from './render/approval.ts';
import { renderAudit, renderVerification } from './render/audit.ts';
import { renderDiff } from './render/diff.ts';
import { renderPlan, renderPlans } from './render/plan.ts';
import { renderProfile } from './render/profile.ts';
import type { Style } from './render/style.ts';

/** What a command made from a row does beyond calling it. Every member has a default: pass on, print generically, exit 0. */
export interface RowView<N extends OperationName> {
  /** Completes the parameters before they are checked and sent. */
  readonly prepare?: (context: CommandContext) => Promise<Readonly<Record<string, unknown>>> | Readonly<Record<string, unknown>>;
  readonly render?: (result: ResultOf<N>, style: Style) => string;
  readonly exitCode?: (result: ResultOf<N>) => ExitCode;
  /** Members that are given as the name of a file; `prepare` reads it. */
  readonly files?: readonly string[];
  /** Members that are not given by a flag, since `prepare` fills them in. */
  readonly hidden?: readonly string[];
  /** Bytes that are written as they are instead of a rendering. */
  readonly raw?: (result: ResultOf<N>) => Uint8Array;
  /** Offers `--yes`: `prepare` asks before it goes on. */
  readonly asks?: true;
}

/** Views are written only where people look; a row without one here is complete as it is. */
export const ROW_VIEWS: { readonly [N in OperationName]?: RowView<N> } = {
  '_cleveragents/plan/use': { prepare: addEnvironmentProfile, render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/execute': { prepare: bindExecute, render: renderPlan, exitCode: exitCodeOfPlan, asks: true },
  '_cleveragents/plan/status': { render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/diff': { render: renderDiff },
  '_cleveragents/plan/apply': { prepare: bindApply, render: renderPlan, exitCode: exitCodeOfPlan, hidden: ['approve'], asks: true },
  '_cleveragents/plan/cancel': { render: renderPlan },
  '_cleveragents/plan/prompt': { render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/list': { render: renderPlans },
  '_cleveragents/plan/guard/audit': { render: renderAudit },
  '_cleveragents/plan/guard/audit/verify': { render: renderVerification, exitCode: (result) => (result.valid ? EXIT.ok : EXIT.error) },
  '_cleveragents/plan/profile/show': { render: renderProfile },
  '_cleveragents/profile/show': { render: renderProfile },
  '_cleveragents/approval/list': { render: renderApprovals },
  '_cleveragents/project/file/read': { raw: (result) => Buffer.from(result.base64, 'base64') },
  '_cleveragents/action/add': { prepare: readActionFile, files: ['action'] },
  '_cleveragents/health/check': { exitCode: (result) => (result.status === 'ok' ? EXIT.ok : EXIT.error) },
};

/** `action add FILE`: the document is in a JSON file. */
async function readActionFile({ io, params }: CommandContext): Promise<Readonly<Record<string, unknown>>> {
  const { action } = params;
  if (typeof action !== 'string') return params;
  let text: string;
  try {
    text = await readFile(resolve(io.cwd, action), 'utf8');
  } catch (cause) {
    throw new UsageError(`${action} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  try {
    return { ...params, action: JSON.parse(text) as unknown };
  } catch (cause) {
    throw new UsageError(`${action} is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
