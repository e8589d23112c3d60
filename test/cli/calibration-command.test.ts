import { afterEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/run-cli.ts';
import { calibrationFixture } from '../app/calibration-fixture.ts';
import { makeService } from '../app/service.ts';
import { type Service, serve } from './service.ts';

const open: Service[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((service) => service.close()));
});

/** Runs the command against what the application really answers. */
async function run(argv: readonly string[], hasOutcomes: boolean) {
  const { services, caller } = makeService();
  if (hasOutcomes) await services.outcomes.record(calibrationFixture('acme'));
  const report = await (await caller('acme')).call('_cleveragents/profile/calibration', {});
  const service = await serve({ '_cleveragents/profile/calibration': () => report });
  open.push(service);
  let out = '';
  const io = {
    cwd: '/',
    env: {},
    isTerminal: false,
    out: (data: string | Uint8Array) => (out += Buffer.from(data).toString()),
    err: () => {},
  };
  const exitCode = await runCli(['automation-profile', 'calibration', ...argv, '--url', service.url], io, '1.2.3');
  return { exitCode, out, params: service.calls[0]?.params };
}

describe('agents automation-profile calibration', () => {
  it('shows what happened beside what was expected, for each class and band that has outcomes', async () => {
    const { exitCode, out } = await run([], true);
    expect(exitCode).toBe(0);
    const lines = out.split('\n').map((line) => line.split(/ {2,}/).join(' | '));
    expect(lines).toEqual([
      'class | n | ok | happened | expected | brier',
      'all | 4 | 3 | 0.750 | 0.700 | 0.150',
      'read | 3 | 2 | 0.667 | 0.733 | 0.147',
      'write | 1 | 1 | 1.000 | 0.600 | 0.160',
      '',
      'class | confidence | n | ok | happened | expected',
      'all | 0.6 to 0.7 | 2 | 1 | 0.500 | 0.600',
      'all | 0.8 to 0.9 | 2 | 2 | 1.000 | 0.800',
      'read | 0.6 to 0.7 | 1 | 0 | 0.000 | 0.600',
      'read | 0.8 to 0.9 | 2 | 2 | 1.000 | 0.800',
      'write | 0.6 to 0.7 | 1 | 1 | 1.000 | 0.600',
      'happened: share that went well; expected: mean confidence; brier: 0 is perfect, 0.25 is a coin',
      '',
    ]);
  });

  it('says so when there is nothing yet', async () => {
    const { exitCode, out } = await run([], false);
    expect([exitCode, out]).toEqual([0, 'no outcomes yet\n']);
  });

  it('narrows the report by action, project and actor, and gives it whole as JSON', async () => {
    const { out, params } = await run(['--action', 'edit', '--project', 'site', '--actor', 'scripted/steps', '--format', 'json'], true);
    expect(params).toEqual({ action: 'edit', project: 'site', actor: 'scripted/steps' });
    const { data } = JSON.parse(out) as { readonly data: { readonly overall: { readonly bands: readonly object[] } } };
    expect(data.overall.bands).toHaveLength(10);
  });
});
