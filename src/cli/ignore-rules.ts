import ignore, { type Ignore } from 'ignore';

/**
 * Which paths of a tree its `.gitignore` files exclude, with git's rules: the last matching pattern wins, deeper files come after
 * higher ones, and nothing below an excluded directory can be included again.
 *
 * Patterns of a nested file are rewritten to start at the root, so that one list decides; two lists asked one after the other
 * would treat what a parent inherits as a match of its own.
 */
export class IgnoreRules {
  private readonly patterns: readonly string[];
  private readonly matcher: Ignore;

  private constructor(patterns: readonly string[]) {
    this.patterns = patterns;
    this.matcher = ignore({ ignorecase: false }).add([...patterns]);
  }

  static readonly none: IgnoreRules = new IgnoreRules([]);

  /** These rules and those of one more file. `directory` is where it lies: '' for the root, else `a/b`. */
  with(directory: string, gitignore: string): IgnoreRules {
    const added = gitignore.split(/\r?\n/).flatMap((line) => {
      const pattern = fromRoot(directory, line);
      return pattern === null ? [] : [pattern];
    });
    return added.length === 0 ? this : new IgnoreRules([...this.patterns, ...added]);
  }

  /** `path` is relative to the root; its parents are not excluded. */
  excludes(path: string, isDirectory: boolean): boolean {
    return this.matcher.ignores(isDirectory ? `${path}/` : path);
  }
}

/** A line as a pattern that means the same at the root; null for comments and lines without pattern. */
function fromRoot(directory: string, line: string): string | null {
  if (line === '' || line.startsWith('#')) return null;
  const isNegated = line.startsWith('!');
  const pattern = isNegated ? line.slice(1) : line;
  const body = pattern.replace(/(?<!\\)[ \t]+$/, '');
  if (body === '' || body === '/') return null;
  if (directory === '') return `${isNegated ? '!' : ''}${body}`;
  const isAnchored = body.replace(/\/$/, '').includes('/');
  const anchored = `/${escaped(directory)}/${isAnchored ? body.replace(/^\//, '') : `**/${body}`}`;
  return `${isNegated ? '!' : ''}${anchored}`;
}

/** A directory's name as a pattern that matches only itself. */
const escaped = (directory: string): string => directory.replace(/[\\*?[\]!# ]/g, (character) => `\\${character}`);
