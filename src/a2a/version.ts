/** The protocol versions that are served, as Major.Minor; the first is preferred. */
export const PROTOCOL_VERSIONS = ['1.0', '0.3'] as const;

export type ProtocolVersion = (typeof PROTOCOL_VERSIONS)[number];
