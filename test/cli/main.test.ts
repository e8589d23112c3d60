import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Service, serve } from './service.ts';

const AGENTS = resolve(import.meta.dirname, '../../bin/agents.mjs');

let service: Service;
let cwd: string;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'main-'));
  service = await serve({
    '_cleveragents/health/check': () => ({
      status: 'degraded',
      version: '1',
      checks: [{ name: 'database', status: 'failed', detail: 'x'.repeat(200_000) }],
    }),
  });
});

afterAll(async () => {
  await service.close();
  rmSync(cwd, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command as a person starts it: a process of its own, with pipes. */
const agents = (...argv: readonly string[]): Promise<Ended> =>
  new Promise((done) => {
    const env = { ...process.env, CLEVERAGENTS_URL: service.url, CLEVERAGENTS_SERVER_TOKEN: 'ca_1_s' };
    execFile(process.execPath, [AGENTS, ...argv], { cwd, env, maxBuffer: 10_000_000 }, (error, stdout, stderr) => {
      done({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });

describe('the agents process', { timeout: 30_000 }, () => {
  it('ends with the exit code that its JSON names, and writes all of it', async () => {
    const ended = await agents('health', 'check', '--format', 'json');
    expect(ended.stderr).toBe('');
    const envelope = JSON.parse(ended.stdout) as {
      readonly exit_code: number;
      readonly data: { readonly checks: readonly { readonly detail: string }[] };
    };
    expect(envelope.exit_code).toBe(1);
    expect(ended.code).toBe(1);
    expect(envelope.data.checks[0]?.detail).toHaveLength(200_000);
    expect(service.calls[0]?.authorization).toBe('Bearer ca_1_s');
  });

  it('ends with 2 for a command that it does not know', async () => {
    expect(await agents('fly')).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("unknown command 'fly'") });
  });
});
