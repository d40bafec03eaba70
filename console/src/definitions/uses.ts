// The keys of properties on resource types, and the resources that have them.

/** Adds the prefix of an association to a name that does not begin with it. */
export const keyOf = (prefix: string | null, name: string): string => (prefix && !name.startsWith(prefix) ? prefix + name : name);

/** An association, with the number of resources of its type for each key. */
export interface Uses {
  readonly type: string;
  readonly prefix: string | null;
  readonly counts: ReadonlyMap<string, number>;
}

/** Returns the number of resources with a property. Associations of one type can have the same key, which counts once. */
export function countOf(uses: readonly Uses[], name: string): number {
  const found = uses.map(({ type, prefix, counts }) => [`${type} ${keyOf(prefix, name)}`, counts.get(keyOf(prefix, name)) ?? 0] as const);
  return [...new Map(found).values()].reduce((sum, count) => sum + count, 0);
}
