import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ConfidenceInput, computeConfidence, RISK_OF_CLASS } from '../../../src/core/confidence.ts';
import { evaluateGate } from '../../../src/core/gates.ts';
import { RISK_CLASSES } from '../../../src/core/tool.ts';

/** Reading one known file on a new project. */
const READ: ConfidenceInput = {
  riskClass: 'read',
  outcomes: { ok: 0, total: 0 },
  familiarity: { kind: 'call', known: 1, newInKnownFolder: 0, unknown: 0 },
  touchesProtectedPath: false,
  files: 1,
  bytes: 100,
  matchingInvariants: 0,
  lastValidationFailed: false,
  answersFailedValidation: false,
  tainted: false,
};
const confidenceOf = (rest: Partial<ConfidenceInput>): number => computeConfidence({ ...READ, ...rest }).value;
const NEW_FILE = { kind: 'call', known: 0, newInKnownFolder: 1, unknown: 0 } as const;

describe('confidence on a new project', () => {
  it('is .835 for reading a known file', () => expect(confidenceOf({})).toBe(0.835));
  it('is .79 for changing a known file', () => expect(confidenceOf({ riskClass: 'write' })).toBe(0.79));
  it('is .69 for the first new file in a known folder', () =>
    expect(confidenceOf({ riskClass: 'write', familiarity: NEW_FILE })).toBe(0.69));

  it('makes cautious ask for the first new file, and no longer after one good outcome', () => {
    const gate = (confidence: number) => evaluateGate({ threshold: 0.7, confidence, unattended: false });
    expect(gate(confidenceOf({ riskClass: 'write', familiarity: NEW_FILE }))).toBe('ask');
    expect(gate(confidenceOf({ riskClass: 'write', familiarity: NEW_FILE, outcomes: { ok: 1, total: 1 } }))).toBe('proceed');
  });
});

it('meets a threshold of .8 when the formula gives .8, whatever the last bit of a double says', () => {
  // 0.30·(4/5) + 0.20·1 + 0.30·(1 − 0.20) + 0.20·(1 − 2/5) = 0.80, which doubles add up to 0.7999999999999999.
  expect(confidenceOf({ riskClass: 'write', outcomes: { ok: 3, total: 3 }, matchingInvariants: 2 })).toBe(0.8);
  // 0.30·(1/6) + 0 + 0.30·(1 − 0.50) + 0 = 0.20
  const least = { riskClass: 'external_write_revertible', outcomes: { ok: 0, total: 4 }, matchingInvariants: 5 } as const;
  expect(confidenceOf({ ...least, familiarity: { kind: 'phase', completedPlans: 0 } })).toBe(0.2);
});

describe('the components', () => {
  it.each([
    [0, 0, 1 / 2],
    [1, 1, 2 / 3],
    [0, 1, 1 / 3],
    [50, 50, 51 / 52],
    [9, 3, 4 / 5],
    [Number.NaN, 3, 1 / 5],
    [-4, 3, 1 / 5],
  ])('success with %d good of %d', (ok, total, expected) => {
    expect(computeConfidence({ ...READ, outcomes: { ok, total } }).components.success).toBeCloseTo(expected, 12);
  });

  it.each([
    [{ kind: 'call', known: 0, newInKnownFolder: 0, unknown: 0 }, 0],
    [{ kind: 'call', known: 1, newInKnownFolder: 1, unknown: 2 }, 0.375],
    [{ kind: 'call', known: 0, newInKnownFolder: 0, unknown: 3 }, 0],
    [{ kind: 'phase', completedPlans: 0 }, 0],
    [{ kind: 'phase', completedPlans: 1 }, 1 / 3],
    [{ kind: 'phase', completedPlans: 7 }, 1],
  ] as const)('familiarity of %j is %d', (familiarity, expected) => {
    expect(computeConfidence({ ...READ, familiarity }).components.familiarity).toBeCloseTo(expected, 12);
  });

  it.each([
    ['read', 0.05],
    ['write', 0.2],
    ['external_read', 0.3],
    ['external_write_revertible', 0.5],
    ['external_write', 0.8],
    ['unsafe', 0.95],
  ] as const)('risk of %s is %d', (riskClass, risk) => {
    expect(computeConfidence({ ...READ, riskClass }).components.risk).toBe(risk);
    expect(Object.keys(RISK_OF_CLASS)).toEqual([...RISK_CLASSES]);
  });

  it.each([
    ['a protected path', { touchesProtectedPath: true }, 0.25],
    ['20 files and 64 kB', { files: 20, bytes: 65_536 }, 0.05],
    ['21 files', { files: 21 }, 0.15],
    ['more than 64 kB', { bytes: 65_537 }, 0.15],
    ['both at most 1', { riskClass: 'unsafe', touchesProtectedPath: true, files: 100 }, 1],
  ] as const)('risk with %s', (_what, rest, risk) => {
    expect(computeConfidence({ ...READ, ...rest }).components.risk).toBeCloseTo(risk, 12);
  });

  it.each([
    [0, 0],
    [1, 0.2],
    [5, 1],
    [9, 1],
  ])('complexity of %d matching invariants is %d', (matchingInvariants, expected) => {
    expect(computeConfidence({ ...READ, matchingInvariants }).components.invariantComplexity).toBe(expected);
  });
});

describe('caps', () => {
  it('lowers to .50 after a failed validation, except where the gate answers it', () => {
    expect(computeConfidence({ ...READ, lastValidationFailed: true })).toMatchObject({
      value: 0.5,
      caps: [{ cap: 'failed_validation', value: 0.5 }],
    });
    expect(confidenceOf({ lastValidationFailed: true, answersFailedValidation: true })).toBe(0.835);
  });

  it('lowers to .60 for tainted arguments', () => {
    expect(computeConfidence({ ...READ, tainted: true })).toMatchObject({ value: 0.6, caps: [{ cap: 'tainted', value: 0.6 }] });
    expect(confidenceOf({ tainted: true, lastValidationFailed: true })).toBe(0.5);
  });

  it('lets an actor only lower it', () => {
    expect(confidenceOf({ claimed: 1 })).toBe(0.835);
    expect(confidenceOf({ claimed: 0.4 })).toBe(0.4);
    expect(confidenceOf({ claimed: null })).toBe(0.835);
  });

  it.each([80, '0.9', -1, Number.NaN, true, {}])('takes a claim of %j for no confidence at all', (claimed) => {
    expect(confidenceOf({ claimed })).toBe(0);
  });

  it('names no cap that changed nothing', () => {
    expect(
      computeConfidence({ ...READ, riskClass: 'unsafe', familiarity: { kind: 'phase', completedPlans: 0 }, tainted: true }).caps,
    ).toEqual([]);
  });
});

it('stays within 0 and 1 and grows with success, whatever goes in', () => {
  const input = fc.record({
    riskClass: fc.constantFrom(...RISK_CLASSES),
    outcomes: fc.nat(50).chain((total) => fc.record({ ok: fc.nat(total), total: fc.constant(total) })),
    familiarity: fc.oneof(
      fc.record({ kind: fc.constant('call' as const), known: fc.nat(9), newInKnownFolder: fc.nat(9), unknown: fc.nat(9) }),
      fc.record({ kind: fc.constant('phase' as const), completedPlans: fc.nat(9) }),
    ),
    touchesProtectedPath: fc.boolean(),
    files: fc.nat(100),
    bytes: fc.nat(1_000_000),
    matchingInvariants: fc.nat(9),
    lastValidationFailed: fc.boolean(),
    answersFailedValidation: fc.boolean(),
    tainted: fc.boolean(),
    claimed: fc.oneof(fc.constant(null), fc.double(), fc.anything()),
  });
  fc.assert(
    fc.property(input, (one) => {
      const { value } = computeConfidence(one);
      expect(value >= 0 && value <= 1).toBe(true);
      const better = { ...one, outcomes: { ok: one.outcomes.ok + 1, total: one.outcomes.total + 1 } };
      expect(computeConfidence(better).value).toBeGreaterThanOrEqual(value);
      const { claimed: _claimed, ...unclaimed } = one;
      expect(computeConfidence(unclaimed).value).toBeGreaterThanOrEqual(value);
    }),
    { numRuns: 2000 },
  );
});
