import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandOfWord, type HaltChange, newestWords, nextWord, unheard } from '../../src/core/halt-word.ts';
import { HALT_LEVELS, type HaltLevel, type HaltWord, haltOf } from '../../src/core/plan/plan.ts';
import { createCommand, OPERATOR, PlanDriver } from './plan/plan-driver.ts';

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
        for (const { word } of order) expect(driver.do(commandOfWord(word, driver.plan.sessionId)).ok).toBe(true);
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

  it('of two sessions and moves between them, in any order and late, ends in the word of the session that the plan is in', () => {
    const words = {
      s1: fc.array(fc.boolean(), { maxLength: 5 }).map((history) => wordsAfter('session', history)),
      s2: fc.array(fc.boolean(), { maxLength: 5 }).map((history) => wordsAfter('session', history)),
    };
    const acts = fc.array(fc.oneof(fc.constant('move' as const), fc.record({ of: fc.constantFrom('s1', 's2'), at: fc.nat() })), {
      maxLength: 20,
    });
    void fc.assert(
      fc.property(fc.record(words), acts, acts, (said, before, late) => {
        const driver = new PlanDriver();
        expect(driver.do({ ...createCommand({ profile: 'full-auto', project: null, apply: 'none' }), external: true }).ok).toBe(true);
        const tell = ({ of, at }: { readonly of: 's1' | 's2'; readonly at: number }): void => {
          const word = said[of][at % Math.max(1, said[of].length)];
          if (word !== undefined) expect(driver.do(commandOfWord(word, of)).ok).toBe(true);
        };
        const move = (): void => {
          const sessionId = driver.plan.sessionId === 's1' ? 's2' : 's1';
          // Nobody walks out of a halt.
          const isFree = haltOf(driver.plan) === null;
          expect(driver.do({ type: 'associate', by: OPERATOR.actor, sessionId }).ok).toBe(isFree);
        };
        for (const act of before) act === 'move' ? move() : tell(act);
        // What the plan reads before it acts.
        const here = driver.plan.sessionId as 's1' | 's2';
        const newest = said[here].at(-1);
        for (const word of unheard(driver.plan.halts, newest === undefined ? [] : [newest])) driver.do(commandOfWord(word, here));
        const wasHeard = driver.plan.halts.length > 0;
        expect(haltOf(driver.plan)?.reason ?? null).toBe(newest?.reason ?? null);
        const rows = driver.rows.length;
        for (const act of late) if (act !== 'move' && (act.of !== here || wasHeard)) tell(act);
        expect(haltOf(driver.plan)?.reason ?? null).toBe(newest?.reason ?? null);
        expect(driver.rows).toHaveLength(rows);
      }),
      { numRuns: 500 },
    );
  });

  it('of a session holds for a plan whatever another session had said before it was moved', () => {
    const driver = new PlanDriver();
    driver.do({ ...createCommand({ profile: 'full-auto', project: null, apply: 'none' }), external: true });
    const tell = (word: HaltWord | undefined, of: string) => word !== undefined && driver.do(commandOfWord(word, of));
    const left = wordsAfter('session', [true, false, true]);
    const [first] = wordsAfter('session', [true]);
    tell(left[0], 's1');
    tell(left[1], 's1');
    driver.do({ type: 'associate', by: OPERATOR.actor, sessionId: 's2' });
    tell(first, 's2');
    expect(haltOf(driver.plan)).toMatchObject({ level: 'session', epoch: 1 });
    tell(left[2], 's1');
    expect(haltOf(driver.plan)?.epoch).toBe(1);
    const move = (sessionId: string) => driver.do({ type: 'associate', by: OPERATOR.actor, sessionId });
    expect(move('constructor')).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    expect(driver.plan.sessionId).toBe('s2');
    const [, cleared] = wordsAfter('session', [true, false]);
    tell(cleared, 's2');
    expect(move('constructor').ok).toBe(true);
    expect(haltOf(driver.plan)).toBeNull();
    expect(move('s2').ok).toBe(true);
    // What was said there before is old there again.
    tell(first, 's2');
    expect(haltOf(driver.plan)).toBeNull();
    expect(driver.trail.filter(({ guardName }) => guardName === 'halt').map(({ context }) => context['session_id'])).toEqual([
      's1',
      's1',
      's2',
      's2',
    ]);
  });

  it('never holds a secret, whatever the reason was', () => {
    const secret = `sk-${'a1'.repeat(12)}`;
    expect(nextWord(null, 'org', change(`leaked ${secret} twice`))?.reason).toBe('leaked [masked] twice');
    const driver = PlanDriver.make({ profile: 'manual' }, {});
    driver.halt(`leaked ${secret} twice`);
    expect(JSON.stringify(driver.rows)).not.toContain(secret);
    expect(haltOf(driver.plan)?.reason).toBe('leaked [masked] twice');
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
