import type { Result } from './result.ts';
import { err, ok } from './result.ts';

/**
 * Money is an integer number of micro-USD (a millionth of a dollar) in a safe integer, in names that end in `MicroUsd`.
 *
 * Promise: no amount passes through binary fractions after it was read. Costs round up, and a cap that is finer than a micro-USD is
 * refused, so rounding never lets anything through and no small cap becomes a cap of nothing. Amounts are read as the decimal that was
 * meant: a double that carries the noise of an addition (`0.1 + 0.7`) is read by its 15 significant digits, the most that every double keeps.
 */

const MICRO_PER_USD = 1_000_000;
const DECIMALS = 6;

/** The largest single amount that is accepted: a thousand million dollars. Nine of them still add up to a safe integer. */
export const MAX_AMOUNT_MICRO_USD = 1_000_000_000 * MICRO_PER_USD;

/** Reads a cost in USD, rounded UP to micro-USD: whatever costs anything counts as at least one micro-USD. The error is a text for people. */
export function parseCostUsd(value: unknown): Result<number, string> {
  return parseUsd(value, 'up');
}

/** Reads a cap in USD: at most six decimals, so that what is set is what holds. The error is a text for people. */
export function parseCapUsd(value: unknown): Result<number, string> {
  return parseUsd(value, 'exact');
}

/** Adds amounts. A sum past the safe integers stays at the largest one: it exceeds every cap, so it refuses rather than wraps. */
export function addMicroUsd(...amountsMicroUsd: readonly number[]): number {
  let total = 0;
  for (const amount of amountsMicroUsd) total = Math.min(total + amount, Number.MAX_SAFE_INTEGER);
  return total;
}

/** The amount as a JSON number of USD with at most six decimals. */
export function toUsd(amountMicroUsd: number): number {
  return amountMicroUsd / MICRO_PER_USD;
}

/** `$5.00`, exactly: at least `minDecimals` decimals and as many more as the amount needs. */
export function formatUsd(amountMicroUsd: number, minDecimals = 2): string {
  let decimals = DECIMALS;
  while (decimals > minDecimals && amountMicroUsd % 10 ** (DECIMALS - decimals + 1) === 0) decimals -= 1;
  return formatAt(amountMicroUsd, decimals);
}

/** Two amounts for one sentence: at least two decimals, and as many as make the two differ (`$5.23`, `$5.00`; `$5.004`, `$5.000`). */
export function formatUsdPair(firstMicroUsd: number, secondMicroUsd: number): readonly [string, string] {
  for (let decimals = 2; decimals < DECIMALS; decimals += 1) {
    const first = formatAt(firstMicroUsd, decimals);
    const second = formatAt(secondMicroUsd, decimals);
    if (first !== second) return [first, second];
  }
  if (firstMicroUsd === secondMicroUsd) return [formatUsd(firstMicroUsd), formatUsd(secondMicroUsd)];
  return [formatAt(firstMicroUsd, DECIMALS), formatAt(secondMicroUsd, DECIMALS)];
}

/** Rounds half up at `decimals` in integers; order between two amounts is kept. */
function formatAt(amountMicroUsd: number, decimals: number): string {
  const sign = amountMicroUsd < 0 ? '-' : '';
  const unit = 10n ** BigInt(DECIMALS - decimals);
  const scaled = (BigInt(Math.abs(amountMicroUsd)) + unit / 2n) / unit;
  const digits = scaled.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  return decimals === 0 ? `${sign}$${whole}` : `${sign}$${whole}.${digits.slice(-decimals)}`;
}

function parseUsd(value: unknown, rounding: 'up' | 'exact'): Result<number, string> {
  if (typeof value !== 'number') return err('must be a number of USD');
  if (!Number.isFinite(value)) return err('must be a finite number of USD');
  if (value < 0) return err('must not be negative');
  if (value > MAX_AMOUNT_MICRO_USD / MICRO_PER_USD) return err('is larger than the largest amount ($1000000000)');
  if (value === 0) return ok(0);
  const { digits, exponent } = decimalOf(value);
  const shift = exponent + DECIMALS;
  if (shift >= 0) return ok(Number(digits * 10n ** BigInt(shift)));
  // A divisor above every 15-digit number leaves nothing; capping it avoids building a huge power for 5e-324.
  const divisor = 10n ** BigInt(Math.min(-shift, 20));
  const floor = digits / divisor;
  if (digits % divisor === 0n) return ok(Number(floor));
  return rounding === 'exact' ? err(`must have at most ${DECIMALS} decimals`) : ok(Number(floor + 1n));
}

/** value = digits × 10^exponent, by the 15 significant digits of the double. */
function decimalOf(value: number): { digits: bigint; exponent: number } {
  const [mantissa = '0', power = '0'] = value.toExponential(14).split('e');
  return { digits: BigInt(mantissa.replace('.', '')), exponent: Number(power) - 14 };
}
