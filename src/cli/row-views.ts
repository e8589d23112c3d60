import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { OperationName, ResultOf } from '../api/operations.ts';
import { UsageError } from './cli-io.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { addEnvironmentProfile, bindApply, bindExecute, exitCodeOfPlan } from './plan-hooks.ts';
import { renderApprovals } from './render/approval.ts';
import { renderAudit, renderOrgLog, renderVerification } from './render/audit.ts';
import { renderCalibration } from './render/calibration.ts';
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
  /** Flags and positions that name a file, with what is in it; `prepare` reads it. */
  readonly files?: Readonly<Record<string, string>>;
  /** Members that are not given by a flag, since `prepare` fills them in. */
  readonly hidden?: readonly string[];
  /** Bytes that are written as they are instead of a rendering. */
  readonly raw?: (result: ResultOf<N>) => Uint8Array;
  /** Offers `--yes`: `prepare` asks before it goes on. */
  readonly asks?: true;
}

/** `--config FILE`; the text goes to the service as it is, which names the lines that are wrong. */
const PROFILE_FILE = { files: { config: 'The profile: a YAML or JSON file' }, hidden: ['profile', 'yaml'] } as const;

/** Views are written only where people look; a row without one here is complete as it is. */
export const ROW_VIEWS: { readonly [N in OperationName]?: RowView<N> } = {
  '_cleveragents/plan/preflight': { prepare: addEnvironmentProfile, exitCode: (result) => (result.would_run ? EXIT.ok : EXIT.error) },
  '_cleveragents/plan/use': { prepare: addEnvironmentProfile, render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/execute': { prepare: bindExecute, render: renderPlan, exitCode: exitCodeOfPlan, asks: true },
  '_cleveragents/plan/status': { render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/diff': { render: renderDiff },
  '_cleveragents/plan/apply': { prepare: bindApply, render: renderPlan, exitCode: exitCodeOfPlan, hidden: ['approve'], asks: true },
  '_cleveragents/plan/cancel': { render: renderPlan },
  '_cleveragents/plan/prompt': { render: renderPlan, exitCode: exitCodeOfPlan },
  '_cleveragents/plan/list': { render: renderPlans },
  '_cleveragents/guard/authorize': {
    exitCode: ({ allowed, requires_approval: waits }) => (allowed ? EXIT.ok : waits ? EXIT.waiting : EXIT.error),
  },
  '_cleveragents/guard/complete': { render: renderPlan },
  '_cleveragents/guard/evaluate': {
    exitCode: ({ allowed, requires_approval: waits }) => (allowed ? EXIT.ok : waits ? EXIT.waiting : EXIT.error),
  },
  '_cleveragents/plan/guard/audit': { render: renderAudit },
  '_cleveragents/org/log/list': { render: renderOrgLog },
  '_cleveragents/plan/guard/audit/verify': { render: renderVerification, exitCode: (result) => (result.valid ? EXIT.ok : EXIT.error) },
  '_cleveragents/plan/profile/show': { render: renderProfile },
  '_cleveragents/profile/show': { render: renderProfile },
  '_cleveragents/profile/add': { prepare: readProfileFile, render: renderProfile, ...PROFILE_FILE },
  '_cleveragents/profile/update': { prepare: readProfileFile, render: renderProfile, ...PROFILE_FILE },
  '_cleveragents/profile/calibration': { render: renderCalibration },
  '_cleveragents/org/policy/set': {
    prepare: (context) => readJsonFile(context, 'policy'),
    files: { policy: 'The whole floor (guardrails, threshold_minima, safety): a JSON file' },
  },
  '_cleveragents/approval/list': { render: renderApprovals },
  '_cleveragents/project/file/read': { raw: (result) => Buffer.from(result.base64, 'base64') },
  '_cleveragents/action/add': {
    prepare: (context) => readJsonFile(context, 'action'),
    files: { action: 'The action document: a JSON file' },
  },
  '_cleveragents/health/check': { exitCode: (result) => (result.status === 'ok' ? EXIT.ok : EXIT.error) },
};

/** A document that is given as the name of a JSON file, as in `action add FILE`. */
async function readJsonFile(context: CommandContext, member: string): Promise<Readonly<Record<string, unknown>>> {
  const { [member]: name } = context.params;
  if (typeof name !== 'string') return context.params;
  const text = await readNamed(context, name);
  try {
    return { ...context.params, [member]: JSON.parse(text) as unknown };
  } catch (cause) {
    throw new UsageError(`${name} is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

async function readProfileFile(context: CommandContext): Promise<Readonly<Record<string, unknown>>> {
  const { yaml: name } = context.params;
  if (typeof name !== 'string') throw new UsageError('--config <file> is required');
  return { ...context.params, yaml: await readNamed(context, name) };
}

async function readNamed({ io }: CommandContext, name: string): Promise<string> {
  try {
    return await readFile(resolve(io.cwd, name), 'utf8');
  } catch (cause) {
    throw new UsageError(`${name} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
