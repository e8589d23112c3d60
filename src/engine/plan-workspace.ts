import type { ProjectPort } from '../app/ports.ts';
import type { Sha256 } from '../core/digest.ts';
import { type PathChange, writesAtOnce } from '../core/plan/at-once.ts';
import type { DiffInput } from '../core/plan/commands.ts';
import type { Plan } from '../core/plan/plan.ts';
import { applyChanges, type Changes, changesBetween, NO_CHANGES, normaliseChanges } from '../core/workspace/changes.ts';
import { blobsNeeded, diffDigest, diffTrees, patchOf, type TreeDiff } from '../core/workspace/diff.ts';
import { decodeManifest } from '../core/workspace/manifest.ts';
import { compareUtf8 } from '../core/workspace/path.ts';
import { mergeSearchResults, searchFiles, searchLimit } from '../core/workspace/search.ts';
import { EMPTY_TREE, type Tree, type TreeEntry, treeDigest } from '../core/workspace/tree.ts';
import type { WorkspaceReader } from './tools/tool.ts';
import { makeTreeWorkspace } from './tools/tree-workspace.ts';

/** Trees that are kept in memory: the base, or the newest heads. */
const KEPT_TREES = 3;

/** Longest patch that is kept and shown; a longer one ends with a note, the digest covers all of it. */
const MAX_PATCH_CHARACTERS = 900_000;

/** The files as tools see them at one moment. */
export interface WorkspaceView {
  /** The project's head that is seen; null where the plan has files of its own. */
  readonly head: string | null;
  readonly tree: Tree;
  readonly reader: WorkspaceReader;
}

/**
 * The files of one plan: its base tree, read from the project by digest and never changing, with the plan's own changes over it. A plan that
 * writes at once has no files of its own: it sees the project's head, its own writes and those of others included.
 * Trees and blobs are kept in memory as long as the object lives; nothing of them is stored in the plan.
 */
export class PlanWorkspace {
  private readonly trees = new Map<string, Tree>();
  private readonly cache = new Map<string, Uint8Array>();
  private readonly project: ProjectPort | null;
  private readonly ownBlob: (digest: string) => Uint8Array | null;
  private readonly sha256: Sha256;

  constructor(options: {
    readonly project: ProjectPort | null;
    readonly ownBlob: (digest: string) => Uint8Array | null;
    readonly sha256: Sha256;
  }) {
    this.project = options.project;
    this.ownBlob = options.ownBlob;
    this.sha256 = options.sha256;
  }

  /** The tree that the plan took from the project. Throws when the project does not hold it any more: nothing sensible can go on. */
  async baseTree(plan: Plan): Promise<Tree> {
    if (plan.project === null || this.project === null) return EMPTY_TREE;
    return this.treeOf(plan.project.base);
  }

  /** A tree of the project, by its digest. */
  async treeOf(digest: string): Promise<Tree> {
    const known = this.trees.get(digest);
    if (known !== undefined) return known;
    const manifest = (await this.project?.manifest(digest)) ?? null;
    if (manifest === null) throw new Error(`the project does not hold tree ${digest}`);
    const tree = decodeManifest(manifest);
    if (!tree.ok) throw new Error(`tree ${digest} of the project is not readable: ${tree.error.message}`);
    if (this.trees.size >= KEPT_TREES) this.trees.clear();
    this.trees.set(digest, tree.value);
    return tree.value;
  }

  async currentTree(plan: Plan): Promise<Tree> {
    if (writesAtOnce(plan)) return this.treeOf(await this.head());
    const applied = applyChanges(await this.baseTree(plan), changesOf(plan));
    if (!applied.ok) throw new Error(`the changes of plan ${plan.id} do not apply: ${applied.error.message}`);
    return applied.value;
  }

  /** What tools see: the current tree; searching the base runs where its blobs are. */
  async view(plan: Plan): Promise<WorkspaceView> {
    if (!writesAtOnce(plan)) {
      const tree = await this.currentTree(plan);
      return { head: null, tree, reader: this.readerOf(tree, changesOf(plan), plan.project?.base ?? null) };
    }
    const head = await this.head();
    const tree = await this.treeOf(head);
    return { head, tree, reader: this.readerOf(tree, NO_CHANGES, head) };
  }

  private async head(): Promise<string> {
    const head = (await this.project?.head()) ?? null;
    if (head === null) throw new Error('the project does not exist any more');
    return head.head;
  }

  private readerOf(tree: Tree, changes: Changes, base: string | null): WorkspaceReader {
    return makeTreeWorkspace(
      tree,
      (blob) => this.loadBlob(blob),
      async (query, options) => {
        const own = [...changes].flatMap(([path, change]) => {
          if (change.kind === 'delete' || change.mode === '120000') return [];
          const bytes = this.ownBlob(change.blob);
          return bytes === null ? [] : [{ path, bytes }];
        });
        const local = searchFiles(own, query, options);
        if (this.project === null || base === null) return local;
        const { hits, truncated } = await this.project.search(base, query, {
          limit: searchLimit(options),
          skipPaths: [...changes.keys()],
          ...(options.ignoreCase === undefined ? {} : { ignoreCase: options.ignoreCase }),
          ...(options.pathGlob === undefined ? {} : { pathGlob: options.pathGlob }),
        });
        return mergeSearchResults([local, { matches: hits, truncated }], options);
      },
    );
  }

  async loadBlob(digest: string): Promise<Uint8Array | null> {
    const known = this.ownBlob(digest) ?? this.cache.get(digest);
    if (known !== undefined && known !== null) return known;
    await this.prefetch([digest]);
    return this.cache.get(digest) ?? null;
  }

  /** Base → current, with the digest over the whole. */
  async diff(plan: Plan): Promise<{ readonly input: DiffInput; readonly diff: TreeDiff; readonly changes: Changes }> {
    const { base, current, changes, ends } = writesAtOnce(plan) ? this.writtenDiff(plan) : await this.ownDiff(plan);
    await this.prefetch(blobsNeeded(base, current).filter((digest) => this.ownBlob(digest) === null));
    const diff = diffTrees(base, current, (blob) => this.ownBlob(blob) ?? this.cache.get(blob));
    const patch = patchOf(diff);
    return {
      diff,
      changes,
      input: {
        digest: diffDigest(this.sha256, { ...ends, changes }),
        ...ends,
        files: diff.files.map(({ path, status, additions, deletions }) => ({ path, status, additions, deletions })),
        additions: diff.totals.additions,
        deletions: diff.totals.deletions,
        patch:
          patch.length > MAX_PATCH_CHARACTERS
            ? `${patch.slice(0, MAX_PATCH_CHARACTERS)}\n(the patch goes on; the digest covers all of it)\n`
            : patch,
      },
    };
  }

  private async ownDiff(plan: Plan): Promise<Compared> {
    const base = await this.baseTree(plan);
    const current = await this.currentTree(plan);
    const ends = { base: plan.project?.base ?? treeDigest(this.sha256, base), result: treeDigest(this.sha256, current) };
    return { base, current, changes: normaliseChanges(base, changesOf(plan)), ends };
  }

  /** What the plan wrote at once: each path as it was before its first write to it, and after its last. What others wrote is not in it. */
  private writtenDiff(plan: Plan): Compared {
    const written = plan.writtenAtOnce;
    const base = treeOfPaths(written?.before ?? []);
    const current = treeOfPaths(plan.changes);
    const from = plan.project?.base ?? treeDigest(this.sha256, EMPTY_TREE);
    return { base, current, changes: changesBetween(base, current), ends: { base: from, result: written?.head ?? from } };
  }

  private async prefetch(digests: readonly string[]): Promise<void> {
    const missing = digests.filter((digest) => !this.cache.has(digest));
    if (missing.length === 0 || this.project === null) return;
    if (this.cache.size > 2000) this.cache.clear();
    for (const [digest, bytes] of await this.project.getBlobs(missing)) this.cache.set(digest, bytes);
  }
}

/** Two trees that are compared, and the digests that the difference is said to lie between. */
interface Compared {
  readonly base: Tree;
  readonly current: Tree;
  readonly changes: Changes;
  readonly ends: { readonly base: string; readonly result: string };
}

/** Only these paths, as they are after the changes: no tree of any project, so it is not checked to be one. */
function treeOfPaths(changes: readonly PathChange[]): Tree {
  const entries = changes.flatMap(([path, change]): [string, TreeEntry][] =>
    change.kind === 'delete' ? [] : [[path, { path, mode: change.mode, blob: change.blob, sizeBytes: change.sizeBytes }]],
  );
  return {
    entries: new Map(entries.sort(([a], [b]) => compareUtf8(a, b))),
    totalBytes: entries.reduce((sum, [, { sizeBytes }]) => sum + sizeBytes, 0),
  };
}

export function changesOf(plan: Plan): Changes {
  return new Map(plan.changes);
}
