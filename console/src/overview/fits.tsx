// How many more of each flavor fit, the scarcest first.
import { request as send } from "@cadastre/client";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";

import { resourceAt } from "../address";
import { graphql } from "../generated";
import { useChanges } from "../live";
import { Loading } from "../page";
import { fitOf, readFlavors, scarcer } from "../placement/counted";
import { useConnection, useRead } from "../placement/read";
import { Section } from "../ui/form";
import { count, Note } from "../ui/show";

const document = graphql(`
  query OverviewFits($uuids: [UUID!]!, $first: Int!) {
    resources(filter: { uuids: $uuids }, first: $first) {
      nodes {
        uuid
        name
        fits {
          atLeast
          atMost
        }
      }
    }
  }
`);

const shown = 8;

/** The minimum time between two counts, in milliseconds: a count costs as much as some hundred other queries. */
const pause = 30_000;

export function Fits({ revision }: { revision: number }) {
  const connection = useConnection();
  const [changed, setChanged] = useState(0);
  useChanges("resource", undefined, () => setChanged((changed) => changed + 1));
  const read = useRead("", useSlow(changed), (signal) => readFlavors(connection, "", signal));
  const asked = useRead(read.data && JSON.stringify(read.data), useSlow(revision + changed), async (signal) => {
    const { flavors, totalCount } = read.data ?? { flavors: [], totalCount: 0 };
    const { nodes } = (await send(connection, document, { uuids: flavors.map(({ uuid }) => uuid), first: flavors.length }, { signal })).resources;
    const counted = nodes.flatMap(({ uuid, name, fits }) => (fits ? [{ uuid, name, ...fits }] : []));
    return { counted: counted.sort((a, b) => scarcer(a, b) || (a.name < b.name ? -1 : 1)), totalCount };
  });
  const { data } = asked;
  const error = read.error ?? asked.error;
  return (
    <Section title="What still fits">
      {error ? (
        <Note>{error.message}</Note>
      ) : !data ? (
        <Loading rows={4} />
      ) : data.counted.length === 0 ? (
        <p className="hint">There is no flavor to count.</p>
      ) : (
        <>
          <ul className="amounts panel" aria-label="How many more of each flavor fit">
            {data.counted.slice(0, shown).map(({ uuid, name, ...fit }) => (
              <li key={uuid}>
                <Link href={resourceAt(uuid)}>{name}</Link>
                <span className="number">{fit.atMost === 0 ? <b>none</b> : fitOf(fit)}</span>
              </li>
            ))}
          </ul>
          {data.totalCount > shown && <p className="hint">The scarcest of {data.totalCount > data.counted.length ? `the first ${count(data.counted.length, "flavor")}` : count(data.counted.length, "flavor")}. Each is counted alone.</p>}
        </>
      )}
    </Section>
  );
}

/** Returns a number that follows another one, a pause after its last change. */
function useSlow(value: number): number {
  const [slow, setSlow] = useState(value);
  const last = useRef(Date.now());
  useEffect(() => {
    if (value === slow) return;
    const timer = setTimeout(() => {
      last.current = Date.now();
      setSlow(value);
    }, Math.max(0, last.current + pause - Date.now()));
    return () => clearTimeout(timer);
  }, [value, slow]);
  return slow;
}
