// A component of an application that uses Relay, without its framework: a page
// of resources, one of which is fetched anew by its id.
import { graphql } from "relay-runtime";
import type { ResourcePageQuery$data } from "./__generated__/ResourcePageQuery.graphql";
import type { ResourcePage_resource$data } from "./__generated__/ResourcePage_resource.graphql";

export const query = graphql`
  query ResourcePageQuery($first: Int!) @throwOnFieldError {
    viewer {
      userId
    }
    resources(filter: { types: ["physical:host"] }, first: $first) {
      totalCount
      nodes {
        id
        ...ResourcePage_resource
      }
    }
    namespace(name: "OS::Compute::Watchdog") {
      displayName
    }
  }
`;

export const resource = graphql`
  fragment ResourcePage_resource on Resource
  @refetchable(queryName: "ResourcePageRefetchQuery")
  @argumentDefinitions(first: { type: "Int", defaultValue: 10 }, after: { type: "String" })
  @throwOnFieldError {
    name
    parent {
      name
    }
    children(first: $first, after: $after) @connection(key: "ResourcePage_children") {
      edges {
        node {
          name
        }
      }
    }
  }
`;

export const mutation = graphql`
  mutation ResourcePageMutation($input: UpdateResourceInput!) {
    updateResource(input: $input) {
      resource {
        id
        revision
        ...ResourcePage_resource
      }
    }
  }
`;

// What is marked is read without a check for null, what is a look-up is not.
export function title(data: ResourcePageQuery$data): string {
  const namespace: string | undefined = data.namespace?.displayName;
  return `${data.viewer.userId}: ${data.resources.totalCount} in ${namespace ?? ""}`;
}

// @ts-expect-error: a look-up by key can be null
export const unchecked = (data: ResourcePageQuery$data): string => data.namespace.displayName;

export const names = (data: ResourcePage_resource$data): (string | undefined)[] =>
  (data.children?.edges ?? []).map((edge) => edge?.node?.name);
