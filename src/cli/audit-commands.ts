import { createHash } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { auditExport } from '../api/audit.ts';
import type { ResultOf } from '../api/operations.ts';
import { type orgLogExport, orgLogVerify } from '../api/org-log.ts';
import { type AuditFileVerdict, verifyAuditFile } from '../api/verify-audit-file.ts';
import { UsageError } from './cli-io.ts';
import { type CommandContext, checkedParams } from './command-context.ts';

export interface ExportedTrail {
  readonly plan_id: string;
  readonly format: 'jsonl' | 'csv';
  readonly rows: number;
  readonly signing: 'on' | 'off';
  /** Absent when the text goes to standard output. */
  readonly file?: string;
}

/** Asks for all pages of a log and puts them together. A file is written when it is whole; an older one stays until then. */
export async function exportTrail(
  { client, io, params, note }: CommandContext,
  operation: typeof auditExport | typeof orgLogExport = auditExport,
): Promise<{ readonly result: ExportedTrail; readonly text: string }> {
  const { out, as, ...rest } = params;
  const file = typeof out === 'string' ? resolve(io.cwd, out) : undefined;
  const format = as ?? (typeof out === 'string' && out.toLowerCase().endsWith('.csv') ? 'csv' : 'jsonl');
  const asked: object = checkedParams<'_cleveragents/audit/export' | '_cleveragents/org/log/export'>(operation, { ...rest, format });
  let text = '';
  let rows = 0;
  for (let afterSeq = 0; ; ) {
    const page = await client.call(operation.name, { ...asked, ...(afterSeq === 0 ? {} : { after_seq: afterSeq }) } as never);
    text += page.content;
    rows += page.rows;
    if (page.next_after_seq !== undefined && page.next_after_seq > afterSeq) {
      afterSeq = page.next_after_seq;
      continue;
    }
    if (page.format === 'jsonl' && page.signing === 'off') {
      note({
        level: 'warning',
        text: 'This server does not sign: the export shows changes, but not whether its end was cut off (agents health check says what to do)',
      });
    }
    if (file !== undefined) await writeWhole(file, text);
    return {
      result: { plan_id: page.plan_id, format: page.format, rows, signing: page.signing, ...(file === undefined ? {} : { file }) },
      text,
    };
  }
}

export type OrgLogVerdict = ResultOf<'_cleveragents/org/log/verify'>;

/** Checks the org's log and all plans that it knows, page by page; what is wrong with each is put together. */
export async function verifyOrgLog({ client, params }: CommandContext): Promise<OrgLogVerdict> {
  const asked = checkedParams<'_cleveragents/org/log/verify'>(orgLogVerify, params);
  let page = await client.call('_cleveragents/org/log/verify', asked);
  let all = page;
  while (page.next_page_token !== '') {
    page = await client.call('_cleveragents/org/log/verify', { ...asked, page_token: page.next_page_token });
    const log = logSoFar(all.log, page.log);
    all = {
      ...page,
      ...(log === undefined ? {} : { log }),
      plans_checked: all.plans_checked + page.plans_checked,
      plan_problems: [...all.plan_problems, ...page.plan_problems],
    };
  }
  return all;
}

/** The verdict on a log of which another part was verified: the newest part has the word, what was found is put together. */
function logSoFar(before: OrgLogVerdict['log'], now: OrgLogVerdict['log']): OrgLogVerdict['log'] {
  if (before === undefined || now === undefined) return now ?? before;
  const findings = [...(before.findings ?? []), ...(now.findings ?? [])];
  return { ...now, trail: before.trail === 'complete' ? now.trail : before.trail, ...(findings.length === 0 ? {} : { findings }) };
}

/** Verifies an export. Without `--jwks` the keys are those that the known server publishes; the file is all else that is read. */
export async function verifyTrailFile(context: CommandContext): Promise<AuditFileVerdict> {
  const { io, params } = context;
  const text = await readNamed(resolve(io.cwd, String(params['file'])));
  const jwks = params['chain_only'] === true ? null : await readKeys(context, params['jwks']);
  return verifyAuditFile(text, { sha256: (data) => createHash('sha256').update(data).digest('hex'), jwks });
}

async function readKeys({ io, serverUrl }: CommandContext, given: unknown): Promise<unknown> {
  const source = typeof given === 'string' ? given : serverUrl === null ? undefined : new URL('/.well-known/jwks.json', serverUrl).href;
  if (source === undefined) {
    throw new UsageError(
      'No keys are known to check the signatures with: give --jwks <address or file>, or --chain-only to check the chain alone.',
    );
  }
  const text = /^https?:\/\//.test(source) ? await fetchText(source, io.fetch ?? fetch) : await readNamed(resolve(io.cwd, source));
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new UsageError(`${source} is not a JSON Web Key Set`, { cause });
  }
}

async function fetchText(address: string, get: typeof fetch): Promise<string> {
  try {
    const response = await get(address);
    if (response.ok) return await response.text();
    throw new Error(`HTTP ${response.status}`);
  } catch (cause) {
    throw new UsageError(
      `The keys cannot be had from ${address} (${cause instanceof Error ? cause.message : String(cause)}): give --jwks <file>, or --chain-only`,
      { cause },
    );
  }
}

async function readNamed(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new UsageError(`${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, path);
}
