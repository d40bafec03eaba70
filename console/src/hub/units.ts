// A tree of providers in one answer: the root, its children and grandchildren.
import { useMemo, useState } from "react";

import { graphql } from "../generated";
import type { HubTreeFragment, HubUnitFragment, HubUseFragment } from "../generated/graphql";
import { useFollowed } from "../live";
import { cloudOf, type Provider } from "../placement/cloud";

graphql(`
  fragment HubUnit on ResourceProvider {
    id
    uuid
    name
    generation
    traits
    aggregates
    inventories {
      id
      resourceClass
      total
      reserved
      minUnit
      maxUnit
      stepSize
      allocationRatio
      capacity
      used
      held
    }
  }
`);

graphql(`
  fragment HubUse on Allocation {
    id
    resourceClass
    used
    consumer {
      id
      uuid
      type
      projectId
      resource {
        id
        uuid
        name
      }
    }
  }
`);

graphql(`
  fragment HubTree on ResourceProvider {
    ...HubUnit
    allocations(first: 500) {
      totalCount
      nodes {
        ...HubUse
      }
    }
    children(first: 32) {
      totalCount
      nodes {
        ...HubUnit
        allocations(first: 100) {
          totalCount
          nodes {
            ...HubUse
          }
        }
        children(first: 16) {
          totalCount
          nodes {
            ...HubUnit
            allocations(first: 5) {
              totalCount
              nodes {
                ...HubUse
              }
            }
          }
        }
      }
    }
  }
`);

/** A provider in its tree, with its allocations. */
export interface Unit extends HubUnitFragment {
  readonly parent: Unit | undefined;
  readonly uses: readonly HubUseFragment[];
  /** How many allocations and children the answer left out. */
  readonly more: { readonly uses: number; readonly children: number };
}

interface Answered extends HubUnitFragment {
  readonly allocations: { readonly totalCount: number; readonly nodes: readonly HubUseFragment[] };
  readonly children?: { readonly totalCount: number; readonly nodes: readonly Answered[] };
}

/** Returns the providers of a tree, parents first. */
export function unitsOf(root: HubTreeFragment): Unit[] {
  const units: Unit[] = [];
  const add = ({ allocations, children, ...own }: Answered, parent: Unit | undefined) => {
    const unit: Unit = { ...own, parent, uses: allocations.nodes, more: { uses: allocations.totalCount - allocations.nodes.length, children: (children?.totalCount ?? 0) - (children?.nodes.length ?? 0) } };
    units.push(unit);
    for (const child of children?.nodes ?? []) add(child, unit);
  };
  add(root, undefined);
  return units;
}

/** Returns a provider and its descendants. */
export function below(units: readonly Unit[], uuid: string): Unit[] {
  const inside = (unit: Unit | undefined): boolean => unit !== undefined && (unit.uuid === uuid || inside(unit.parent));
  return units.filter(inside);
}

/** Returns the tree as the picture draws it. */
export const treeOf = (units: readonly Unit[]): Provider | undefined => cloudOf(units.map(({ parent, ...unit }) => ({ ...unit, parent: parent ? { uuid: parent.uuid } : null }))).trees[0];

/** Calls a function when a provider of the tree changed after the first answer. */
export function useTree(latest: string | undefined, root: HubTreeFragment | undefined, changed: () => void): void {
  const [from, setFrom] = useState<string>();
  if (from === undefined && latest !== undefined && root) setFrom(latest);
  const own = useMemo(() => new Set(root ? unitsOf(root).map(({ uuid }) => uuid) : []), [root]);
  useFollowed("provider", from, (keys) => {
    if (!keys || [...keys].some((key) => own.has(key))) changed();
  });
}
