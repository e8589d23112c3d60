import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addMicroUsd, formatUsd, formatUsdPair, MAX_AMOUNT_MICRO_USD, parseCapUsd, parseCostUsd, toUsd } from '../../../src/core/money.ts';

const RUNS = { numRuns: 2000 };
const cost = (usd: number): number => microOf(parseCostUsd(usd));
const cap = (usd: number): number => microOf(parseCapUsd(usd));

function microOf(parsed: ReturnType<typeof parseCostUsd>): number {
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

describe('reading amounts of USD', () => {
  it.each([
    [0, 0, 0],
    [-0, 0, 0],
    [1, 1_000_000, 1_000_000],
    [0.1, 100_000, 100_000],
    [5.23, 5_230_000, 5_230_000],
    [1.005, 1_005_000, 1_005_000],
    [123_456_789.123456, 123_456_789_123_456, 123_456_789_123_456],
    [1_000_000_000, MAX_AMOUNT_MICRO_USD, MAX_AMOUNT_MICRO_USD],
  ])('%d costs %d micro-USD and caps at %d', (usd, up, down) => {
    expect(cost(usd)).toBe(up);
    expect(cap(usd)).toBe(down);
    expect(Object.is(cost(usd), -0)).toBe(false);
  });

  it.each([
    [0.0000004, 1],
    [0.0000015, 2],
    [1.0000001, 1_000_001],
    [5e-324, 1],
    [1e-7, 1],
    [0.1234567, 123_457],
  ])('%d costs %d micro-USD rounded up, and is no cap: it has more than six decimals', (usd, up) => {
    expect(cost(usd)).toBe(up);
    expect(parseCapUsd(usd)).toEqual({ ok: false, error: 'must have at most 6 decimals' });
  });

  it.each([
    [-0.01],
    [-1e-9],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [Number.NEGATIVE_INFINITY],
    ['1'],
    ['0.5'],
    [null],
    [undefined],
    [true],
    [[1]],
    [{}],
    [1n],
    [1_000_000_000.01],
    [1e300],
  ])('refuses %s', (value) => {
    expect(parseCostUsd(value).ok).toBe(false);
    expect(parseCapUsd(value).ok).toBe(false);
  });

  it('reads the noise of binary additions as the decimal that was meant', () => {
    expect(cost(0.1 + 0.2)).toBe(300_000);
    expect(cost(0.1 + 0.7)).toBe(800_000);
    expect(cap(0.1 + 0.7)).toBe(800_000);
    expect(cap(Array.from({ length: 10 }, () => 0.1).reduce((sum, usd) => sum + usd, 0))).toBe(1_000_000);
  });

  it('adds 2,500 charges of 0.004 to exactly 10.00', () => {
    expect(addMicroUsd(...Array.from({ length: 2500 }, () => cost(0.004)))).toBe(cap(10));
  });

  it('adds 0.1 and 0.7 to exactly 0.8, and ten times 0.1 to exactly 1.0', () => {
    expect(addMicroUsd(cost(0.1), cost(0.7))).toBe(cap(0.8));
    expect(addMicroUsd(...Array.from({ length: 10 }, () => cost(0.1)))).toBe(cap(1));
  });

  it('reads a cap as the cost of the same amount, or refuses it', () => {
    const amount = fc.oneof(
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      fc.integer({ min: 0, max: 999_999_999_999 }).map((tenths) => tenths / 10_000_000),
    );
    fc.assert(
      fc.property(amount, (usd) => {
        const read = parseCapUsd(usd);
        if (read.ok) expect(read.value).toBe(cost(usd));
        else expect(toUsd(cost(usd))).not.toBe(usd);
      }),
      RUNS,
    );
  });

  it('reads every whole number of micro-USD back exactly', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999_999_999 }), (micro) => {
        expect(cost(toUsd(micro))).toBe(micro);
        expect(cap(toUsd(micro))).toBe(micro);
      }),
      RUNS,
    );
  });

  it('prints numbers of USD with at most six decimals', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000_000_000 }), (micro) => {
        expect(toUsd(micro).toFixed(6)).toBe(`${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, '0')}`);
        expect(Number(toUsd(micro).toFixed(6))).toBe(toUsd(micro));
      }),
      RUNS,
    );
  });

  it('keeps a sum past the safe integers above every cap', () => {
    expect(addMicroUsd(...Array.from({ length: 100 }, () => MAX_AMOUNT_MICRO_USD))).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('printing amounts', () => {
  it.each([
    [5_230_000, '$5.23'],
    [5_000_000, '$5.00'],
    [0, '$0.00'],
    [1, '$0.000001'],
    [4_000, '$0.004'],
    [1_234_500_000, '$1234.50'],
    [-1_500_000, '-$1.50'],
  ])('prints %d micro-USD as %s', (micro, text) => {
    expect(formatUsd(micro)).toBe(text);
  });

  it.each([
    [5_230_000, 5_000_000, '$5.23', '$5.00'],
    [5_010_000, 5_000_000, '$5.01', '$5.00'],
    [5_004_000, 5_000_000, '$5.004', '$5.000'],
    [5_000_001, 5_000_000, '$5.000001', '$5.000000'],
    [10_000, 0, '$0.01', '$0.00'],
    [5_234_567, 5_000_000, '$5.23', '$5.00'],
    [5_000_000, 5_000_000, '$5.00', '$5.00'],
  ])('prints the pair %d and %d as %s and %s', (first, second, a, b) => {
    expect(formatUsdPair(first, second)).toEqual([a, b]);
  });

  it('keeps the order of two amounts that differ, in as few decimals as show it', () => {
    fc.assert(
      fc.property(fc.nat(20_000_000), fc.nat(20_000_000), (first, second) => {
        fc.pre(first !== second);
        const [a, b] = formatUsdPair(first, second);
        expect(a).not.toBe(b);
        expect(Math.sign(Number(a.slice(1)) - Number(b.slice(1)))).toBe(Math.sign(first - second));
        expect(a.split('.')[1]?.length).toBe(b.split('.')[1]?.length);
      }),
      RUNS,
    );
  });
});
