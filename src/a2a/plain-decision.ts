/** A decision that was given in plain words. `phase` is the phase that the text names, when it names one. */
export interface PlainDecision {
  readonly decision: 'approve' | 'deny';
  readonly phase?: Phase;
}

const PHASES = ['action', 'strategize', 'execute', 'apply'] as const;
type Phase = (typeof PHASES)[number];

/** The closed list of design section 11. It grows only there: a text that is not on it never decides anything. */
export const APPROVING_TEXTS = ['approve', 'approved', 'yes', 'ok', 'lgtm', 'proceed', 'go ahead'] as const;
export const DENYING_TEXTS = ['deny', 'denied', 'no', 'reject', 'rejected'] as const;

const DECISIONS: ReadonlyMap<string, PlainDecision['decision']> = new Map([
  ...APPROVING_TEXTS.map((text) => [text, 'approve'] as const),
  ...DENYING_TEXTS.map((text) => [text, 'deny'] as const),
]);

/** A word of the list, then a dash, comma, colon, semicolon, full stop or nothing, then the phrase. */
const WITH_PHASE = new RegExp(`^(.+?)(?: ?[—–,:;.!] ?| - | )proceed with the (${PHASES.join('|')}) phase$`);

/** Longer than any text of the list by far; nothing above it is looked at. */
const MAX_LENGTH = 120;

/**
 * What a whole text decides, or null for every text that is not on the closed list: case, spaces at the ends and in runs, and final
 * full stops and exclamation marks aside, optionally followed by "proceed with the <phase> phase". A denial that goes on with "proceed"
 * contradicts itself and decides nothing. Whether the phase is the pending one is for the caller to check.
 */
export function parsePlainDecision(text: string): PlainDecision | null {
  if (text.length > MAX_LENGTH) return null;
  const folded = text
    .trim()
    .replace(/[\s.!]+$/, '')
    .replace(/[ \t\r\n]+/g, ' ')
    .toLowerCase();
  const whole = DECISIONS.get(folded);
  if (whole !== undefined) return { decision: whole };
  const match = WITH_PHASE.exec(folded);
  const decision = match?.[1] === undefined ? undefined : DECISIONS.get(match[1]);
  const phase = PHASES.find((known) => known === match?.[2]);
  return decision === 'approve' && phase !== undefined ? { decision, phase } : null;
}
