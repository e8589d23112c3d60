import type { Sha256 } from '../../core/digest.ts';
import { invalidField, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';

/** Which list a token belongs to. */
export interface TreeTokenScope {
  readonly kind: 'tree' | 'export';
  readonly org: string;
  readonly name: string;
  /** Folder; '' = the root. */
  readonly path: string;
}

/** Where a walk over the files of a project stands: a tree never changes, so a number says it. */
export interface TreeToken {
  /** Digest of the tree that the first page showed. */
  readonly head: string;
  /** Entries already answered. */
  readonly offset: number;
}

/**
 * Opaque to callers. It carries no authority (a page looks up its project again) and says what it belongs to, since going on in another
 * folder would lose files in silence.
 */
export function encodeTreeToken(sha256: Sha256, scope: TreeTokenScope, { head, offset }: TreeToken): string {
  return `1.${scope.kind}.${scopeMark(sha256, scope)}.${head}.${offset}`;
}

/** Refused (`invalid`, naming `page_token`): text that was not made here, or made for another list. */
export function decodeTreeToken(sha256: Sha256, scope: TreeTokenScope, text: string): Result<TreeToken, Refusal> {
  const [, kind, mark, head, digits] = /^1\.(tree|export)\.([0-9a-f]{16})\.([0-9a-f]{64})\.([0-9]{1,6})$/.exec(text) ?? [];
  if (head === undefined || digits === undefined || kind !== scope.kind) return err(foreignTreeToken());
  if (mark !== scopeMark(sha256, scope)) {
    return err(invalidField('page_token', 'belongs to another project or folder; repeat the parameters, or start again without a token'));
  }
  return ok({ head, offset: Number(digits) });
}

export function foreignTreeToken(): Refusal {
  return invalidField('page_token', 'is not a token of this list; use next_page_token of the page before');
}

function scopeMark(sha256: Sha256, { org, name, path }: TreeTokenScope): string {
  return sha256(JSON.stringify([org, name, path])).slice(0, 16);
}
