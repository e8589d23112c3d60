/**
 * The signing keys of a local server, one for the logs and one for the Agent Card: made with the first start, kept in the state folder with
 * mode 600, and given to the Worker as the secrets `AUDIT_SIGNING_KEY` and `CARD_SIGNING_KEY`. They belong to what is beside them: whoever
 * keeps the folder keeps all.
 */
import { generateKeyPairSync } from 'node:crypto';
import { chmod, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';

const part = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const PrivateKey = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: part, d: part });

/** The files' names inside a state folder. */
export const AUDIT_KEY_FILE = 'audit-signing-key.json';
export const CARD_KEY_FILE = 'card-signing-key.json';

export const ensureAuditKey = (stateDir: string): Promise<string> => ensureSigningKey(stateDir, AUDIT_KEY_FILE);
export const ensureCardKey = (stateDir: string): Promise<string> => ensureSigningKey(stateDir, CARD_KEY_FILE);

/** The key as JSON text. Makes it when there is none; a file that holds something else is an error that names it. */
async function ensureSigningKey(stateDir: string, file: string): Promise<string> {
  const path = join(stateDir, file);
  const known = await readKey(path);
  if (known !== undefined) return known;
  const key = JSON.stringify(PrivateKey.parse(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })));
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${key}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
  return key;
}

async function readKey(path: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.stringify(PrivateKey.parse(JSON.parse(text)));
  } catch (error) {
    // A new key in its place would make what was signed with the old one look forged.
    throw new Error(`${path} is not the signing key that a server made. Put it back, or choose another folder with --state.`, {
      cause: error,
    });
  }
}
