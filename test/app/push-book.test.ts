/** The duty of a node to tell its plans, over the same SQL as its object. */
import { beforeEach, describe, expect, it } from 'vitest';
import { PushBook } from '../../src/objects/node/push-book.ts';
import { tellWhatIsDue } from '../../src/objects/node/tell-plans.ts';
import { makeSql } from '../support/sqlite.ts';

const ORG = { org: 'acme', sessionId: null };

let nowMs: number;
let sql: ReturnType<typeof makeSql>;
let book: PushBook;
/** Plans that are told a part at a time; those that are away miss it. */
let away: Set<number>;
let told: { readonly after: string; readonly word: string }[];
let word: string | null;

const tell = async (_of: object, after: string, command: { readonly type: string; readonly reason?: string }) => {
  told.push({ after, word: command.reason ?? command.type });
  const from = Number(after || 0);
  const unreached = [from, from + 1].filter((each) => away.has(each)).map(String);
  return { unreached, next: from + 2 >= 6 ? null : String(from + 2) };
};

const run = () =>
  tellWhatIsDue(
    book,
    () => (word === null ? null : { type: 'halt', by: { kind: 'human', id: 'k', name: 'k' }, level: 'org', epoch: 1, reason: word }),
    tell as never,
    { nowMs: () => nowMs, report: () => {} },
  );

beforeEach(() => {
  nowMs = 1_000_000;
  sql = makeSql();
  book = new PushBook(sql, 'halt');
  away = new Set();
  told = [];
  word = 'first';
});

describe('the duty to tell', () => {
  it('is stored with the first thing to tell, and is due if nobody has told it meanwhile', async () => {
    expect([book.current(), book.dueMs()]).toEqual([null, null]);
    book.begin(ORG, 1, nowMs);
    await run();
    expect(told, 'whoever began it comes first').toEqual([]);
    book.end(1);
    expect(book.dueMs()).toBeNull();
  });

  it('goes over the plans part by part and ends with a round that missed nobody, over a restart in between', async () => {
    book.begin(ORG, 1, nowMs);
    nowMs += 3_000;
    await run();
    book = new PushBook(sql, 'halt');
    for (let part = 0; part < 2; part += 1) await run();
    expect(told.map(({ after }) => after)).toEqual(['', '2', '4']);
    expect(book.current()).toBeNull();
  });

  it('begins again after growing pauses as long as somebody is missed', async () => {
    away.add(3);
    book.begin(ORG, 1, nowMs);
    const pauses: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      const due = book.dueMs() ?? 0;
      pauses.push(due - nowMs);
      nowMs = due;
      for (let part = 0; part < 3; part += 1) await run();
    }
    expect(pauses.slice(0, 4)).toEqual([3_000, 3_000, 6_000, 12_000]);
    expect(pauses.at(-1)).toBe(300_000);
    away.clear();
    nowMs = book.dueMs() ?? 0;
    for (let part = 0; part < 3; part += 1) await run();
    expect(book.current()).toBeNull();
  });

  it('tells the newest word from its beginning when it changes on the way, and is not ended by news of the older one', async () => {
    book.begin(ORG, 1, nowMs);
    nowMs += 3_000;
    await run();
    word = 'second';
    book.begin(ORG, 2, nowMs);
    book.end(1);
    book.begin(ORG, 1, nowMs);
    expect(book.current()).toMatchObject({ version: 2, cursor: '' });
    nowMs += 3_000;
    for (let part = 0; part < 3; part += 1) await run();
    expect(told.slice(1)).toEqual(['', '2', '4'].map((after) => ({ after, word: 'second' })));
    expect(book.current()).toBeNull();
  });

  it('is done again when nobody can say which plans there are', async () => {
    book.begin(ORG, 1, nowMs);
    nowMs += 3_000;
    const broken = async () => {
      throw new Error('lost');
    };
    const problems: string[] = [];
    await tellWhatIsDue(book, () => ({ type: 'retry_budget' }), broken, {
      nowMs: () => nowMs,
      report: (problem) => problems.push(problem),
    });
    expect(problems).toHaveLength(1);
    expect(book.current()).toMatchObject({ cursor: '', round: 1, dueMs: nowMs + 3_000 });
  });
});
