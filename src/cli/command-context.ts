import type { Operation } from '../api/operation.ts';
import type { OperationName, ParamsInputOf } from '../api/operations.ts';
import { parseParams } from '../api/parse-params.ts';
import type { Client } from '../client/client.ts';
import { type CliIo, UsageError } from './cli-io.ts';
import type { Note } from './output.ts';
import type { Style } from './render/style.ts';

/** What a command works with while it runs. */
export interface CommandContext {
  readonly io: CliIo;
  readonly client: Client;
  /** Address of the server that is known; null only in commands that need none. */
  readonly serverUrl: string | null;
  /** Parameters from flags and positions, by member name. */
  readonly params: Readonly<Record<string, unknown>>;
  /** For what is shown before the result: a diff to confirm. Standard error, so that results can be piped. */
  readonly style: Style;
  /** True when the person said yes beforehand (`--yes`). */
  readonly isConfirmed: boolean;
  note(note: Note): void;
}

/**
 * The parameters, checked by the row's own schema before anything is sent: the messages are the server's, the exit code is 2.
 * Throws a `UsageError` that names each member by its flag.
 */
export function checkedParams<N extends OperationName>(operation: Operation & { readonly name: N }, params: unknown): ParamsInputOf<N> {
  const parsed = parseParams(operation, params);
  if (parsed.ok) return params as ParamsInputOf<N>;
  if (parsed.error.kind !== 'invalid') throw new UsageError(parsed.error.message);
  const positional = operation.cli?.positional ?? [];
  const lines = parsed.error.issues.map(({ field, message }) => {
    const name = positional.includes(field) ? `<${field}>` : `--${(field.split('.').at(-1) ?? field).replaceAll('_', '-')}`;
    return `${name}: ${message}`;
  });
  throw new UsageError(lines.join('\n'));
}

/** Shows what is about to be decided and asks, where somebody can answer. Scripts decide by calling the command. */
export async function confirmShown({ io, isConfirmed }: CommandContext, shown: string, question: string): Promise<void> {
  io.err(`${shown}\n`);
  if (isConfirmed || io.confirm === undefined) return;
  if (!(await io.confirm(question))) throw new UsageError('Not confirmed; nothing was sent.');
}
