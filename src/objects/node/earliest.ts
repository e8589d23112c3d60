/** The first of several times; null: none of them is set. */
export function earliest(...atMs: readonly (number | null)[]): number | null {
  const set = atMs.filter((at) => at !== null);
  return set.length === 0 ? null : Math.min(...set);
}
