import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { CommitRequest, ProjectPort, TreeChange } from '../../src/app/ports.ts';
import { encodeManifest } from '../../src/core/workspace/manifest.ts';
import { EMPTY_TREE, makeTree, type TreeEntry, treeDigest } from '../../src/core/workspace/tree.ts';
import { makeProjects, objectName } from '../../src/storage/objects.ts';

const projects = makeProjects(env.PROJECTS);
const EMPTY = treeDigest(sha256, EMPTY_TREE);

describe('a project that was never created', () => {
  it('answers every question as nothing, refuses every write as not found, and stores nothing', async () => {
    const { project, stub } = newProject();
    const file = fileOf('a.txt', 'hello');
    expect(await project.head()).toBeNull();
    expect(await project.missingBlobs([file.blob.digest])).toEqual([file.blob.digest]);
    expect(await project.getBlobs([file.blob.digest])).toEqual(new Map());
    expect(await project.manifest(EMPTY)).toBeNull();
    expect(await project.search(EMPTY, 'x', { limit: 5, skipPaths: [] })).toEqual({ hits: [], truncated: false });
    expect(await project.history(5)).toEqual([]);
    const refusal = { ok: false, error: { kind: 'not_found', entity: 'project', id: 'site' } };
    expect(await project.putBlobs([file.blob])).toMatchObject(refusal);
    expect(await project.commit(commitOf([file.change]))).toMatchObject(refusal);
    const tables = await runInDurableObject(stub, (_, { storage }) => storage.sql.exec('SELECT count(*) AS n FROM sqlite_master').one());
    expect(tables).toEqual({ n: 0 });
    expect(await project.head()).toBeNull();
  });

  it('starts with an empty tree, and creating it again changes nothing', async () => {
    const { project } = newProject();
    const head = await project.create();
    expect(head).toMatchObject({ head: EMPTY, files: 0, totalBytes: 0, commits: 0 });
    expect(await project.manifest(EMPTY)).toBe('');
    const file = fileOf('a.txt', 'hello');
    await put(project, [file]);
    await project.commit(commitOf([file.change]));
    expect(await project.create()).toMatchObject({ files: 1, commits: 1 });
  });
});

describe('the name of an object', () => {
  it('is a different one for every org, kind and id', () => {
    const parts = ['a', 'b', 'a"', '"b', '","', 'a","b', '', '\\', '\\"', 'ü', '\ud800'];
    const names = parts.flatMap((org) => parts.flatMap((id) => [objectName(org, 'project', id), objectName(org, 'plan', id)]));
    expect(new Set(names).size).toBe(parts.length ** 2 * 2);
  });

  it('keeps a project of one org out of reach of another', async () => {
    const { project, name } = newProject();
    await project.create();
    expect(await projects.project(`${name}-other`, 'site').head()).toBeNull();
    expect(await projects.project(name, 'site').head()).not.toBeNull();
  });
});

describe('blobs', () => {
  it('come back as they were put, and absent ones are missing from the answer', async () => {
    const { project } = await createdProject();
    const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
    const view = new Uint8Array([9, 9, ...bytes, 9]).subarray(2, 258);
    const blob = { digest: sha256(bytes), bytes: view };
    expect(await project.missingBlobs([blob.digest, 'f'.repeat(64), blob.digest])).toEqual([blob.digest, 'f'.repeat(64)]);
    expect(await project.putBlobs([blob, blob])).toEqual({ ok: true, value: null });
    expect(await project.missingBlobs([blob.digest, 'f'.repeat(64)])).toEqual(['f'.repeat(64)]);
    expect(await project.getBlobs(['f'.repeat(64), blob.digest, blob.digest])).toEqual(new Map([[blob.digest, bytes]]));
  });

  it('are refused as a batch when one digest is not that of its bytes, and none is stored', async () => {
    const { project } = await createdProject();
    const good = fileOf('a', 'good').blob;
    const result = await project.putBlobs([good, { digest: good.digest, bytes: new TextEncoder().encode('forged') }]);
    expect(result).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field: 'blobs.1.digest' }] } });
    expect(await project.missingBlobs([good.digest])).toEqual([good.digest]);
  });

  it('may have 1 MiB and not a byte more; the refusal names the digest', async () => {
    const { project } = await createdProject();
    const full = blobOf(new Uint8Array(1_048_576));
    const over = blobOf(new Uint8Array(1_048_577));
    expect(await project.putBlobs([full])).toMatchObject({ ok: true });
    expect(await project.putBlobs([over])).toMatchObject({
      ok: false,
      error: { kind: 'too_large', limitBytes: 1_048_576, details: { digests: [over.digest] } },
    });
    expect((await project.getBlobs([full.digest])).get(full.digest)?.byteLength).toBe(1_048_576);
  });

  it('come in batches of at most 8 MiB, and are read whole whatever their number', async () => {
    const { project, stub } = await createdProject();
    const blobs = Array.from({ length: 10 }, (_, n) => blobOf(new Uint8Array(1_048_576).fill(n)));
    expect(await project.putBlobs(blobs.slice(0, 9))).toMatchObject({ ok: false, error: { kind: 'too_large', limitBytes: 8_388_608 } });
    expect(await project.missingBlobs(blobs.map(({ digest }) => digest))).toHaveLength(10);
    for (const part of [blobs.slice(0, 5), blobs.slice(5)]) expect(await project.putBlobs(part)).toMatchObject({ ok: true });
    const digests = blobs.map(({ digest }) => digest);
    const read = await project.getBlobs([...digests, 'f'.repeat(64)]);
    expect([...read.keys()]).toEqual(digests);
    expect(blobs.every(({ digest, bytes }) => sha256(read.get(digest) ?? '') === sha256(bytes))).toBe(true);
    const one = await stub.readBlobs(digests);
    expect(one.taken).toBe(8);
  });
});

describe('a commit', () => {
  it('replaces the whole tree, and patches the expected head', async () => {
    const { project } = await createdProject();
    const [a, b, c] = [fileOf('a.txt', 'A'), fileOf('dir/b.sh', 'B', '100755'), fileOf('c.txt', 'C')] as const;
    await put(project, [a, b, c]);
    const first = await project.commit(commitOf([a.change, b.change], { mode: 'replace' }));
    const firstTree = manifestOf([a.entry, b.entry]);
    expect(first).toEqual({ ok: true, value: { status: 'committed', head: firstTree.digest, previous: EMPTY, files: 2 } });
    expect(await project.manifest(firstTree.digest)).toBe(firstTree.text);

    const patch = commitOf([{ path: 'a.txt', entry: null }, c.change], { expectedHead: firstTree.digest });
    const secondTree = manifestOf([b.entry, c.entry]);
    expect(await project.commit(patch)).toMatchObject({ ok: true, value: { status: 'committed', head: secondTree.digest, files: 2 } });
    expect(await project.head()).toMatchObject({ head: secondTree.digest, files: 2, totalBytes: 2, commits: 2 });

    const replace = commitOf([a.change], { mode: 'replace', expectedHead: secondTree.digest });
    expect(await project.commit(replace)).toMatchObject({ ok: true, value: { status: 'committed', files: 1 } });
    expect(await project.manifest(firstTree.digest)).toBe(firstTree.text);
  });

  it('answers moved, writes nothing and remembers nothing when the head is another', async () => {
    const { project } = await createdProject();
    const [a, b] = [fileOf('a.txt', 'A'), fileOf('b.txt', 'B')] as const;
    await put(project, [a, b]);
    await project.commit(commitOf([a.change]));
    const before = await project.head();
    const late = commitOf([b.change], { expectedHead: EMPTY });
    expect(await project.commit(late)).toEqual({ ok: true, value: { status: 'moved', head: before?.head } });
    expect(await project.head()).toEqual(before);
    expect(await project.history(10)).toHaveLength(1);
    expect(await project.commit({ ...late, expectedHead: before?.head ?? '' })).toMatchObject({ value: { status: 'committed', files: 2 } });
  });

  it('lets exactly one of twenty at once move a head', async () => {
    const { project } = await createdProject();
    const files = Array.from({ length: 20 }, (_, n) => fileOf(`f${n}.txt`, `content ${n}`));
    await put(project, files);
    const results = await Promise.all(files.map(({ change }) => project.commit(commitOf([change], { expectedHead: EMPTY }))));
    const outcomes = results.map((result) => (result.ok ? result.value : null));
    const committed = outcomes.filter((outcome) => outcome?.status === 'committed');
    expect(committed).toHaveLength(1);
    const head = committed[0]?.head;
    expect(outcomes.filter((outcome) => outcome?.status === 'moved')).toEqual(Array(19).fill({ status: 'moved', head }));
    expect(await project.head()).toMatchObject({ head, files: 1, commits: 1 });
  });

  it('is done once per id: again, at once or after the head went on, it answers the first outcome', async () => {
    const { project } = await createdProject();
    const [a, b] = [fileOf('a.txt', 'A'), fileOf('b.txt', 'B')] as const;
    await put(project, [a, b]);
    const request = commitOf([a.change], { expectedHead: EMPTY });
    const [first, again] = await Promise.all([project.commit(request), project.commit(request)]);
    expect(first).toMatchObject({ ok: true, value: { status: 'committed' } });
    expect(again).toEqual(first);
    await project.commit(commitOf([b.change]));
    expect(await project.commit(request)).toEqual(first);
    const other = await project.commit({ ...request, changes: [b.change] });
    expect(other, 'something else under the same id must not look done').toMatchObject({ ok: false, error: { kind: 'already_exists' } });
    expect(await project.history(10)).toHaveLength(2);
    expect(await project.head()).toMatchObject({ files: 2, commits: 2 });
  });

  it('is refused naming the blobs that are not there, and changes nothing', async () => {
    const { project } = await createdProject();
    const [a, b, c] = [fileOf('a.txt', 'A'), fileOf('b.txt', 'B'), fileOf('c.txt', 'B')] as const;
    await put(project, [a]);
    expect(await project.commit(commitOf([a.change, b.change, c.change]))).toMatchObject({
      ok: false,
      error: { kind: 'invalid', issues: [{ field: 'changes' }], details: { missing: [b.blob.digest] } },
    });
    expect(await project.head()).toMatchObject({ head: EMPTY, commits: 0 });
    expect(await project.history(10)).toEqual([]);
  });

  const escaping = fileOf('dir/link', '../../etc/passwd', '120000');
  const inside = fileOf('dir/link', '../a.txt', '120000');
  const a = fileOf('a.txt', 'A');
  const below = fileOf('a.txt/b', 'A');
  const refused: readonly (readonly [string, readonly TreeChange[]])[] = [
    ['a path outside the tree', [{ ...a.change, path: '../a.txt' }]],
    ['a path twice', [a.change, a.change]],
    ['a file below a file', [a.change, below.change]],
    ['a size that is not that of the blob', [{ path: 'a.txt', entry: { ...a.entry, sizeBytes: 7 } }]],
    ['a link that leads out of the tree', [escaping.change]],
  ];
  it.each(refused)('is refused with %s', async (_, changes) => {
    const { project } = await createdProject();
    await put(project, [a, below, escaping, inside]);
    const result = await project.commit(commitOf(changes));
    expect(result).toMatchObject({ ok: false, error: { kind: 'invalid' } });
    expect(JSON.stringify(result)).toContain(JSON.stringify(changes.at(-1)?.path).slice(1, -1));
    expect(await project.head()).toMatchObject({ head: EMPTY, commits: 0 });
    expect(await project.commit(commitOf([a.change, inside.change]))).toMatchObject({ ok: true });
  });

  it('keeps who, why and when, newest first', async () => {
    const { project } = await createdProject();
    const [x, y] = [fileOf('x', 'X'), fileOf('y', 'Y')] as const;
    await put(project, [x, y]);
    await project.commit(commitOf([x.change], { message: 'first', by: 'k1' }));
    await project.commit(commitOf([y.change], { message: 'second', by: 'k2' }));
    const history = await project.history(10);
    expect(history.map(({ message, by }) => [message, by])).toEqual([
      ['second', 'k2'],
      ['first', 'k1'],
    ]);
    expect(history[0]?.head).toBe((await project.head())?.head);
    expect(Date.parse(history[0]?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(history[1]?.at ?? ''));
    expect(await project.history(1)).toHaveLength(1);
  });
});

describe('a project with many files', () => {
  it('takes an import of 300 files and gives every one back', async () => {
    const { project } = await createdProject();
    const files = Array.from({ length: 300 }, (_, n) => fileOf(`src/m${n % 7}/file-${n}.ts`, `export const n = ${n};\n`.repeat(20)));
    expect(await project.missingBlobs(files.map(({ blob }) => blob.digest))).toHaveLength(300);
    await put(project, files);
    expect(await project.missingBlobs(files.map(({ blob }) => blob.digest))).toEqual([]);
    const outcome = await project.commit(
      commitOf(
        files.map(({ change }) => change),
        { mode: 'replace' },
      ),
    );
    const { digest, text } = manifestOf(files.map(({ entry }) => entry));
    expect(outcome).toMatchObject({ ok: true, value: { status: 'committed', head: digest, files: 300 } });
    expect(await project.manifest(digest)).toBe(text);
    const blobs = await project.getBlobs(files.map(({ blob }) => blob.digest));
    expect(files.every(({ blob }) => sha256(blobs.get(blob.digest) ?? '') === blob.digest)).toBe(true);
  });

  it('keeps a manifest of several parts whole, in rows of at most 1 MiB', async () => {
    const { project, stub } = await createdProject();
    const one = fileOf('x', 'same');
    await put(project, [one]);
    // Two bytes per letter, so that a part ends inside a character.
    const entries = Array.from({ length: 12_000 }, (_, n) => ({ ...one.entry, path: `ö/${'é'.repeat(9)}-${n}` }));
    const outcome = await project.commit(commitOf(entries.map((entry) => ({ path: entry.path, entry }))));
    const { digest, text } = manifestOf(entries);
    expect(outcome).toMatchObject({ ok: true, value: { head: digest, files: 12_000 } });
    await evictDurableObject(stub);
    expect(await project.manifest(digest)).toBe(text);
    const parts = await runInDurableObject(stub, (_, { storage }) =>
      storage.sql.exec('SELECT length(bytes) AS size FROM manifests WHERE tree = ?', digest).toArray(),
    );
    expect(parts.length).toBeGreaterThan(1);
    expect(Math.max(...parts.map(({ size }) => Number(size)))).toBeLessThanOrEqual(1_048_576);
    const patch = commitOf([{ path: entries[0]?.path ?? '', entry: null }], { expectedHead: digest });
    expect(await project.commit(patch)).toMatchObject({ ok: true, value: { status: 'committed', files: 11_999 } });
  });
});

describe('a search over a tree', () => {
  const files = [
    fileOf('a.txt', 'one\ntwo needle\nthree\nneedle'),
    fileOf('b/b.txt', 'Needle, ünd NEEDLE'),
    fileOf('b/c.txt', 'nothing'),
    fileOf('binary', 'needle\0'),
    fileOf('link', 'needle', '120000'),
    fileOf('z.txt', 'last needle'),
  ];

  async function searched() {
    const { project, stub } = await createdProject();
    await put(project, files);
    await project.commit(commitOf(files.map(({ change }) => change)));
    return { project, stub, tree: (await project.head())?.head ?? '' };
  }

  it('finds lines in text files, in order of path, and passes over binary files and links', async () => {
    const { project, tree } = await searched();
    expect(await project.search(tree, 'needle', { limit: 10, skipPaths: [] })).toEqual({
      hits: [
        { path: 'a.txt', line: 2, text: 'two needle' },
        { path: 'a.txt', line: 4, text: 'needle' },
        { path: 'z.txt', line: 1, text: 'last needle' },
      ],
      truncated: false,
    });
    expect((await project.search(tree, 'ünd', { limit: 10, skipPaths: [] })).hits).toHaveLength(1);
  });

  it('says that there is more than was asked for, and leaves out what it is told to', async () => {
    const { project, tree } = await searched();
    expect(await project.search(tree, 'needle', { limit: 2, skipPaths: [] })).toMatchObject({
      hits: [{ line: 2 }, { line: 4 }],
      truncated: true,
    });
    expect((await project.search(tree, 'needle', { limit: 10, skipPaths: ['a.txt'] })).hits.map(({ path }) => path)).toEqual(['z.txt']);
  });

  it('searches the tree that is named, not the head', async () => {
    const { project, tree } = await searched();
    await project.commit(commitOf([], { mode: 'replace', expectedHead: tree }));
    expect((await project.search(tree, 'needle', { limit: 10, skipPaths: [] })).hits).toHaveLength(3);
    expect((await project.search(EMPTY, 'needle', { limit: 10, skipPaths: [] })).hits).toEqual([]);
    expect((await project.search('0'.repeat(64), 'needle', { limit: 10, skipPaths: [] })).hits).toEqual([]);
  });

  it('ignores case and narrows by path when asked', async () => {
    const { stub, tree } = await searched();
    const { hits } = await stub.search(tree, 'needle', { limit: 10, skipPaths: [], ignoreCase: true, pathGlob: 'b/**' });
    expect(hits.map(({ path }) => path)).toEqual(['b/b.txt']);
  });
});

describe('a project whose object was evicted', () => {
  it('is what it was: head, files, history, and commits that were done', async () => {
    const { project, stub } = await createdProject();
    const file = fileOf('a.txt', 'kept');
    await put(project, [file]);
    const request = commitOf([file.change], { expectedHead: EMPTY });
    const outcome = await project.commit(request);
    const before = [await project.head(), await project.history(10)];
    await evictDurableObject(stub);
    expect([await project.head(), await project.history(10)]).toEqual(before);
    expect(await project.commit(request)).toEqual(outcome);
    expect(await project.getBlobs([file.blob.digest])).toEqual(new Map([[file.blob.digest, file.blob.bytes]]));
    const next = fileOf('b.txt', 'next');
    await put(project, [next]);
    expect(await project.commit(commitOf([next.change]))).toMatchObject({ ok: true, value: { status: 'committed', files: 2 } });
  });
});

describe('a project whose object is reset in the middle of a call', () => {
  it('is unavailable for that call, told apart from a bug, and there for the next', async () => {
    const { project, stub } = await createdProject();
    const file = fileOf('a.txt', 'kept');
    await put(project, [file]);
    await project.commit(commitOf([file.change]));
    const [, call] = await Promise.allSettled([runInDurableObject(stub, (_, state) => state.abort('reset')), project.head()]);
    expect(call).toMatchObject({
      status: 'rejected',
      reason: { name: 'StorageUnavailable', message: 'storage unavailable: projects.head' },
    });
    expect(await project.head()).toMatchObject({ files: 1, commits: 1 });
  });

  it('lets a bug through as what it is', async () => {
    const { project } = await createdProject();
    await expect(project.putBlobs(null as never)).rejects.toThrow(TypeError);
  });
});

interface FileFixture {
  readonly blob: { readonly digest: string; readonly bytes: Uint8Array };
  readonly entry: TreeEntry;
  readonly change: TreeChange;
}

function newProject() {
  const name = `org-${crypto.randomUUID()}`;
  return { name, project: projects.project(name, 'site'), stub: env.PROJECTS.getByName(objectName(name, 'project', 'site')) };
}

async function createdProject() {
  const made = newProject();
  await made.project.create();
  return made;
}

function fileOf(path: string, content: string, mode: TreeEntry['mode'] = '100644'): FileFixture {
  const blob = blobOf(new TextEncoder().encode(content));
  const entry = { path, mode, blob: blob.digest, sizeBytes: blob.bytes.byteLength };
  return { blob, entry, change: { path, entry: { mode, blob: entry.blob, sizeBytes: entry.sizeBytes } } };
}

function blobOf(bytes: Uint8Array) {
  return { digest: sha256(bytes), bytes };
}

async function put(project: ProjectPort, files: readonly FileFixture[]): Promise<void> {
  expect(await project.putBlobs(files.map(({ blob }) => blob))).toEqual({ ok: true, value: null });
}

function commitOf(changes: readonly TreeChange[], more: Partial<CommitRequest> = {}): CommitRequest {
  return { commitId: crypto.randomUUID(), expectedHead: null, mode: 'patch', changes, message: 'a change', by: 'k1', ...more };
}

function manifestOf(entries: readonly TreeEntry[]): { readonly digest: string; readonly text: string } {
  const tree = makeTree(entries);
  if (!tree.ok) throw new Error(tree.error.message);
  return { digest: treeDigest(sha256, tree.value), text: encodeManifest(tree.value) };
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
