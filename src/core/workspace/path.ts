import { err, ok, type Result } from '../result.ts';

/** Longest path, in UTF-8 bytes. */
export const MAX_PATH_BYTES = 1_024;

/** Longest single name in a path, in UTF-8 bytes: what common file systems can store. */
export const MAX_SEGMENT_BYTES = 255;

/**
 * Reads a path of a workspace: relative to its root, `/` between names, the same file always spelled the same way.
 * What is accepted can never name a place outside the tree, on any system the tree is exported to. The text is kept as it
 * came (no Unicode normalisation: two names that differ in bytes are two files). The error says what is wrong, for people.
 * Which files a plan may touch (`.git` among them) is a matter of policy, not of this function.
 */
export function parsePath(value: unknown): Result<string, string> {
  if (typeof value !== 'string') return err('must be a string');
  if (value === '') return err('must not be empty');
  // Checked before anything walks the text: three bytes is the most a UTF-16 unit can take.
  if (value.length > MAX_PATH_BYTES || utf8Length(value) > MAX_PATH_BYTES) return err(`must be at most ${MAX_PATH_BYTES} bytes long`);
  if (!value.isWellFormed()) return err('must be well-formed Unicode');
  if (value.includes('\0')) return err('must not contain a NUL character');
  if (hasControlCharacter(value)) return err('must not contain control characters or line breaks');
  if (value.includes('\\')) return err("must not contain a backslash; names are separated by '/'");
  if (value.startsWith('/')) return err('must be relative to the root of the project, without a leading slash');
  if (/^[A-Za-z]:(?:\/|$)/.test(value)) return err('must be relative to the root of the project, without a drive letter');
  if (value.endsWith('/')) return err('must name a file, without a trailing slash');
  for (const segment of value.split('/')) {
    if (segment === '') return err("must not contain an empty name ('//')");
    if (segment === '.' || segment === '..') return err(`must not contain the segment '${segment}'`);
    if (utf8Length(segment) > MAX_SEGMENT_BYTES) return err(`must not contain a name longer than ${MAX_SEGMENT_BYTES} bytes`);
  }
  return ok(value);
}

/** The same for a directory, where the root may be named by `''`, `.` or `/`, and a trailing slash is allowed. Answers `''` for the root. */
export function parseDirectoryPath(value: unknown): Result<string, string> {
  if (value === '' || value === '.' || value === './' || value === '/') return ok('');
  return parsePath(typeof value === 'string' && value.length > 1 && value.endsWith('/') ? value.slice(0, -1) : value);
}

/**
 * Why a symbolic link at `path` may not point to `target`, or null when it stays inside the tree.
 * `..` is accepted only at the start: the directories above a link are real ones, while a later `..` would be resolved
 * against wherever another link leads, and could leave the tree although its text does not.
 */
export function symlinkTargetIssue(path: string, target: string): string | null {
  if (target === '') return 'must not be empty';
  if (target.length > MAX_PATH_BYTES || utf8Length(target) > MAX_PATH_BYTES) return `must be at most ${MAX_PATH_BYTES} bytes long`;
  if (!target.isWellFormed() || hasControlCharacter(target)) return 'must be plain text without control characters';
  if (target.includes('\\')) return 'must not contain a backslash';
  if (target.startsWith('/') || /^[A-Za-z]:/.test(target)) return 'must be relative';
  let above = path.split('/').length - 1;
  let descended = false;
  for (const segment of target.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') {
      descended = true;
      continue;
    }
    if (descended) return "must not contain '..' after a name";
    above -= 1;
    if (above < 0) return 'must stay inside the tree';
  }
  return null;
}

/** The directories a path lies in, outermost first: `a/b/c` → `a`, `a/b`. */
export function parentsOf(path: string): string[] {
  const parents: string[] = [];
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) parents.push(path.slice(0, at));
  return parents;
}

/** The last name of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/**
 * Order of two texts by their UTF-8 bytes (as `LC_ALL=C sort` and git do), whatever the platform's locale. The one order of this
 * folder: JavaScript's own compares UTF-16 units, which puts characters outside the basic plane before some inside it.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x === y) continue;
    const xIsSurrogate = x >= 0xd800 && x <= 0xdfff;
    const yIsSurrogate = y >= 0xd800 && y <= 0xdfff;
    if (xIsSurrogate !== yIsSurrogate) return xIsSurrogate ? 1 : -1;
    return x < y ? -1 : 1;
  }
  return a.length - b.length;
}

/** Number of bytes of a text in UTF-8, without encoding it. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    if (unit < 0x800) {
      bytes += 1;
      continue;
    }
    const isPair = unit >= 0xd800 && unit <= 0xdbff && text.charCodeAt(at + 1) >= 0xdc00 && text.charCodeAt(at + 1) <= 0xdfff;
    if (isPair) at += 1;
    bytes += 2;
  }
  return bytes;
}

/** C0, DEL, C1 and the Unicode line separators: they would break the line forms (manifest, digest, patch) or a terminal. */
function hasControlCharacter(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f) || unit === 0x2028 || unit === 0x2029) return true;
  }
  return false;
}
