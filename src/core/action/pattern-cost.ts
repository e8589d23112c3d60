/**
 * How expensive a regular expression can become on a hostile text. The engine backtracks: a repeated group that can match in several ways
 * takes exponential time, and each further unbounded repetition multiplies by the length of the text. So patterns of a schema are held to
 * a form whose cost is bounded: no back references, nothing variable inside a repeated group, and few unbounded repetitions.
 */

/** Longest text that a pattern with several unbounded repetitions may be tried on (`maxLength` beside it). */
export const MAX_MATCHED_CHARACTERS = 1000;

const MAX_UNBOUNDED = 3;

/** What makes a pattern too expensive, or null. `maxLength` bounds the texts it is tried on; null: nothing does. */
export function patternIssue(pattern: string, maxLength: number | null): string | null {
  if (/\\(?:[1-9]|k<)/.test(pattern)) return 'must not refer back to a group';
  // What escapes and classes hold are single characters: one letter stands for each.
  const plain = pattern.replaceAll(/\\[pPu]\{[^}]*\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\./gu, 'x').replaceAll(/\[[^\]]*\]/g, 'x');
  if (hasVariableRepeatedGroup(plain))
    return 'must not repeat a group that can match in several ways (a repetition or an alternative inside it)';
  const unbounded = plain.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  if (unbounded > MAX_UNBOUNDED) return `must have at most ${MAX_UNBOUNDED} unbounded repetitions`;
  if (unbounded > 1 && (maxLength === null || maxLength > MAX_MATCHED_CHARACTERS)) {
    return `has several unbounded repetitions, so the text needs a maxLength of at most ${MAX_MATCHED_CHARACTERS}`;
  }
  return null;
}

/** Innermost groups first: a group that is not repeated becomes its content, a repeated one may hold nothing variable. */
function hasVariableRepeatedGroup(plain: string): boolean {
  let rest = plain;
  for (;;) {
    const group = /\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?([^()]*)\)([*+]|\{\d+(?:,\d*)?\})?/.exec(rest);
    if (group === null) return false;
    const [whole, content = '', repetition] = group;
    const isVariable = /[*+?|]|\{\d/.test(content);
    if (repetition !== undefined && isVariable) return true;
    // Whatever is variable stays visible to the groups around it.
    rest = rest.replace(whole, () => (isVariable ? `x?${/[*+]|\{\d+,\}/.test(content) ? 'x*' : ''}` : 'x') + (repetition ?? ''));
  }
}
