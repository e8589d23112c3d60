import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { APPROVING_TEXTS, DENYING_TEXTS, parsePlainDecision } from '../../src/a2a/plain-decision.ts';

describe('plain text that decides', () => {
  test.each(APPROVING_TEXTS)('%s approves in any case and with final punctuation', (text) => {
    for (const form of [text, text.toUpperCase(), `${text}.`, `${text}!`, ` ${text} \n`, `${text} !`]) {
      expect(parsePlainDecision(form)).toEqual({ decision: 'approve' });
    }
  });

  test.each(DENYING_TEXTS)('%s denies in any case and with final punctuation', (text) => {
    for (const form of [text, text.toUpperCase(), `${text}.`, `${text}!!`]) expect(parsePlainDecision(form)).toEqual({ decision: 'deny' });
  });

  test.each([
    ['Approved — proceed with the apply phase.', 'apply'],
    ['approved - proceed with the execute phase', 'execute'],
    ['Yes, proceed with the strategize phase!', 'strategize'],
    ['ok. Proceed with the apply phase.', 'apply'],
    ['Go  ahead\nproceed with the apply phase', 'apply'],
    ['lgtm: proceed with the apply phase', 'apply'],
    ['approved—proceed with the apply phase', 'apply'],
  ])('%s approves and names the %s phase', (text, phase) => {
    expect(parsePlainDecision(text)).toEqual({ decision: 'approve', phase });
  });
});

describe('plain text that decides nothing', () => {
  test.each([
    '',
    '   ',
    '.',
    'yes, after you rename it',
    'yes?',
    'yes yes',
    'not approved',
    'no, proceed with the apply phase',
    'approved — proceed with the deploy phase',
    'approved — proceed with the apply phase and then delete everything',
    'proceed with the apply phase',
    'proceed with caution',
    'approve the other one',
    'I do not approve',
    'yes\u200b',
    'ｙｅｓ',
    'constructor',
    `approve${' '.repeat(1_000)}`,
  ])('%j', (text) => {
    expect(parsePlainDecision(text)).toBeNull();
  });

  test('is every text with one more word before or after', () => {
    const words = fc.stringMatching(/^[a-z]{1,10}$/).filter((word) => !['go', 'ahead'].includes(word));
    fc.assert(
      fc.property(fc.constantFrom(...APPROVING_TEXTS, ...DENYING_TEXTS), words, fc.boolean(), (text, word, before) => {
        expect(parsePlainDecision(before ? `${word} ${text}` : `${text} ${word}`)).toBeNull();
      }),
    );
  });

  test('is found fast in a hostile text', () => {
    const started = performance.now();
    for (let i = 0; i < 1_000; i += 1) parsePlainDecision(`${'yes - '.repeat(19)}x`);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
