import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { type Attempt, type AttemptContext, judgeAttempt, MAX_REFUSALS, PUSH_TIMING } from '../../../src/core/push/judge-attempt.ts';

const NOW = Date.parse('2026-12-01T12:00:00.000Z');

const context = (more: Partial<AttemptContext> = {}): AttemptContext => ({
  timing: PUSH_TIMING,
  tries: 1,
  ageMs: 0,
  nowMs: NOW,
  random: 1 - Number.EPSILON,
  ...more,
});

const answered = (status: number, retryAfter: string | null = null): Attempt => ({ kind: 'answered', status, retryAfter });

const pauseOf = (attempt: Attempt, more: Partial<AttemptContext> = {}): number | string => {
  const judgement = judgeAttempt(attempt, context(more));
  return judgement.kind === 'retry' ? judgement.pauseMs : judgement.kind;
};

describe('An attempt to deliver', () => {
  test.each([
    [200, 'delivered'],
    [202, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [410, 'gone'],
    [301, 'retry'],
    [400, 'retry'],
    [404, 'retry'],
    [408, 'retry'],
    [429, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
    [599, 'retry'],
  ] as const)('that was answered with %i is %s', (status, kind) => {
    expect(judgeAttempt(answered(status), context()).kind).toBe(kind);
  });

  it('is made again after pauses that double up to an hour, whatever the number', () => {
    const pauses = [1, 2, 3, 4, 5, 12, 13, 1000, 1e9].map((tries) => pauseOf(answered(500), { tries }));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 2_048_000, 3_600_000, 3_600_000, 3_600_000]);
    expect(pauseOf({ kind: 'unanswered', problem: 'timeout' }, { tries: 3 })).toBe(4_000);
  });

  it('that the receiver refuses is made so often and no more', () => {
    for (const status of [300, 302, 400, 401, 403, 404, 409, 413, 422, 499]) {
      expect(judgeAttempt(answered(status), context({ tries: MAX_REFUSALS - 1 })).kind, `${status}`).toBe('retry');
      expect(judgeAttempt(answered(status), context({ tries: MAX_REFUSALS })), `${status}`).toEqual({ kind: 'dead', reason: 'refused' });
    }
    for (const status of [408, 425, 429, 500, 502, 503, 504])
      expect(judgeAttempt(answered(status), context({ tries: 10 * MAX_REFUSALS })).kind, `${status}`).toBe('retry');
  });

  it('is the last for a notification that is a day old', () => {
    expect(judgeAttempt(answered(500), context({ ageMs: 86_399_999 })).kind).toBe('retry');
    expect(judgeAttempt(answered(500), context({ ageMs: 86_400_000 }))).toEqual({ kind: 'dead', reason: 'expired' });
    expect(judgeAttempt(answered(200), context({ ageMs: 1e12 })).kind).toBe('delivered');
  });

  test.each([
    ['30', 30_000],
    [' 30 ', 30_000],
    ['0', 1_000],
    ['7200', 3_600_000],
    ['999999999', 3_600_000],
    ['Tue, 01 Dec 2026 12:05:00 GMT', 300_000],
    ['Tue, 01 Dec 2026 11:00:00 GMT', 1_000],
    ['Tue, 01 Dec 2099 11:00:00 GMT', 3_600_000],
    ['-5', 1_000],
    ['soon', 1_000],
    ['1e9', 1_000],
    ['', 1_000],
  ] as const)('keeps the pause that Retry-After %j asks for, up to an hour', (retryAfter, pauseMs) => {
    expect(pauseOf(answered(503, retryAfter))).toBe(pauseMs);
    expect(pauseOf(answered(429, retryAfter))).toBe(pauseMs);
  });

  it('never waits longer than the longest pause nor less than half of the own one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 0.9999999, noNaN: true }),
        fc.integer({ min: 100, max: 599 }),
        fc.option(fc.oneof(fc.string(), fc.nat().map(String)), { nil: null }),
        (tries, random, status, retryAfter) => {
          const pause = pauseOf(answered(status, retryAfter), { tries, random });
          const least = Math.min(PUSH_TIMING.maxPauseMs, 1_000 * 2 ** Math.min(tries - 1, 30)) / 2;
          expect(
            typeof pause === 'string' || (Number.isSafeInteger(pause) && pause >= least && pause <= PUSH_TIMING.maxPauseMs),
            `${pause}`,
          ).toBe(true);
        },
      ),
    );
  });
});
