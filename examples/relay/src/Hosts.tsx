import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";

import { Host } from "./Host";
import type { Hosts_query$key } from "./__generated__/Hosts_query.graphql";
import type { HostsPageQuery } from "./__generated__/HostsPageQuery.graphql";
import type { HostsQuery } from "./__generated__/HostsQuery.graphql";

/** The hosts, two at a time. Fields marked `@semanticNonNull` have a type without null. */
export function Hosts() {
  const query = useLazyLoadQuery<HostsQuery>(
    graphql`
      query HostsQuery @throwOnFieldError {
        viewer {
          userId
        }
        ...Hosts_query
      }
    `,
    {},
  );
  return (
    <main>
      <h1>What {query.viewer.userId} sees</h1>
      <Pages query={query} />
    </main>
  );
}

function Pages({ query }: { query: Hosts_query$key }) {
  const { data, hasNext, isLoadingNext, loadNext } = usePaginationFragment<HostsPageQuery, Hosts_query$key>(
    graphql`
      fragment Hosts_query on Query
      @refetchable(queryName: "HostsPageQuery")
      @argumentDefinitions(first: { type: "Int", defaultValue: 2 }, after: { type: "String" })
      @throwOnFieldError {
        resources(filter: { types: ["physical:host"] }, first: $first, after: $after) @connection(key: "Hosts_resources") {
          edges {
            node {
              id
              ...Host_resource
            }
          }
        }
      }
    `,
    query,
  );
  return (
    <>
      <ul>
        {data.resources.edges.map(({ node }) => (
          <Host key={node.id} resource={node} />
        ))}
      </ul>
      {hasNext && (
        <button disabled={isLoadingNext} onClick={() => loadNext(2)}>
          More
        </button>
      )}
    </>
  );
}
