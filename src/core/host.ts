import * as z from 'zod';

/**
 * Names of hosts, and the patterns that a profile lists. A pattern is a name, or `*.` and a name for every host below it: the star
 * stands for whole labels at the front and nowhere else, so that no pattern reaches into a domain that it does not name.
 */

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const HOST_PATTERN = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*$`);
const MAX_HOST_LENGTH = 253;

/** One entry of a list of hosts. Ports, schemes and paths have no place in it; names with other letters are written in punycode. */
export const HostPattern = z
  .string('must be text')
  .max(MAX_HOST_LENGTH, `must have at most ${MAX_HOST_LENGTH} characters`)
  .regex(HOST_PATTERN, "must be a host name in lower case such as 'api.example.com', or '*.example.com' for every host below it");

/** A host as calls are compared by it: lower case, one label at least, no port, no dot at the end. */
export function isHostName(host: string): boolean {
  return host.length <= MAX_HOST_LENGTH && HOST_NAME.test(host);
}

/** The host that an address leads to, in the form of `isHostName`; null for what is no address or leads to no named host. */
export function hostOf(address: unknown): string | null {
  if (typeof address !== 'string' || !URL.canParse(address)) return null;
  const host = new URL(address).hostname.toLowerCase().replace(/\.$/, '');
  return isHostName(host) ? host : null;
}

/** Whether the pattern names this host. What is no host name is named by none. */
export function matchesHost(pattern: string, host: string): boolean {
  if (!isHostName(host)) return false;
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) && host.length >= pattern.length : host === pattern;
}
