// Flavors with their requests, whose numbers are counted together.
import { type Connection, request as send } from "@cadastre/client";

import { graphql } from "../generated";
import type { FlavorRequestQuery, PlacementRequestInput } from "../generated/graphql";
import { numberOf } from "../ui/show";
import { requestFrom } from "./flavor";
import { argumentsOf } from "./request";

const flavorsDocument = graphql(`
  query CountedFlavors($search: String) {
    resources(filter: { types: ["OS::Nova::Flavor"], search: $search }, orderBy: { field: NAME }, first: 50) {
      totalCount
      nodes {
        uuid
        name
      }
    }
  }
`);

const requestDocument = graphql(`
  query FlavorRequest($uuid: UUID!) {
    placementRequest(resource: $uuid) {
      ...RequestOfFlavor
      problems {
        message
      }
    }
  }
`);

export interface Flavors {
  readonly flavors: readonly { readonly uuid: string; readonly name: string; readonly request: PlacementRequestInput }[];
  /** The names of flavors whose request has problems or no amounts. */
  readonly uncounted: readonly string[];
  readonly totalCount: number;
}

/** The maximum number of requests in flight. */
const together = 6;

/** Reads the first flavors by name, as many as one answer counts, with their requests. */
export async function readFlavors(connection: Connection, search: string, signal: AbortSignal): Promise<Flavors> {
  const { nodes, totalCount } = (await send(connection, flavorsDocument, { search: search || null }, { signal })).resources;
  const found: FlavorRequestQuery["placementRequest"][] = [];
  for (let at = 0; at < nodes.length; at += together) {
    const asked = nodes.slice(at, at + together).map(({ uuid }) => send(connection, requestDocument, { uuid }, { signal }));
    for (const { placementRequest } of await Promise.all(asked)) found.push(placementRequest);
  }
  const all = nodes.map(({ uuid, name }, at) => {
    const flavor = found[at];
    return { uuid, name, request: flavor && flavor.problems.length === 0 ? (argumentsOf(requestFrom(flavor)) as PlacementRequestInput | undefined) : undefined };
  });
  const flavors = all.flatMap(({ request, ...flavor }) => (request ? [{ ...flavor, request }] : []));
  return { flavors, uncounted: all.filter(({ request }) => !request).map(({ name }) => name), totalCount };
}

interface Fit {
  readonly atLeast: number;
  readonly atMost: number;
}

/** Formats how many fit. */
export const fitOf = ({ atLeast, atMost }: Fit): string => (atLeast === atMost ? numberOf(atLeast) : `${numberOf(atLeast)} to ${numberOf(atMost)}`);

/** Orders what fits least first. */
export const scarcer = (a: Fit, b: Fit): number => a.atLeast - b.atLeast || a.atMost - b.atMost;
