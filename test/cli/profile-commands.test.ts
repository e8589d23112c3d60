import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { CliIo } from '../../src/cli/cli-io.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { THRESHOLD_NAMES, THRESHOLDS } from '../../src/core/profile.ts';
import { Refused, type Service, serve } from './service.ts';

const services: Service[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true });
});

async function start(operations: Readonly<Record<string, (params: JsonObject) => unknown>>): Promise<Service> {
  const service = await serve(operations);
  services.push(service);
  return service;
}
function folder(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'agents-profile-'));
  folders.push(path);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

async function run(argv: readonly string[], cwd: string) {
  const out: Buffer[] = [];
  let err = '';
  const io: CliIo = {
    ...{ cwd, env: {}, isTerminal: false },
    out: (data) => out.push(Buffer.from(data)),
    err: (text) => {
      err += text;
    },
  };
  const exitCode = await runCli(argv, io, '1.2.3');
  return { exitCode, out: Buffer.concat(out).toString('utf8'), err };
}

const VIEW = {
  ...{ name: 'mine', description: null, built_in: false, version: 1, digest: 'd'.repeat(64), unattended: true },
  thresholds: THRESHOLD_NAMES.map((name) => ({
    name,
    value: 1,
    meaning: THRESHOLDS[name],
    ...(name === 'edit_code' ? {} : { is_default: true }),
  })),
  safety: { require_sandbox: true, max_cost_per_plan: 2 },
  guard: { tool_denylist: ['shell_*\u001b[2J'] },
  ...{ document: {}, created_at: null, updated_at: null },
};
const YAML = '# why\nname: mine\nedit_code: 1\n';

describe.each([
  ['add', ['automation-profile', 'add'], {}],
  ['update', ['automation-profile', 'update', 'mine'], { name: 'mine' }],
] as const)('automation-profile %s', (verb, words, rest) => {
  const method = `_cleveragents/profile/${verb}`;

  it('sends the file as it is, comments and all, so that the service can name its lines', async () => {
    const { url, calls } = await start({ [method]: () => VIEW });
    const ran = await run([...words, '--config', 'p.yaml', '--url', url], folder({ 'p.yaml': YAML }));
    expect(ran.exitCode).toBe(0);
    expect(calls[0]?.params).toEqual({ ...rest, yaml: YAML });
  });

  it('prints every threshold with its meaning, defaults marked, then safety and guard, and nothing that moves the cursor', async () => {
    const { url } = await start({ [method]: () => VIEW });
    const { out } = await run([...words, '--config', 'p.yaml', '--url', url], folder({ 'p.yaml': YAML }));
    for (const name of THRESHOLD_NAMES)
      expect(out).toMatch(new RegExp(`${name} +1${name === 'edit_code' ? ' +' : ' \\(default\\) +'}${THRESHOLDS[name].slice(0, 12)}`));
    expect(out).toMatch(/require_sandbox +true/);
    expect(out).toMatch(/tool_denylist +\["shell_\*/);
    expect(out).toContain('Nobody answers');
    expect(out).not.toContain('\u001b');
  });

  it('shows what is wrong with its line, and ends with 2', async () => {
    const { url } = await start({
      [method]: () => {
        throw new Refused({ kind: 'invalid', message: 'Invalid profile: yaml.edit_code: line 3: must be from 0.0 to 1.0', issues: [] });
      },
    });
    const ran = await run([...words, '--config', 'p.yaml', '--url', url], folder({ 'p.yaml': YAML }));
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toContain('line 3: must be from 0.0 to 1.0');
  });

  it.each([
    ['without a file', [], '--config <file> is required'],
    ['with a file that is not there', ['--config', 'no.yaml'], 'no.yaml cannot be read'],
  ])('asks nothing %s', async (_what, flags, message) => {
    const { url, calls } = await start({ [method]: () => VIEW });
    expect(await run([...words, ...flags, '--url', url], folder({}))).toMatchObject({ exitCode: 2, err: expect.stringContaining(message) });
    expect(calls).toEqual([]);
  });
});

describe('automation-profile show --yaml', () => {
  it('prints the file that add takes and nothing else', async () => {
    const { url, calls } = await start({ '_cleveragents/profile/show': () => ({ ...VIEW, yaml: 'name: mine\nedit_code: 1\n' }) });
    const { out } = await run(['automation-profile', 'show', 'mine', '--yaml', '--url', url], folder({}));
    expect(calls[0]?.params).toEqual({ name: 'mine', yaml: true });
    expect(out).toBe('name: mine\nedit_code: 1\n');
  });
});

describe('automation-profile delete', () => {
  it('deletes by name, and an unknown one ends with 3', async () => {
    const { url, calls } = await start({
      '_cleveragents/profile/delete': ({ name }) => {
        if (name !== 'mine') throw new Refused({ kind: 'not_found', message: 'No profile', entity: 'profile', id: String(name) });
        return { name, deleted: true, version: 2 };
      },
    });
    expect((await run(['automation-profile', 'delete', 'mine', '--url', url], folder({}))).exitCode).toBe(0);
    expect((await run(['automation-profile', 'delete', 'other', '--url', url], folder({}))).exitCode).toBe(3);
    expect(calls.map(({ params }) => params)).toEqual([{ name: 'mine' }, { name: 'other' }]);
  });
});

describe('org policy', () => {
  it('is set from a JSON file and shown', async () => {
    const policy = { guardrails: { tool_denylist: ['pay.send'] } };
    const view = { version: 1, digest: 'd', policy, updated_at: null, updated_by: null };
    const { url, calls } = await start({ '_cleveragents/org/policy/set': () => view, '_cleveragents/org/policy/show': () => view });
    const cwd = folder({ 'floor.json': JSON.stringify(policy), 'bad.json': '{' });
    expect((await run(['org', 'policy', 'set', 'floor.json', '--expected-version', '0', '--url', url], cwd)).exitCode).toBe(0);
    expect(calls[0]?.params).toEqual({ policy, expected_version: 0 });
    expect((await run(['org', 'policy', 'show', '--url', url], cwd)).out).toContain('pay.send');
    expect((await run(['org', 'policy', 'set', 'bad.json', '--url', url], cwd)).exitCode).toBe(2);
  });
});
