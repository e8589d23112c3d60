import type { PathChange } from '../core/plan/at-once.ts';
import { entryAs } from '../core/plan/at-once.ts';
import { findEntry } from '../core/workspace/tree.ts';
import type { WorkspaceView } from './plan-workspace.ts';
import type { WorkspaceReader } from './tools/tool.ts';

/** Most files that one call is noted to have read: the note stands in a row of the log. */
const MAX_NOTED = 100;

/** A reader, and what was read by it so far: each path as it is in the tree of the view; a file that was looked for in vain is none. */
export interface WatchedReader {
  readonly reader: WorkspaceReader;
  seen(): readonly PathChange[];
}

/**
 * Notes which files are read. A search or a list shows too little of a file to be a reading of it; asking for the entry of a file that is
 * not there tells all there is to know of it.
 */
export function watchReads({ tree, reader }: Pick<WorkspaceView, 'tree' | 'reader'>): WatchedReader {
  const paths = new Set<string>();
  return {
    reader: {
      ...reader,
      read: (path) => {
        paths.add(path);
        return reader.read(path);
      },
      entry: async (path) => {
        const entry = await reader.entry(path);
        if (entry === null) paths.add(path);
        return entry;
      },
    },
    seen: () => [...paths].slice(-MAX_NOTED).map((path) => [path, entryAs(findEntry(tree, path))]),
  };
}
