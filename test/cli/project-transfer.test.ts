import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/run-cli.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { Refused, type Service, serve } from './service.ts';

const folders: string[] = [];
const services: Service[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  for (const service of services.splice(0)) await service.close();
});

function folderOf(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'transfer-'));
  folders.push(root);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

interface Change {
  readonly path: string;
  readonly entry: { readonly mode: string; readonly digest: string; readonly size_bytes: number };
}

interface Page {
  readonly path: string;
  readonly mode: string;
  readonly base64: string;
}

/** The project operations over blobs that are really kept, so that an import can be exported again. */
async function startProject(
  exists: boolean,
  options: { readonly movesAfterShow?: boolean } = {},
): Promise<Service & { readonly blobs: Map<string, string>; readonly tree: Change[] }> {
  const blobs = new Map<string, string>();
  const tree: Change[] = [];
  let isMade = exists;
  let head = sha256('');
  const view = () => ({
    name: 'p',
    settings: {},
    head,
    files: tree.length,
    total_bytes: 0,
    commits: 0,
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
  });
  const pages: Page[][] = [];
  const service = await serve({
    '_cleveragents/project/show': () => {
      if (!isMade) throw new Refused({ kind: 'not_found', message: 'Project not found', entity: 'project', id: 'p' });
      const shown = view();
      if (options.movesAfterShow === true) head = sha256('moved');
      return shown;
    },
    '_cleveragents/project/create': () => {
      isMade = true;
      return view();
    },
    '_cleveragents/project/blob/missing': (params) => ({
      missing: (params['digests'] as readonly string[]).filter((digest) => !blobs.has(digest)),
    }),
    '_cleveragents/project/blob/put': (params) => {
      const given = params['blobs'] as readonly { readonly digest: string; readonly base64: string }[];
      for (const { digest, base64 } of given) {
        if (sha256(Buffer.from(base64, 'base64')) !== digest) throw new Refused({ kind: 'invalid', message: 'digest', issues: [] });
        blobs.set(digest, base64);
      }
      return { stored: given.length };
    },
    '_cleveragents/project/commit': (params: JsonObject) => {
      if (params['expected_head'] !== head) throw new Refused({ kind: 'invalid_state', message: 'The head has moved' });
      const changes = params['changes'] as unknown as readonly Change[];
      for (const change of changes)
        if (!blobs.has(change.entry.digest)) throw new Refused({ kind: 'invalid', message: `no blob for ${change.path}`, issues: [] });
      tree.splice(0, tree.length, ...changes);
      const previous = head;
      head = sha256(JSON.stringify(changes));
      return { status: 'committed', head, previous, files: changes.length };
    },
    '_cleveragents/project/export': (params) => {
      const all = tree.map(({ path, entry }): Page => ({ path, mode: entry.mode, base64: blobs.get(entry.digest) ?? '' }));
      const at = Number(params['page_token'] ?? 0);
      pages.push(all.slice(at, at + 2));
      return { name: 'p', head, files: all.slice(at, at + 2), next_page_token: at + 2 < all.length ? String(at + 2) : '' };
    },
  });
  services.push(service);
  return Object.assign(service, { blobs, tree });
}

async function run(
  argv: readonly string[],
  cwd: string,
): Promise<{ readonly exitCode: number; readonly out: string; readonly err: string }> {
  let out = '';
  let err = '';
  const exitCode = await runCli(
    argv,
    {
      cwd,
      env: {},
      isTerminal: false,
      out: (data) => {
        out += Buffer.from(data).toString('utf8');
      },
      err: (text) => {
        err += text;
      },
    },
    '1.0.0',
  );
  return { exitCode, out, err };
}

describe('project import and export', () => {
  it('bring a directory to a project and back, with modes, links and bytes', async () => {
    const service = await startProject(false);
    const root = folderOf({
      'a.txt': 'same',
      'b/copy.txt': 'same',
      'b/bytes': Uint8Array.from([0, 255, 10, 13]),
      'run.sh': '#!/bin/sh\n',
      '.gitignore': '*.log\n',
      'x.log': 'no',
    });
    chmodSync(join(root, 'run.sh'), 0o755);
    symlinkSync('../a.txt', join(root, 'b/link'));

    const imported = await run(['project', 'import', '.', '--name', 'p', '--url', service.url, '--format', 'json'], root);
    expect(imported.exitCode, imported.out).toBe(0);
    expect(JSON.parse(imported.out)).toMatchObject({ data: { name: 'p', files: 6, blobs_sent: 5, skipped: [] } });
    expect(service.tree.map((change) => [change.path, change.entry.mode])).toEqual([
      ['.gitignore', '100644'],
      ['a.txt', '100644'],
      ['b/bytes', '100644'],
      ['b/copy.txt', '100644'],
      ['b/link', '120000'],
      ['run.sh', '100755'],
    ]);

    const elsewhere = folderOf();
    const exported = await run(['project', 'export', 'p', 'out', '--url', service.url], elsewhere);
    expect(exported.exitCode, exported.err).toBe(0);
    const at = (path: string): string => join(elsewhere, 'out', path);
    expect(readFileSync(at('b/copy.txt'), 'utf8')).toBe('same');
    expect([...readFileSync(at('b/bytes'))]).toEqual([0, 255, 10, 13]);
    expect(statSync(at('run.sh')).mode & 0o111).toBe(0o111);
    expect(statSync(at('a.txt')).mode & 0o111).toBe(0);
    expect(readlinkSync(at('b/link'))).toBe('../a.txt');
    expect(existsSync(at('x.log'))).toBe(false);
  });

  it('send a second time only what is new', async () => {
    const service = await startProject(true);
    const root = folderOf({ a: '1', b: '2' });
    await run(['project', 'import', root, '--name', 'p', '--url', service.url], root);
    writeFileSync(join(root, 'c'), '3');
    const again = await run(['project', 'import', root, '--name', 'p', '--url', service.url, '--format', 'json'], root);
    expect(JSON.parse(again.out)).toMatchObject({ data: { files: 3, blobs_sent: 1 } });
    expect(service.calls.filter((call) => call.method.endsWith('/create'))).toEqual([]);
  });

  it('send large files in bodies of at most 4 MiB and all of them', async () => {
    const service = await startProject(true);
    const files = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`big${index}`, new Uint8Array(1_000_000).fill(index)]));
    const root = folderOf(files);
    expect((await run(['project', 'import', '.', '--name', 'p', '--url', service.url], root)).exitCode).toBe(0);
    const puts = service.calls.filter((call) => call.method.endsWith('/blob/put'));
    expect(puts.length).toBeGreaterThan(2);
    for (const put of puts) expect(put.bodyBytes).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(service.blobs.size).toBe(9);
  });

  it('name what is left out and import the rest', async () => {
    const service = await startProject(true);
    const root = folderOf({ big: new Uint8Array(1_048_577), small: '1' });
    const ran = await run(['project', 'import', '.', '--name', 'p', '--url', service.url], root);
    expect(ran.exitCode).toBe(0);
    expect(ran.err).toContain('warning: big is left out: it is larger than 1 MiB (1048577 bytes)');
    expect(service.tree.map((change) => change.path)).toEqual(['small']);
  });

  it('refuse a directory with links that lead out, before anything is sent', async () => {
    const service = await startProject(true);
    const root = folderOf({ a: '1' });
    symlinkSync('../../etc/passwd', join(root, 'escape'));
    const ran = await run(['project', 'import', '.', '--name', 'p', '--url', service.url], root);
    expect(ran.exitCode).toBe(2);
    expect(ran.err).toContain('escape: the link to "../../etc/passwd" must stay inside the tree');
    expect(service.calls).toEqual([]);
  });

  it('answer a conflict when the head moves meanwhile, and change nothing', async () => {
    const service = await startProject(true, { movesAfterShow: true });
    const root = folderOf({ a: '1' });
    const ran = await run(['project', 'import', '.', '--name', 'p', '--url', service.url], root);
    expect(ran.exitCode).toBe(4);
    expect(ran.err).toContain('The head has moved');
    expect(service.tree).toEqual([]);
  });

  it('do not write into a directory that holds something, or through a link', async () => {
    const service = await startProject(true);
    const root = folderOf({ 'full/a': '1' });
    const target = folderOf();
    symlinkSync(target, join(root, 'link'));
    expect((await run(['project', 'export', 'p', 'full', '--url', service.url], root)).err).toContain('is not empty');
    expect((await run(['project', 'export', 'p', 'link', '--url', service.url], root)).err).toContain('is not a directory');
    expect(service.calls).toEqual([]);
  });

  it.each([
    [{ path: '../escape', mode: '100644' }, 'path that is not safe'],
    [{ path: '/abs', mode: '100644' }, 'path that is not safe'],
    [{ path: 'link', mode: '120000' }, 'link that is not safe'],
  ])('do not follow a server that answers %j', async (file, message) => {
    const service = await serve({
      '_cleveragents/project/export': () => ({
        name: 'p',
        head: 'h',
        files: [{ ...file, base64: Buffer.from('../../outside').toString('base64') }],
        next_page_token: '',
      }),
    });
    services.push(service);
    const root = folderOf();
    const ran = await run(['project', 'export', 'p', 'inner/out', '--url', service.url], root);
    expect(ran.exitCode).toBe(1);
    expect(ran.err).toContain(message);
    expect(existsSync(join(root, 'inner/escape'))).toBe(false);
    expect(lstatSync(join(root, 'inner/out')).isDirectory()).toBe(true);
  });
});
