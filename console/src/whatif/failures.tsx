// The failures that are not survived, now and with the changes.
import { request as send } from "@cadastre/client";
import { Link } from "wouter";

import { providerAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { WhatIfChangeInput, WhatIfFailuresFragment } from "../generated/graphql";
import { Loading } from "../page";
import { useAggregates, useConnection, useRead } from "../placement/read";
import { Select } from "../ui/controls";
import { Section } from "../ui/form";
import { count, Note, numberOf } from "../ui/show";
import { Table } from "./answers";

const document = graphql(`
  query WhatIfFailures($changes: [WhatIfChangeInput!]!, $by: FailureGrouping!) {
    survives(by: $by) {
      ...WhatIfFailures
    }
    whatIf(changes: $changes) {
      survives(by: $by) {
        ...WhatIfFailures
      }
    }
  }
`);

graphql(`
  fragment WhatIfFailures on FailureConnection {
    totalCount
    unsurvivedCount
    nodes {
      root {
        uuid
        name
      }
      aggregate
      unplacedCount
      missing {
        resourceClass
        amount
      }
    }
  }
`);

export const amountsOf = (amounts: readonly { readonly resourceClass: string; readonly amount: number }[]): string => amounts.map(({ resourceClass, amount }) => `${numberOf(amount)} ${resourceClass}`).join(", ");

export function Failures({ changes, revision }: { changes: readonly WhatIfChangeInput[] | undefined; revision: number }) {
  const connection = useConnection();
  const address = useAddress();
  const by = address.get("by") === "AGGREGATE" ? "AGGREGATE" : "HOST";
  const asked = useRead(changes && JSON.stringify([changes, by]), revision, (signal) => send(connection, document, { changes: [...(changes ?? [])], by }, { signal }));
  const { data } = asked;
  return (
    <Section
      title="Failures that are not survived"
      action={
        <Select
          label="What fails"
          hidden
          value={by}
          onChange={(by) => address.set({ by: by === "HOST" ? "" : by }, { replace: true })}
          choices={[
            { value: "HOST", label: "One host" },
            { value: "AGGREGATE", label: "An aggregate" },
          ]}
        />
      }
    >
      {asked.error ? <Note>{asked.error.message}</Note> : data ? <Compared now={data.survives} then={data.whatIf.survives} isCurrent={asked.current} /> : <Loading rows={3} />}
    </Section>
  );
}

function Compared({ now, then, isCurrent }: { now: WhatIfFailuresFragment; then: WhatIfFailuresFragment; isCurrent: boolean }) {
  const failing = [...then.nodes, ...now.nodes].filter(({ unplacedCount }) => unplacedCount > 0);
  const { nameOf } = useAggregates([...new Set(failing.flatMap(({ aggregate }) => aggregate ?? []))].sort());
  const keyOf = ({ root, aggregate }: WhatIfFailuresFragment["nodes"][number]) => root?.uuid ?? aggregate ?? "";
  const keys = [...new Set(failing.map(keyOf))];
  const said = (of: WhatIfFailuresFragment, key: string) => {
    const found = of.nodes.find((node) => keyOf(node) === key);
    if (!found) return of.totalCount > of.nodes.length ? "not listed" : "no failure";
    if (found.unplacedCount === 0) return "survived";
    return (
      <>
        <b>{count(found.unplacedCount, "consumer")} without a place</b>
        <span className="below-name">{amountsOf(found.missing)}</span>
      </>
    );
  };
  return (
    <div data-current={isCurrent}>
      <p role="status">
        Now {numberOf(now.unsurvivedCount)} of {numberOf(now.totalCount)}, then <b>{numberOf(then.unsurvivedCount)}</b> of {numberOf(then.totalCount)}.
      </p>
      {keys.length > 0 && (
        <Table
          label="Failures before and after"
          heads={["Fails", "Now", "Then"]}
          rows={keys.map((key) => {
            const root = failing.find((node) => keyOf(node) === key)?.root;
            const isStored = root && now.nodes.some((node) => node.root?.uuid === root.uuid);
            return { key, head: root ? isStored ? <Link href={providerAt(root.uuid)}>{root.name}</Link> : root.name : nameOf(key), cells: [said(now, key), said(then, key)] };
          })}
        />
      )}
    </div>
  );
}
