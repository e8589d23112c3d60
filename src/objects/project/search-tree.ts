import type { SearchHit } from '../../app/ports.ts';
import { isSearched, type SearchOptions, searchFiles } from '../../core/workspace/search.ts';
import { encodeText } from '../../core/workspace/text.ts';
import type { Tree } from '../../core/workspace/tree.ts';
import type { BlobTable } from './blob-table.ts';

/** `skipPaths` are searched elsewhere: the files that a plan has changed. */
export interface ProjectSearchOptions extends Omit<SearchOptions, 'maxResults'> {
  readonly limit: number;
  readonly skipPaths: readonly string[];
}

/** Searches the files of a tree, one blob in memory at a time. Links are passed over: their content is a path, not text. */
export function searchTree(
  tree: Tree,
  blobs: BlobTable,
  query: string,
  { limit, skipPaths, ...options }: ProjectSearchOptions,
): { readonly hits: readonly SearchHit[]; readonly truncated: boolean } {
  const { matches, truncated } = searchFiles(candidates(tree, blobs, query, new Set(skipPaths), options), query, {
    ...options,
    maxResults: limit,
  });
  return { hits: matches, truncated };
}

function* candidates(tree: Tree, blobs: BlobTable, query: string, skipped: ReadonlySet<string>, options: SearchOptions) {
  const needle = encodeText(query);
  for (const { path, blob, mode } of tree.entries.values()) {
    if (mode === '120000' || skipped.has(path) || !isSearched(path, options)) continue;
    const bytes = options.ignoreCase === true ? blobs.get(blob) : blobs.getIfContains(blob, needle);
    if (bytes !== null) yield { path, bytes };
  }
}
