/** Adds up the runners of `.ci/run`. Arguments: `name:exit code:summary file`. The last line is "N passed, N failed". */
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
for (const argument of process.argv.slice(2)) {
  const [, name, code, path] = /^([^:]+):(\d+):(.*)$/.exec(argument) ?? [];
  const summary = read(path);
  passed += summary?.passed ?? 0;
  failed += summary?.failed ?? 0;
  for (const failure of summary?.failures ?? []) console.log(`FAILED   ${failure}`);
  for (const skip of summary?.skipped ?? []) console.log(`skipped  ${skip.name}: ${skip.reason || 'no reason given'}`);
  if (summary === undefined) {
    failed += 1;
    console.log(`FAILED   ${name}: did not report (exit code ${code})`);
  } else if (code !== '0' && summary.failed === 0) {
    // For example a failed format, lint or type check, or a command that failed after its tests.
    failed += 1;
    console.log(`FAILED   ${name}: exit code ${code}`);
  } else if (summary.passed === 0 && summary.failed === 0) {
    failed += 1;
    console.log(`FAILED   ${name}: ran nothing`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function read(path) {
  try {
    const summary = JSON.parse(readFileSync(path, 'utf8'));
    return Number.isInteger(summary.passed) && Number.isInteger(summary.failed) ? summary : undefined;
  } catch {
    return undefined;
  }
}
