/**
 * `connection.json` in a state folder: how scripts and the CLI find the local server. Mode 600, since it holds keys.
 * Absent keys mean that the server runs without authentication.
 */
import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';

/** What the file holds. `key` belongs to a person with all roles, `agent_key` to an agent with the role operator. */
export const Connection = z.object({
  url: z.string(),
  org: z.string(),
  key: z.string(),
  agent_key: z.string(),
});
export type Connection = z.infer<typeof Connection>;

/** The file's name inside a state folder. */
export const CONNECTION_FILE = 'connection.json';

/** Reads the file; undefined when there is none. A file that cannot be understood is an error that names it. */
export async function readConnection(stateDir: string): Promise<Connection | undefined> {
  const path = join(stateDir, CONNECTION_FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return Connection.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${path} is not a connection file. Remove it, or choose another folder with --state.`, { cause: error });
  }
}

/** Writes the file so that a reader sees the old one or the new one, never a part. */
export async function writeConnection(stateDir: string, connection: Connection): Promise<void> {
  const path = join(stateDir, CONNECTION_FILE);
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
