// Groups of trees on the picture: by aggregate, by rack (the parent of a host's
// resource), or by a capability.
import { request } from "@cadastre/client";
import { useMemo } from "react";

import { graphql } from "../generated";
import { useViewer } from "../session";
import { addAmounts, type Amount, type Provider } from "./cloud";
import { useConnection, useRead } from "./read";

const rootsDocument = graphql(`
  query PlacementGroups($after: String, $first: Int!, $rack: Boolean!, $capability: Boolean!, $private: Boolean!) {
    resourceProviders(filter: { roots: true }, first: $first, after: $after) {
      nodes {
        uuid
        resource {
          uuid
          parent @include(if: $rack) {
            uuid
            name
          }
          capabilities(includePrivate: $private) @include(if: $capability) {
            name
            value
          }
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** Some trees that the picture draws as one tile. */
export class Group implements Provider {
  readonly depth = 0;
  readonly root: Provider = this;
  readonly parent = undefined;
  readonly inventories = [];
  readonly aggregates = [];
  readonly below: number;
  private sums: ReadonlyMap<string, Amount> | undefined = undefined;

  /** The key is the aggregate, the rack or the value of the capability; "" for trees without one. */
  constructor(
    readonly key: string,
    readonly name: string,
    readonly children: readonly Provider[],
  ) {
    this.below = children.reduce((sum, { below }) => sum + below + 1, 0);
  }

  get uuid(): string {
    return "group:" + this.key;
  }

  get amounts(): ReadonlyMap<string, Amount> {
    if (this.sums) return this.sums;
    const sums = new Map<string, Amount>();
    addAmounts(sums, this.children);
    return (this.sums = sums);
  }
}

/** How the address names a grouping: "aggregate", "rack", or a capability after this prefix. */
export const ofCapability = "capability:";

/** Pictures of more trees begin grouped by aggregate. */
const mostUngrouped = 2500;

/** Returns the grouping that an address names, or the default for a number of trees. */
export const groupingOf = (named: string, trees: number, aggregates: number): string => named || (trees > mostUngrouped && aggregates > 0 ? "aggregate" : "none");

interface Keyed {
  readonly key: string;
  readonly name: string;
}

interface Read {
  /** The groups, by name; undefined while trees are drawn one by one. */
  readonly groups: readonly Group[] | undefined;
  readonly loading: boolean;
  readonly error: Error | undefined;
}

/** Returns the groups of trees, and reads their keys. */
export function useGroups(trees: readonly Provider[], grouping: string, nameOfAggregate: (uuid: string) => string): Read {
  const connection = useConnection();
  const { rules } = useViewer();
  const capability = grouping.startsWith(ofCapability) ? grouping.slice(ofCapability.length) : undefined;
  const asked = useRead(grouping === "rack" || capability !== undefined ? grouping : undefined, 0, async (signal) => {
    const keys = new Map<string, Keyed>();
    const first = capability === undefined ? 1000 : 250;
    for (let after: string | null | undefined; ; ) {
      const variables = { first, after: after ?? null, rack: capability === undefined, capability: capability !== undefined, private: rules.includes("CAPABILITIES_PRIVATE") };
      const { nodes, pageInfo } = (await request(connection, rootsDocument, variables, { signal })).resourceProviders;
      for (const { uuid, resource } of nodes) {
        const value = resource?.capabilities?.find(({ name }) => name === capability)?.value;
        const parent = resource?.parent;
        if (parent) keys.set(uuid, { key: parent.uuid, name: parent.name });
        else if (value !== undefined) keys.set(uuid, { key: value, name: value });
      }
      after = pageInfo.endCursor;
      if (!pageInfo.hasNextPage) return keys;
    }
  });
  const keys = asked.data;
  const groups = useMemo(() => {
    if (grouping === "none") return undefined;
    if (grouping === "aggregate") return groupsOf(trees, ({ aggregates }) => aggregates.map((key) => ({ key, name: nameOfAggregate(key) })));
    return keys && groupsOf(trees, ({ uuid }) => [keys.get(uuid)].filter((key) => key !== undefined));
  }, [trees, grouping, nameOfAggregate, keys]);
  return { groups, loading: grouping !== "none" && !groups && asked.loading, error: grouping === "none" || grouping === "aggregate" ? undefined : asked.error };
}

/** Returns the groups of trees by name; trees without a key are last. A tree with several keys is in each group. */
function groupsOf(trees: readonly Provider[], keysOf: (tree: Provider) => readonly Keyed[]): Group[] {
  const members = new Map<string, { name: string; trees: Provider[] }>();
  for (const tree of trees) {
    const keys = keysOf(tree);
    for (const { key, name } of keys.length > 0 ? keys : [{ key: "", name: "none" }]) {
      const group = members.get(key);
      if (group) group.trees.push(tree);
      else members.set(key, { name, trees: [tree] });
    }
  }
  return [...members].map(([key, { name, trees }]) => new Group(key, name, trees)).sort((a, b) => Number(!a.key) - Number(!b.key) || a.name.localeCompare(b.name, "en", { numeric: true }));
}
