import { matchesPathGlob } from './path-glob.ts';

/** What a project protects unless it says otherwise; it holds as well where an executor outside has a tree that nobody here knows. */
export const DEFAULT_PROTECTED_PATHS: readonly string[] = ['.git/**', '.github/**', '.env*'];

/** Always protected, whatever a project's settings say: what git runs. */
const ALWAYS_PROTECTED = ['.git/**', '**/.git/**'] as const;

/** Whether a change of this path needs a human, by the globs of a project and those that always hold. */
export function isProtectedPath(globs: readonly string[], path: string): boolean {
  return [...ALWAYS_PROTECTED, ...globs].map(foldPath).some((glob) => matchesPathGlob(glob, foldPath(path)));
}

/** One spelling for what some file system takes for the same name: case, composition, and characters that do not show. */
function foldPath(path: string): string {
  return path
    .normalize('NFKC')
    .replaceAll(/[\u200B-\u200F\u2060\uFEFF]/g, '')
    .toLowerCase();
}
