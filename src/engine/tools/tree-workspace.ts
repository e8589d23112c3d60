import {
  isSearched,
  type SearchMatch,
  type SearchOptions,
  type SearchResult,
  searchFiles,
  searchLimit,
} from '../../core/workspace/search.ts';
import { findEntry, listDirectory, type Tree } from '../../core/workspace/tree.ts';
import type { WorkspaceReader } from './tool.ts';

/** Gives the bytes of a blob by its digest. Null for a blob that is lost, which makes the file unreadable and is never read as empty. */
export type BlobLoader = (blob: string) => Promise<Uint8Array | null>;

/**
 * A workspace over a tree and something that loads blobs. `search` may be replaced by one that runs where most blobs are; this one
 * loads the files it looks through, one after the other, and stops when it has enough.
 */
export function makeTreeWorkspace(
  tree: Tree,
  loadBlob: BlobLoader,
  search: WorkspaceReader['search'] = searchTree(tree, loadBlob),
): WorkspaceReader {
  return {
    read: async (path) => {
      const entry = findEntry(tree, path);
      if (entry === null) return null;
      return readBlob(loadBlob, path, entry.blob);
    },
    entry: async (path) => findEntry(tree, path),
    list: async (directory) => listDirectory(tree, directory),
    search,
  };
}

function searchTree(tree: Tree, loadBlob: BlobLoader): WorkspaceReader['search'] {
  return async (query: string, options: SearchOptions): Promise<SearchResult> => {
    const limit = searchLimit(options);
    const matches: SearchMatch[] = [];
    for (const { path, blob, mode } of tree.entries.values()) {
      if (mode === '120000' || !isSearched(path, options)) continue;
      const bytes = await readBlob(loadBlob, path, blob);
      // One more than fits: it shows that there is more.
      const found = searchFiles([{ path, bytes }], query, { ...options, maxResults: limit - matches.length + 1 });
      matches.push(...found.matches);
      if (matches.length > limit || found.truncated) return { matches: matches.slice(0, limit), truncated: true };
    }
    return { matches, truncated: false };
  };
}

async function readBlob(loadBlob: BlobLoader, path: string, blob: string): Promise<Uint8Array> {
  const bytes = await loadBlob(blob);
  if (bytes === null) throw new Error(`the content of '${path}' (${blob}) is lost`);
  return bytes;
}
