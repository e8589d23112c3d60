/** docs/conformance.md links promises to tests. A test that is renamed or removed has to take its row along. */
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = new URL('../', import.meta.url);

interface Row {
  readonly name: string;
  readonly cell: string;
}

interface Link {
  readonly file: string;
  readonly title: string;
}

/** The rows of all tables: their first cell, and the last one with the links. */
async function readRows(): Promise<readonly Row[]> {
  const lines = (await readFile(new URL('docs/conformance.md', ROOT), 'utf8')).split('\n');
  return lines
    .filter((line) => line.startsWith('| ') && !/^\| (Id|Requirement) \|/.test(line))
    .map((line) => line.slice(2, -2).split(' | '))
    .map((cells) => ({ name: cells[0] ?? '', cell: cells.at(-1) ?? '' }));
}

/** The links of a row; what is neither a link nor open has the file ''. */
function linksOf({ cell }: Row): readonly Link[] {
  return cell
    .split('<br>')
    .filter((each) => !each.startsWith('open: '))
    .map((each) => {
      const [, file = '', title = ''] = /^`(test\/[\w./-]+\.ts)` › (.+)$/.exec(each) ?? [];
      return { file, title: file === '' ? each : title };
    });
}

/** The titles of the tests in a file, as they are written: `test('title', …` and `test.each(…)('title', …`. Those of plain suites are none. */
function titlesIn(source: string): ReadonlySet<string> {
  const calls = source.matchAll(/(\w+|\))\(\s*(['"`])((?:\\.|(?!\2).)+)\2,\s*(?:\{[^{}]*\},\s*)?(?:async\s+)?(?:\(|\w+\s*=>)/g);
  const titles = [...calls]
    .filter(([, callee = '']) => callee === 'it' || callee === 'test' || callee === ')')
    .map((call) => call[3] ?? '');
  return new Set(titles);
}

test('every linked test exists under its title', async () => {
  const links = (await readRows()).flatMap(linksOf);
  const files = new Set((await readdir(fileURLToPath(new URL('test', ROOT)), { recursive: true })).map((path) => `test/${path}`));
  const titles = new Map<string, ReadonlySet<string>>();
  for (const { file } of links) {
    if (!titles.has(file) && files.has(file)) titles.set(file, titlesIn(await readFile(new URL(file, ROOT), 'utf8')));
  }
  expect(links.length).toBeGreaterThan(200);
  expect(links.filter(({ file, title }) => titles.get(file)?.has(title) !== true)).toEqual([]);
});

test('every row links a test or says what is open, and no row stands twice', async () => {
  const rows = await readRows();
  expect(rows.filter(({ cell }) => !/(^|<br>)(`test\/|open: \S)/.test(cell))).toEqual([]);
  const names = rows.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
