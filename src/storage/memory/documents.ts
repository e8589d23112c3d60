/**
 * A table in memory: values by a key of several texts, copied on the way in and out, so that nobody outside holds what is stored.
 * Answers come in the order of insertion.
 */
export class Documents<T> {
  private readonly rows = new Map<string, T>();

  get(...key: readonly string[]): T | null {
    const row = this.rows.get(JSON.stringify(key));
    return row === undefined ? null : structuredClone(row);
  }

  set(value: T, ...key: readonly string[]): void {
    this.rows.set(JSON.stringify(key), structuredClone(value));
  }

  /** False when the key is taken; then nothing changes. */
  add(value: T, ...key: readonly string[]): boolean {
    if (this.rows.has(JSON.stringify(key))) return false;
    this.set(value, ...key);
    return true;
  }

  where(matches: (row: T) => boolean): T[] {
    return [...this.rows.values()].filter(matches).map((row) => structuredClone(row));
  }

  /** How many were removed. */
  remove(matches: (row: T) => boolean): number {
    let removed = 0;
    for (const [key, row] of this.rows) if (matches(row) && this.rows.delete(key)) removed += 1;
    return removed;
  }
}

/** Order of two texts by their units, as the stores sort ids, names and times. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
