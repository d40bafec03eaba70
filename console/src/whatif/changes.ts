// The changes of a what-if: in the address, and as they are sent.
import type { WhatIfChangeInput, WhatIfModelQuery } from "../generated/graphql";

export interface Changes {
  /** The roots that are taken out. */
  readonly out: readonly string[];
  /** The roots on which nothing more is placed. */
  readonly off: readonly string[];
  /** The roots to copy, each with the number of copies. */
  readonly add: readonly (readonly [uuid: string, copies: number])[];
}

/** The maximum number of changes that the server takes. */
export const mostChanges = 1000;

export type Model = WhatIfModelQuery["resourceProviders"]["nodes"];

type Moves = readonly { readonly to: readonly { readonly provider: { readonly uuid: string }; readonly resources: readonly { readonly resourceClass: string; readonly amount: number }[] }[] }[];

/** Returns the changes of an address. A host that is taken out cannot be disabled, too. */
export function readChanges(all: (name: string) => string[]): Changes {
  const out = [...new Set(all("out"))];
  const add = all("add").map((text) => {
    const [uuid = "", copies = ""] = text.split("|");
    return [uuid, Math.max(1, Math.min(mostChanges, Math.floor(Number(copies)) || 1))] as const;
  });
  return { out, off: [...new Set(all("off"))].filter((uuid) => !out.includes(uuid)), add: [...new Map(add)] };
}

export const writtenAdd = (add: Changes["add"]): string[] => add.map(([uuid, copies]) => `${uuid}|${copies}`);

/**
 * Returns the changes as they are sent. The consumers of the hosts that are taken out
 * are placed as the plan moves them, before hosts are disabled.
 */
export function changesOf({ out, off, add }: Changes, models: ReadonlyMap<string, Model>, moves: Moves): WhatIfChangeInput[] {
  let copies = 0;
  const added = add.flatMap(([uuid, number]) => Array.from({ length: number }, () => copyOf(models.get(uuid) ?? [], ++copies)).flat());
  return [
    ...added,
    ...out.map((uuid) => ({ removeProvider: uuid })),
    ...moves.map(({ to }) => ({ place: to.map(({ provider, resources }) => ({ provider: provider.uuid, resources: resources.map(({ resourceClass, amount }) => ({ resourceClass, amount })) })) })),
    ...off.map((uuid) => ({ disableProvider: uuid })),
  ];
}

/** Returns the providers of one copy of a tree, parents first. */
function copyOf(model: Model, number: number): WhatIfChangeInput[] {
  const nameOf = (at: number) => `what-if ${number}${at > 0 ? `.${at}` : ""}: ${model[at]?.name ?? ""}`.slice(0, 200);
  const placeOf = new Map(model.map(({ uuid }, at) => [uuid, at]));
  return model.map(({ parent, inventories, traits, aggregates }, at) => {
    const above = parent ? placeOf.get(parent.uuid) : undefined;
    return { addProvider: { name: nameOf(at), ...(above !== undefined && { parentName: nameOf(above) }), inventories: [...inventories], traits: [...traits], aggregates: [...aggregates] } };
  });
}

/** Returns the providers of a tree, parents first. */
export function parentsFirst(tree: Model): Model {
  const below = new Map<string | undefined, Model[number][]>();
  for (const provider of tree) below.set(provider.parent?.uuid, [...(below.get(provider.parent?.uuid) ?? []), provider]);
  const sorted: Model[number][] = [];
  const add = (parent: string | undefined) => {
    for (const provider of below.get(parent) ?? []) {
      sorted.push(provider);
      add(provider.uuid);
    }
  };
  add(undefined);
  return sorted;
}
