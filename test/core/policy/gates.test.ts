import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyRiskClass, evaluateGate, GATES } from '../../../src/core/gates.ts';
import { THRESHOLD_NAMES, THRESHOLDS } from '../../../src/core/profile.ts';

describe('the gate rule', () => {
  it.each([
    [0, 0, 'proceed'],
    [0, null, 'proceed'],
    [0, 1, 'proceed'],
    [1, 1, 'ask'],
    [1, null, 'ask'],
    [0.7, 0.69, 'ask'],
    [0.7, 0.7, 'proceed'],
    [0.7, 0.71, 'proceed'],
    [0.8, 0.8, 'proceed'],
    [0.8, 0.79, 'ask'],
    [0.8, null, 'ask'],
    [0.8, 80, 'ask'],
    [0.8, -1, 'ask'],
    [0.8, Number.NaN, 'ask'],
    [0.8, Number.POSITIVE_INFINITY, 'ask'],
    [Number.NaN, 1, 'ask'],
    [-1, 1, 'ask'],
    [80, 1, 'ask'],
  ] as const)('threshold %d with confidence %s → %s', (threshold, confidence, outcome) => {
    expect(evaluateGate({ threshold, confidence, unattended: false })).toBe(outcome);
    expect(evaluateGate({ threshold, confidence, unattended: true })).toBe(outcome === 'ask' ? 'fail' : outcome);
  });

  it('never proceeds on a confidence that is text, whatever a caller let through', () => {
    const confidence: unknown = '0.9';
    expect(evaluateGate({ threshold: 0.8, confidence: confidence as number, unattended: false })).toBe('ask');
  });

  it('proceeds between the ends exactly when confidence reaches the threshold', () => {
    const fraction = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fraction, fraction, (threshold, confidence) => {
        fc.pre(threshold > 0 && threshold < 1);
        expect(evaluateGate({ threshold, confidence, unattended: false })).toBe(confidence >= threshold ? 'proceed' : 'ask');
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the table of gates', () => {
  it('has one row and one meaning for each of the eleven thresholds', () => {
    expect(Object.keys(GATES).toSorted()).toEqual([...THRESHOLD_NAMES].toSorted());
    expect(Object.keys(THRESHOLDS)).toEqual([...THRESHOLD_NAMES]);
    expect(THRESHOLD_NAMES).toHaveLength(11);
    for (const name of THRESHOLD_NAMES) expect(GATES[name].threshold).toBe(name);
  });

  it('uses the form for calls only for batches of calls and retries of a call', () => {
    expect(THRESHOLD_NAMES.filter((name) => GATES[name].form === 'call')).toEqual(['execute_command', 'modify_config']);
  });

  it('lifts the cap of a failed validation only where the gate answers it', () => {
    expect(THRESHOLD_NAMES.filter((name) => GATES[name].answersFailedValidation)).toEqual(['create_file', 'delete_content']);
  });

  it('takes an apply that cannot be reverted for the riskier one', () => {
    expect(applyRiskClass({ fastForward: false, outboxEntries: 0 })).toBe('external_write_revertible');
    expect(applyRiskClass({ fastForward: true, outboxEntries: 0 })).toBe('external_write');
    expect(applyRiskClass({ fastForward: false, outboxEntries: 1 })).toBe('external_write');
  });
});
