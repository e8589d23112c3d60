/** What whoever sends or receives the files of a project must know before the service says it: limits, and which names are safe. */
import { parsePath, symlinkTargetIssue } from '../core/workspace/path.ts';
import { MAX_FILE_BYTES, MAX_FILES } from '../core/workspace/tree.ts';

export const PROJECT_LIMITS = { maxFiles: MAX_FILES, maxFileBytes: MAX_FILE_BYTES, maxBodyBytes: 4 * 1024 * 1024 } as const;

/** Why a path cannot be in a project, or null. What passes stays inside whatever folder it is joined to. */
export function projectPathIssue(path: string): string | null {
  const parsed = parsePath(path);
  return parsed.ok ? null : parsed.error;
}

/** Why a symbolic link at `path` may not point to `target`, or null when it stays inside the project. */
export function projectLinkIssue(path: string, target: string): string | null {
  return symlinkTargetIssue(path, target);
}
