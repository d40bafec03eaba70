// The placement request of a flavor, an image or a share type, as the builder has it.
import { graphql } from "../generated";
import type { RequestOfFlavorFragment } from "../generated/graphql";
import { emptyGroup, emptyRequest, type Group, type Request } from "./request";

graphql(`
  fragment RequestOfFlavor on PlacementRequest {
    resources {
      resourceClass
      amount
    }
    requiredAll
    requiredAnySets {
      anyOf
    }
    forbidden
    groups {
      suffix
      resources {
        resourceClass
        amount
      }
      requiredAll
      requiredAnySets {
        anyOf
      }
      forbidden
    }
    groupPolicy
    sameSubtree {
      suffixes
    }
    hosts {
      requirements {
        key
        requirement
      }
    }
  }
`);

function groupFrom(suffix: string, { resources, requiredAll, requiredAnySets, forbidden }: Pick<RequestOfFlavorFragment, "resources" | "requiredAll" | "requiredAnySets" | "forbidden">): Group {
  return { ...emptyGroup(suffix), resources: resources.map(({ resourceClass, amount }) => ({ resourceClass, amount: String(amount) })), requiredAll, requiredAnySets: requiredAnySets.map(({ anyOf }) => anyOf), forbidden };
}

/** Returns the request of a flavor, an image or a share type. */
export const requestFrom = (flavor: RequestOfFlavorFragment): Request => ({
  ...emptyRequest,
  groups: [groupFrom("", flavor), ...flavor.groups.map((group) => groupFrom(group.suffix, group))],
  policy: flavor.groupPolicy,
  sameSubtree: flavor.sameSubtree.map(({ suffixes }) => suffixes),
  hosts: flavor.hosts?.requirements.map(({ key, requirement }) => ({ key, requirement })) ?? [],
});
