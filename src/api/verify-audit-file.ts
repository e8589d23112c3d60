import { readKeySet, verifySignature } from '../core/audit/ed25519.ts';
import { headText, type SignedHead } from '../core/audit/head.ts';
import type { Sha256 } from '../core/digest.ts';
import { canonicalJson, exceedsDepth } from '../core/json.ts';
import { type ChainedRow, genesisHash, verifyChain } from '../core/plan/chain.ts';
import { type SealClaim, sealText } from './audit-file.ts';

export type AuditFileProblem =
  /** The file does not begin as an export, or names one plan and holds another. */
  | 'not_an_export'
  /** A line is no line of an export. */
  | 'unreadable'
  /** Rows are missing, doubled or moved: the number does not follow. */
  | 'gap'
  /** The row does not continue the row before it. */
  | 'broken_link'
  /** The row's content is not what was hashed. */
  | 'changed'
  /** Rows or lines at the end are missing. */
  | 'truncated'
  /** There is not one row. */
  | 'empty'
  /** The chain holds, but it is not the one whose head was signed. */
  | 'rewritten'
  /** A page is not as the service wrote it, though each of its rows may be. */
  | 'page_changed'
  /** A signature does not fit. */
  | 'bad_signature'
  /** A signature names a key that is not among those given. */
  | 'unknown_key'
  /** The service did not sign, or the signatures were taken out. */
  | 'unsigned';

export interface AuditFileVerdict {
  readonly valid: boolean;
  readonly org: string;
  readonly plan_id: string;
  readonly rows: number;
  /** Rows whose content is vouched for by the seal of their page and not by their own hash. */
  readonly masked_rows: number;
  /** The last row that holds. */
  readonly head: { readonly seq: number; readonly hash: string };
  readonly signature: 'valid' | 'invalid' | 'unsigned' | 'unchecked';
  /** When the export was complete, as far as it is signed. */
  readonly as_of?: string;
  readonly problem?: AuditFileProblem;
  /** The first row that is wrong or missing, where a row is. */
  readonly first_bad_seq?: number;
  /** Line of the file, from 1. */
  readonly line?: number;
  readonly detail?: string;
}

export interface VerifyAuditFile {
  readonly sha256: Sha256;
  /** A JSON Web Key Set; null: only the chain is checked, and the verdict says that no signature was. */
  readonly jwks: unknown;
}

/** Verifies a file. Reads nothing else and never throws; names the first thing that is wrong. */
export async function verifyAuditFile(text: string, { sha256, jwks }: VerifyAuditFile): Promise<AuditFileVerdict> {
  const keys = jwks === null ? null : readKeySet(jwks, sha256);
  const file: FileState = {
    org: '',
    planId: '',
    rows: 0,
    maskedRows: 0,
    seq: 0,
    head: '',
    hashes: new Map(),
    heads: [],
    pageStart: 0,
    pageFrom: 1,
    sealedLast: null,
  };
  const wrong = (
    problem: AuditFileProblem,
    detail: string,
    where: { readonly seq?: number; readonly line?: number } = {},
  ): AuditFileVerdict => ({
    ...summary(file, keys === null ? 'unchecked' : problem === 'unsigned' ? 'unsigned' : 'invalid'),
    valid: false,
    problem,
    ...(where.seq === undefined ? {} : { first_bad_seq: where.seq }),
    ...(where.line === undefined ? {} : { line: where.line }),
    detail,
  });
  if (jwks !== null && keys === null) return wrong('unknown_key', 'the keys are not a JSON Web Key Set of Ed25519 keys');

  let at = 0;
  for (let line = 1; at < text.length; line += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return wrong('truncated', 'the last line is not whole', { line, seq: file.seq + 1 });
    const start = at;
    const value = parseLine(text.slice(start, end));
    at = end + 1;
    if (line === 1) {
      const begun = begin(value, file, sha256);
      if (begun !== null) return wrong('not_an_export', begun, { line });
      continue;
    }
    if (value === null) return wrong('unreadable', 'the line is not a line of an export', { line, seq: file.seq + 1 });
    if (file.sealedLast !== null) return wrong('unreadable', 'there is more after the end of the export', { line });
    const found =
      value.kind === 'seal'
        ? await seal(value, file, { keys, sha256, page: text.slice(file.pageStart, start) })
        : value.kind === 'head'
          ? await head(value.head, file, keys)
          : row(value, file, sha256);
    if (found !== null) return wrong(found.problem, found.detail, { line, ...(found.seq === undefined ? {} : { seq: found.seq }) });
    if (value.kind === 'seal') file.pageStart = at;
  }
  if (text === '') return wrong('not_an_export', 'the file is empty');
  if (file.rows === 0) return wrong('empty', 'there is not one row: the whole log is missing', { seq: 1 });
  if (file.sealedLast === null) return wrong('truncated', 'the end of the export is missing', { seq: file.seq + 1 });
  const newest = file.heads.at(-1);
  if (keys !== null && newest === undefined) return wrong('unsigned', 'no head is signed: rows at the end may be missing');
  if (newest !== undefined && newest.seq !== file.seq)
    return wrong('unsigned', `the newest signed head is row ${newest.seq}`, { seq: newest.seq + 1 });
  return { ...summary(file, keys === null ? 'unchecked' : 'valid'), valid: true, ...(keys === null ? {} : { as_of: file.sealedLast }) };
}

interface FileState {
  org: string;
  planId: string;
  rows: number;
  maskedRows: number;
  seq: number;
  head: string;
  readonly hashes: Map<number, string>;
  readonly heads: SignedHead[];
  /** Where the page begins in the text, and with which row. */
  pageStart: number;
  pageFrom: number;
  /** When the last page was sealed; null: it was not seen yet. */
  sealedLast: string | null;
}

interface Found {
  readonly problem: AuditFileProblem;
  readonly detail: string;
  readonly seq?: number;
}

type Line =
  | { readonly kind: 'export'; readonly v: 1; readonly org: string; readonly plan_id: string; readonly genesis: string }
  | { readonly kind: 'row'; readonly row: ChainedRow }
  | { readonly kind: 'masked_row'; readonly row: ChainedRow; readonly content_sha256: string }
  | { readonly kind: 'head'; readonly head: SignedHead }
  | ({ readonly kind: 'seal'; readonly kid: string | null; readonly signature: string | null } & SealClaim);

function summary(file: FileState, signature: AuditFileVerdict['signature']) {
  return {
    org: file.org,
    plan_id: file.planId,
    rows: file.rows,
    masked_rows: file.maskedRows,
    head: { seq: file.seq, hash: file.head },
    signature,
  };
}

/** Takes the first line over; what is wrong with it, or null. */
function begin(line: Line | null, file: FileState, sha256: Sha256): string | null {
  if (line?.kind !== 'export') return 'the first line is not that of an audit export (version 1)';
  file.org = line.org;
  file.planId = line.plan_id;
  file.head = genesisHash(sha256, line.org, line.plan_id);
  return line.genesis === file.head ? null : 'org and plan do not fit the beginning of the chain';
}

function row(line: Extract<Line, { kind: 'row' | 'masked_row' | 'export' }>, file: FileState, sha256: Sha256): Found | null {
  if (line.kind === 'export') return { problem: 'unreadable', detail: 'a second export begins', seq: file.seq + 1 };
  const next = line.row;
  const due = file.seq + 1;
  if (line.kind === 'masked_row') {
    if (next.seq !== due) return { problem: 'gap', detail: `row ${next.seq} stands where row ${due} belongs`, seq: due };
    if (next.prev !== file.head) return { problem: 'broken_link', detail: `row ${due} does not continue row ${due - 1}`, seq: due };
    if (sha256(canonicalJson(next)) !== line.content_sha256)
      return { problem: 'changed', detail: `the masked content of row ${due} was changed`, seq: due };
    file.maskedRows += 1;
  } else {
    const verdict = verifyChain(sha256, file.head, [next], { seq: file.seq, head: file.head });
    if (!verdict.valid) {
      const details = {
        gap: `row ${next.seq} stands where row ${due} belongs`,
        broken_link: `row ${due} does not continue row ${due - 1}`,
        changed: `the content of row ${due} is not what was hashed`,
      };
      return { problem: verdict.problem, detail: details[verdict.problem], seq: due };
    }
  }
  file.rows += 1;
  file.seq = next.seq;
  file.head = next.hash;
  file.hashes.set(next.seq, next.hash);
  return null;
}

async function head(signed: SignedHead, file: FileState, keys: ReturnType<typeof readKeySet>): Promise<Found | null> {
  if (signed.org !== file.org || signed.plan_id !== file.planId)
    return { problem: 'bad_signature', detail: 'a signed head belongs to another plan' };
  if (keys !== null) {
    const verdict = await verifySignature(keys, headText(signed), signed);
    if (verdict === 'unknown_key')
      return {
        problem: 'unknown_key',
        detail: `the head of row ${signed.seq} is signed with key ${signed.kid}, which is not among the keys given`,
      };
    if (verdict === 'invalid') return { problem: 'bad_signature', detail: `the signature of the head of row ${signed.seq} does not fit` };
  }
  if (file.rows === 0)
    return { problem: 'empty', detail: `row ${signed.seq} was signed and there is not one row: the whole log is missing`, seq: 1 };
  if (signed.seq > file.seq)
    return { problem: 'truncated', detail: `row ${signed.seq} was signed and the log ends with row ${file.seq}`, seq: file.seq + 1 };
  if (file.hashes.get(signed.seq) !== signed.hash)
    return { problem: 'rewritten', detail: `row ${signed.seq} is not the row that was signed`, seq: signed.seq };
  file.heads.push(signed);
  return null;
}

async function seal(
  line: Extract<Line, { kind: 'seal' }>,
  file: FileState,
  { keys, sha256, page }: { readonly keys: ReturnType<typeof readKeySet>; readonly sha256: Sha256; readonly page: string },
): Promise<Found | null> {
  const fits = line.org === file.org && line.plan_id === file.planId && line.from_seq === file.pageFrom && line.to_seq === file.seq;
  if (!fits)
    return {
      problem: 'page_changed',
      detail: `the seal is that of rows ${line.from_seq} to ${line.to_seq} of plan ${line.plan_id}`,
      seq: file.pageFrom,
    };
  if (sha256(page) !== line.sha256)
    return {
      problem: 'page_changed',
      detail: `the page of rows ${line.from_seq} to ${line.to_seq} is not as it was written`,
      seq: file.pageFrom,
    };
  if (keys !== null) {
    const { kid, signature } = line;
    if (kid === null || signature === null)
      return { problem: 'unsigned', detail: 'the service that made the export does not sign, or its signatures were taken out' };
    const verdict = await verifySignature(keys, sealText(line), { kid, signature });
    if (verdict === 'unknown_key')
      return { problem: 'unknown_key', detail: `a page is signed with key ${kid}, which is not among the keys given` };
    if (verdict === 'invalid')
      return { problem: 'bad_signature', detail: `the signature of the page of rows ${line.from_seq} to ${line.to_seq} does not fit` };
  }
  file.pageFrom = file.seq + 1;
  if (line.last) file.sealedLast = line.at;
  return null;
}

/** A row holds values of the greatest depth that is accepted, a few levels down. */
const MAX_LINE_DEPTH = 90;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A line whose members have the types that the checks rely on; null for anything else. What they say is judged by the checks. */
function parseLine(text: string): Line | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  // Checked before anything walks through it: a file comes from anywhere.
  if (!isRecord(value) || exceedsDepth(value, MAX_LINE_DEPTH)) return null;
  const has = (object: unknown, texts: readonly string[], numbers: readonly string[]): boolean =>
    isRecord(object) &&
    texts.every((name) => typeof object[name] === 'string') &&
    numbers.every((name) => Number.isSafeInteger(object[name]));
  const isRow = has(value['row'], ['at', 'type', 'prev', 'hash'], ['v', 'seq']);
  switch (value['kind']) {
    case 'export':
      return value['v'] === 1 && has(value, ['org', 'plan_id', 'genesis'], []) ? (value as unknown as Line) : null;
    case 'row':
      return isRow ? (value as unknown as Line) : null;
    case 'masked_row':
      return isRow && typeof value['content_sha256'] === 'string' ? (value as unknown as Line) : null;
    case 'head':
      return has(value['head'], ['org', 'plan_id', 'hash', 'at', 'kid', 'signature'], ['v', 'seq']) ? (value as unknown as Line) : null;
    case 'seal': {
      const isSigned = ['kid', 'signature'].every((name) => value[name] === null || typeof value[name] === 'string');
      const isClaim = has(value, ['org', 'plan_id', 'sha256', 'at'], ['v', 'from_seq', 'to_seq']) && typeof value['last'] === 'boolean';
      return isSigned && isClaim ? (value as unknown as Line) : null;
    }
    default:
      return null;
  }
}
