// The resources that meet a search, with the types that they have, a page at a time.
import { useState } from "react";
import { useQuery } from "urql";

import { graphql } from "./generated";

const query = graphql(`
  query List($filter: ResourceFilter, $after: String) {
    resources(filter: $filter, first: 20, after: $after) {
      totalCount
      facets(of: [{ by: TYPE }]) { values { value resourceCount } }
      nodes { id uuid name type { id name } tags }
      pageInfo { hasNextPage endCursor }
    }
  }
`);

export function List() {
  const [{ search, type, after }, ask] = useState<{ search: string; type?: string; after?: string | null }>({ search: "" });
  const [{ data, error }] = useQuery({ query, variables: { after, filter: { search: search || null, types: type ? [type] : null } } });
  if (error) return <p className="wrong">{error.message}</p>;
  const page = data?.resources;
  return (
    <>
      <h1>{page?.totalCount} resources</h1>
      <input aria-label="Search" value={search} onChange={(event) => ask({ search: event.target.value, type })} />
      {page?.facets[0]?.values.map(({ value, resourceCount }) => (
        <button key={value} aria-pressed={value === type} onClick={() => ask({ search, type: value === type ? undefined : value })}>{value} ({resourceCount})</button>
      ))}
      <table>
        <tbody>
          {page?.nodes.map((one) => (
            <tr key={one.id}><td><a href={"#" + one.uuid}>{one.name}</a></td><td>{one.type.name}</td><td>{one.tags.join(", ")}</td></tr>
          ))}
        </tbody>
      </table>
      {page?.pageInfo.hasNextPage && <button onClick={() => ask({ search, type, after: page.pageInfo.endCursor })}>Next</button>}
    </>
  );
}
