import type { ProjectPort } from '../app/ports.ts';
import type { Sha256 } from '../core/digest.ts';
import type { DiffInput } from '../core/plan/commands.ts';
import type { Plan } from '../core/plan/plan.ts';
import { applyChanges, type Changes, normaliseChanges } from '../core/workspace/changes.ts';
import { blobsNeeded, diffDigest, diffTrees, patchOf, type TreeDiff } from '../core/workspace/diff.ts';
import { decodeManifest } from '../core/workspace/manifest.ts';
import { mergeSearchResults, searchFiles, searchLimit } from '../core/workspace/search.ts';
import { EMPTY_TREE, type Tree, treeDigest } from '../core/workspace/tree.ts';
import type { WorkspaceReader } from './tools/tool.ts';
import { makeTreeWorkspace } from './tools/tree-workspace.ts';

/** Longest patch that is kept and shown; a longer one ends with a note, the digest covers all of it. */
const MAX_PATCH_CHARACTERS = 900_000;

/**
 * The files of one plan: its base tree, read from the project by digest and never changing, with the plan's own changes over it.
 * Base tree and blobs are kept in memory as long as the object lives; nothing of them is stored in the plan.
 */
export class PlanWorkspace {
  private base: { readonly digest: string; readonly tree: Tree } | null = null;
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
    const digest = plan.project.base;
    if (this.base?.digest === digest) return this.base.tree;
    const manifest = await this.project.manifest(digest);
    if (manifest === null) throw new Error(`project ${plan.project.name} does not hold tree ${digest}`);
    const tree = decodeManifest(manifest);
    if (!tree.ok) throw new Error(`tree ${digest} of project ${plan.project.name} is not readable: ${tree.error.message}`);
    this.base = { digest, tree: tree.value };
    return tree.value;
  }

  async currentTree(plan: Plan): Promise<Tree> {
    const applied = applyChanges(await this.baseTree(plan), changesOf(plan));
    if (!applied.ok) throw new Error(`the changes of plan ${plan.id} do not apply: ${applied.error.message}`);
    return applied.value;
  }

  /** What tools see: the current tree; searching the base runs where its blobs are. */
  async reader(plan: Plan): Promise<WorkspaceReader> {
    const tree = await this.currentTree(plan);
    const changes = changesOf(plan);
    const base = plan.project?.base ?? null;
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
    const base = await this.baseTree(plan);
    const current = await this.currentTree(plan);
    const changes = normaliseChanges(base, changesOf(plan));
    await this.prefetch(blobsNeeded(base, current).filter((digest) => this.ownBlob(digest) === null));
    const diff = diffTrees(base, current, (blob) => this.ownBlob(blob) ?? this.cache.get(blob));
    const baseDigest = plan.project?.base ?? treeDigest(this.sha256, base);
    const result = treeDigest(this.sha256, current);
    const patch = patchOf(diff);
    return {
      diff,
      changes,
      input: {
        digest: diffDigest(this.sha256, { base: baseDigest, result, changes }),
        base: baseDigest,
        result,
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

  private async prefetch(digests: readonly string[]): Promise<void> {
    const missing = digests.filter((digest) => !this.cache.has(digest));
    if (missing.length === 0 || this.project === null) return;
    if (this.cache.size > 2000) this.cache.clear();
    for (const [digest, bytes] of await this.project.getBlobs(missing)) this.cache.set(digest, bytes);
  }
}

export function changesOf(plan: Plan): Changes {
  return new Map(plan.changes);
}
