/**
 * Which addresses of the network anybody may be reached at. Everything that is not known to be public is not: ranges that a machine, a
 * local network, a cloud's own services or the protocols keep for themselves (IANA special-purpose registries).
 */

/** An IPv4 address as a URL writes it (`192.0.2.1`), which leaves one spelling for each; null for anything else. */
export function parseIpv4(text: string): number | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return null;
  const bytes = match.slice(1).map(Number);
  if (bytes.some((byte) => byte > 255)) return null;
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}

/** The eight groups of an IPv6 address as a URL writes it, without brackets; null for anything else. */
export function parseIpv6(text: string): readonly number[] | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const groupsOf = (half: string): readonly number[] | null => {
    if (half === '') return [];
    const groups = half.split(':');
    return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? groups.map((group) => Number.parseInt(group, 16)) : null;
  };
  const [head, tail] = [groupsOf(halves[0] ?? ''), groupsOf(halves[1] ?? '')];
  if (head === null || tail === null) return null;
  if (halves.length === 1) return head.length === 8 ? head : null;
  const missing = 8 - head.length - tail.length;
  return missing < 1 ? null : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

const V4_RESERVED: readonly (readonly [string, number])[] = [
  // "This" network, private networks, carriers' shared space, loopback, link-local with the metadata services of clouds.
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  // Protocol assignments, documentation, relays, benchmarks.
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Metadata and platform services that clouds put on addresses that look public.
  ['168.63.129.16', 32],
  ['100.100.100.200', 32],
  // Multicast, reserved, broadcast.
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const V6_RESERVED: readonly (readonly [string, number])[] = [
  // Protocol assignments with Teredo and ORCHID, documentation, 6to4: those that carry an IPv4 address hide where they lead.
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

export function isPublicIpv4(address: number): boolean {
  return V4_RESERVED.every(([network, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) !== Math.floor((parseIpv4(network) ?? 0) / size);
  });
}

/** Only what is given out as global unicast (2000::/3). Mapped, translated, unique local, link-local and multicast addresses are outside it. */
export function isPublicIpv6(groups: readonly number[]): boolean {
  if (!startsWith(groups, [0x2000], 3)) return false;
  return V6_RESERVED.every(([network, bits]) => !startsWith(groups, parseIpv6(network) ?? [], bits));
}

export function isLoopbackIpv4(address: number): boolean {
  return Math.floor(address / 2 ** 24) === 127;
}

export function isLoopbackIpv6(groups: readonly number[]): boolean {
  return groups.length === 8 && groups.every((group, index) => group === (index === 7 ? 1 : 0));
}

function startsWith(groups: readonly number[], network: readonly number[], bits: number): boolean {
  for (let index = 0, left = bits; left > 0; index += 1, left -= 16) {
    const mask = left >= 16 ? 0xffff : 0xffff & ~(0xffff >> left);
    if (((groups[index] ?? 0) & mask) !== ((network[index] ?? 0) & mask)) return false;
  }
  return true;
}
