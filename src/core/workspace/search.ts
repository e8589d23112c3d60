import { findText } from './find-text.ts';
import { compareUtf8 } from './path.ts';
import { matchesPathGlob } from './path-glob.ts';
import { decodeText } from './text.ts';

/** Most matches one search answers. */
export const MAX_SEARCH_RESULTS = 500;

export const DEFAULT_SEARCH_RESULTS = 100;

/** Longest query, in UTF-16 units. */
export const MAX_QUERY_LENGTH = 1_000;

/** Longest piece of a line that is shown, in UTF-16 units. */
const MAX_SHOWN_LENGTH = 400;

/** `pathGlob` narrows the files (see `matchesPathGlob`); `maxResults` is at most MAX_SEARCH_RESULTS. */
export interface SearchOptions {
  readonly ignoreCase?: boolean;
  readonly pathGlob?: string;
  readonly maxResults?: number;
}

/** A line that contains the query. `line` counts from 1; a long line is cut around its first match and marked with `…`. */
export interface SearchMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Matches by path and line; `truncated` when there may be more than were answered. */
export interface SearchResult {
  readonly matches: readonly SearchMatch[];
  readonly truncated: boolean;
}

/** Whether a file can match at all: asked before its bytes are fetched. */
export function isSearched(path: string, options: SearchOptions): boolean {
  return options.pathGlob === undefined || matchesPathGlob(options.pathGlob, path);
}

/**
 * The lines of the files that contain the query as it stands: literal, never a pattern. Binary files are passed over. A query that is
 * empty or holds a line break matches nothing. Files come in the order they are given; `mergeSearchResults` brings parts together.
 */
export function searchFiles(
  files: Iterable<{ readonly path: string; readonly bytes: Uint8Array }>,
  query: string,
  options: SearchOptions = {},
): SearchResult {
  const limit = searchLimit(options);
  const matches: SearchMatch[] = [];
  if (query === '' || query.includes('\n')) return { matches, truncated: false };
  for (const { path, bytes } of files) {
    if (!isSearched(path, options)) continue;
    const text = decodeText(bytes);
    if (text === null) continue;
    for (const match of searchText(path, text, query, options.ignoreCase ?? false)) {
      if (matches.length >= limit) return { matches, truncated: true };
      matches.push(match);
    }
  }
  return { matches, truncated: false };
}

/** One result of the results over disjoint sets of files (the base in one store, the changes in another), by path and line. */
export function mergeSearchResults(results: readonly SearchResult[], options: SearchOptions = {}): SearchResult {
  const limit = searchLimit(options);
  const all = results.flatMap((result) => result.matches).sort((a, b) => compareUtf8(a.path, b.path) || a.line - b.line);
  return { matches: all.slice(0, limit), truncated: all.length > limit || results.some((result) => result.truncated) };
}

function* searchText(path: string, text: string, query: string, ignoreCase: boolean): Generator<SearchMatch> {
  const needle = ignoreCase ? query.toLowerCase() : query;
  // Most files hold nothing: one pass over the whole decides that before any line is cut.
  if (findText(ignoreCase ? text.toLowerCase() : text, needle) === -1) return;
  let line = 1;
  for (let start = 0; start < text.length; line += 1) {
    const at = text.indexOf('\n', start);
    const end = at === -1 ? text.length : at;
    const content = text.slice(start, text.charCodeAt(end - 1) === 13 && end > start ? end - 1 : end);
    const found = findText(ignoreCase ? content.toLowerCase() : content, needle);
    if (found !== -1) yield { path, line, text: excerpt(content, found, needle.length) };
    start = end + 1;
  }
}

function excerpt(line: string, at: number, length: number): string {
  if (line.length <= MAX_SHOWN_LENGTH) return line;
  const start = Math.max(0, Math.min(at - Math.floor((MAX_SHOWN_LENGTH - length) / 2), line.length - MAX_SHOWN_LENGTH));
  const end = Math.min(line.length, start + MAX_SHOWN_LENGTH);
  // A cut may fall inside a surrogate pair.
  const shown = line.slice(start, end).toWellFormed();
  return `${start > 0 ? '…' : ''}${shown}${end < line.length ? '…' : ''}`;
}

/** How many matches a search may answer. */
export function searchLimit(options: SearchOptions): number {
  const asked = options.maxResults ?? DEFAULT_SEARCH_RESULTS;
  return Math.max(1, Math.min(MAX_SEARCH_RESULTS, Math.floor(asked)));
}
