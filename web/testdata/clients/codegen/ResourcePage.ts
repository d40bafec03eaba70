// A page of an application that uses the client preset of graphql-codegen, with
// any client that throws where a field has an error.
import { graphql } from "./generated";
import type { ResultOf } from "@graphql-typed-document-node/core";

export const query = graphql(`
  query ResourcePage($filter: ResourceFilter, $first: Int!) {
    viewer {
      userId
    }
    resources(filter: $filter, first: $first) {
      totalCount
      nodes {
        id
        uuid
        name
        updatedAt
        parent {
          name
        }
      }
    }
    namespace(name: "OS::Compute::Watchdog") {
      displayName
    }
  }
`);

type Data = ResultOf<typeof query>;

// What is marked is read without a check for null, what is a look-up is not.
export function title(data: Data): string {
  const namespace: string | undefined = data.namespace?.displayName;
  return `${data.viewer.userId}: ${data.resources.totalCount} in ${namespace ?? ""}`;
}

// @ts-expect-error: a look-up by key can be null
export const unchecked = (data: Data): string => data.namespace.displayName;

export const uuids = (data: Data): string[] => data.resources.nodes.map((node) => node.uuid);
