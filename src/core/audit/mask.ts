/**
 * Secrets do not leave with a trail, a stream or an export.
 *
 * Two rules find them: the name of the member that holds a value (`authorization`, `password`, `github_token`, …) and the shape of the
 * text (our own keys, bearer credentials, keys of common providers, JSON web tokens, private keys, passwords in addresses). A text is also
 * the name of a member.
 *
 * How this goes together with a log whose rows are hashed, in the order in which a secret meets it:
 *
 * 1. **What has a secret in it is not written into the log.** Arguments, inputs, messages, parts and results are stored values
 *    (`Work.store`); one that holds a secret is kept as a blob beside the log whatever its size, so that the row has its digest only. The
 *    row can be exported as it is and its hash can be recomputed by anybody.
 * 2. **Free text that the plan itself goes on working with** (guidance, the answer to a question, an action's own script, the message of
 *    an error) stays in its row, since the state is the fold of the log. Such a row leaves as a `masked_row`: its place and its hash are as
 *    they were, its content is masked, and the content is covered by the signature of the export (api/audit-file.ts) instead of by the hash.
 *    Rows that hide nothing are never masked, so nearly every row of an export is verified by its own content.
 * 3. **Audit entries** (D1, `plan/guard/audit`, CSV) are masked when they are made, so a secret never reaches D1.
 * 4. **People who approve a call** see its true arguments except for the secrets themselves: only the value of a secret member, or the
 *    characters of the secret in a text, are replaced, never what stands around them. The approval's digest covers the true value.
 *
 * 5. **What tells of the plan** (status and history of a task, its stream, the decision tree, why it is halted) is masked where it is shown.
 *
 * Not masked: files, diffs and artifacts (`plan/diff`, artifacts, bytes in messages). They are the product of the plan and belong to whoever
 * may read them; a patch with a mask in it would be another patch.
 */
import type { JsonValue } from '../json.ts';

/** Stands in the place of a secret. */
export const MASK = '[masked]';

/** Names, without case and separators, whose values are secret wherever they stand. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'cookies',
  'setcookie',
  'token',
  'tokens',
  'secret',
  'secrets',
  'password',
  'passwords',
  'passwd',
  'passphrase',
  'passcode',
  'pwd',
  'otp',
  'apikey',
  'apikeys',
  'credential',
  'pass',
  'bearer',
  'jwt',
  'passwordhash',
  'authheader',
  'mnemonic',
  'seedphrase',
  'credentials',
  'connectionstring',
]);

/** A name that ends like this says the same of its own kind of secret: `github_token`, `db_password`, `x-api-key`. */
const SECRET_ENDINGS = [
  'token',
  'secret',
  'password',
  'passphrase',
  'apikey',
  'secretkey',
  'privatekey',
  'accesskey',
  'accountkey',
  'signingkey',
  'encryptionkey',
  'masterkey',
  'sshkey',
  'credentials',
] as const;

/** Tokens that mark a place and open nothing. */
const PLACE_TOKENS = ['pagetoken', 'nexttoken', 'continuationtoken', 'synctoken', 'maxtoken'] as const;

/** Deeper values than any that is accepted: whatever is below is not looked at, so it is not shown. */
const MAX_DEPTH = 80;

/** Whether the value of a member with this name is a secret. */
export function isSecretName(name: string): boolean {
  // `password2` is one more password.
  const plain = name.toLowerCase().replace(/[^a-z0-9]|\d+$/g, '');
  if (SECRET_NAMES.has(plain)) return true;
  return SECRET_ENDINGS.some((ending) => plain.endsWith(ending)) && !PLACE_TOKENS.some((ending) => plain.endsWith(ending));
}

/** The value with every secret replaced. A value without one is answered as it is, the same object. */
export function maskJson<T extends JsonValue>(value: T): T | JsonValue {
  return masked(value, false, 0);
}

/** Whether `maskJson` would replace anything. */
export function holdsSecret(value: JsonValue): boolean {
  return maskJson(value) !== value;
}

/** The text with everything that looks like a secret replaced, and what stands around it kept. Takes time in proportion to its length. */
export function maskText(text: string): string {
  // Looking for words is many times faster than looking for shapes, and most texts have none of them.
  if (text.length < MIN_SECRET_TEXT || !ANY_WORD.test(text)) return text;
  const lower = text.toLowerCase();
  let next = text.includes('-----BEGIN ') ? maskPrivateKeys(text) : text;
  for (const { words, pattern, replace } of PATTERNS) {
    if (words.some((word) => lower.includes(word))) next = next.replace(pattern, replace as (...found: string[]) => string);
  }
  return next;
}

function masked(value: JsonValue, isSecret: boolean, depth: number): JsonValue {
  if (depth > MAX_DEPTH) return MASK;
  if (typeof value === 'string') return isSecret ? maskWhole(value) : maskText(value);
  if (typeof value === 'number') return isSecret ? MASK : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value as readonly JsonValue[];
    const next = items.map((item) => masked(item, isSecret, depth + 1));
    return next.some((item, index) => item !== items[index]) ? next : value;
  }
  const before = Object.entries(value as { readonly [key: string]: JsonValue });
  const names = maskedNames(before.map(([name]) => name));
  const after = before.map(([name, member], index): [string, JsonValue] => [
    names[index] ?? name,
    masked(member, isSecret || isSecretMember(name, member), depth + 1),
  ]);
  if (after.every(([name, member], index) => name === before[index]?.[0] && member === before[index][1])) return value;
  return Object.fromEntries(after);
}

/** Names may be secrets too. Those that look alike once they are masked are numbered, so that each stays a member of its own. */
function maskedNames(names: readonly string[]): readonly string[] {
  const shown = names.map((name) => maskText(name));
  if (shown.every((name, index) => name === names[index])) return names;
  const taken = new Set(names);
  const last = new Map<string, number>();
  return shown.map((name, index) => {
    if (name === names[index]) return name;
    let number = last.get(name) ?? 1;
    let next = number === 1 ? name : `${name} (${number})`;
    while (taken.has(next)) {
      number += 1;
      next = `${name} (${number})`;
    }
    last.set(name, number);
    taken.add(next);
    return next;
  });
}

function isSecretMember(name: string, member: JsonValue): boolean {
  if (!isSecretName(name)) return false;
  // How many tokens a model may use is no secret.
  if (typeof member === 'number') return !/tokens?$/i.test(name);
  // A JSON Schema names the members that will be secret and holds none of them.
  return !isSchema(member);
}

function isSchema(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { type } = value as { readonly [key: string]: JsonValue };
  return typeof type === 'string' && ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'].includes(type);
}

/** Empty says that there is none; a reference in a template says where it will come from. */
function maskWhole(text: string): string {
  return text === '' || /^\$\{[^}]*\}$/.test(text) ? text : MASK;
}

/* ---------------------------------------------------------------- the shapes of secrets in a text */

/** No pattern below matches anything shorter. */
const MIN_SECRET_TEXT = 8;

interface Shape {
  /** In lower case; every text that the pattern matches has one of them. */
  readonly words: readonly string[];
  readonly pattern: RegExp;
  readonly replace: string | ((...found: string[]) => string);
}

/** Words follow `bearer` and `token =` as well; what is random has a digit in it, or no end. */
const looksRandom = (value: string): boolean => /\d/.test(value) || value.length >= 24;

/** Keys that say what they are by their first characters. Bounded or of disjoint parts, so that no text makes them slow. */
const PROVIDER_KEYS = [
  'sk-[A-Za-z0-9_-]{20,}',
  '[rs]k_(?:live|test)_[A-Za-z0-9]{10,}',
  'whsec_[A-Za-z0-9+/=]{16,}',
  'gh[oprsu]_[A-Za-z0-9]{20,}',
  'github_pat_[A-Za-z0-9_]{20,}',
  'glpat-[A-Za-z0-9_-]{16,}',
  'xox[abeoprs]-[A-Za-z0-9-]{10,}',
  'xapp-[A-Za-z0-9-]{10,}',
  'A(?:KIA|SIA)[A-Z0-9]{16}',
  'AIza[A-Za-z0-9_-]{30,}',
  'ya29\\.[A-Za-z0-9_-]{20,}',
  'npm_[A-Za-z0-9]{30,}',
  'hf_[A-Za-z0-9]{30,}',
  'pypi-[A-Za-z0-9_-]{40,}',
  'dop_v1_[a-f0-9]{32,}',
  'SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}',
  'GOCSPX-[A-Za-z0-9_-]{20,}',
  'gsk_[A-Za-z0-9]{30,}',
  'xai-[A-Za-z0-9]{30,}',
  'hv[bs]\\.[A-Za-z0-9_-]{20,}',
  'dapi[a-f0-9]{32}',
  'SK[a-f0-9]{32}',
  'AGE-SECRET-KEY-1[A-Z0-9]{40,}',
  '[0-9]{8,10}:AA[A-Za-z0-9_-]{33}',
  'eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}(?:\\.[A-Za-z0-9_-]*)?',
].join('|');

const PROVIDER_WORDS = [
  'sk-',
  'k_live_',
  'k_test_',
  'whsec_',
  'ghp_',
  'gho_',
  'ghu_',
  'ghs_',
  'ghr_',
  'github_pat_',
  'glpat-',
  'xox',
  'xapp-',
  'akia',
  'asia',
  'aiza',
  'ya29.',
  'npm_',
  'hf_',
  'pypi-',
  'dop_v1_',
  'sg.',
  'gocspx-',
  'gsk_',
  'xai-',
  'hvs.',
  'hvb.',
  'dapi',
  'sk',
  'age-secret-key-',
  ':aa',
  'eyj',
];

const ASSIGNED_NAMES =
  'authorization|(?:api|secret|private|access|account|signing|encryption|shared)[_-]?key|(?:access|auth|refresh|bearer|id)[_-]?token|client[_-]?secret|password|passwd|passphrase|secret|token';

const PATTERNS: readonly Shape[] = [
  // Our own keys: the id is no secret and says whose it is.
  { words: ['ca_'], pattern: /(?<![A-Za-z0-9_])(ca_[A-Za-z0-9-]{1,64}_)[A-Za-z0-9_-]{22,}/g, replace: `$1${MASK}` },
  {
    words: PROVIDER_WORDS,
    pattern: new RegExp(`(?<![A-Za-z0-9_])(?:${PROVIDER_KEYS})`, 'g'),
    replace: (found) => (looksRandom(found ?? '') ? MASK : (found ?? '')),
  },
  {
    words: ['bearer', 'basic'],
    pattern: /\b((?:bearer|basic) {1,4})([A-Za-z0-9._~+/-]{8,}={0,2})/gi,
    replace: (all = '', scheme = '', value = '') => (looksRandom(value) ? `${scheme}${MASK}` : all),
  },
  // name=value and "name": "value", also inside a text that is JSON itself.
  {
    words: ['key', 'token', 'secret', 'passw', 'passphrase', 'authorization'],
    pattern: new RegExp(
      `((?:${ASSIGNED_NAMES})\\\\?["']? ?[:=] ?\\\\?["']?(?:[A-Za-z]{1,16} )?)([A-Za-z0-9._~+/!@#$%^*-]{6,}={0,2})(?![A-Za-z0-9._~+/!@#$%^*([-])`,
      'gi',
    ),
    replace: (all = '', name = '', value = '') => (looksRandom(value) ? `${name}${MASK}` : all),
  },
  { words: ['cookie'], pattern: /\b((?:set-)?cookie ?: ?)([^\r\n"'\\]{4,})/gi, replace: `$1${MASK}` },
  // The secret that belongs to an AWS key id says nothing by its own shape; beside the id it is one.
  {
    words: ['akia', 'asia'],
    pattern: /(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g,
    replace: (all = '') => (/[A-Z]/.test(all) && /[a-z]/.test(all) && /\d/.test(all) ? MASK : all),
  },
  { words: ['hooks.slack.com/'], pattern: /(hooks\.slack\.com\/(?:services|workflows)\/)[A-Za-z0-9/_-]{20,}/gi, replace: `$1${MASK}` },
  // Shared access signatures of addresses.
  { words: ['sig='], pattern: /([?&;]sig=)[A-Za-z0-9%+/_-]{20,}={0,2}/gi, replace: `$1${MASK}` },
  { words: ['curl '], pattern: /(\bcurl [^\r\n]{0,200}?(?:-u|--user) ?["']?[^\s:"']{1,64}:)[^\s"']{1,200}/gi, replace: `$1${MASK}` },
  // https://token@host
  {
    words: ['://'],
    pattern: /(\b[a-z][a-z0-9+.-]{1,20}:\/\/)([A-Za-z0-9_-]{20,200})@/gi,
    replace: (all = '', scheme = '', value = '') => (looksRandom(value) ? `${scheme}${MASK}@` : all),
  },
  // https://user:password@host
  { words: ['://'], pattern: /(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@?#"']{0,100}:)[^\s/@?#"']{1,200}@/gi, replace: `$1${MASK}@` },
];

const ANY_WORD = new RegExp(
  ['-----BEGIN ', ...PATTERNS.flatMap(({ words }) => words)].map((word) => word.replace('.', '\\.')).join('|'),
  'i',
);

const KEY_BEGINS = /-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_ENDS = '-----END ';
const KEY_LAST = /PRIVATE KEY(?: BLOCK)?-----/;

/** A private key in PEM up to its last line; one that was cut off up to where its text ends. */
function maskPrivateKeys(text: string): string {
  let next = '';
  let at = 0;
  let end = 0;
  for (const { index, 0: begin } of text.matchAll(KEY_BEGINS)) {
    if (index < at) continue;
    const body = index + begin.length;
    // Looked for once, however many keys begin and never end.
    if (end !== -1 && end < body) end = text.indexOf(KEY_ENDS, body);
    const last = end === -1 ? null : KEY_LAST.exec(text.slice(end, end + 100));
    // Nothing but the key stands between its first and its last line: what is more than that stays readable.
    const isWhole = last !== null && end - body < 20_000 && /^[A-Za-z0-9+/=\s\\:,.-]*$/.test(text.slice(body, end));
    const stop = isWhole ? end + last.index + last[0].length : endOfKeyText(text, body);
    next += `${text.slice(at, index)}${MASK}`;
    at = stop;
  }
  return next + text.slice(at);
}

function endOfKeyText(text: string, from: number): number {
  const lines = /(?:\s|\\n)*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\n)*)*/y;
  lines.lastIndex = from;
  return from + (lines.exec(text)?.[0].length ?? 0);
}
