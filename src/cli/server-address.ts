import { dirname, join } from 'node:path';
import { UsageError } from './cli-io.ts';
import { readConnection } from './connection-file.ts';

/** Where the service is and as whom the person calls. */
export interface ServerAddress {
  readonly url: string;
  /** Absent against a server that runs without authentication. */
  readonly key?: string;
}

export interface AddressSources {
  readonly url?: string;
  readonly key?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/**
 * Flags win over the environment (`CLEVERAGENTS_URL`, `CLEVERAGENTS_SERVER_TOKEN`), which wins over `.cleveragents/connection.json`
 * in this folder or one above. The file's key is sent to the file's address only: a key must not travel to another server because
 * somebody changed the address.
 */
export async function findServer({ url, key, env, cwd }: AddressSources): Promise<ServerAddress> {
  const chosenUrl = url ?? nonEmpty(env['CLEVERAGENTS_URL']);
  const chosenKey = key ?? nonEmpty(env['CLEVERAGENTS_SERVER_TOKEN']);
  const file = chosenUrl !== undefined && chosenKey !== undefined ? undefined : await connectionAbove(cwd);
  const address = chosenUrl ?? file?.url;
  if (address === undefined) {
    throw new UsageError('No server is known. Start one with `npm start`, or give --url (or CLEVERAGENTS_URL).');
  }
  if (!URL.canParse(address)) throw new UsageError(`--url: ${JSON.stringify(address)} is not an address such as http://127.0.0.1:8787`);
  const fileKey = file !== undefined && isSameOrigin(file.url, address) ? nonEmpty(file.key) : undefined;
  const token = chosenKey ?? fileKey;
  return { url: address, ...(token === undefined ? {} : { key: token }) };
}

async function connectionAbove(cwd: string): Promise<{ readonly url: string; readonly key: string } | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const connection = await readConnection(join(folder, '.cleveragents'));
    if (connection !== undefined) return connection;
    if (dirname(folder) === folder) return undefined;
  }
}

const nonEmpty = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value);

const isSameOrigin = (a: string, b: string): boolean => URL.canParse(a) && new URL(a).origin === new URL(b).origin;
