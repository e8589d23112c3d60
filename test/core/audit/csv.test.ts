import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvCell } from '../../../src/core/audit/csv.ts';

/** Reads one cell as RFC 4180 says. */
const readCell = (cell: string): string => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);

describe('a cell of CSV', () => {
  it.each([
    ['=1+1', "'=1+1"],
    ['+SUM(A1)', "'+SUM(A1)"],
    ['-2', "'-2"],
    ['@cmd', "'@cmd"],
    ['\t=1', "'\t=1"],
    ['＝1', "'＝1"],
    ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
    ['a=b', 'a=b'],
    ['a,b', '"a,b"'],
    ['a "b"', '"a ""b"""'],
    ['a\r\nb', '"a\r\nb"'],
    ['', ''],
  ])('%j is written as %j', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it('never begins as a formula and reads back as the text, with at most a quote in front', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `=${text}`),
        ),
        (text) => {
          const read = readCell(csvCell(text));
          expect(read).not.toMatch(/^[=+\-@\t\r\n]/);
          expect([text, `'${text}`]).toContain(read);
        },
      ),
    );
  });
});
