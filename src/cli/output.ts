import { A2aError, ResourceNotFoundError } from '../client/errors.ts';
import type { CliIo } from './cli-io.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { printable, type Style, styleFor } from './render/style.ts';

export const FORMATS = ['rich', 'plain', 'json'] as const;
export type Format = (typeof FORMATS)[number];

/** A line for the person beside the result. */
export interface Note {
  readonly level: 'info' | 'warning' | 'error';
  readonly text: string;
}

/** How a command ended, before it is printed. */
export interface Outcome {
  readonly exitCode: ExitCode;
  /** The whole result, for `--format json`. */
  readonly data: unknown;
  /** What people see in the other formats. */
  readonly render: (style: Style) => string;
  /** Written as it is in the place of the rendering. */
  readonly raw?: Uint8Array;
  readonly notes: readonly Note[];
}

export interface Ended {
  readonly command: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** Prints one outcome: results to standard output, notes to standard error; with `json` one envelope with always the same six members. */
export function printOutcome(io: CliIo, format: Format, outcome: Outcome, ended: Ended): void {
  if (format === 'json') {
    io.out(`${envelope(outcome, ended)}\n`);
    return;
  }
  const style = styleFor(format === 'rich', io.env);
  const text = outcome.raw ?? outcome.render(style);
  if (typeof text !== 'string') io.out(text);
  else if (text !== '') io.out(`${text}\n`);
  for (const { level, text: note } of outcome.notes) {
    const label = level === 'info' ? '' : `${style.paint(level === 'error' ? 'red' : 'yellow', level)}: `;
    io.err(`${label}${printable(note)}\n`);
  }
}

function envelope({ exitCode, data, notes }: Outcome, { command, startedAtMs, endedAtMs }: Ended): string {
  const status = exitCode === EXIT.ok ? 'ok' : exitCode === EXIT.waiting ? 'waiting' : 'error';
  return JSON.stringify(
    {
      command,
      status,
      exit_code: exitCode,
      data: data ?? null,
      timing: { started_at: new Date(startedAtMs).toISOString(), duration_ms: Math.max(0, Math.round(endedAtMs - startedAtMs)) },
      messages: notes,
    },
    null,
    2,
  );
}

/** The outcome of a failure; in JSON its code and data are under `data.error`. */
export function failureOutcome(error: unknown, exitCode: ExitCode): Outcome {
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof A2aError ? { code: error.code, data: error.data } : {};
  const name = error instanceof Error ? error.name : 'Error';
  return {
    exitCode,
    data: { error: { name, message, ...details } },
    render: () => '',
    notes: [{ level: 'error', text: `${message}${subjectOf(error)}` }],
  };
}

/** "Plan not found" leaves out which; the ids are in the data. */
function subjectOf(error: unknown): string {
  if (!(error instanceof ResourceNotFoundError)) return '';
  const named = Object.entries(error.data).filter(([name, value]) => typeof value === 'string' && name !== 'reason' && name !== 'domain');
  return named.length === 0 ? '' : ` (${named.map(([name, value]) => `${name} ${String(value)}`).join(', ')})`;
}
