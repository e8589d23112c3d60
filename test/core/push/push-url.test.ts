import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { isPublicIpv4, isPublicIpv6, parseIpv4, parseIpv6 } from '../../../src/core/push/public-address.ts';
import { checkPushUrl } from '../../../src/core/push/push-url.ts';

const DEPLOYED = { allowLoopback: false };
const DEVELOPMENT = { allowLoopback: true };

const isAllowed = (url: string, rules = DEPLOYED): boolean => checkPushUrl(url, rules).ok;

describe('A notification may go to', () => {
  test.each([
    'https://hooks.example.com/a2a',
    'https://hooks.example.com:443/a2a?key=1#part',
    'https://hooks.example.com:8443/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/',
    'HTTPS://Hooks.Example.COM./',
    'https://localhost.example.com/',
    'https://internal-hooks.example.com/',
    'https://10.example.com/',
  ])('%s', (url) => {
    expect(isAllowed(url)).toBe(true);
  });
});

describe('A notification never goes to', () => {
  test.each([
    [
      'another scheme',
      [
        'http://hooks.example.com/',
        'file:///etc/passwd',
        'ftp://hooks.example.com/',
        'gopher://x.example.com/',
        'javascript:alert(1)',
        'data:text/plain,a',
        'ws://hooks.example.com/',
        'blob:https://hooks.example.com/1',
      ],
    ],
    [
      'no address',
      [
        '',
        'hooks.example.com',
        '/path',
        '//hooks.example.com/',
        'https://',
        'https:///a',
        'https:hooks.example.com',
        'https:/hooks.example.com',
        'https://?',
        'https://%/',
        `https://hooks.example.com/${'a'.repeat(2048)}`,
      ],
    ],
    [
      'loopback',
      [
        'https://127.0.0.1/',
        'https://127.1.2.3/',
        'https://localhost/',
        'https://LOCALHOST/',
        'https://localhost./',
        'https://a.localhost/',
        'https://[::1]/',
        'https://[0:0:0:0:0:0:0:1]/',
        'https://[0000::0001]/',
      ],
    ],
    [
      'loopback as a number',
      [
        'https://2130706433/',
        'https://017700000001/',
        'https://0x7f000001/',
        'https://127.1/',
        'https://127.0.1/',
        'https://0x7f.1/',
        'https://0177.0.0.1/',
        'https://0x7f.0x0.0x0.0x1/',
        'https://127.0.0.1./',
        'https://00000177.1/',
      ],
    ],
    [
      'loopback in other letters',
      [
        'https://１２７.０.０.１/',
        'https://127。0。0。1/',
        'https://①②⑦.0.0.1/',
        'https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/',
        'https://loc%61lhost/',
        'https://%31%32%37.0.0.1/',
        'https://ＬＯＣＡＬＨＯＳＴ/',
      ],
    ],
    [
      'a private network',
      [
        'https://10.1.2.3/',
        'https://172.16.0.1/',
        'https://172.31.255.255/',
        'https://192.168.1.1/',
        'https://0xa.1.2.3/',
        'https://167837955/',
        'https://[fd00::1]/',
        'https://[fc00::1]/',
      ],
    ],
    [
      'link-local and metadata',
      [
        'https://169.254.169.254/latest/meta-data/',
        'https://2852039166/',
        'https://0xa9fea9fe/',
        'https://[fe80::1]/',
        'https://[fe80::1%25eth0]/',
        'https://[fd00:ec2::254]/',
        'https://168.63.129.16/',
        'https://100.100.100.200/',
        'https://metadata.google.internal/',
        'https://metadata/',
        'https://metadata.goog/',
        'https://instance-data.ec2.internal/',
      ],
    ],
    [
      'what is kept for other purposes',
      [
        'https://0.0.0.0/',
        'https://0/',
        'https://100.64.0.1/',
        'https://100.127.255.255/',
        'https://192.0.0.8/',
        'https://192.0.2.1/',
        'https://198.18.0.1/',
        'https://198.51.100.1/',
        'https://203.0.113.9/',
        'https://224.0.0.1/',
        'https://239.255.255.255/',
        'https://240.0.0.1/',
        'https://255.255.255.255/',
        'https://[::]/',
        'https://[ff02::1]/',
        'https://[2001:db8::1]/',
      ],
    ],
    [
      'IPv4 inside IPv6',
      [
        'https://[::ffff:127.0.0.1]/',
        'https://[::ffff:7f00:1]/',
        'https://[::127.0.0.1]/',
        'https://[64:ff9b::7f00:1]/',
        'https://[2002:7f00:1::]/',
        'https://[2001::7f00:1]/',
        'https://[::ffff:10.0.0.1]/',
        'https://[::ffff:8.8.8.8]/',
      ],
    ],
    [
      'names of a local network',
      [
        'https://intranet/',
        'https://printer/',
        'https://db.internal/',
        'https://a.local/',
        'https://nas.lan/',
        'https://x.home.arpa/',
        'https://kubernetes.default.svc/',
        'https://a.svc.cluster.local/',
        'https://x.corp/',
        'https://1.0.0.127.in-addr.arpa/',
      ],
    ],
    [
      'public names of private addresses',
      [
        'https://127.0.0.1.nip.io/',
        'https://10-0-0-1.sslip.io/',
        'https://localtest.me/',
        'https://a.lvh.me/',
        'https://7f000001.c0a80001.rbndr.us/',
      ],
    ],
    [
      'an address with a user',
      [
        'https://user:pw@hooks.example.com/',
        'https://user@hooks.example.com/',
        'https://@hooks.example.com/',
        'https://hooks.example.com@127.0.0.1/',
        'https://127.0.0.1:80@hooks.example.com/',
      ],
    ],
    [
      'an address that two parsers read differently',
      [
        'https://hooks.example.com\\@127.0.0.1/',
        'https://hooks.example.com\t/',
        'https://hooks.example.com/\n',
        ' https://hooks.example.com/',
        'https://127.0.0.1\u00ad/',
        'https://hooks.exa mple.com/',
        'https://hooks.example.com/\u200b',
        'https:\\\\hooks.example.com',
      ],
    ],
    [
      'a port of another service',
      [
        'https://hooks.example.com:22/',
        'https://hooks.example.com:25/',
        'https://hooks.example.com:0/',
        'https://hooks.example.com:80/',
        'https://hooks.example.com:99999/',
        'https://hooks.example.com:-1/',
      ],
    ],
    [
      'a name that is none',
      [
        'https://under_score.example.com/',
        'https://-a.example.com/',
        'https://example.123/',
        'https://1.2.3.4.5/',
        'https://256.256.256.256/',
        'https://a..example.com/',
      ],
    ],
  ] as const)('%s', (_what, urls) => {
    expect(urls.filter((url) => isAllowed(url))).toEqual([]);
  });
});

describe('The development setting', () => {
  it('opens this machine, over http and on any port, and nothing else', () => {
    for (const url of [
      'http://127.0.0.1:9/',
      'http://localhost:53211/webhook',
      'https://localhost/',
      'http://[::1]:80/',
      'http://a.localhost/',
      'http://2130706433:80/',
    ])
      expect(isAllowed(url, DEVELOPMENT), url).toBe(true);
    for (const url of [
      'http://hooks.example.com/',
      'http://10.0.0.1/',
      'https://169.254.169.254/',
      'http://0.0.0.0/',
      'https://[::ffff:127.0.0.1]/',
      'http://user@127.0.0.1/',
      'ftp://127.0.0.1/',
      'https://db.internal/',
    ])
      expect(isAllowed(url, DEVELOPMENT), url).toBe(false);
    expect(isAllowed('https://hooks.example.com/', DEVELOPMENT)).toBe(true);
  });
});

describe('However an address is written', () => {
  const byte = fc.integer({ min: 0, max: 255 });
  const numeral = (value: number): fc.Arbitrary<string> =>
    fc.constantFrom(String(value), `0x${value.toString(16)}`, `0${value.toString(8)}`, `0X${value.toString(16).toUpperCase()}`);
  const spelled = fc.tuple(byte, byte, byte, byte).chain(([a, b, c, d]) => {
    const number = ((a * 256 + b) * 256 + c) * 256 + d;
    return fc
      .oneof(
        fc.tuple(numeral(a), numeral(b), numeral(c), numeral(d)).map((parts) => parts.join('.')),
        fc.tuple(numeral(a), numeral(b), numeral(c * 256 + d)).map((parts) => parts.join('.')),
        fc.tuple(numeral(a), numeral(number % 2 ** 24)).map((parts) => parts.join('.')),
        numeral(number),
      )
      .map((text) => ({ text, plain: `${a}.${b}.${c}.${d}` }));
  });

  it('it is judged as what it is', () => {
    fc.assert(
      fc.property(spelled, fc.boolean(), ({ text, plain }, dot) => {
        expect(isAllowed(`https://${text}${dot ? '.' : ''}/`)).toBe(isAllowed(`https://${plain}/`));
        expect(isAllowed(`https://${plain}/`)).toBe(isPublicIpv4(parseIpv4(plain) ?? 0));
      }),
      { numRuns: 2000 },
    );
  });

  it('no address inside IPv6 that hides another is let through', () => {
    fc.assert(
      fc.property(
        fc.tuple(byte, byte, byte, byte),
        fc.constantFrom('::ffff:', '::', '64:ff9b::', '64:ff9b:1::', '::ffff:0:'),
        ([a, b, c, d], prefix) => {
          expect(isAllowed(`https://[${prefix}${a}.${b}.${c}.${d}]/`)).toBe(false);
        },
      ),
    );
  });

  it('an IPv6 address that is let through is global unicast, in every spelling of it', () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const text = groups.map((each) => each.toString(16).padStart(4, '0')).join(':');
        const hostname = new URL(`https://[${text}]/`).hostname.slice(1, -1);
        expect(parseIpv6(hostname)).toEqual(groups);
        expect(isAllowed(`https://[${text}]/`)).toBe(isPublicIpv6(groups));
        if (isPublicIpv6(groups)) expect(((groups[0] ?? 0) & 0xe000) === 0x2000).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('nothing makes the check throw, and what it allows is called with the host that it judged', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.webUrl(),
          fc.string().map((text) => `https://${text}`),
        ),
        fc.boolean(),
        (url, allowLoopback) => {
          const checked = checkPushUrl(url, { allowLoopback });
          if (!checked.ok) return;
          expect(checked.value.protocol === 'https:' || allowLoopback).toBe(true);
          expect(checkPushUrl(checked.value.href, { allowLoopback })).toMatchObject({ ok: true });
          expect(checked.value.username + checked.value.password).toBe('');
        },
      ),
      { numRuns: 2000 },
    );
  });
});
