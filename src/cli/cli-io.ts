/** What a command of `agents` sees of the machine. Tests give their own; `main.ts` gives the process. */
export interface CliIo {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results. */
  readonly out: (data: string | Uint8Array) => void;
  /** Notes and errors. */
  readonly err: (text: string) => void;
  /** Whether results go to a terminal. */
  readonly isTerminal: boolean;
  /** Asks the person; absent where nobody can answer (pipes, scripts). */
  readonly confirm?: (question: string) => Promise<boolean>;
  readonly fetch?: typeof fetch;
}

/** A mistake in how the command was called: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
