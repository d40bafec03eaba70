// The total and used amounts of each resource class, updated live.
import { useSubscription } from "urql";

import { graphql } from "./generated";

const query = graphql(`
  subscription Capacity($after: String) {
    capacityChanged(after: $after) {
      cursor
      capacity(first: 100) { nodes { resourceClass capacity used free shareUsed } }
    }
  }
`);

export function Capacity() {
  const [{ data, error }] = useSubscription({ query, variables: {} });
  if (error) return <p className="wrong">{error.message}</p>;
  return (
    <>
      <h1>Capacity</h1>
      <table>
        <thead><tr><th>Class</th><th>Used</th><th>Capacity</th><th>Share</th></tr></thead>
        <tbody>
          {data?.capacityChanged?.capacity.nodes.map((row) => (
            <tr key={row.resourceClass}>
              <th>{row.resourceClass}</th><td>{row.used}</td><td>{row.capacity}</td><td><meter aria-label={row.resourceClass} value={row.shareUsed ?? 0} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
