/**
 * Names of tools, and how list entries are compared with them.
 *
 * Promise: names match exactly or by an anchored `*` glob in which every other character is itself. Allowlists compare exactly;
 * denylists compare folded, so that a look-alike of a denied name is denied too. Nothing here uses an object as a map.
 */

/** The longest name of a tool, in characters. */
export const MAX_TOOL_NAME_LENGTH = 128;

const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_]*(?:[./:-][A-Za-z0-9_]+)*$/;

/** Plain ASCII: letters, digits and `_`, in parts joined by one of `.` `/` `:` `-`; the first character is a letter. */
export function isToolName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_TOOL_NAME_LENGTH && TOOL_NAME.test(name);
}

/** Whether the whole of `name` matches: exactly, or by `*` for any run of characters (also none). No other character is special. */
export function matchesPattern(pattern: string, name: string): boolean {
  if (!pattern.includes('*')) return pattern === name;
  // Two pointers with one fallback to the last star: linear memory, no regular expression, no catastrophic backtracking.
  let p = 0;
  let n = 0;
  let star = -1;
  let resume = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      star = p;
      resume = n;
      p += 1;
    } else if (p < pattern.length && pattern[p] === name[n]) {
      p += 1;
      n += 1;
    } else if (star >= 0) {
      p = star + 1;
      resume += 1;
      n = resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

/**
 * Whether any name of a tool can match, whatever tools there are: an executor outside may name its own. An entry that cannot (blanks, signs
 * that no name has, two separators in a row) guards nothing. `'denial'`: compared as a denylist does.
 */
export function canMatchToolName(pattern: string, compared: 'exactly' | 'denial'): boolean {
  // Folding would drop blanks: `rm -rf *` is meant for a command line, and would deny a tool named `rm-rf`.
  if (/\s/.test(pattern)) return false;
  const literal = compared === 'denial' ? foldForDenial(pattern) : pattern;
  const parts = literal.split('*');
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  const isShort = literal.replaceAll('*', '').length <= MAX_TOOL_NAME_LENGTH;
  // The first character of a name is a letter, the last no separator; between stars anything of a name may stand.
  return isShort && parts.every((part) => NAME_PART.test(part)) && (first === '' || /^[A-Za-z]/.test(first)) && !/[./:-]$/.test(last);
}

/** What is said of an entry that `canMatchToolName` denies. */
export const MATCHES_NOTHING =
  'can match no tool: a name is letters, digits and _, in parts joined by one of . / : - (* stands for any run of characters)';

/** A run of characters of a name: no two separators in a row. */
const NAME_PART = /^[./:-]?(?:[A-Za-z0-9_]+[./:-])*[A-Za-z0-9_]*$/;

/** `matchesPattern` between the forms for denial of both sides: what a denylist uses. */
export function matchesFolded(pattern: string, name: string): boolean {
  return matchesAnyFolded(pattern, [foldForDenial(name)]);
}

/** `matchesFolded` against several names that are in their form for denial already: a call folds its names once, not once per entry. */
export function matchesAnyFolded(pattern: string, foldedNames: readonly string[]): boolean {
  const folded = foldForDenial(pattern);
  // An entry that folds to nothing would match nothing or everything by accident; saving refuses it, comparing ignores it.
  return folded !== '' && foldedNames.some((name) => matchesPattern(folded, name));
}

/**
 * The form in which a name and an entry that denies it are compared: folded, and with one separator, since callers write the namespace of
 * one and the same tool as `ns/name`, `ns.name` or `ns:name`. Apart from that `.` stands for itself alone.
 */
export function foldForDenial(name: string): string {
  return foldName(name).replaceAll(/[/:]/g, '.');
}

/**
 * The name without its disguise: compatibility forms unified (full-width letters), marks, spaces, controls and
 * invisible characters dropped, letters of other scripts that look Latin replaced, lower case.
 */
export function foldName(name: string): string {
  if (PLAIN_LOWER_ASCII.test(name)) return name;
  let folded = '';
  for (const character of name.normalize('NFKD').replace(INVISIBLE, '')) {
    folded += CONFUSABLES.get(character) ?? CONFUSABLES.get(character.toLowerCase()) ?? character.toLowerCase();
  }
  return folded.normalize('NFKC');
}

/** The entry of `existing` that a reader could take for `name` without being it: equal when folded, or but for `1`/`l`/`I` and `0`/`O`. */
export function findLookAlike(name: string, existing: Iterable<string>): string | null {
  const wanted = skeleton(name);
  for (const other of existing) if (other !== name && skeleton(other) === wanted) return other;
  return null;
}

/** The first entry that is blank or not text, as its index; null when all are usable. Such entries are refused when a list is saved. */
export function findBlankEntry(entries: readonly unknown[]): number | null {
  const index = entries.findIndex((entry) => typeof entry !== 'string' || foldName(entry) === '');
  return index < 0 ? null : index;
}

function skeleton(name: string): string {
  return foldName(name).replaceAll(/[l1|]/g, 'i').replaceAll('0', 'o');
}

const PLAIN_LOWER_ASCII = /^[!-@[-~]*$/;

/** Separators, controls, format characters (zero width, direction marks), unassigned and private characters, combining marks. */
const INVISIBLE = /[\p{Z}\p{C}\p{M}\u115F\u1160\u3164\uFFA0\u2800]/gu;

/** Latin letter or sign ← characters of other scripts that look like it. Compatibility forms need no row: NFKD unifies them. */
const CONFUSABLE_ROWS: readonly (readonly [string, string])[] = [
  ['a', 'аɑαΑАᴀ'],
  ['b', 'ВΒвƄЬьᏴᏼЪ'],
  ['c', 'сСϲϹᴄҁ'],
  ['d', 'ԁԀժᏧ'],
  ['e', 'еЕεΕҽєЄ'],
  ['f', 'ϝϜғҒ'],
  ['g', 'ɡԌԍց'],
  ['h', 'һҺНΗнհᏂ'],
  ['i', 'іІιΙɩıӏӀן'],
  ['j', 'јЈϳȷ'],
  ['k', 'кКκΚĸ'],
  ['l', 'ɭʟ'],
  ['m', 'мМΜϻᴍ'],
  ['n', 'Νոռпηɴ'],
  ['o', 'оОοΟσօՕᴏ〇'],
  ['p', 'рРρΡᴘ'],
  ['q', 'ԛԚգզ'],
  ['r', 'гʀᴦɾ'],
  ['s', 'ѕЅʂꜱ'],
  ['t', 'тТτΤᴛ'],
  ['u', 'υսʊᴜ'],
  ['v', 'ѵѴνᴠ'],
  ['w', 'ѡԝԜωᴡա'],
  ['x', 'хХχΧ×'],
  ['y', 'уУүҮγΥʏ'],
  ['z', 'ΖᴢʐζⱫ'],
  ['-', '‐‑‒–—―−⁃˗'],
  ['.', '․‧·⋅∙•'],
  ['/', '⁄∕⧸'],
  [':', '։׃∶꞉ː'],
  ['_', 'ˍ'],
  ['*', '∗⁎٭'],
];

const CONFUSABLES: ReadonlyMap<string, string> = new Map(
  CONFUSABLE_ROWS.flatMap(([latin, lookAlikes]) => [...lookAlikes].map((character) => [character, latin] as const)),
);
