/**
 * Since when each of a few texts is what it is, as far as this isolate saw. Times are whole seconds, as HTTP writes them, and every text of
 * a name gets another one than the text before it.
 */
export interface ModificationTimes {
  /** `hash` is that of the text which `name` has now. */
  note(name: string, hash: string, nowMs: number): Date;
}

/** `limit`: names that are remembered; the oldest leaves first. */
export function createModificationTimes(limit = 100): ModificationTimes {
  const seen = new Map<string, { readonly hash: string; readonly second: number }>();
  return {
    note(name, hash, nowMs) {
      const before = seen.get(name);
      if (before?.hash === hash) return new Date(before.second * 1000);
      const now = Math.floor(nowMs / 1000);
      const second = before === undefined ? now : Math.max(now, before.second + 1);
      const oldest = seen.keys().next();
      if (before === undefined && seen.size >= limit && oldest.done !== true) seen.delete(oldest.value);
      seen.set(name, { hash, second });
      return new Date(second * 1000);
    },
  };
}
