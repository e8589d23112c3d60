import type { ResultOf } from '../../api/operations.ts';
import type { ProjectView } from '../../api/project.ts';
import { decodeBase64, encodeBase64 } from '../../core/base64.ts';
import { invalidField, invalidState, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { decodeManifest } from '../../core/workspace/manifest.ts';
import { DEFAULT_PROTECTED_PATHS } from '../../core/workspace/protected-paths.ts';
import { findEntry, type Tree, type TreeEntry } from '../../core/workspace/tree.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { ProjectHead, ProjectPort, ProjectRecord } from '../ports.ts';
import type { Services } from '../services.ts';
import { type FoundProject, findProject } from './find-project.ts';
import { decodeTreeToken, encodeTreeToken, foreignTreeToken, type TreeTokenScope } from './tree-token.ts';

/** Contents in one page of an export, in bytes before base64; a page has at least one file, whatever its size. */
const MAX_PAGE_BYTES = 1_048_576;

/** Projects of the org: registered in the registry, kept in an object of their own. */
export const projectHandlers = {
  /**
   * The object comes first: whoever finds the row finds the project, and what a crash in between leaves is an empty object that the
   * next call takes.
   */
  '_cleveragents/project/create': async (params, call, services) => {
    const { org } = call.principal;
    const { name } = params;
    // Whoever could choose which paths are protected could choose that none is; an agent's projects have the usual ones.
    if (call.principal.kind === 'agent' && params.settings?.protected_paths !== undefined) {
      const message = 'settings.protected_paths is for keys of kind human; leave it out, and the usual paths are protected';
      return err({ kind: 'forbidden', message, details: { needed_kind: 'human', field: 'settings.protected_paths' } });
    }
    if ((await services.projectStore.get(org, name)) !== null) return err(projectExists(name));
    await call.changing();
    const head = await services.projects.project(org, name).create();
    const record: ProjectRecord = {
      org,
      name,
      settings: { protected_paths: DEFAULT_PROTECTED_PATHS, ...params.settings },
      createdAt: new Date(services.clock.nowMs()).toISOString(),
    };
    return (await services.projectStore.add(record)) ? ok(projectViewOf(record, head)) : err(projectExists(name));
  },

  '_cleveragents/project/show': async ({ name }, call, services) => {
    const project = await findProject(call.principal.org, name, services);
    return project.ok ? ok(projectViewOf(project.value.record, await headOf(project.value))) : project;
  },

  '_cleveragents/project/list': async (_params, call, services) => ok(await listProjects(call.principal.org, services)),

  '_cleveragents/project/blob/missing': async ({ name, digests }, call, services) => {
    const project = await findProject(call.principal.org, name, services);
    return project.ok ? ok({ missing: [...(await project.value.port.missingBlobs(digests))] }) : project;
  },

  '_cleveragents/project/blob/put': async (params, call, services) => {
    const project = await findProject(call.principal.org, params.name, services);
    if (!project.ok) return project;
    const blobs: { digest: string; bytes: Uint8Array }[] = [];
    for (const [index, { digest, base64 }] of params.blobs.entries()) {
      const bytes = decodeBase64(base64);
      if (bytes === null) return err(invalidField(`blobs.${index}.base64`, 'must be standard base64 with padding'));
      blobs.push({ digest, bytes });
    }
    const put = await project.value.port.putBlobs(blobs);
    return put.ok ? ok({ stored: blobs.length }) : put;
  },

  '_cleveragents/project/commit': async (params, call, services) => {
    const project = await findProject(call.principal.org, params.name, services);
    if (!project.ok) return project;
    const committed = await project.value.port.commit({
      // Plans commit under ids of their own; a caller who could take one of those would have a plan report what was never done.
      commitId: `call:${params.commit_id}`,
      expectedHead: params.expected_head,
      mode: params.mode,
      changes: params.changes.map(({ path, entry }) => ({
        path,
        entry: entry === null ? null : { mode: entry.mode, blob: entry.digest, sizeBytes: entry.size_bytes },
      })),
      message: params.message ?? '',
      by: call.principal.keyId,
    });
    if (!committed.ok) return committed;
    const outcome = committed.value;
    if (outcome.status === 'committed') return ok(outcome);
    const message = `The head of the project has moved to ${outcome.head}; nothing was changed. Make the changes against it and commit again`;
    return err(
      invalidState(message, { reason: 'HEAD_MOVED', project: params.name, head: outcome.head, expected_head: params.expected_head }),
    );
  },

  '_cleveragents/project/tree': async (params, call, services) => {
    const { name, path } = params;
    const opened = await openPage({ kind: 'tree', name, path: path ?? '' }, params.page_token, call, services);
    if (!opened.ok) return opened;
    const { head, tree, offset, tokenAt } = opened.value;
    const all = [...tree.entries.values()];
    const shown = path === undefined ? all : all.filter((entry) => entry.path === path || entry.path.startsWith(`${path}/`));
    if (path !== undefined && shown.length === 0) return err(unknownFile(name, path, head));
    const page = shown.slice(offset, offset + params.page_size);
    const next = offset + page.length;
    return ok({
      name,
      head,
      entries: page.map((entry) => ({ path: entry.path, mode: entry.mode, digest: entry.blob, size_bytes: entry.sizeBytes })),
      next_page_token: next < shown.length ? tokenAt(next) : '',
    });
  },

  '_cleveragents/project/file/read': async ({ name, path }, call, services) => {
    const project = await findProject(call.principal.org, name, services);
    if (!project.ok) return project;
    const { head } = await headOf(project.value);
    const entry = findEntry(await treeOf(project.value.port, head), path);
    if (entry === null) return err(unknownFile(name, path, head));
    const [bytes] = await readEntries(project.value.port, [entry]);
    return ok({
      name,
      head,
      path,
      mode: entry.mode,
      digest: entry.blob,
      size_bytes: entry.sizeBytes,
      base64: encodeBase64(bytes ?? new Uint8Array()),
    });
  },

  '_cleveragents/project/export': async (params, call, services) => {
    const opened = await openPage({ kind: 'export', name: params.name, path: '' }, params.page_token, call, services);
    if (!opened.ok) return opened;
    const { port, head, tree, offset, tokenAt } = opened.value;
    const page = takePage([...tree.entries.values()].slice(offset, offset + params.page_size));
    const contents = await readEntries(port, page);
    const next = offset + page.length;
    return ok({
      name: params.name,
      head,
      files: page.map(({ path, mode }, index) => ({ path, mode, base64: encodeBase64(contents[index] ?? new Uint8Array()) })),
      next_page_token: next < tree.entries.size ? tokenAt(next) : '',
    });
  },
} satisfies Pick<
  Handlers,
  | '_cleveragents/project/create'
  | '_cleveragents/project/show'
  | '_cleveragents/project/list'
  | '_cleveragents/project/blob/missing'
  | '_cleveragents/project/blob/put'
  | '_cleveragents/project/commit'
  | '_cleveragents/project/tree'
  | '_cleveragents/project/file/read'
  | '_cleveragents/project/export'
>;

/** All projects of the org by name; also the answer of `registry/project/list`. */
export async function listProjects(org: string, services: Services): Promise<ResultOf<'_cleveragents/project/list'>> {
  const projects = await services.projectStore.list(org);
  return { projects: projects.map(({ name, settings, createdAt }) => ({ name, settings, created_at: createdAt })), next_page_token: '' };
}

function projectViewOf({ name, settings, createdAt }: ProjectRecord, head: ProjectHead): ProjectView {
  return {
    name,
    settings,
    head: head.head,
    files: head.files,
    total_bytes: head.totalBytes,
    commits: head.commits,
    created_at: createdAt,
    updated_at: head.updatedAt,
  };
}

interface OpenedPage {
  readonly port: ProjectPort;
  readonly head: string;
  readonly tree: Tree;
  readonly offset: number;
  /** The token of the page that begins there. */
  readonly tokenAt: (offset: number) => string;
}

/** The first page shows the head as it is now; every other page shows the tree of the first, which the project keeps for ever. */
async function openPage(
  { kind, name, path }: { readonly kind: TreeTokenScope['kind']; readonly name: string; readonly path: string },
  pageToken: string | undefined,
  call: CallContext,
  services: Services,
): Promise<Result<OpenedPage, Refusal>> {
  const { org } = call.principal;
  const project = await findProject(org, name, services);
  if (!project.ok) return project;
  const { port } = project.value;
  const scope: TreeTokenScope = { kind, org, name, path };
  const at = (head: string) => (offset: number) => encodeTreeToken(services.sha256, scope, { head, offset });
  if (pageToken === undefined || pageToken === '') {
    const { head } = await headOf(project.value);
    return ok({ port, head, tree: await treeOf(port, head), offset: 0, tokenAt: at(head) });
  }
  const token = decodeTreeToken(services.sha256, scope, pageToken);
  if (!token.ok) return token;
  const { head, offset } = token.value;
  const manifest = await port.manifest(head);
  const tree = manifest === null ? null : decodeManifest(manifest);
  if (tree === null || !tree.ok) return err(foreignTreeToken());
  return ok({ port, head, tree: tree.value, offset, tokenAt: at(head) });
}

/** As many of the first entries as fit one page, at least one. */
function takePage(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  let bytes = 0;
  const end = entries.findIndex((entry, index) => {
    bytes += entry.sizeBytes;
    return index > 0 && bytes > MAX_PAGE_BYTES;
  });
  return end === -1 ? entries : entries.slice(0, end);
}

/** The object is made before the row: a row without one is damage, and an empty project would be a wrong answer. */
async function headOf({ port, record }: FoundProject): Promise<ProjectHead> {
  const head = await port.head();
  if (head === null) throw new Error(`the project ${record.name} of ${record.org} is registered, but its object holds nothing`);
  return head;
}

async function treeOf(port: ProjectPort, head: string): Promise<Tree> {
  const manifest = await port.manifest(head);
  if (manifest === null) throw new Error(`the tree of the head ${head} is lost`);
  const tree = decodeManifest(manifest);
  if (!tree.ok) throw new Error(`the stored manifest of ${head} is damaged: ${tree.error.message}`);
  return tree.value;
}

/** The contents of entries, in their order. */
async function readEntries(port: ProjectPort, entries: readonly TreeEntry[]): Promise<readonly Uint8Array[]> {
  const blobs = await port.getBlobs([...new Set(entries.map(({ blob }) => blob))]);
  return entries.map(({ blob, path }) => {
    const bytes = blobs.get(blob);
    if (bytes === undefined) throw new Error(`the blob ${blob} of ${JSON.stringify(path)} is lost`);
    return bytes;
  });
}

function projectExists(name: string): Refusal {
  return { kind: 'already_exists', message: `A project named '${name}' exists`, entity: 'project', id: name, details: { project: name } };
}

function unknownFile(project: string, path: string, head: string): Refusal {
  const message = `The project '${project}' has nothing at ${JSON.stringify(path)}`;
  return { kind: 'not_found', message, entity: 'file', id: path, details: { project, path, head } };
}
