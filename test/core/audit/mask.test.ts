import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatApiKey } from '../../../src/core/api-key.ts';
import { holdsSecret, isSecretName, MASK, maskJson, maskText } from '../../../src/core/audit/mask.ts';
import type { JsonValue } from '../../../src/core/json.ts';

/** Never whole in this file, so that no scanner takes a sample for a leak. */
const join = (...parts: readonly string[]): string => parts.join('');

const PEM_BODY = Array.from({ length: 6 }, (_, line) => `MC4CAQAwBQYDK2VwBCIEI${'abCD09+/'.repeat(5)}${line}`).join('\n');
const PEM = join('-----BEGIN ', 'RSA PRIVATE KEY-----\n', PEM_BODY, '\n-----END RSA PRIVATE KEY-----');

const SHAPES: readonly (readonly [name: string, secret: string])[] = [
  ['an OpenAI key', join('sk-', 'proj-Ab3dEf6hIj9kLm2nOp5q')],
  ['an Anthropic key', join('sk-', 'ant-api03-Ab3dEf6hIj9kLm2nOp5q')],
  ['a Stripe key', join('sk_', 'live_', '4eC39HqLyjWDarjtT1zdp7dc')],
  ['a webhook secret', join('whsec_', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
  ['a GitHub token', join('ghp_', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8')],
  ['a GitHub token of the new kind', join('github_pat_', '11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ')],
  ['a GitLab token', join('glpat-', 'a1B2c3D4e5F6g7H8i9J0')],
  ['a Slack token', join('xoxb-', '123456789012-1234567890123-a1B2c3D4e5F6')],
  ['an AWS key id', join('AKIA', 'IOSFODNN7EXAMPLE')],
  ['a Google key', join('AIza', 'SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q')],
  ['an npm token', join('npm_', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8')],
  ['a Hugging Face token', join('hf_', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7')],
  ['a SendGrid key', join('SG.', 'a1B2c3D4e5F6g7H8i9J0', '.', 'k1L2m3N4o5P6q7R8a1B2c3D4e5F6g7H8')],
  ['a JSON web token', join('eyJ', 'hbGciOiJIUzI1NiJ9.', 'eyJzdWIiOiIxMjM0NTY3ODkwIn0.', 'dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P')],
  ['a Google client secret', join('GOC', 'SPX-', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4')],
  ['a Groq key', join('gsk', '_', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8')],
  ['an xAI key', join('xai', '-', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8')],
  ['a Vault token', join('hvs', '.', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4')],
  ['a Databricks token', join('dapi', '0123456789abcdef0123456789abcdef')],
  ['a Twilio key', join('SK', '0123456789abcdef0123456789abcdef')],
  ['an age key', join('AGE-SECRET', '-KEY-1', 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE')],
  ['a Telegram token', join('123456789', ':AA', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q')],
  ['a private key', PEM],
  ['a PGP key', join('-----BEGIN ', 'PGP PRIVATE KEY BLOCK-----\n\n', PEM_BODY, '\n=a1B2\n-----END PGP PRIVATE KEY BLOCK-----')],
  ['a private key whose end is missing', PEM.slice(0, 240)],
];

describe('maskText', () => {
  it.each(SHAPES)('hides %s, and nothing around it', (_, secret) => {
    expect(maskText(secret)).toBe(MASK);
    expect(maskText(`call failed (${secret}), try again`)).toBe(`call failed (${MASK}), try again`);
    expect(maskText(`${secret}\n\n${secret}!`)).toContain('!');
    expect(maskText(`a ${secret} b ${secret} c`)).not.toContain(secret.slice(-12));
  });

  it('hides the secret of our own keys and leaves the id, which says whose it is', () => {
    const key = formatApiKey({ id: '01HXRCF1ABCDE12345678901AB', secret: 'Ab3_dEf6-hIj9kLm2nOp5qRs8tUv1wXy4z_012345' });
    expect(maskText(`with ${key}.`)).toBe(`with ca_01HXRCF1ABCDE12345678901AB_${MASK}.`);
  });

  it.each([
    ['Authorization: Bearer abcdefgh12345678', `Authorization: Bearer ${MASK}`],
    ['authorization: token 0123456789abcdef0', `authorization: token ${MASK}`],
    ['Basic dXNlcjpwYXNzd29yZDEyMw==', `Basic ${MASK}`],
    ['GET /x?api_key=a1b2c3d4e5&page=2', `GET /x?api_key=${MASK}&page=2`],
    ['{"password":"hunter22"}', `{"password":"${MASK}"}`],
    ['"{\\"client_secret\\": \\"s3cretvalue\\"}"', `"{\\"client_secret\\": \\"${MASK}\\"}"`],
    ['DB_PASSWORD=correct-horse-9', `DB_PASSWORD=${MASK}`],
    ['Set-Cookie: sid=abc; Path=/', `Set-Cookie: ${MASK}`],
    ['postgres://bob:pa55word@db.internal:5432/x', `postgres://bob:${MASK}@db.internal:5432/x`],
    [join('https://', 'a1B2c3D4e5F6g7H8i9J0k1L2', '@git.example.com/x.git'), `https://${MASK}@git.example.com/x.git`],
    [join('https://hooks.slack', '.com/services/T0123/B0123/', 'a1B2c3D4e5F6g7H8'), `https://hooks.slack.com/services/${MASK}`],
    [join('https://x.test/a?sv=1&sig', '=a1B2c3D4e5F6g7H8i9J0k1L2%3D&se=2'), `https://x.test/a?sv=1&sig=${MASK}&se=2`],
    [join('AccountName=a;Account', 'Key=a1B2c3D4e5F6g7H8i9J0k1L2=='), `AccountName=a;AccountKey=${MASK}`],
    ['curl -s -u bob:hunter2x https://x.test', `curl -s -u bob:${MASK} https://x.test`],
    [join('keys AKIA', 'IOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/', 'bPxRfiCYEXAMPLEKEY of ci'), `keys ${MASK} and ${MASK} of ci`],
  ])('%s becomes %s', (text, expected) => {
    expect(maskText(text)).toBe(expected);
  });

  it.each([
    'Bearer authentication is required',
    'basic information about the project',
    'const token = parse(input);',
    'password: string;',
    'The token is missing. Remediation: send one.',
    'max_tokens=100000 and page_size=5',
    'a task-list, a risk-assessment and sk-learn',
    'https://example.com:8080/path@v2',
    'ssh://git@example.com/repo',
    'ca_bundle and ca_certificates are files',
    '01HXRCF1ABCDE12345678901AB.12',
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    '',
  ])('leaves %j as it is', (text) => {
    expect(maskText(text)).toBe(text);
  });

  it('masks nothing twice', () => {
    const pieces = fc.oneof(fc.constantFrom(...SHAPES.map(([, secret]) => secret), 'Bearer', 'password=', ':', '"', '\n'), fc.string());
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const once = maskText(parts.join(' '));
        expect(maskText(once)).toBe(once);
      }),
      { numRuns: 500 },
    );
  });

  it('hides a secret wherever it stands in a text', () => {
    const around = fc.stringMatching(/^[ \n,.;(){}<>]{0,10}$/);
    fc.assert(
      fc.property(fc.constantFrom(...SHAPES.slice(0, -1)), around, around, ([, secret], before, after) => {
        expect(maskText(`${before}${secret}${after}`)).toBe(`${before}${MASK}${after}`);
      }),
    );
  });

  it('takes no longer than its text is long, whatever is in it', () => {
    const hostile = [
      '-----BEGIN PRIVATE KEY-----',
      'Bearer ',
      'token=',
      'https://a',
      'ca_a_',
      'eyJaaaaaaaa.',
      'cookie:',
      'password="',
      'curl -u ',
      'curl a',
      'AKIA/',
      '1:AA',
      '?sig=',
      '-----BEGIN PGP PRIVATE KEY BLOCK----------END ',
      'a',
    ];
    for (const piece of hostile) {
      const text = piece.repeat(Math.ceil(400_000 / piece.length));
      const doubled = text + text;
      const time = (value: string): number => {
        const from = performance.now();
        maskText(value);
        return performance.now() - from;
      };
      time(text);
      // Quadratic work on this much would take minutes: the bound is one of kind, not of speed.
      expect(time(doubled), piece).toBeLessThan(10_000);
    }
  });
});

describe('a member whose name says that it is secret', () => {
  it.each([
    'authorization',
    'Authorization',
    'token',
    'access_token',
    'accessToken',
    'X-A2A-Notification-Token',
    'secret',
    'client_secret',
    'password',
    'DB_PASSWORD',
    'api_key',
    'apiKey',
    'x-api-key',
    'credentials',
    'cookie',
    'Set-Cookie',
    'private_key',
    'aws_secret_access_key',
    'AWS_SECRET_ACCESS_KEY',
    'accountKey',
    'encryption_key',
    'ssh_key',
    'password2',
    'passwordHash',
    'auth_header',
    'jwt',
  ])('is hidden: %s', (name) => {
    expect(isSecretName(name)).toBe(true);
    expect(maskJson({ [name]: 'plain', other: 'plain' })).toEqual({ [name]: MASK, other: 'plain' });
    expect(maskJson({ deep: [{ [name]: { user: 'bob', list: ['x', 7] } }] })).toEqual({
      deep: [{ [name]: { user: MASK, list: [MASK, MASK] } }],
    });
  });

  it.each([
    'path',
    'next_page_token',
    'page_token',
    'max_tokens',
    'key',
    'digest',
    'author',
    'tokenizer',
    'secretary',
    'idempotency_key',
    'signature',
    'session_id',
    'passed',
    'compass',
    'public_key',
    'primary_key',
  ])('is not one of: %s', (name) => {
    expect(isSecretName(name)).toBe(false);
  });

  it('says nothing about absence, numbers of tokens, references in templates and schemas', () => {
    const values: JsonValue[] = [
      { token: null },
      { password: '' },
      { token: 512 },
      { use_token: true },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the template language of actions
      { token: '${args.token}' },
      { properties: { password: { type: 'string', description: 'of the account' } } },
    ];
    for (const value of values) expect(maskJson(value)).toBe(value);
    expect(maskJson({ password: 1234 })).toEqual({ password: MASK });
  });
});

describe('maskJson', () => {
  it('answers a value without secrets as it is, and keeps the shape of every other', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }) as fc.Arbitrary<JsonValue>, (value) => {
        const masked = maskJson(value);
        expect(holdsSecret(value)).toBe(masked !== value);
        if (masked === value) return;
        expect(JSON.stringify(masked)).toContain(MASK);
        expect(maskJson(masked)).toEqual(masked);
      }),
    );
  });

  it('does not exhaust the stack on a value that is nested without end', () => {
    let value: JsonValue = 'x';
    for (let depth = 0; depth < 5000; depth += 1) value = [value];
    expect(holdsSecret(value)).toBe(true);
  });

  it.each(SHAPES)('hides %s that is the name of a member', (_, secret) => {
    const value = { headers: [{ [secret]: 1, plain: { [`X-${secret}`]: 'x', [`key ${secret} of`]: 2 } }] };
    const shown = JSON.stringify(maskJson(value));
    expect(shown).not.toContain(secret);
    expect(shown).toContain('plain');
    expect(maskJson({ [secret]: true })).toEqual({ [maskText(secret)]: true });
    expect(holdsSecret({ [secret]: true })).toBe(true);
  });

  it('shows as many members as there are, whatever their names look like once they are masked', () => {
    const secrets = SHAPES.map(([, secret]) => secret).filter((secret) => maskText(secret) === MASK && !isSecretName(secret));
    expect(secrets.length).toBeGreaterThan(5);
    const name = fc.oneof(fc.constantFrom(...secrets), fc.constantFrom(MASK, `${MASK} (2)`, `${MASK} (3)`, '__proto__', 'plain'));
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (names) => {
        const given = Object.fromEntries(names.map((each, index) => [each, index]));
        const shown = Object.entries(maskJson(given) as Record<string, number>);
        expect(shown.map(([, value]) => value).sort()).toEqual(Object.values(given).sort());
        for (const each of shown) for (const secret of secrets) expect(each[0]).not.toContain(secret);
      }),
    );
    expect(maskJson({ [secrets[0] ?? '']: 1, [secrets[1] ?? '']: 2, [MASK]: 3 })).toEqual({
      [`${MASK} (2)`]: 1,
      [`${MASK} (3)`]: 2,
      [MASK]: 3,
    });
  });

  it('keeps a member that is named __proto__', () => {
    const value = JSON.parse('{"__proto__":{"password":"x"},"token":"y"}') as JsonValue;
    expect(JSON.stringify(maskJson(value))).toBe(`{"__proto__":{"password":"${MASK}"},"token":"${MASK}"}`);
  });

  it('hides the credentials of a push configuration (A14)', () => {
    const config = { url: 'https://hook.example/x', token: 'plain-text', authentication: { schemes: ['Bearer'], credentials: 'k1' } };
    expect(maskJson(config)).toEqual({
      url: 'https://hook.example/x',
      token: MASK,
      authentication: { schemes: ['Bearer'], credentials: MASK },
    });
  });
});
