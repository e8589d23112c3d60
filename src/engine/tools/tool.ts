import type { Sha256 } from '../../core/digest.ts';
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { ToolSpec } from '../../core/tool.ts';
import type { SearchOptions, SearchResult } from '../../core/workspace/search.ts';
import type { DirectoryItem, FileMode, TreeEntry } from '../../core/workspace/tree.ts';

/**
 * Something a plan can call. `perform` runs only after the call was authorised and recorded; what it wants to change in the workspace
 * it answers as `writes`, which the plan's object commits in the transaction that settles the call.
 */
export interface Tool {
  readonly spec: ToolSpec;
  /** The workspace paths a call would touch, for protected paths and confidence. Takes arguments that may not have been validated. */
  paths?(args: JsonObject): readonly string[];
  /**
   * The hosts that a call would reach, as names without port; null where the arguments do not say. A tool that names them reaches no
   * other, by a redirect neither. Takes arguments that may not have been validated.
   */
  hosts?(args: JsonObject): readonly string[] | null;
  /** Carries the call out, with validated arguments. Expected failures are outcomes; a throw is a bug, or the signal's abort. */
  perform(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

/** What a running tool can reach. */
export interface ToolContext {
  readonly workspace: WorkspaceReader;
  /** Aborted when the plan is cancelled or the call's time is over. */
  readonly signal: AbortSignal;
  /** The same for every attempt of one call: an external tool hands it on, so that a repeat is not a second effect. */
  readonly idempotencyKey: string;
  readonly sha256: Sha256;
}

/** The files of the plan, with the writes of its earlier calls. Paths are valid (`parsePath`); `''` is the root directory. */
export interface WorkspaceReader {
  /** A file's bytes (a link's target for a link); null where there is no file. */
  read(path: string): Promise<Uint8Array | null>;
  entry(path: string): Promise<TreeEntry | null>;
  /** What is directly inside a directory, by name; null where there is no directory. */
  list(directory: string): Promise<readonly DirectoryItem[] | null>;
  search(query: string, options: SearchOptions): Promise<SearchResult>;
}

/** One change a tool asks for. A `put` replaces what is there. */
export type WorkspaceWrite =
  | { readonly kind: 'put'; readonly path: string; readonly mode: FileMode; readonly bytes: Uint8Array }
  | { readonly kind: 'remove'; readonly path: string };

/** Why a call failed. `code` is a short snake_case word; `message` says what to do; `transient` failures may be retried. */
export interface ToolError {
  readonly code: string;
  readonly message: string;
  readonly transient: boolean;
}

/**
 * How a call ended. `costUsd` is what the tool reports, unchecked: settling judges it (absent, 0, too high, not a number).
 * `taint` names an untrusted source the result came from. `dispatched: false` promises that nothing left for outside and nothing was spent.
 */
export type ToolOutcome =
  | {
      readonly status: 'succeeded';
      readonly result: JsonValue;
      readonly writes?: readonly WorkspaceWrite[];
      readonly costUsd?: unknown;
      readonly taint?: string;
    }
  | { readonly status: 'failed'; readonly error: ToolError; readonly dispatched: boolean; readonly costUsd?: unknown };

/** A named set of tools, given to `compose`. */
export interface ToolPackage {
  readonly name: string;
  readonly tools: readonly Tool[];
}

/** A failure before anything happened: what workspace tools answer, since they only read and propose. */
export function failed(code: string, message: string): ToolOutcome {
  return { status: 'failed', error: { code, message, transient: false }, dispatched: false };
}
