import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { Sha256 } from '../../../src/core/digest.ts';
import type { Change, Changes } from '../../../src/core/workspace/changes.ts';
import { encodeText } from '../../../src/core/workspace/text.ts';
import { type FileMode, makeTree, type Tree, type TreeEntry } from '../../../src/core/workspace/tree.ts';

export const sha256: Sha256 = (data) => createHash('sha256').update(data).digest('hex');

/** A file by its contents, for tests; a link's contents are its target. */
export interface TestFile {
  readonly content: string | Uint8Array;
  readonly mode?: FileMode;
}

export type TestFiles = Readonly<Record<string, string | TestFile>>;

export function bytesOf(file: string | TestFile): Uint8Array {
  const content = typeof file === 'string' ? file : file.content;
  return typeof content === 'string' ? encodeText(content) : content;
}

export function entryOf(path: string, file: string | TestFile): TreeEntry {
  const bytes = bytesOf(file);
  const mode = typeof file === 'string' ? '100644' : (file.mode ?? '100644');
  return { path, mode, blob: sha256(bytes), sizeBytes: bytes.length };
}

export function treeOf(files: TestFiles): Tree {
  const tree = makeTree(Object.entries(files).map(([path, file]) => entryOf(path, file)));
  if (!tree.ok) throw new Error(tree.error.message);
  return tree.value;
}

/** Finds the bytes of a digest among the given files. */
export function contentOf(...sets: readonly TestFiles[]): (blob: string) => Uint8Array | undefined {
  const blobs = new Map<string, Uint8Array>();
  for (const files of sets) for (const file of Object.values(files)) blobs.set(sha256(bytesOf(file)), bytesOf(file));
  return (blob) => blobs.get(blob);
}

/** Names that meet: few, with a space, a quotation mark, letters beyond ASCII and beyond the basic plane. */
const segment = fc.constantFrom('a', 'b', 'c d', 'é', 'q"q', '😀', '\uffee', 'x.ts', '...', '-n');

export const anyPath: fc.Arbitrary<string> = fc.array(segment, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));

const line = fc.constantFrom(
  'one',
  'two',
  'three',
  '',
  ' ',
  '\tfour',
  'five\r',
  '-- dash',
  '++ plus',
  '@@ -1 +1 @@',
  '\\ No newline at end of file',
  'ünï',
);

export const anyText: fc.Arbitrary<string> = fc
  .tuple(fc.array(line, { maxLength: 25 }), fc.boolean())
  .map(([lines, ends]) => lines.join('\n') + (ends && lines.length > 0 ? '\n' : ''));

/** Links lead nowhere: git cannot apply its own patch either where one that leads to a directory gives way to a directory. */
const anyFile: fc.Arbitrary<TestFile> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ content: anyText, mode: fc.constantFrom<FileMode>('100644', '100644', '100755') }) },
  { weight: 1, arbitrary: fc.record({ content: fc.constantFrom('nowhere', 'away/x.ts'), mode: fc.constant<FileMode>('120000') }) },
);

/** Files without one that lies below another. */
export const anyFiles: fc.Arbitrary<Record<string, TestFile>> = fc
  .uniqueArray(fc.tuple(anyPath, anyFile), { selector: ([path]) => path, maxLength: 12 })
  .map((pairs) => {
    const files: Record<string, TestFile> = {};
    for (const [path, file] of pairs) {
      const meets = Object.keys(files).some((other) => other.startsWith(`${path}/`) || path.startsWith(`${other}/`));
      if (!meets) files[path] = file;
    }
    return files;
  });

const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('delete' as const) }),
  fc.tuple(fc.constantFrom('one', 'two', ''), fc.constantFrom<FileMode>('100644', '100755')).map(([content, mode]): Change => {
    const { blob, sizeBytes } = entryOf('x', content);
    return { kind: 'write', mode, blob, sizeBytes };
  }),
);

export const anyChanges: fc.Arbitrary<Changes> = fc.array(fc.tuple(anyPath, anyChange), { maxLength: 10 }).map((pairs) => new Map(pairs));
