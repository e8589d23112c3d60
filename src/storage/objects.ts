import type { ProjectPort, Projects } from '../app/ports.ts';
import { StorageUnavailable } from '../app/ports.ts';

/** What an object of one project offers over RPC: the port, and a read of blobs that stays within one message. */
export type ProjectRpc = ProjectPort & {
  /** The blobs of the first `taken` digests: as many as fit one answer, at least one of a list that is not empty. */
  readBlobs(digests: readonly string[]): Promise<{ readonly blobs: ReadonlyMap<string, Uint8Array>; readonly taken: number }>;
};

/** The objects of all projects. Reaching one makes nothing: an object that was never created answers so and stores nothing. */
export function makeProjects(namespace: DurableObjectNamespace): Projects {
  return {
    project(org, name) {
      const objectId = objectName(org, 'project', name);
      // A stub whose object was reset stays broken, so each call takes a new one. What it answers has the shape of the object's
      // methods; the platform's mapped types say that in a form of their own.
      const reach = <T>(operation: keyof ProjectPort, call: (rpc: ProjectRpc) => Promise<T>): Promise<T> =>
        reachObject(`projects.${operation}`, () => call(namespace.getByName(objectId) as unknown as ProjectRpc));
      return {
        create: () => reach('create', (rpc) => rpc.create()),
        head: () => reach('head', (rpc) => rpc.head()),
        missingBlobs: (digests) => reach('missingBlobs', (rpc) => rpc.missingBlobs(digests)),
        putBlobs: (blobs) => reach('putBlobs', (rpc) => rpc.putBlobs(blobs)),
        getBlobs: (digests) => reach('getBlobs', (rpc) => readAll(rpc, digests)),
        manifest: (tree) => reach('manifest', (rpc) => rpc.manifest(tree)),
        commit: (request) => reach('commit', (rpc) => rpc.commit(request)),
        committed: (commitId) => reach('committed', (rpc) => rpc.committed(commitId)),
        search: (tree, query, options) => reach('search', (rpc) => rpc.search(tree, query, options)),
        history: (limit) => reach('history', (rpc) => rpc.history(limit)),
      };
    },
  };
}

/**
 * The name of an object. Made of (org, kind, id) so that no two triples share one, whatever the texts hold: a foreign or invented id
 * reaches an object of the caller's own org, and never one of another kind.
 */
export function objectName(org: string, kind: 'plan' | 'project' | 'session' | 'org' | 'profile', id: string): string {
  return JSON.stringify([org, kind, id]);
}

/** One message carries 8 MiB; callers need not know. */
async function readAll(rpc: ProjectRpc, digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
  const all = new Map<string, Uint8Array>();
  for (let rest = [...new Set(digests)]; rest.length > 0; ) {
    const { blobs, taken } = await rpc.readBlobs(rest);
    for (const [digest, bytes] of blobs) all.set(digest, bytes);
    rest = rest.slice(taken);
  }
  return all;
}

/** An object that was reset, is overloaded or cannot be reached is a store that is unavailable; what its code throws stays a bug. */
export async function reachObject<T>(operation: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (isPlatformFault(cause)) throw new StorageUnavailable(operation, cause);
    throw cause;
  }
}

/** The platform marks its own failures with these members. */
function isPlatformFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ['retryable', 'overloaded', 'durableObjectReset'].some((mark) => Reflect.get(error, mark) === true);
}
