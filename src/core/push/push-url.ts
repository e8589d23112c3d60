/**
 * Where a notification may be sent (A2A 1.0 section 13.2: "should reject private, loopback and link-local targets"). Asked when a webhook
 * is registered and again before each delivery, so that a rule that was tightened holds for what is stored.
 *
 * Promise: pure, and closed: what is not understood is refused. A name is judged by what it says; what it resolves to is not known here
 * (docs/push-notifications.md says what stands behind that).
 */
import { isHostName } from '../host.ts';
import { err, ok, type Result } from '../result.ts';
import { isLoopbackIpv4, isLoopbackIpv6, isPublicIpv4, isPublicIpv6, parseIpv4, parseIpv6 } from './public-address.ts';

export interface PushUrlRules {
  /** The development setting: `http` and `https` to this machine, on any port, beside what is allowed anyway. */
  readonly allowLoopback: boolean;
}

const MAX_URL_LENGTH = 2048;

/** Names that lead into the machine, its network or its cloud, by themselves and with everything below them. */
const PRIVATE_NAMES: readonly string[] = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'home.arpa',
  'in-addr.arpa',
  'ip6.arpa',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data.ec2.internal',
  'cluster.local',
  'svc',
  'onion',
  'invalid',
  'test',
];

/** Public names whose answer is an address that the name itself holds, or this machine. */
const REBINDING_NAMES: readonly string[] = [
  'nip.io',
  'sslip.io',
  'xip.io',
  'localtest.me',
  'lvh.me',
  'vcap.me',
  'lacolhost.com',
  'localhost.direct',
  'rbndr.us',
];

/** The address as it will be called, or why nothing is sent there. The reason is for whoever registers it. */
export function checkPushUrl(url: string, { allowLoopback }: PushUrlRules): Result<URL, string> {
  if (url.length > MAX_URL_LENGTH) return err(`must have at most ${MAX_URL_LENGTH} characters`);
  // The parser would drop or turn these, and two parsers that do so differently see two hosts.
  if (!isPlain(url)) return err('must hold no spaces, control characters or backslashes');
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(url) || !URL.canParse(url)) return err('must be an absolute https address');
  const parsed = new URL(url);
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:') return err('must be an https address');
  if (parsed.username !== '' || parsed.password !== '' || authorityOf(url).includes('@')) return err('must hold no user name or password');
  const target = targetOf(parsed.hostname);
  if (target === 'loopback' && allowLoopback) return ok(parsed);
  if (parsed.protocol !== 'https:') return err('must be an https address');
  if (target === 'loopback') return err('must not lead to this machine');
  if (target === 'private') return err('must not lead into a private network, or to an address that is kept for other purposes');
  if (target === 'unknown') return err('must name a public host');
  if (!isWebPort(parsed.port)) return err('must use port 443, or one from 1024');
  return ok(parsed);
}

function authorityOf(url: string): string {
  return url.slice(url.indexOf('://') + 3).split(/[/?#]/)[0] ?? '';
}

function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code <= 0x20 || code === 0x5c || (code >= 0x7f && code <= 0xa0) || code === 0x3000 || (code >= 0x2000 && code <= 0x200f))
      return false;
  }
  return true;
}

/** `hostname` as the URL parser writes it: numbers of every form are four decimal bytes, other alphabets are punycode or plain letters. */
function targetOf(hostname: string): 'public' | 'loopback' | 'private' | 'unknown' {
  if (hostname.startsWith('[')) {
    const groups = parseIpv6(hostname.slice(1, -1));
    if (groups === null) return 'unknown';
    if (isLoopbackIpv6(groups)) return 'loopback';
    return isPublicIpv6(groups) ? 'public' : 'private';
  }
  const name = hostname.toLowerCase().replace(/\.$/, '');
  const address = parseIpv4(name);
  if (address !== null) {
    if (isLoopbackIpv4(address)) return 'loopback';
    return isPublicIpv4(address) ? 'public' : 'private';
  }
  if (isBelow(name, 'localhost')) return 'loopback';
  if ([...PRIVATE_NAMES, ...REBINDING_NAMES].some((each) => isBelow(name, each))) return 'private';
  // One label is a name of a local network; a last label of digits is an address that the parser did not take for one.
  const labels = name.split('.');
  return isHostName(name) && labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? '') ? 'public' : 'unknown';
}

const isBelow = (name: string, parent: string): boolean => name === parent || name.endsWith(`.${parent}`);

/** Below 1024 are the services that a request must not be smuggled to: mail, name service, remote shells. */
const isWebPort = (port: string): boolean => port === '' || port === '443' || Number(port) >= 1024;
