import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandOfWord, type HaltChange, newestWords, nextWord, unheard } from '../../src/core/halt-word.ts';
import { HALT_LEVELS, type HaltLevel, type HaltWord, haltOf } from '../../src/core/plan/plan.ts';
import { OPERATOR, PlanDriver } from './plan/plan-driver.ts';

const change = (reason: string | null): HaltChange => ({ reason, by: OPERATOR.actor, at: '2026-11-30T12:00:00.000Z' });

/** The words of one node after a history of settings and clearings, each once. */
function wordsAfter(level: HaltLevel, history: readonly boolean[]): readonly HaltWord[] {
  const words: HaltWord[] = [];
  for (const [index, sets] of history.entries()) {
    const known = words.at(-1) ?? null;
    const word = nextWord(known, level, change(sets ? `reason ${index}` : null));
    if (word !== null && word !== known) words.push(word);
  }
  return words;
}

const histories = fc.record({
  session: fc.array(fc.boolean(), { maxLength: 6 }),
  org: fc.array(fc.boolean(), { maxLength: 6 }),
});

describe('the word of a node', () => {
  it('has a higher epoch with each setting and clearing, and stays where it says what holds already', () => {
    void fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 20 }), (history) => {
        let known: HaltWord | null = null;
        for (const [index, sets] of history.entries()) {
          const next: HaltWord | null = nextWord(known, 'org', change(sets ? `reason ${index}` : null));
          const isSet: boolean = known !== null && known.reason !== null;
          if (isSet === sets) expect(next).toBe(known);
          else expect(next).toMatchObject({ epoch: (known?.epoch ?? 0) + 1, reason: sets ? `reason ${index}` : null });
          known = next;
        }
      }),
    );
  });

  it('in any order, with any loss but the last, late and twice ends in the same switches of a plan', () => {
    void fc.assert(
      fc.property(histories, fc.infiniteStream(fc.nat()), fc.nat(), (history, chance, doubled) => {
        const words = [...wordsAfter('session', history.session), ...wordsAfter('org', history.org)];
        const newest = newestWords(words);
        const pick = () => chance.next().value ?? 0;
        const told = words.filter((word) => newest.includes(word) || pick() % 3 > 0);
        const again = doubled % 2 === 0 ? told : [...told, ...told];
        const order = again.map((word) => ({ word, at: pick() })).toSorted((a, b) => a.at - b.at);
        const driver = PlanDriver.make({ profile: 'manual' }, {});
        for (const { word } of order) expect(driver.do(commandOfWord(word)).ok).toBe(true);
        for (const level of HALT_LEVELS) {
          const heard = driver.plan.halts.find((each) => each.level === level);
          const last = newest.find((each) => each.level === level);
          expect([heard?.epoch, heard?.reason]).toEqual([last?.epoch, last?.reason]);
        }
        expect(haltOf(driver.plan)?.level).toBe(haltOf({ halts: newest })?.level);
        expect(unheard(driver.plan.halts, words)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('that is read at a wake is recorded if it is newer, and a clearing only of what was heard as set', () => {
    const [set, cleared, again] = wordsAfter('org', [true, false, true]);
    if (set === undefined || cleared === undefined || again === undefined) throw new Error('three words were said');
    expect(unheard([], [set])).toEqual([set]);
    expect(unheard([], [cleared])).toEqual([]);
    expect(unheard([set], [cleared])).toEqual([cleared]);
    expect(unheard([cleared], [set, cleared])).toEqual([]);
    expect(unheard([cleared], [again])).toEqual([again]);
  });
});
