/** The last line of CI: it must never be green when a runner failed, was silent, or ran nothing. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const SCRIPT = resolve(fileURLToPath(import.meta.url), '../../.ci/sum.mjs');
const folder = mkdtempSync(join(tmpdir(), 'cleveragents-sum-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Runner {
  readonly code: number;
  /** Absent: the runner wrote no summary. */
  readonly summary?: unknown;
}

const good: Runner = { code: 0, summary: { passed: 3, failed: 0, failures: [], skipped: [] } };

test.each<readonly [title: string, runners: readonly Runner[], last: string, code: number]>([
  ['adds up runners that passed', [good, good], '6 passed, 0 failed', 0],
  [
    'fails with a runner that failed',
    [good, { code: 1, summary: { passed: 2, failed: 1, failures: ['x'], skipped: [] } }],
    '5 passed, 1 failed',
    1,
  ],
  ['fails with a runner that did not report', [good, { code: 0 }], '3 passed, 1 failed', 1],
  ['fails with a report that is none', [good, { code: 0, summary: 'fine' }], '3 passed, 1 failed', 1],
  ['fails with an exit code although all tests passed', [good, { ...good, code: 2 }], '6 passed, 1 failed', 1],
  [
    'fails with a runner that ran nothing',
    [good, { code: 0, summary: { passed: 0, failed: 0, failures: [], skipped: [] } }],
    '3 passed, 1 failed',
    1,
  ],
])('the sum %s', (_title, runners, last, code) => {
  const run = sum(runners);
  expect(run.lines.at(-1)).toBe(last);
  expect(run.code).toBe(code);
});

test('the sum lists every skip with its reason', () => {
  const run = sum([{ code: 0, summary: { passed: 1, failed: 0, failures: [], skipped: [{ name: 'a', reason: 'needs b' }] } }]);
  expect(run.lines).toContain('skipped  a: needs b');
});

function sum(runners: readonly Runner[]): { readonly lines: readonly string[]; readonly code: number | null } {
  const args = runners.map(({ code, summary }, index) => {
    const path = join(folder, `${index}.json`);
    rmSync(path, { force: true });
    if (summary !== undefined) writeFileSync(path, JSON.stringify(summary));
    return `runner ${index}:${code}:${path}`;
  });
  const { stdout, status } = spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8' });
  return { lines: stdout.trim().split('\n'), code: status };
}
