import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBase64, encodeBase64 } from '../../src/core/base64.ts';

describe('base64', () => {
  it('is what everybody else writes, and comes back as it went', () => {
    void fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = encodeBase64(bytes);
        expect(text).toBe(Buffer.from(bytes).toString('base64'));
        expect(decodeBase64(text)).toEqual(new Uint8Array(bytes));
      }),
    );
  });

  it('takes files of any size', () => {
    const bytes = new Uint8Array(1_048_576).map((_, index) => index % 251);
    expect(Buffer.from(decodeBase64(encodeBase64(bytes)) ?? []).equals(Buffer.from(bytes))).toBe(true);
  });

  it('has one text for each value: whatever is decoded encodes to the same text again', () => {
    void fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9+/]{0,6}={0,3}$/), (text) => {
        const bytes = decodeBase64(text);
        if (bytes !== null) expect(encodeBase64(bytes)).toBe(text);
        else expect(Buffer.from(text, 'base64').toString('base64')).not.toBe(text);
      }),
    );
  });

  it.each(['A', 'AA', 'AAA', '=', '====', 'A===', 'AA=A', 'AB==', 'AAB=', 'AA==AA==', 'AAAA\n', ' AAAA', '_-==', 'AAé='])(
    'refuses %j',
    (text) => {
      expect(decodeBase64(text)).toBeNull();
    },
  );
});
