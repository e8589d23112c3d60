import { describe, expect, it } from 'vitest';
import { HostPattern, hostOf, isHostName, matchesHost } from '../../../src/core/host.ts';

describe('the host of an address', () => {
  it.each([
    ['https://API.Example.com:8443/a?b#c', 'api.example.com'],
    ['https://example.com./', 'example.com'],
    ['https://user:secret@a.test@b.test/', 'b.test'],
    ['https://a.test\\@b.test/', 'a.test'],
    ['https://bücher.test/', 'xn--bcher-kva.test'],
    ['http://127.1/', '127.0.0.1'],
    ['http://0x7f000001/', '127.0.0.1'],
    ['wss://stream.test', 'stream.test'],
    ['//a.test/', null],
    ['a.test', null],
    ['file:///etc/passwd', null],
    ['data:text/plain,a.test', null],
    ['http://[::1]/', null],
    ['', null],
    [null, null],
    [['https://a.test'], null],
  ])('%s is %s', (address, host) => {
    expect(hostOf(address)).toBe(host);
  });
});

describe('a pattern of hosts', () => {
  it.each(['a', 'localhost', 'a.test', '*.a.test', 'a-b.c-d.test', '10.0.0.1', 'xn--bcher-kva.test', '*.test'])('may be %s', (pattern) => {
    expect(HostPattern.safeParse(pattern).success).toBe(true);
  });

  it.each([
    '',
    ' ',
    '*',
    '*.',
    '.a',
    'a.',
    'a..b',
    '-a.test',
    'a-.test',
    'a_b.test',
    '**.a',
    '*.*.a',
    'a.*.b',
    'a b',
    'a\n',
    'A.test',
    'a/b',
    'é.test',
  ])('may not be %j', (pattern) => {
    expect(HostPattern.safeParse(pattern).success).toBe(false);
  });

  it('has labels of at most 63 and 253 characters in all', () => {
    const label = 'a'.repeat(63);
    expect(isHostName(`${label}.test`)).toBe(true);
    expect(isHostName(`a${label}.test`)).toBe(false);
    expect(isHostName([label, label, label, label].join('.'))).toBe(false);
  });

  it.each([
    ['a.test', 'a.test', true],
    ['a.test', 'b.a.test', false],
    ['*.a.test', 'b.a.test', true],
    ['*.a.test', 'c.b.a.test', true],
    ['*.a.test', 'a.test', false],
    ['*.a.test', 'ba.test', false],
    ['*.a.test', '.a.test', false],
    ['*.a.test', 'x/.a.test', false],
    ['a.test', 'axtest', false],
  ])('%s names %s: %s', (pattern, host, named) => {
    expect(matchesHost(pattern, host)).toBe(named);
  });
});
