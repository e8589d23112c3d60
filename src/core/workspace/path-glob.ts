import { baseName, parentsOf } from './path.ts';

/** Longest glob, in UTF-16 units: bounds the work of a match. */
export const MAX_GLOB_LENGTH = 512;

/**
 * Whether a path matches a glob, as in a .gitignore line: `*` and `?` stay within a name, `**` spans directories, a glob without `/`
 * matches a name at any depth, and a glob that matches a directory covers all below it. A leading `/` ties a name to the root.
 * Written as a table walk: a glob comes from outside, and a regular expression made of it could take exponential time.
 */
export function matchesPathGlob(glob: string, path: string): boolean {
  if (glob === '' || glob.length > MAX_GLOB_LENGTH) return false;
  const isDirectoryOnly = glob.endsWith('/');
  const body = isDirectoryOnly ? glob.slice(0, -1) : glob;
  const candidates = isDirectoryOnly ? parentsOf(path) : [...parentsOf(path), path];
  if (!body.includes('/')) return candidates.some((candidate) => matchesName(body, baseName(candidate)));
  const pattern = (body.startsWith('/') ? body.slice(1) : body).split('/');
  return candidates.some((candidate) => matchesSegments(pattern, candidate.split('/')));
}

/** `reachable[i]`: the names read so far can be matched by the first `i` parts of the pattern. */
function matchesSegments(pattern: readonly string[], names: readonly string[]): boolean {
  let reachable = closeOverStars(pattern, new Set([0]));
  for (const name of names) {
    const next = new Set<number>();
    for (const at of reachable) {
      const part = pattern[at];
      if (part === undefined) continue;
      if (part === '**') next.add(at);
      else if (matchesName(part, name)) next.add(at + 1);
    }
    if (next.size === 0) return false;
    reachable = closeOverStars(pattern, next);
  }
  return reachable.has(pattern.length);
}

/** `**` also matches no name at all. */
function closeOverStars(pattern: readonly string[], positions: Set<number>): Set<number> {
  for (const at of positions) if (pattern[at] === '**') positions.add(at + 1);
  return positions;
}

/** One name against a pattern of literals, `*` and `?`: the last star is the only one ever widened again. */
function matchesName(pattern: string, name: string): boolean {
  const parts = [...pattern];
  const characters = [...name];
  let at = 0;
  let part = 0;
  let starPart = -1;
  let starAt = 0;
  while (at < characters.length) {
    if (parts[part] === '*') {
      starPart = part;
      starAt = at;
      part += 1;
    } else if (part < parts.length && (parts[part] === '?' || parts[part] === characters[at])) {
      part += 1;
      at += 1;
    } else if (starPart !== -1) {
      starAt += 1;
      at = starAt;
      part = starPart + 1;
    } else {
      return false;
    }
  }
  while (parts[part] === '*') part += 1;
  return part === parts.length;
}
