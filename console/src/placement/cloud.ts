// The providers of the cloud in memory: trees, with the use of each subtree.

/** A provider in an answer. */
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
  /** The part of `used` that held consumers use; null for viewers who do not see all consumers. */
  readonly held: number | null;
}

/** The capacity and use of a resource class. */
export interface Amount {
  capacity: number;
  used: number;
  /** The held part of `used`, as far as the viewer sees it. */
  held: number;
}

/** A provider with its descendants. */
export interface Provider {
  readonly uuid: string;
  readonly name: string;
  readonly depth: number;
  readonly root: Provider;
  readonly parent: Provider | undefined;
  readonly children: readonly Provider[];
  /** Its own inventories. */
  readonly inventories: readonly Inventory[];
  /** Its own aggregates. */
  readonly aggregates: readonly string[];
  /** The amounts of its subtree, by resource class. */
  readonly amounts: ReadonlyMap<string, Amount>;
  /** The number of its descendants. */
  readonly below: number;
}

export interface Cloud {
  /** The roots, by name. */
  readonly trees: readonly Provider[];
  readonly providers: ReadonlyMap<string, Provider>;
  /** The resource classes of all providers, by name. */
  readonly classes: readonly string[];
  /** The aggregates of all providers. */
  readonly aggregates: readonly string[];
  /** Whether anything is held, as far as the viewer sees it. */
  readonly isHeld: boolean;
}

export const nothing: Cloud = { trees: [], providers: new Map(), classes: [], aggregates: [], isHeld: false };

/** Selects the class with the largest used share of each provider. */
export const fullest = "";

const none: Tree[] = [];

/** A provider of a tree. Most are never looked at, so the amounts of a subtree are added up when needed. */
class Tree implements Provider {
  readonly uuid: string;
  readonly name: string;
  readonly inventories: readonly Inventory[];
  readonly aggregates: readonly string[];
  depth = -1;
  root: Tree = this;
  parent: Tree | undefined = undefined;
  children = none;
  below = 0;
  private sums: ReadonlyMap<string, Amount> | undefined = undefined;

  constructor({ uuid, name, inventories, aggregates }: Row) {
    this.uuid = uuid;
    this.name = name;
    this.inventories = inventories;
    this.aggregates = aggregates;
  }

  get amounts(): ReadonlyMap<string, Amount> {
    if (this.sums) return this.sums;
    const sums = new Map<string, Amount>();
    for (const { resourceClass, capacity, used, held } of this.inventories) sums.set(resourceClass, { capacity, used, held: held ?? 0 });
    addAmounts(sums, this.children);
    return (this.sums = sums);
  }
}

/** Adds the amounts of providers to sums by resource class. */
export function addAmounts(sums: Map<string, Amount>, providers: readonly Provider[]): void {
  for (const provider of providers)
    for (const [name, { capacity, used, held }] of provider.amounts) {
      const sum = sums.get(name);
      if (sum) {
        sum.capacity += capacity;
        sum.used += used;
        sum.held += held;
      } else sums.set(name, { capacity, used, held });
    }
}

/**
 * Returns the trees of providers. A provider whose parent is not read yet is left out:
 * pages can bring children before their parents.
 */
export function cloudOf(rows: Iterable<Row>): Cloud {
  const providers = new Map<string, Tree>();
  const below: [Tree, string][] = [];
  const trees: Tree[] = [];
  for (const row of rows) {
    const provider = new Tree(row);
    providers.set(row.uuid, provider);
    if (row.parent) below.push([provider, row.parent.uuid]);
    else trees.push(provider);
  }
  for (const [provider, uuid] of below) {
    const parent = providers.get(uuid);
    if (!parent) continue;
    provider.parent = parent;
    if (parent.children === none) parent.children = [provider];
    else parent.children.push(provider);
  }
  const classes = new Set<string>();
  const aggregates = new Set<string>();
  let isHeld = false;
  const finish = (provider: Tree, root: Tree, depth: number): number => {
    provider.root = root;
    provider.depth = depth;
    for (const { resourceClass, held } of provider.inventories) {
      classes.add(resourceClass);
      if (held) isHeld = true;
    }
    for (const aggregate of provider.aggregates) aggregates.add(aggregate);
    if (provider.children.length > 1) provider.children.sort(byName);
    for (const child of provider.children) provider.below += finish(child, root, depth + 1);
    return provider.below + 1;
  };
  trees.sort(byName);
  let finished = 0;
  for (const tree of trees) finished += finish(tree, tree, 0);
  if (finished < providers.size) for (const { uuid, depth } of providers.values()) if (depth < 0) providers.delete(uuid);
  return { trees, providers, classes: [...classes].sort(), aggregates: [...aggregates].sort(), isHeld };
}

const byName = (a: Provider, b: Provider) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.uuid < b.uuid ? -1 : 1);

/** Returns the used share of a class, 1 for all; undefined without the class. */
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

/** Returns the held part of the used amount of a class, or the largest part of all classes. */
export function heldPartOf(provider: Provider, resourceClass: string): number {
  let most = 0;
  for (const [name, { used, held }] of provider.amounts) if (held > 0 && (resourceClass === fullest || name === resourceClass)) most = Math.max(most, held / used);
  return most;
}

export const share = ({ capacity, used }: Pick<Amount, "capacity" | "used">): number => (capacity > 0 ? used / capacity : used > 0 ? Infinity : 0);

/** Formats a share. */
export function percent(share: number): string {
  if (share === Infinity) return "over 100%";
  const of = share * 100;
  return of > 0 && of < 1 ? "under 1%" : `${Math.round(of)}%`;
}

/** Returns a provider and its descendants, parents first. */
export function* descend(provider: Provider): Generator<Provider> {
  yield provider;
  for (const child of provider.children) yield* descend(child);
}

/** The sums of a resource class over providers. */
export interface Sum extends Amount {
  readonly name: string;
  providers: number;
}

/** Returns the sums of trees by resource class, by name. */
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
 * Returns the sums of a class by aggregate. A provider counts in its own aggregates and
 * in the aggregates of its root, as requests find it; without any, in the aggregate "".
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

function addTo(sums: Map<string, Sum>, name: string, { capacity, used, held }: Inventory): void {
  const sum = sums.get(name);
  if (!sum) return void sums.set(name, { name, capacity, used, held: held ?? 0, providers: 1 });
  sum.capacity += capacity;
  sum.used += used;
  sum.held += held ?? 0;
  sum.providers++;
}
