// Capacity and fits, now and with the changes.
import { CadastreError, type Connection, request as send } from "@cadastre/client";
import type { ReactNode } from "react";
import { Link } from "wouter";

import { pictureAt, resourceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { WhatIfAnswersQuery, WhatIfChangeInput } from "../generated/graphql";
import { Loading, useShown } from "../page";
import { fitOf, type Flavors as Read, readFlavors } from "../placement/counted";
import { useConnection, useRead } from "../placement/read";
import { useViewer } from "../session";
import { Section } from "../ui/form";
import { Search } from "../ui/search";
import { Badge, count, Note, numberOf } from "../ui/show";

const document = graphql(`
  query WhatIfAnswers($changes: [WhatIfChangeInput!]!, $requests: [PlacementRequestInput!]!) {
    capacity(first: 250) {
      nodes {
        ...WhatIfCapacity
      }
    }
    capacityFor(requests: $requests) {
      ...WhatIfFit
    }
    whatIf(changes: $changes) {
      capacity(first: 250) {
        nodes {
          ...WhatIfCapacity
        }
      }
      capacityFor(requests: $requests) {
        ...WhatIfFit
      }
    }
  }
`);

graphql(`
  fragment WhatIfCapacity on Capacity {
    resourceClass
    capacity
    used
    free
  }
`);

graphql(`
  fragment WhatIfFit on Fit {
    atLeast
    atMost
  }
`);

type Counted = Read["flavors"];
type Answered = WhatIfAnswersQuery & { readonly counted: Counted; readonly hidden: Counted };

/** Asks for the answers, without the flavors that ask for capabilities which the viewer may not see. */
async function answersOf(connection: Connection, changes: readonly WhatIfChangeInput[], flavors: Counted, signal: AbortSignal): Promise<Answered> {
  let counted = flavors;
  for (;;) {
    try {
      const answers = await send(connection, document, { changes: [...changes], requests: counted.map(({ request }) => request) }, { signal });
      return { ...answers, counted, hidden: flavors.filter((flavor) => !counted.includes(flavor)) };
    } catch (error) {
      const refused = error instanceof CadastreError ? [...error.fields.keys()].map((path) => Number(/^requests\[(\d+)\]\.hosts\./.exec(path)?.[1] ?? -1)) : [];
      const rest = counted.filter((_, at) => !refused.includes(at));
      if (rest.length === counted.length) throw error;
      counted = rest;
    }
  }
}

interface AnswersProps {
  /** Undefined while they are not known. */
  readonly changes: readonly WhatIfChangeInput[] | undefined;
  readonly revision: number;
  /** Whether consumers of the hosts have no place in the changes. */
  readonly isPartial: boolean;
}

export function Answers({ changes, revision, isPartial }: AnswersProps) {
  const connection = useConnection();
  const address = useAddress();
  const { resources } = useViewer();
  const search = address.get("flavor");
  const flavors = useRead(resources ? JSON.stringify(search) : undefined, revision, (signal) => readFlavors(connection, search, signal));
  const counted = flavors.data?.flavors ?? [];
  const variables = changes && (!resources || flavors.data || flavors.error) ? { changes: [...changes], requests: counted.map(({ request }) => request) } : undefined;
  useShown(document, variables ?? { changes: [], requests: [] });
  const asked = useRead(variables && JSON.stringify(variables), revision, (signal) => answersOf(connection, changes ?? [], counted, signal));
  const { data } = asked;
  const of = (content: (data: Answered) => ReactNode) => (asked.error ? <Note>{asked.error.message}</Note> : data ? <div data-current={asked.current}>{content(data)}</div> : <Loading rows={6} />);
  return (
    <div className="answers">
      <Section title="Capacity">
        {of((data) => (
          <Capacities now={data.capacity.nodes} then={data.whatIf.capacity.nodes} />
        ))}
        {isPartial && <p className="hint">Consumers of the hosts without a new place are not counted.</p>}
      </Section>
      {resources && (
        <Section title="What fits" action={<Search label="Flavors" value={search} onChange={(flavor) => address.set({ flavor }, { replace: true })} />}>
          {flavors.error ? <Note>{flavors.error.message}</Note> : of((data) => <Flavors data={data} />)}
          {flavors.data && flavors.data.totalCount > 50 && <p className="hint">The first 50 of {count(flavors.data.totalCount, "flavor")}. Search for others.</p>}
          {data && data.hidden.length > 0 && <p className="hint">Not counted, because you may not see the capabilities that they ask for: {data.hidden.map(({ name }) => name).join(", ")}</p>}
          {flavors.data && flavors.data.uncounted.length > 0 && <p className="hint">Not counted, because the request has problems or no amounts: {flavors.data.uncounted.join(", ")}</p>}
        </Section>
      )}
    </div>
  );
}

type Rows = WhatIfAnswersQuery["capacity"]["nodes"];

function Capacities({ now, then }: { now: Rows; then: Rows }) {
  const names = [...new Set([...now, ...then].map(({ resourceClass }) => resourceClass))].sort();
  const none = { capacity: 0, used: 0, free: 0 };
  return (
    <Table
      label="Capacity before and after"
      heads={["Class", "Capacity now", "Capacity then", "Free now", "Free then"]}
      rows={names.map((name) => {
        const [before, after] = [now, then].map((rows) => rows.find(({ resourceClass }) => resourceClass === name) ?? none) as [typeof none, typeof none];
        return {
          key: name,
          head: (
            <Link className="mono" href={pictureAt({ class: name })}>
              {name}
            </Link>
          ),
          cells: [numberOf(before.capacity), <Then key="capacity" from={before.capacity} to={after.capacity} />, numberOf(before.free), <Then key="free" from={before.free} to={after.free} />],
        };
      })}
    />
  );
}

function Flavors({ data: { counted, capacityFor, whatIf } }: { data: WhatIfAnswersQuery & { counted: readonly { uuid: string; name: string }[] } }) {
  if (counted.length === 0) return <p className="hint">There is no flavor to count.</p>;
  const rows = counted.flatMap((flavor, at) => {
    const [now, then] = [capacityFor[at], whatIf.capacityFor[at]];
    return now && then ? [{ ...flavor, now, then, isGone: now.atLeast > 0 && then.atLeast === 0, left: now.atLeast > 0 ? then.atLeast / now.atLeast : 1 }] : [];
  });
  rows.sort((a, b) => Number(b.isGone) - Number(a.isGone) || a.left - b.left || a.then.atLeast - b.then.atLeast);
  return (
    <Table
      label="How many more fit, before and after"
      heads={["Flavor", "Now", "Then"]}
      rows={rows.map(({ uuid, name, now, then, isGone }) => ({
        key: uuid,
        head: (
          <>
            <Link href={resourceAt(uuid)}>{name}</Link> {isGone && <Badge tone="bad">no longer fits</Badge>}
          </>
        ),
        cells: [fitOf(now), then.atLeast < now.atLeast ? <b key="then">{fitOf(then)}</b> : fitOf(then)],
      }))}
    />
  );
}

/** A number after the changes, emphasised if it differs. */
const Then = ({ from, to }: { from: number; to: number }) => (from === to ? <span className="dim">{numberOf(to)}</span> : <b>{numberOf(to)}</b>);

interface TableProps {
  readonly label: string;
  readonly heads: readonly string[];
  readonly rows: readonly { readonly key: string; readonly head: ReactNode; readonly cells: readonly ReactNode[] }[];
}

/** A table of things with numbers. */
export function Table({ label, heads, rows }: TableProps) {
  return (
    <div className="scroll">
      <table className="stacked" aria-label={label}>
        <thead>
          <tr>
            {heads.map((head, at) => (
              <th key={at} scope="col" className={at > 0 ? "number" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, head, cells }) => (
            <tr key={key}>
              <th scope="row">{head}</th>
              {cells.map((cell, at) => (
                <td key={at} className="number" data-label={heads[at + 1]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
