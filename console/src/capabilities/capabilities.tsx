// The capabilities of a type with their values, and the number of resources that meet
// requirements.
import { useState } from "react";
import { Link } from "wouter";

import { placementAt, resourceAt, resourcesAt, useAddress } from "../address";
import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { CapabilitiesPageQuery, TypesWithCapabilitiesQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, useAsk, usePage, useSettled, useTitle } from "../page";
import { complete, operators, readNeed, requirementOf, written, type Need } from "../resources/needs";
import { useViewer } from "../session";
import { Button, Field, Select } from "../ui/controls";
import { Section } from "../ui/form";
import { Badge, Bar, count, Note, numberOf } from "../ui/show";
import { visibilityDocument } from "./visibility";

const typesDocument = graphql(`
  query TypesWithCapabilities($includePrivate: Boolean!) {
    resourceTypes(first: 1000) {
      nodes {
        id
        name
        capabilities(includePrivate: $includePrivate) {
          id
        }
      }
    }
  }
`);

const document = graphql(`
  query CapabilitiesPage($type: String!, $includePrivate: Boolean!) {
    resourceType(name: $type) {
      id
      name
      capabilities(includePrivate: $includePrivate) {
        id
        name
        private
        valueCount
        viewerCanUpdate
        values(first: 100) {
          nodes {
            id
            value
            resourceCount
          }
        }
      }
    }
  }
`);

const matchDocument = graphql(`
  query MatchRequirements($filter: ResourceFilter!) {
    explainResources(filter: $filter) {
      considered
      clauses {
        path
        passing
        remaining
        ignored
        notNumbers
      }
    }
    resources(filter: $filter, first: 12) {
      totalCount
      nodes {
        id
        uuid
        name
      }
    }
  }
`);

type Type = TypesWithCapabilitiesQuery["resourceTypes"]["nodes"][number];
type Capability = NonNullable<NonNullable<CapabilitiesPageQuery["resourceType"]>["capabilities"]>[number];

export function CapabilitiesPage() {
  const viewer = useViewer();
  const address = useAddress();
  const asked = useAsk(typesDocument, { includePrivate: viewer.isAdmin });
  useTitle("Capabilities");
  return (
    <>
      <PageHead title="Capabilities" below={<p className="lead">Facts that the cloud reports about its resources, and requirements on them.</p>} />
      <Answered asked={asked} rows={12}>
        {({ resourceTypes }) => {
          const types = resourceTypes.nodes.filter((type) => (type.capabilities?.length ?? 0) > 0);
          const wanted = address.get("type");
          const type = types.find((type) => type.name === wanted) ?? (wanted ? undefined : largest(types));
          if (types.length === 0) return <Empty title="No capabilities yet">Services of the cloud set capabilities on resources.</Empty>;
          return (
            <>
              <div className="filters">
                <Select
                  label="Resource type"
                  value={type?.name ?? wanted}
                  onChange={(type) => address.set({ type, need: [] })}
                  choices={types.map(({ name, capabilities }) => ({ value: name, label: `${name} (${capabilities?.length ?? 0})` }))}
                />
              </div>
              {type ? <OfType key={type.id} type={type.name} /> : <Empty title="This type has no capabilities">Select another type.</Empty>}
            </>
          );
        }}
      </Answered>
    </>
  );
}

const largest = (types: readonly Type[]) => [...types].sort((a, b) => (b.capabilities?.length ?? 0) - (a.capabilities?.length ?? 0))[0];

function OfType({ type }: { type: string }) {
  const viewer = useViewer();
  const asked = usePage(document, { type, includePrivate: viewer.isAdmin });
  useChanges("resource", undefined, asked.refresh);
  return (
    <Answered asked={asked} rows={12}>
      {({ resourceType }) => {
        const capabilities = resourceType?.capabilities ?? [];
        return (
          <>
            <Requirements type={type} capabilities={capabilities} />
            <Section title="Capabilities" number={capabilities.length}>
              <ul className="cards">
                {capabilities.map((capability) => (
                  <One key={capability.id} type={type} capability={capability} />
                ))}
              </ul>
            </Section>
          </>
        );
      }}
    </Answered>
  );
}

const shownValues = 6;

function One({ type, capability }: { type: string; capability: Capability }) {
  const change = useChange(visibilityDocument);
  const values = [...capability.values.nodes].sort((a, b) => b.resourceCount - a.resourceCount);
  const most = values[0]?.resourceCount ?? 0;
  return (
    <li className="card still">
      <div className="card-head">
        <h3 className="mono">{capability.name}</h3>
        {capability.private && <Badge tone="accent">private</Badge>}
        {capability.viewerCanUpdate && (
          <Button quiet disabled={change.busy} label={`Make ${capability.private ? "public" : "private"}: ${capability.name}`} onPress={() => void change.send({ input: { resourceType: type, name: capability.name, private: !capability.private } })}>
            {capability.private ? "Make public" : "Make private"}
          </Button>
        )}
      </div>
      {change.error && <Note>{change.error.message}</Note>}
      <ul className="bars">
        {values.slice(0, shownValues).map(({ id, value, resourceCount }) => (
          <li key={id}>
            <span className="mono" title={value}>
              {value}
            </span>
            <Bar value={resourceCount} most={most} />
            <span className="number">{numberOf(resourceCount)}</span>
          </li>
        ))}
      </ul>
      {capability.valueCount > shownValues && <p className="hint">and {count(capability.valueCount - shownValues, "other value")}</p>}
    </li>
  );
}

function Requirements({ type, capabilities }: { type: string; capabilities: readonly Capability[] }) {
  const address = useAddress();
  const viewer = useViewer();
  const needs = address.all("need").map(readNeed);
  const [typed, setTyped] = useState(needs);
  const change = (next: readonly Need[]) => {
    setTyped([...next]);
    address.set({ need: next.map(written) }, { replace: true });
  };
  const asking = complete(typed);
  const settled = useSettled(JSON.stringify(asking.map(requirementOf)));
  const requirements = JSON.parse(settled) as { key: string; requirement: string }[];
  const asked = useAsk(matchDocument, { filter: { types: [type], requirements } }, requirements.length === 0);
  useChanges("resource", undefined, asked.refresh);
  const wrong = fieldsOf(asked.error);
  const of = requirements.length > 0 ? asked.data : undefined;
  const clauses = new Map((of?.explainResources.clauses ?? []).map((clause) => [clause.path, clause]));
  const all = clauses.get("filter.types")?.remaining ?? of?.explainResources.considered ?? 0;
  const empties = requirements.findIndex((_, at) => clauses.get(`filter.requirements[${at}]`)?.remaining === 0);
  return (
    <section className="panel needs" aria-label="Requirements">
      <h2>Requirements</h2>
      {typed.length === 0 && <p className="hint">Add requirements to see how many resources meet them, and which requirement excludes most.</p>}
      {typed.map((need, at) => {
        const place = asking.indexOf(need);
        const clause = place >= 0 ? clauses.get(`filter.requirements[${place}]`) : undefined;
        const error = place >= 0 ? [...wrong].find(([path]) => path.startsWith(`filter.requirements[${place}]`))?.[1] : undefined;
        const edit = (part: Partial<Need>) => change(typed.map((other, index) => (index === at ? { ...other, ...part } : other)));
        return (
          <div className="need" key={at}>
            <Select label={`Capability ${at + 1}`} hidden value={need.key} onChange={(key) => edit({ key })} choices={[{ value: "", label: "Choose…" }, ...capabilities.map(({ name }) => ({ value: name, label: name }))]} />
            <Select label={`Operator ${at + 1}`} hidden value={need.operator} onChange={(operator) => edit({ operator })} choices={[{ value: "", label: "is" }, ...operators.map((value) => ({ value, label: value }))]} />
            <Field label={`Value ${at + 1}`} hidden mono value={need.operand} onChange={(operand) => edit({ operand })} error={error} />
            <div className="need-counts" role="status">
              {clause && (
                <>
                  <Bar value={clause.remaining} most={all} />
                  <span>
                    <b>{numberOf(clause.remaining)}</b> left, {numberOf(clause.passing)} by itself
                    {clause.notNumbers > 0 && `; ${numberOf(clause.notNumbers)} have no number`}
                  </span>
                  {place === empties && <Badge tone="bad">this one leaves none</Badge>}
                </>
              )}
            </div>
            <Button quiet label={`Remove requirement ${at + 1}`} onPress={() => change(typed.filter((_, index) => index !== at))}>
              Remove
            </Button>
          </div>
        );
      })}
      <div className="actions">
        <Button onPress={() => change([...typed, { key: "", operator: "", operand: "" }])}>Add a requirement</Button>
      </div>
      {asked.error && wrong.size === 0 && requirements.length > 0 && <Note>{asked.error.message}</Note>}
      {of && (
        <div className="matches">
          <p role="status">
            <b>{count(of.resources.totalCount, "resource")}</b> of {numberOf(all)} {of.resources.totalCount === 1 ? "meets" : "meet"} the requirements.{" "}
            {of.resources.totalCount > 0 && <Link href={resourcesAt({ type, need: asking.map(written) })}>Show them in Resources</Link>}
            {of.resources.totalCount > 0 && viewer.placement && " · "}
            {of.resources.totalCount > 0 && viewer.placement && <Link href={placementAt(asking.map(written))}>Show them in Placement</Link>}
          </p>
          <ul className="chips">
            {of.resources.nodes.map((node) => (
              <li key={node.id}>
                <Link href={resourceAt(node.uuid)} className="chip">
                  {node.name}
                </Link>
              </li>
            ))}
            {of.resources.totalCount > of.resources.nodes.length && <li className="dim">and {numberOf(of.resources.totalCount - of.resources.nodes.length)} more</li>}
          </ul>
        </div>
      )}
    </section>
  );
}
