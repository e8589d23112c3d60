/**
 * Writes what a test run came to as one JSON file, for `.ci/run`: counts, and every skipped test with its reason. The reason is the
 * note given to `context.skip(note)` or the text in brackets of the test's name; a skip without one counts as a failure.
 */
import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule, TestRunEndReason } from 'vitest/node';

/** What the file holds. */
export interface TestSummary {
  readonly passed: number;
  readonly failed: number;
  readonly failures: readonly string[];
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

/** Vitest reporter; `path` is the file to write at the end of the run. */
export class SummaryReporter implements Reporter {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[], reason: TestRunEndReason): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const named = (state: string): readonly TestCase[] => tests.filter((test) => test.result().state === state);
    const skipped = named('skipped').map((test) => ({ name: nameOf(test), reason: reasonOf(test) }));
    const failures = [
      ...named('failed').map(nameOf),
      ...named('pending').map((test) => `${nameOf(test)}: did not run`),
      ...modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).map((module) => module.moduleId),
      ...skipped.filter((skip) => skip.reason === '').map((skip) => `${skip.name}: skipped without a reason`),
      ...errors.map((error) => `unhandled error: ${error.message}`),
      ...(reason === 'interrupted' ? ['the run was interrupted'] : []),
    ];
    const summary: TestSummary = { passed: named('passed').length, failed: failures.length, failures, skipped };
    writeFileSync(this.path, JSON.stringify(summary, null, 2));
  }
}

function nameOf(test: TestCase): string {
  return `${test.project.name}: ${test.module.relativeModuleId} > ${test.fullName}`;
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return note ?? /\(([^()]+)\)[^()]*$/.exec(test.fullName)?.[1] ?? '';
}
