/** `agents audit export|verify` against a service that makes real exports. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/run-cli.ts';
import { AUDIT_KEY_FILE, ensureAuditKey } from '../../src/cli/signing-key-files.ts';
import { makeAuditKeys } from '../../src/core/audit/ed25519.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeService, type TestCaller, type TestService } from '../app/service.ts';

let root: string;
let service: TestService;
let person: TestCaller;
let planId: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cleveragents-'));
  await use(makeService());
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function use(made: TestService): Promise<void> {
  service = made;
  person = await service.caller('acme');
  await person.call('_cleveragents/action/add', {
    action: {
      name: 'greet',
      description: 'Greets',
      actor: 'scripted/steps',
      apply: 'none',
      automation_profile: 'manual',
      execute: [{ say: 'Hello' }],
    } as never,
  });
  planId = (await person.call('_cleveragents/plan/use', { action_name: 'greet' })).plan_id;
}

/** The server as `fetch` sees it: its operations, and the keys that it publishes. */
const server = (async (input: string | URL | Request, init?: RequestInit) => {
  const url = String(input instanceof Request ? input.url : input);
  if (url.endsWith('/.well-known/jwks.json')) return Response.json({ keys: service.services.auditKeys.publicKeys });
  const { id, method, params } = JSON.parse(String(init?.body)) as { id: string; method: never; params: never };
  return Response.json({ jsonrpc: '2.0', id, result: await person.call(method, params) });
}) as typeof fetch;

async function run(argv: readonly string[], { online = true }: { readonly online?: boolean } = {}) {
  let out = '';
  let err = '';
  const exitCode = await runCli(
    argv,
    {
      cwd: root,
      env: online ? { CLEVERAGENTS_URL: 'http://agents.test' } : {},
      out: (data) => {
        out += typeof data === 'string' ? data : Buffer.from(data).toString();
      },
      err: (text) => {
        err += text;
      },
      isTerminal: false,
      fetch: server,
    },
    '0.0.0',
  );
  return { exitCode, out, err };
}

describe('agents audit export', () => {
  it('writes a file that agents audit verify accepts, with the keys of the server', async () => {
    const exported = await run(['audit', 'export', planId, '--out', 'trail.jsonl']);
    expect(exported).toMatchObject({ exitCode: 0, err: '' });
    expect((await stat(join(root, 'trail.jsonl'))).mode & 0o777).toBe(0o600);
    expect(await readdir(root)).toEqual(['trail.jsonl']);
    const verified = await run(['audit', 'verify', 'trail.jsonl']);
    expect(verified.exitCode).toBe(0);
    expect(verified.out).toMatch(/^valid and signed, complete as of 2026-11-30T12:00:00.000Z; plan \S+: 3 rows, head [0-9a-f]{64}\n$/);
  });

  it('writes to standard output without --out, and CSV by the name of the file or by --as', async () => {
    const text = (await run(['audit', 'export', planId])).out;
    await writeFile(join(root, 'piped.jsonl'), text);
    expect((await run(['audit', 'verify', 'piped.jsonl'])).exitCode).toBe(0);
    await run(['audit', 'export', planId, '--out', 'trail.csv']);
    const csv = await readFile(join(root, 'trail.csv'), 'utf8');
    expect(csv).toMatch(/^plan_id,seq,/);
    expect((await run(['audit', 'export', planId, '--as', 'csv'])).out).toBe(csv);
  });

  it('says of a server that does not sign what that means', async () => {
    await use(makeService({ auditKeys: makeAuditKeys({ signingKey: undefined, earlierKeys: undefined, sha256 }) }));
    const exported = await run(['audit', 'export', planId, '--out', 'trail.jsonl']);
    expect(exported.exitCode).toBe(0);
    expect(exported.err).toMatch(/warning: This server does not sign/);
    expect(await run(['audit', 'verify', 'trail.jsonl'])).toMatchObject({ exitCode: 1, out: expect.stringMatching(/NOT VALID.*unsigned/) });
    expect(await run(['audit', 'verify', 'trail.jsonl', '--chain-only'])).toMatchObject({
      exitCode: 0,
      out: expect.stringMatching(/NO SIGNATURE WAS CHECKED/),
    });
  });
});

describe('agents audit verify', () => {
  beforeEach(async () => {
    await run(['audit', 'export', planId, '--out', 'trail.jsonl']);
    await writeFile(join(root, 'keys.json'), JSON.stringify({ keys: service.services.auditKeys.publicKeys }));
  });
  const change = async (edit: (lines: string[]) => string[]): Promise<void> => {
    const lines = (await readFile(join(root, 'trail.jsonl'), 'utf8')).split('\n').slice(0, -1);
    await writeFile(
      join(root, 'trail.jsonl'),
      edit(lines)
        .map((line) => `${line}\n`)
        .join(''),
    );
  };

  it('needs no server: the file and the keys are enough', async () => {
    expect(await run(['audit', 'verify', 'trail.jsonl', '--jwks', 'keys.json'], { online: false })).toMatchObject({ exitCode: 0, err: '' });
    expect(
      await run(['audit', 'verify', 'trail.jsonl', '--jwks', 'https://agents.test/.well-known/jwks.json'], { online: false }),
    ).toMatchObject({ exitCode: 0 });
  });

  it('does not say that a file is valid when it has no keys to check with', async () => {
    const verified = await run(['audit', 'verify', 'trail.jsonl'], { online: false });
    expect(verified).toMatchObject({ exitCode: 2, out: '', err: expect.stringContaining('--jwks') });
  });

  it.each([
    [
      'a changed row',
      (lines: string[]) => lines.map((line, at) => (at === 2 ? line.replace('"at":"2', '"at":"1') : line)),
      /NOT VALID at row 2 \(line 3\): changed/,
    ],
    ['a missing row', (lines: string[]) => lines.filter((_, at) => at !== 2), /NOT VALID at row 2 \(line 3\): gap/],
    ['a cut file', (lines: string[]) => lines.slice(0, 3), /NOT VALID at row 3: truncated/],
    ['an empty log', (lines: string[]) => lines.filter((line) => !line.includes('"row"')), /NOT VALID at row 1 .*empty/],
  ])('names the first row that is wrong: %s', async (_, edit, expected) => {
    await change(edit);
    const verified = await run(['audit', 'verify', 'trail.jsonl', '--jwks', 'keys.json'], { online: false });
    expect(verified.exitCode).toBe(1);
    expect(verified.out).toMatch(expected);
    const json = await run(['audit', 'verify', 'trail.jsonl', '--jwks', 'keys.json', '--format', 'json'], { online: false });
    expect(JSON.parse(json.out)).toMatchObject({ status: 'error', exit_code: 1, data: { valid: false } });
  });

  it.each([
    [['audit', 'verify', 'nothing.jsonl', '--jwks', 'keys.json'], /cannot be read/],
    [['audit', 'verify', 'trail.jsonl', '--jwks', 'nothing.json'], /cannot be read/],
    [['audit', 'verify', 'trail.jsonl', '--jwks', 'trail.jsonl'], /not a JSON Web Key Set/],
    [['audit', 'export', 'nothing', '--out', 'x'], /plan id/],
    [['audit', 'export', '01HXRCF1ABCDE12345678901AB', '--as', 'xml'], /jsonl, csv/],
  ])('tells a mistake in the call from a file that is wrong: %j', async (argv, message) => {
    expect(await run(argv)).toMatchObject({ exitCode: 2, err: expect.stringMatching(message) });
  });
});

describe('the signing key of a local server', () => {
  it('is made once, readable by its owner alone, and signs', async () => {
    const key = await ensureAuditKey(root);
    expect((await stat(join(root, AUDIT_KEY_FILE))).mode & 0o777).toBe(0o600);
    expect(await ensureAuditKey(root)).toBe(key);
    expect(await readdir(root)).toEqual([AUDIT_KEY_FILE]);
    const keys = makeAuditKeys({ signingKey: key, earlierKeys: undefined, sha256 });
    expect(keys.problem).toBeNull();
    const signature = await keys.sign('text');
    if (signature === null) throw new Error('not signed');
    expect(await keys.verify('text', signature)).toBe('valid');
  });

  it.each(['', '{}', 'not json', JSON.stringify(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }))])(
    'is never replaced: a file that holds something else is an error that names it (%#)',
    async (content) => {
      await writeFile(join(root, AUDIT_KEY_FILE), content);
      await expect(ensureAuditKey(root)).rejects.toThrow(AUDIT_KEY_FILE);
      expect(await readFile(join(root, AUDIT_KEY_FILE), 'utf8')).toBe(content);
    },
  );
});

describe('agents org log', () => {
  it('shows who changed what, one row per line', async () => {
    await person.call('_cleveragents/config/set', { key: 'guardrails.max_steps', value: 5 });
    const listed = await run(['org', 'log', 'list', '--type', 'configuration_changed']);
    expect(listed).toMatchObject({ exitCode: 0, err: '' });
    expect(listed.out).toContain('configuration_changed');
    expect(listed.out).toContain('_cleveragents/config/set');
    expect(listed.out).not.toContain('action_added');
  });

  it('is exported into a file that agents audit verify accepts, and not after a row was changed', async () => {
    await run(['org', 'log', 'export', '--out', 'org.jsonl']);
    const verified = await run(['audit', 'verify', 'org.jsonl']);
    expect(verified).toMatchObject({ exitCode: 0, err: '' });
    expect(verified.out).toContain('log of the org: 2 rows');
    const file = join(root, 'org.jsonl');
    await writeFile(file, (await readFile(file, 'utf8')).replace('"type":"action_added"', '"type":"action_gone"'));
    const changed = await run(['audit', 'verify', 'org.jsonl']);
    expect(changed.exitCode).toBe(1);
    expect(changed.out).toContain('NOT VALID at row 2');
  });

  it('is verified with the plans that it knows: exit 1, and the plan by its id, when one is gone', async () => {
    expect(await run(['org', 'log', 'verify'])).toMatchObject({ exitCode: 0, err: '' });
    const gone = '01JZZZZZZZZZZZZZZZZZZZZZZ1';
    await service.services.orgLog.report('acme', [{ kind: 'created', plan_id: gone, seq: 1, hash: 'h' }]);
    const verified = await run(['org', 'log', 'verify', '--format', 'plain']);
    expect(verified.exitCode).toBe(1);
    expect(verified.out).toContain(gone);
    expect(verified.out).toContain('deleted');
  });

  it('is verified page by page where it knows more plans than one answer checks', async () => {
    const ids = Array.from({ length: 450 }, (_, index) => `01J${'Z'.repeat(20)}${String(index).padStart(3, '0')}`);
    await service.services.orgLog.report(
      'acme',
      ids.map((plan_id) => ({ kind: 'created' as const, plan_id, seq: 1, hash: 'h' })),
    );
    const verified = await run(['org', 'log', 'verify', '--format', 'json']);
    expect(verified.exitCode).toBe(1);
    const { data } = JSON.parse(verified.out) as { data: { plans_checked: number; plan_problems: readonly object[] } };
    const { plans_checked: checked, plan_problems: problems } = data;
    expect(checked).toBe(450);
    expect(problems).toHaveLength(450);
  });
});
