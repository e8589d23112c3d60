/** What a new state folder is filled with before the server is announced. */

/** What the seed may use. */
export interface SeedContext {
  readonly url: string;
  readonly d1: D1Database;
}

/** What the seed made: the development org with its two keys, and lines for the newcomer about what to try next. */
export interface SeedResult {
  readonly org: string;
  readonly key: string;
  readonly agent_key: string;
  readonly nextSteps: readonly string[];
}

/**
 * Fills a new state folder. Called when the folder has no connection file; so a start that was interrupted calls it again, and
 * it has to accept what an earlier attempt left.
 */
export async function seedDevelopment(_context: SeedContext): Promise<SeedResult> {
  return { org: '', key: '', agent_key: '', nextSteps: [] };
}
