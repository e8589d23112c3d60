/** Text of a ULID: 26 characters of Crockford's base 32, within 48 bits of time. */
export const ULID_PATTERN = '[0-7][0-9A-HJKMNP-TV-Z]{25}';

const PLAN_ID = new RegExp(`^${ULID_PATTERN}$`);

/** Whether a text can be the id of a plan at all; what cannot is not looked up. */
export function isPlanId(text: string): boolean {
  return PLAN_ID.test(text);
}
