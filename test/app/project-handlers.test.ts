import * as fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { decodeTreeToken, encodeTreeToken } from '../../src/app/handlers/tree-token.ts';
import { EMPTY_TREE, treeDigest } from '../../src/core/workspace/tree.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { blobOf, makeService, type TestCaller, type TestService, textOf } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const EMPTY = treeDigest(sha256, EMPTY_TREE);

/** Puts and commits files over any head. */
async function commit(name: string, files: Readonly<Record<string, string | Uint8Array>>, commitId = `c${Math.random()}`) {
  const blobs = Object.entries(files).map(([path, content]) => ({ path, ...blobOf(content) }));
  if (blobs.length > 0) await admin.call('_cleveragents/project/blob/put', { name, blobs: blobs.map(({ put }) => put) });
  return admin.call('_cleveragents/project/commit', {
    name,
    commit_id: commitId,
    expected_head: null,
    mode: 'patch',
    changes: blobs.map(({ path, entry }) => ({ path, entry })),
  });
}

const create = (name: string) => admin.call('_cleveragents/project/create', { name });

describe('project/create', () => {
  it('makes an empty project that protects the usual paths', async () => {
    const made = await create('web');
    expect(made).toMatchObject({ name: 'web', head: EMPTY, files: 0, total_bytes: 0, commits: 0, created_at: '2026-11-30T12:00:00.000Z' });
    expect(made.settings).toEqual({ protected_paths: ['.git/**', '.github/**', '.env*'] });
    expect(await admin.call('_cleveragents/project/show', { name: 'web' })).toEqual(made);
  });

  it('keeps the settings that are given, an empty list of protected paths included', async () => {
    const settings = { description: 'The site', protected_paths: [] };
    expect((await admin.call('_cleveragents/project/create', { name: 'web', settings })).settings).toEqual(settings);
    const list = await admin.call('_cleveragents/project/list', {});
    expect(list).toEqual({ projects: [{ name: 'web', settings, created_at: '2026-11-30T12:00:00.000Z' }], next_page_token: '' });
    expect(await admin.call('_cleveragents/registry/project/list', {})).toEqual(list);
  });

  it('refuses a name that is taken', async () => {
    await create('web');
    expect(await admin.refused('_cleveragents/project/create', { name: 'web' })).toMatchObject({ kind: 'already_exists', id: 'web' });
  });

  it('is repaired by a second call when the first stopped before the project was registered', async () => {
    const { projectStore } = service.services;
    const interrupted = makeService({
      projects: service.projects,
      projectStore: {
        ...projectStore,
        add: () => Promise.reject(new Error('stopped')),
      },
    });
    const caller = await interrupted.caller('acme');
    await expect(caller.call('_cleveragents/project/create', { name: 'web' })).rejects.toThrow('stopped');
    expect(service.projects.stored()).toEqual([['acme', 'web']]);
    // Half a project is none.
    expect(await admin.refused('_cleveragents/project/show', { name: 'web' })).toMatchObject({ kind: 'not_found' });
    expect(await create('web')).toMatchObject({ name: 'web', head: EMPTY });
  });

  it.each(['Web', 'a b', '../x', '', 'a:b', 'x'.repeat(129)])('refuses the name %j, which no action could name', async (name) => {
    expect(await admin.refused('_cleveragents/project/create', { name })).toMatchObject({ kind: 'invalid', issues: [{ field: 'name' }] });
    expect(service.projects.stored()).toEqual([]);
  });
});

describe('blobs and commits', () => {
  beforeEach(async () => {
    await create('web');
  });

  it('names the blobs that are missing, and none that are there', async () => {
    const [a, b] = [blobOf('a'), blobOf('b')];
    expect(await admin.call('_cleveragents/project/blob/put', { name: 'web', blobs: [a.put] })).toEqual({ stored: 1 });
    const digests = [a.put.digest, b.put.digest, b.put.digest];
    expect(await admin.call('_cleveragents/project/blob/missing', { name: 'web', digests })).toEqual({ missing: [b.put.digest] });
  });

  it('refuses a batch with one digest that is not that of its bytes, and stores nothing of it', async () => {
    const [a, b] = [blobOf('a'), blobOf('b')];
    const blobs = [a.put, { digest: sha256('other'), base64: b.put.base64 }];
    const refusal = await admin.refused('_cleveragents/project/blob/put', { name: 'web', blobs });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'blobs.1.digest' }] });
    expect(await admin.call('_cleveragents/project/blob/missing', { name: 'web', digests: [a.put.digest] })).toEqual({
      missing: [a.put.digest],
    });
  });

  it.each(['YQ', 'YQ=', 'YR==', 'Y Q=', 'YQ==\n', '-_==', 'YQ==YQ=='])('refuses %j, which is not standard base64', async (base64) => {
    const blobs = [{ digest: sha256('a'), base64 }];
    expect(await admin.refused('_cleveragents/project/blob/put', { name: 'web', blobs })).toMatchObject({ kind: 'invalid' });
  });

  it('moves the head and says who did it', async () => {
    const first = await commit('web', { 'a.txt': 'one' });
    expect(first).toMatchObject({ status: 'committed', previous: EMPTY, files: 1 });
    const [row] = await service.services.projects.project('acme', 'web').history(1);
    expect(row).toMatchObject({ head: first.head, by: admin.principal.keyId });
  });

  it('answers the first outcome when the same commit comes again', async () => {
    const first = await commit('web', { 'a.txt': 'one' }, 'once');
    await commit('web', { 'a.txt': 'two' }, 'later');
    expect(await commit('web', { 'a.txt': 'one' }, 'once')).toEqual(first);
    expect(textOf((await admin.call('_cleveragents/project/file/read', { name: 'web', path: 'a.txt' })).base64)).toBe('two');
  });

  it('cannot take the id under which a plan will commit', async () => {
    await commit('web', { 'a.txt': 'mine' }, 'apply-1');
    const { put, entry } = blobOf('of the plan');
    const port = service.services.projects.project('acme', 'web');
    await port.putBlobs([{ digest: put.digest, bytes: Buffer.from('of the plan') }]);
    const change = { path: 'a.txt', entry: { mode: entry.mode, blob: entry.digest, sizeBytes: entry.size_bytes } };
    const request = { commitId: 'apply-1', expectedHead: null, mode: 'patch', changes: [change], message: '', by: 'plan' } as const;
    expect(await port.commit(request)).toMatchObject({ ok: true, value: { status: 'committed' } });
    expect(textOf((await admin.call('_cleveragents/project/file/read', { name: 'web', path: 'a.txt' })).base64)).toBe('of the plan');
  });

  it('refuses a commit against a head that has moved, naming the head that is, and changes nothing', async () => {
    const { head } = await commit('web', { 'a.txt': 'one' });
    const refusal = await admin.refused('_cleveragents/project/commit', {
      name: 'web',
      commit_id: 'late',
      expected_head: EMPTY,
      mode: 'patch',
      changes: [{ path: 'a.txt', entry: null }],
    });
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { reason: 'HEAD_MOVED', head, expected_head: EMPTY, project: 'web' } });
    expect(await admin.call('_cleveragents/project/show', { name: 'web' })).toMatchObject({ head, files: 1, commits: 1 });
  });

  it('replaces the whole tree when asked to', async () => {
    const { head } = await commit('web', { 'a.txt': 'one', 'b.txt': 'two' });
    const { entry } = blobOf('two');
    const change = { commit_id: 'all', expected_head: head, mode: 'replace' as const, changes: [{ path: 'only.txt', entry }] };
    expect(await admin.call('_cleveragents/project/commit', { name: 'web', ...change })).toMatchObject({ files: 1, previous: head });
    const { entries } = await admin.call('_cleveragents/project/tree', { name: 'web' });
    expect(entries.map(({ path }) => path)).toEqual(['only.txt']);
  });

  it('refuses files whose blobs were never put, by digest', async () => {
    const { entry } = blobOf('never');
    const params = { name: 'web', commit_id: 'x', expected_head: null, mode: 'patch' as const, changes: [{ path: 'a', entry }] };
    expect(await admin.refused('_cleveragents/project/commit', params)).toMatchObject({
      kind: 'invalid',
      details: { missing: [entry.digest] },
    });
  });

  it.each(['blob/missing', 'blob/put', 'commit'] as const)('%s needs the role admin', async (operation) => {
    const operator = await service.caller('acme', { roles: ['operator', 'approver'] });
    const { put } = blobOf('a');
    const params = { digests: [], blobs: [put], commit_id: 'x', expected_head: null, mode: 'patch' as const, changes: [] };
    const { digests, blobs, ...commitOnly } = params;
    const own = operation === 'commit' ? commitOnly : operation === 'blob/put' ? { blobs } : { digests };
    expect(await operator.refused(`_cleveragents/project/${operation}`, { name: 'web', ...own } as never)).toMatchObject({
      kind: 'forbidden',
    });
  });
});

describe('reading a project', () => {
  const FILES = {
    'README.md': '# Hi\n',
    'src/a.js': 'a',
    'src/deep/b.js': 'b',
    'src.txt': 'not in src',
    'z.bin': new Uint8Array([0, 255]),
  };
  let head: string;
  beforeEach(async () => {
    await create('web');
    head = (await commit('web', FILES)).head;
  });

  const tree = (params: object = {}) => admin.call('_cleveragents/project/tree', { name: 'web', ...params });
  const paths = ({ entries }: Awaited<ReturnType<typeof tree>>) => entries.map(({ path }) => path);

  it('lists all files with their digests and sizes, in the order of their paths', async () => {
    const listed = await tree();
    expect(listed).toMatchObject({ name: 'web', head, next_page_token: '' });
    expect(paths(listed)).toEqual(['README.md', 'src.txt', 'src/a.js', 'src/deep/b.js', 'z.bin']);
    expect(listed.entries[0]).toEqual({ path: 'README.md', mode: '100644', digest: sha256('# Hi\n'), size_bytes: 5 });
  });

  it.each([
    ['src', ['src/a.js', 'src/deep/b.js']],
    ['src/deep', ['src/deep/b.js']],
    ['README.md', ['README.md']],
  ])('lists what is at or below %s', async (path, expected) => {
    expect(paths(await tree({ path }))).toEqual(expected);
  });

  it.each(['sr', 'src/deep/b', 'nothing'])('says that nothing is at %s', async (path) => {
    expect(await admin.refused('_cleveragents/project/tree', { name: 'web', path })).toMatchObject({
      kind: 'not_found',
      entity: 'file',
      details: { project: 'web', path, head },
    });
  });

  it('walks in pages of the head of the first, while the head moves on', async () => {
    const seen: string[] = [];
    let page = await tree({ page_size: 2 });
    seen.push(...paths(page));
    await commit('web', { 'AAA.md': 'new', 'src/a.js': 'changed' });
    for (; page.next_page_token !== ''; seen.push(...paths(page))) {
      page = await tree({ page_size: 2, page_token: page.next_page_token });
      expect(page.head).toBe(head);
    }
    expect(seen).toEqual(['README.md', 'src.txt', 'src/a.js', 'src/deep/b.js', 'z.bin']);
  });

  it('reads one file, whatever its bytes', async () => {
    expect(await admin.call('_cleveragents/project/file/read', { name: 'web', path: 'z.bin' })).toEqual({
      name: 'web',
      head,
      path: 'z.bin',
      mode: '100644',
      digest: sha256(new Uint8Array([0, 255])),
      size_bytes: 2,
      base64: 'AP8=',
    });
  });

  it.each(['src', 'none.md'])('does not read %s, which is no file', async (path) => {
    expect(await admin.refused('_cleveragents/project/file/read', { name: 'web', path })).toMatchObject({ kind: 'not_found', id: path });
  });

  it.each(['/etc/passwd', '../x', 'a//b', 'a\\b', ''])('refuses the path %j by its field', async (path) => {
    for (const operation of ['_cleveragents/project/file/read', '_cleveragents/project/tree'] as const) {
      expect(await admin.refused(operation, { name: 'web', path })).toMatchObject({ kind: 'invalid', issues: [{ field: 'path' }] });
    }
  });

  const exported = async (pageSize: number) => {
    const files: Record<string, string> = {};
    const heads = new Set<string>();
    let pages = 0;
    for (let token = ''; ; pages += 1) {
      const page = await admin.call('_cleveragents/project/export', {
        name: 'web',
        page_size: pageSize,
        ...(token === '' ? {} : { page_token: token }),
      });
      for (const file of page.files) files[file.path] = file.base64;
      heads.add(page.head);
      token = page.next_page_token;
      if (token === '') return { files, heads: [...heads], pages: pages + 1 };
      if (pages === 0) await commit('web', { 'moved.txt': `${Math.random()}` });
    }
  };

  it.each([1, 2, 5, 100])('exports one head in pages of %i, although the head moves meanwhile', async (pageSize) => {
    const { files, heads, pages } = await exported(pageSize);
    const expected = Object.entries(FILES).map(([path, content]) => [path, Buffer.from(content).toString('base64')]);
    expect(files).toEqual(Object.fromEntries(expected));
    expect(heads).toEqual([head]);
    expect(pages).toBe(Math.ceil(5 / pageSize));
  });

  it('keeps a page of an export to 1 MiB of contents, but never answers an empty one', async () => {
    const big = (fill: number) => new Uint8Array(700_000).fill(fill);
    await commit('web', { 'big/1': big(1), 'big/2': big(2) });
    await commit('web', { 'big/3': new Uint8Array(1_048_576) });
    const sizes: number[] = [];
    for (let token = ''; ; ) {
      const params = { name: 'web', page_size: 100, ...(token === '' ? {} : { page_token: token }) };
      const page = await admin.call('_cleveragents/project/export', params);
      const bytes = page.files.reduce((sum, { base64 }) => sum + Buffer.from(base64, 'base64').length, 0);
      expect(page.files.length).toBeGreaterThan(0);
      expect(bytes).toBeLessThanOrEqual(1_048_576);
      sizes.push(page.files.length);
      token = page.next_page_token;
      if (token === '') break;
    }
    expect(sizes.reduce((a, b) => a + b)).toBe(8);
    expect(sizes.length).toBe(4);
  });

  it('exports an empty project as one empty page', async () => {
    await create('void');
    expect(await admin.call('_cleveragents/project/export', { name: 'void' })).toEqual({
      name: 'void',
      head: EMPTY,
      files: [],
      next_page_token: '',
    });
  });

  describe('a page token', () => {
    it.each(['x', '1.tree', `1.export.0000000000000000.${'0'.repeat(64)}.1`, '1'.repeat(2048)])(
      '%j is refused by its field',
      async (token) => {
        expect(await admin.refused('_cleveragents/project/tree', { name: 'web', page_token: token })).toMatchObject({
          kind: 'invalid',
          issues: [{ field: 'page_token' }],
        });
      },
    );

    it('of another list, folder or project is refused, so that no file is lost in silence', async () => {
      await create('other');
      const { next_page_token: token } = await tree({ path: 'src', page_size: 1 });
      expect(token).not.toBe('');
      const attempts = [
        admin.refused('_cleveragents/project/tree', { name: 'web', page_token: token }),
        admin.refused('_cleveragents/project/tree', { name: 'other', path: 'src', page_token: token }),
        admin.refused('_cleveragents/project/export', { name: 'web', page_token: token }),
      ];
      for (const refusal of await Promise.all(attempts))
        expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'page_token' }] });
    });

    it('cannot reach a tree that the project never had', async () => {
      const forged = encodeTreeToken(sha256, { kind: 'export', org: 'acme', name: 'web', path: '' }, { head: sha256('x'), offset: 0 });
      expect(await admin.refused('_cleveragents/project/export', { name: 'web', page_token: forged })).toMatchObject({ kind: 'invalid' });
    });

    it('comes back as it went, and fits the parameter', () => {
      const scope = fc.record({
        kind: fc.constantFrom('tree' as const, 'export' as const),
        org: fc.string(),
        name: fc.string(),
        path: fc.string(),
      });
      const token = fc.record({ head: fc.stringMatching(/^[0-9a-f]{64}$/), offset: fc.nat(20_000) });
      void fc.assert(
        fc.property(scope, token, (where, what) => {
          const text = encodeTreeToken(sha256, where, what);
          expect(text.length).toBeLessThan(2048);
          expect(decodeTreeToken(sha256, where, text)).toEqual({ ok: true, value: what });
          expect(decodeTreeToken(sha256, { ...where, name: `${where.name}x` }, text).ok).toBe(false);
        }),
      );
    });
  });
});
