// The providers of the cloud in memory: trees, and what is used of each of them with
// everything below it.

/** A provider as it is read. */
export interface Row {
  readonly uuid: string;
  readonly name: string;
  readonly parent: { readonly uuid: string } | null;
  readonly inventories: readonly Inventory[];
  readonly aggregates: readonly string[];
}

interface Inventory {
  readonly resourceClass: string;
  readonly capacity: number;
  readonly used: number;
}

/** How much of a resource class there is, and how much of that is used. */
export interface Amount {
  capacity: number;
  used: number;
}

/** A provider with what is below it. */
export interface Provider {
  readonly uuid: string;
  readonly name: string;
  readonly depth: number;
  readonly root: Provider;
  readonly parent: Provider | undefined;
  readonly children: readonly Provider[];
  /** Its own inventories. */
  readonly inventories: readonly Inventory[];
  /** The aggregates that it is in itself. */
  readonly aggregates: readonly string[];
  /** Of it and all below it, by resource class. */
  readonly amounts: ReadonlyMap<string, Amount>;
  /** How many there are below it. */
  readonly below: number;
}

export interface Cloud {
  /** The roots, by name. */
  readonly trees: readonly Provider[];
  readonly providers: ReadonlyMap<string, Provider>;
  /** The resource classes that any provider has, by name. */
  readonly classes: readonly string[];
  /** The aggregates that any provider is in. */
  readonly aggregates: readonly string[];
}

export const nothing: Cloud = { trees: [], providers: new Map(), classes: [], aggregates: [] };

/** Stands for the class of which a provider has used the largest share. */
export const fullest = "";

type Mutable = { -readonly [Key in keyof Provider]: Provider[Key] } & { children: Mutable[]; amounts: Map<string, Amount> };

/**
 * Returns the trees of providers. One whose parent was not read is left out until
 * it is: lists are read by pages, children before their parents as it comes.
 */
export function cloudOf(rows: Iterable<Row>): Cloud {
  const made = new Map<string, { row: Row; provider: Mutable }>();
  for (const row of rows) {
    const provider = { uuid: row.uuid, name: row.name, depth: 0, parent: undefined, children: [], inventories: row.inventories, aggregates: row.aggregates, amounts: new Map(), below: 0 } as unknown as Mutable;
    provider.root = provider;
    for (const { resourceClass, capacity, used } of row.inventories) provider.amounts.set(resourceClass, { capacity, used });
    made.set(row.uuid, { row, provider });
  }
  const trees: Mutable[] = [];
  for (const { row, provider } of made.values()) {
    if (row.parent) made.get(row.parent.uuid)?.provider.children.push(provider);
    else trees.push(provider);
  }
  const providers = new Map<string, Provider>();
  const classes = new Set<string>();
  const aggregates = new Set<string>();
  const finish = (provider: Mutable, parent: Mutable | undefined) => {
    providers.set(provider.uuid, provider);
    for (const aggregate of provider.aggregates) aggregates.add(aggregate);
    if (parent) Object.assign(provider, { parent, root: parent.root, depth: parent.depth + 1 });
    if (provider.children.length > 1) provider.children.sort(byName);
    for (const child of provider.children) {
      finish(child, provider);
      provider.below += 1 + child.below;
      for (const [name, { capacity, used }] of child.amounts) {
        const sum = provider.amounts.get(name);
        if (sum) {
          sum.capacity += capacity;
          sum.used += used;
        } else provider.amounts.set(name, { capacity, used });
      }
    }
    if (!parent) for (const name of provider.amounts.keys()) classes.add(name);
  };
  trees.sort(byName);
  for (const tree of trees) finish(tree, undefined);
  return { trees, providers, classes: [...classes].sort(), aggregates: [...aggregates].sort() };
}

const byName = (a: Provider, b: Provider) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.uuid < b.uuid ? -1 : 1);

/** Returns the share of a class that is used, 1 for all of it; undefined where there is none of it. */
export function shareOf(provider: Provider, resourceClass: string): number | undefined {
  if (resourceClass !== fullest) {
    const amount = provider.amounts.get(resourceClass);
    return amount && share(amount);
  }
  let most: number | undefined;
  for (const amount of provider.amounts.values()) {
    const one = share(amount);
    if (most === undefined || one > most) most = one;
  }
  return most;
}

export const share = ({ capacity, used }: Amount): number => (capacity > 0 ? used / capacity : used > 0 ? Infinity : 0);

/** Returns a share as people read it. */
export function percent(share: number): string {
  if (share === Infinity) return "over 100%";
  const of = share * 100;
  return of > 0 && of < 1 ? "under 1%" : `${Math.round(of)}%`;
}

/** Returns a provider and all below it, parents first. */
export function* descend(provider: Provider): Generator<Provider> {
  yield provider;
  for (const child of provider.children) yield* descend(child);
}

/** What some providers have between them of a resource class. */
export interface Sum extends Amount {
  readonly name: string;
  providers: number;
}

/** Returns what trees have between them of each resource class, by name. */
export function sumsOf(trees: readonly Provider[]): Sum[] {
  const sums = new Map<string, Sum>();
  const add = (provider: Provider) => {
    for (const inventory of provider.inventories) addTo(sums, inventory.resourceClass, inventory);
    provider.children.forEach(add);
  };
  trees.forEach(add);
  return [...sums.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Returns what trees have of a class in each aggregate: a provider counts in those
 * that it is in itself and those of its root, by which requests find it, and in the
 * one without a name where there is none.
 */
export function sumsByAggregate(trees: readonly Provider[], resourceClass: string): Sum[] {
  const sums = new Map<string, Sum>();
  const add = (provider: Provider) => {
    const inventory = provider.inventories.find((inventory) => inventory.resourceClass === resourceClass);
    if (inventory) {
      const own = provider.parent ? [...new Set([...provider.aggregates, ...provider.root.aggregates])] : provider.aggregates;
      for (const aggregate of own.length > 0 ? own : [""]) addTo(sums, aggregate, inventory);
    }
    provider.children.forEach(add);
  };
  trees.forEach(add);
  return [...sums.values()];
}

function addTo(sums: Map<string, Sum>, name: string, { capacity, used }: Amount): void {
  const sum = sums.get(name);
  if (!sum) return void sums.set(name, { name, capacity, used, providers: 1 });
  sum.capacity += capacity;
  sum.used += used;
  sum.providers++;
}
