/**
 * Three runners in one configuration, one after the other, each with two files at a time:
 *   unit    pure code in Node;
 *   worker  objects and storage inside workerd, two of them, without isolation (each test uses names of its own, which is four times faster);
 *   e2e     real server processes, each with a port and a state folder of its own.
 */
import { generateKeyPairSync } from 'node:crypto';
import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';
import { SummaryReporter } from './test/support/summary-reporter.ts';

const workerTests = ['test/objects/**/*.test.ts', 'test/storage/**/*.test.ts'];
const e2eTests = ['test/e2e/**/*.test.ts'];

// Two even on a machine of two cores: about half of a test of objects or servers is waiting.
const FILES_AT_A_TIME = 2;

// The secret of the Worker under test, of this run only.
const signingKey = JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));

// Read by wrangler and miniflare inside this process: nothing may call out while tests run.
process.env['CLOUDFLARE_CF_FETCH_ENABLED'] = 'false';
process.env['WRANGLER_SEND_METRICS'] = 'false';
process.env['WRANGLER_SEND_ERROR_REPORTS'] = 'false';
process.env['WRANGLER_HIDE_BANNER'] = 'true';

// A run of CI names the file that sums it up.
const summaryPath = process.env['TEST_SUMMARY'];

export default defineConfig({
  test: {
    reporters: ['default', ...(summaryPath === undefined ? [] : [new SummaryReporter(summaryPath)])],
    projects: [
      {
        test: {
          name: 'unit',
          environment: 'node',
          include: ['test/**/*.test.ts'],
          exclude: [...workerTests, ...e2eTests],
          // Generous: property tests share two cores with whatever else runs. No test measures time.
          testTimeout: 30_000,
          maxWorkers: FILES_AT_A_TIME,
          sequence: { groupOrder: 0 },
        },
      },
      {
        plugins: [
          cloudflareTest(async () => ({
            main: './test/worker/test-worker.ts',
            wrangler: { configPath: './wrangler.toml' },
            miniflare: { bindings: { TEST_MIGRATIONS: await readD1Migrations('./migrations'), AUDIT_SIGNING_KEY: signingKey } },
          })),
        ],
        test: {
          name: 'worker',
          include: workerTests,
          setupFiles: ['./test/support/apply-migrations.ts'],
          isolate: false,
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: FILES_AT_A_TIME,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'e2e',
          environment: 'node',
          include: e2eTests,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: FILES_AT_A_TIME,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
