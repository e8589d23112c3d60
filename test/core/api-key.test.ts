import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatApiKey, hashSecret, parseApiKey, sameHash } from '../../src/core/api-key.ts';

const from = (letters: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...letters), minLength, maxLength });
const LETTERS = 'ABCXYZabcxyz0189-';

describe('an API key', () => {
  test('reads back as the parts it was made of, also when the secret holds underscores', () => {
    void fc.assert(
      fc.property(from(LETTERS, 1, 64), from(`${LETTERS}_`, 16, 256), (id, secret) => {
        expect(parseApiKey(formatApiKey({ id, secret }))).toEqual({ id, secret });
      }),
    );
  });

  test.each([
    ['', 'empty'],
    ['ca_', 'no parts'],
    ['ca_id', 'no secret'],
    ['ca_id_short', 'a secret of less than 16'],
    [`ca__${'s'.repeat(32)}`, 'no id'],
    [`CA_id_${'s'.repeat(32)}`, 'another prefix'],
    [`ca_id_${'s'.repeat(32)} `, 'a blank behind it'],
    [`ca_id_${'s'.repeat(32)}\n`, 'a line break behind it'],
    [`ca_id_${'s'.repeat(32)}é`, 'a letter outside ASCII'],
    [`ca_${'i'.repeat(65)}_${'s'.repeat(32)}`, 'an id of more than 64'],
    [`ca_id_${'s'.repeat(257)}`, 'a secret of more than 256'],
  ])('is not %j: %s', (text) => {
    expect(parseApiKey(text)).toBeNull();
  });

  test('is not handed out when it could not be read back', () => {
    expect(() => formatApiKey({ id: 'a_b', secret: 's'.repeat(32) })).toThrow(TypeError);
    expect(() => formatApiKey({ id: 'ab', secret: 'short' })).toThrow(TypeError);
  });
});

describe('hashes of secrets', () => {
  const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

  test('are equal exactly when they are the same text', () => {
    void fc.assert(
      fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (left, right) => {
        expect(sameHash(left, right)).toBe(left === right);
      }),
    );
    const hash = hashSecret(sha256, 'secret');
    expect(sameHash(hash, hashSecret(sha256, 'secret'))).toBe(true);
    expect(sameHash(hash, hashSecret(sha256, 'secreT'))).toBe(false);
    expect(sameHash(hash, '')).toBe(false);
    expect(sameHash('', hash)).toBe(false);
  });
});
