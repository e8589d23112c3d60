import { decodeManifest, encodeManifest } from '../../core/workspace/manifest.ts';
import { type Tree, treeDigest } from '../../core/workspace/tree.ts';
import { sha256 } from '../sha256.ts';
import { bufferOf } from './blob-table.ts';

/** A row ends at 2 MB, which the local runtime does not enforce. */
const MAX_PART_BYTES = 1_048_576;

/** Parsed trees that are kept: the head, what is becoming the head, and the base of a plan that reads. */
const CACHED_TREES = 3;

/** The trees of a project, as manifests by digest, in parts. Trees are only ever added. */
export class TreeTable {
  private readonly sql: SqlStorage;
  /** In the order of use, the latest last. */
  private readonly parsed = new Map<string, Tree>();

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  /** Stores the tree unless it is here, and answers its digest. Inside a transaction of the caller. */
  put(tree: Tree): string {
    const digest = treeDigest(sha256, tree);
    const bytes = new TextEncoder().encode(encodeManifest(tree));
    // An empty tree is a part without bytes, so that it is told apart from a tree that is not here.
    for (let part = 0; part === 0 || part * MAX_PART_BYTES < bytes.byteLength; part += 1) {
      const slice = bytes.subarray(part * MAX_PART_BYTES, (part + 1) * MAX_PART_BYTES);
      this.sql.exec('INSERT OR IGNORE INTO manifests (tree, part, bytes) VALUES (?, ?, ?)', digest, part, bufferOf(slice));
    }
    return digest;
  }

  manifest(digest: string): string | null {
    const parts = this.sql.exec('SELECT bytes FROM manifests WHERE tree = ? ORDER BY part', digest).toArray();
    if (parts.length === 0) return null;
    // A part may end inside a character.
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let text = '';
    for (const { bytes } of parts) if (bytes instanceof ArrayBuffer) text += decoder.decode(bytes, { stream: true });
    return text + decoder.decode();
  }

  tree(digest: string): Tree | null {
    const known = this.parsed.get(digest);
    const tree = known ?? this.parse(digest);
    if (tree === null) return null;
    this.parsed.delete(digest);
    this.parsed.set(digest, tree);
    for (const oldest of this.parsed.keys()) {
      if (this.parsed.size <= CACHED_TREES) break;
      this.parsed.delete(oldest);
    }
    return tree;
  }

  private parse(digest: string): Tree | null {
    const text = this.manifest(digest);
    if (text === null) return null;
    const tree = decodeManifest(text);
    if (!tree.ok) throw new Error(`the stored manifest of ${digest} is damaged: ${tree.error.message}`);
    return tree.value;
  }
}
