/** The protocol versions that there are, as Major.Minor; the first is preferred. Which of them a deployment serves is a setting of it. */
export const PROTOCOL_VERSIONS = ['1.0', '0.3'] as const;

export type ProtocolVersion = (typeof PROTOCOL_VERSIONS)[number];

/** Reads a list with commas; nothing, or nothing that is one, means all of them. */
export function parseProtocolVersions(list: string | undefined): readonly ProtocolVersion[] {
  const named = (list ?? '').split(',').map((each) => each.trim());
  const served = PROTOCOL_VERSIONS.filter((version) => named.includes(version));
  return served.length === 0 ? PROTOCOL_VERSIONS : served;
}
