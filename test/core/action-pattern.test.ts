import { describe, expect, it } from 'vitest';
import { patternIssue } from '../../src/core/action/pattern-cost.ts';

describe('a pattern of an argument schema', () => {
  it.each([
    '^[a-z]+$',
    '^[\\p{L}\\p{N}][\\p{L}\\p{N} ,.!?-]*$',
    '^(main|release)$',
    '^v\\d(\\.\\d){0,2}$',
    '^(?:ab)+$',
    '\\(a+\\)',
    '^[(*+|]{3}$',
  ])('may be %s', (pattern) => {
    expect(patternIssue(pattern, null)).toBeNull();
  });

  it.each([
    ['^(a+)+$', 'repeat a group'],
    ['^(a|a)*$', 'repeat a group'],
    ['^(?:a?){30}$', 'repeat a group'],
    ['^((a)b*)+$', 'repeat a group'],
    ['^(?:(?:x+)y)*$', 'repeat a group'],
    ['^(?<n>a{1,9})*$', 'repeat a group'],
    ['^(a)\\1$', 'refer back'],
    ['^(?<n>a)\\k<n>$', 'refer back'],
    ['a*b*c*d*', 'at most 3'],
    ['a*b*$', 'maxLength'],
  ])('may not be %s', (pattern, reason) => {
    expect(patternIssue(pattern, null)).toContain(reason);
  });

  it('with several unbounded repetitions is for texts of bounded length', () => {
    expect(patternIssue('a*b*$', 1000)).toBeNull();
    expect(patternIssue('a*b*$', 1001)).toContain('maxLength');
  });
});
