// The page of placement: the picture of the cloud, requests for candidates, capacity.
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { memo, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";

import { resourceAt, useAddress, whatIfAt } from "../address";
import { fieldsOf } from "../change";
import { graphql } from "../generated";
import type { PlacementAskQueryVariables, ResourceProviderFilter } from "../generated/graphql";
import { Empty, Failed, Loading, PageHead, useAsk, useShown, useSettled, useTitle } from "../page";
import { operators, readNeed, requirementOf } from "../resources/needs";
import { useViewer } from "../session";
import { Button, type Choice, Field, Select } from "../ui/controls";
import { Search } from "../ui/search";
import { count, numberOf } from "../ui/show";
import { Builder } from "./builder";
import { askDocument, limits, marksOf, Results, useCandidates, WhyNot } from "./candidates";
import { Capacity } from "./capacity";
import { type Cloud, fullest, nothing, type Provider } from "./cloud";
import { Group, groupingOf, ofCapability, useGroups } from "./groups";
import { type Size, sizeForGroups } from "./layout";
import { Names } from "./names";
import type { Marks } from "./paint";
import { Legend, Picture } from "./picture";
import { Place } from "./place";
import { ProviderPanel } from "./provider";
import { type ReadCloud, useAggregates, useCloud, useMatches } from "./read";
import { cloudDocument } from "./reading";
import { argumentsOf, readRequest, type Request, written } from "./request";
import { CloudTable } from "./table";

const choicesDocument = graphql(`
  query PlacementChoices {
    traits(filter: { associated: true }, first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

const capabilitiesDocument = graphql(`
  query PlacementCapabilities {
    resourceTypes(first: 1000) {
      nodes {
        id
        capabilities {
          id
          name
        }
      }
    }
  }
`);

/** Returns the conditions on trees in the address. */
function useFilters(): ResourceProviderFilter[] {
  const address = useAddress();
  const search = address.get("search");
  const rack = address.get("rack");
  const needs = address.all("need").map(readNeed).map(requirementOf);
  const aggregate = address.get("aggregate");
  return [
    ...(search ? [{ search }] : []),
    ...address.all("trait").map((trait) => ({ requiredAll: [trait] })),
    ...(aggregate ? [{ memberOf: [{ anyOf: [aggregate] }] }] : []),
    ...(needs.length > 0 ? [{ resource: { requirements: needs } }] : []),
    ...(rack ? [{ resource: { parent: rack } }] : []),
  ];
}

/** Requests the cloud first, and renders the page while the server answers. */
export function PlacementPage() {
  useTitle("Placement");
  const cloud = useCloud();
  const [asked, setAsked] = useState(false);
  useEffect(() => setAsked(true), []);
  return asked ? <Placement cloud={cloud} /> : <Head />;
}

function Placement({ cloud }: { cloud: ReadCloud }) {
  const address = useAddress();
  const viewer = useViewer();
  const filters = useFilters();
  const { revision } = cloud;
  const matches = useMatches(filters, revision);
  const resourceClass = address.get("class");
  // Forms do not change while pages of providers arrive. The panels beside the picture render after it.
  const whole = useRef(nothing);
  if (cloud.done) whole.current = cloud.cloud;
  const known = useDeferredValue(whole.current);
  const aggregates = useAggregates(known.aggregates);
  const choices = useAsk(choicesDocument, {}).data;
  const traits = useMemo(() => (choices?.traits.nodes ?? []).map(({ name }) => ({ value: name, label: name })), [choices]);
  const types = useAsk(capabilitiesDocument, {}, !viewer.namespaces);
  const capabilities = useMemo(() => [...new Set((types.data?.resourceTypes.nodes ?? []).flatMap((type) => (type.capabilities ?? []).map(({ name }) => name)))].sort(), [types.data]);
  const size = address.get("size");
  const at = cloud.cloud.providers.get(address.get("at"));
  const trees = useMemo(() => {
    if (filters.length === 0) return cloud.cloud.trees;
    return cloud.cloud.trees.filter(({ uuid }) => matches.data?.has(uuid));
  }, [cloud.cloud, filters.length, matches.data]);
  const grouping = groupingOf(address.get("group"), trees.length, cloud.cloud.aggregates.length);
  const grouped = useGroups(trees, grouping, aggregates.nameOf);
  const { set } = address;
  const open = (provider: Provider) => {
    if (!(provider instanceof Group)) return choose(provider.uuid);
    if (grouping === "aggregate") return set({ group: "none", aggregate: provider.key });
    if (grouping === "rack") return set({ group: "none", rack: provider.key });
    set({ group: "none", need: provider.key ? [[grouping.slice(ofCapability.length), "s==", provider.key].join("|")] : [] });
  };
  const choose = useCallback((uuid: string) => set({ at: uuid }), [set]);
  const counted = useDeferredValue(cloud.done ? trees : nothing.trees);
  const [placed, setPlaced] = useState(""); // the uuids of the providers to mark, separated by commas
  const asking = useAsking(cloud.cloud, revision, placed);
  useShown<unknown, object>((asking.variables ? askDocument : cloudDocument) as TypedDocumentNode<unknown, object>, asking.variables ?? (filters[0] ? { filter: filters[0] } : {}));

  if (cloud.error && cloud.read === 0)
    return (
      <>
        <Head />
        <Failed error={cloud.error} retry={cloud.retry} />
      </>
    );
  const table = address.get("view") === "table";
  return (
    <>
      <Head />
      <Filters traits={traits} aggregates={aggregates.all} capabilities={capabilities} filtered={filters.length > 0} />
      <div className="placement">
        <div className="placement-main">
          <div className="picture-head">
            <p className="counted" role="status">
              {cloud.total === undefined ? "" : filters.length > 0 ? `${count(trees.length, "tree")} of ${numberOf(cloud.cloud.trees.length)}` : `${count(trees.length, "tree")} of ${count(cloud.read, "provider")}`}
              {cloud.total !== undefined && !cloud.done && `, of ${numberOf(cloud.total)} so far`}
            </p>
            <div className="picture-controls">
              <Select label="Colour" hidden value={resourceClass} onChange={(name) => address.set({ class: name }, { replace: true })} choices={[{ value: fullest, label: "Fullest class" }, ...cloud.cloud.classes.map((value) => ({ value, label: value }))]} />
              {!table && (
                <Select
                  label="Group by"
                  hidden
                  value={grouping}
                  onChange={(group) => address.set({ group }, { replace: true })}
                  choices={[
                    { value: "none", label: "No groups" },
                    { value: "aggregate", label: "By aggregate" },
                    ...(viewer.resources ? [{ value: "rack", label: "By rack" }, ...capabilities.map((name) => ({ value: ofCapability + name, label: `By ${name}` }))] : []),
                  ]}
                />
              )}
              <Select
                label="Show as"
                hidden
                value={table ? "table" : size}
                onChange={(to) => address.set(to === "table" ? { view: to } : { view: "", size: to }, { replace: true })}
                choices={[
                  { value: "", label: "Tiles that fit" },
                  { value: "small", label: "Small tiles" },
                  { value: "medium", label: "Medium tiles" },
                  { value: "large", label: "Large tiles" },
                  { value: "table", label: "A table" },
                ]}
              />
            </div>
          </div>
          {!table && <Legend resourceClass={resourceClass} isHeld={cloud.cloud.isHeld} />}
          {matches.error || grouped.error ? (
            <Failed error={(matches.error ?? grouped.error) as Error} retry={matches.refresh} />
          ) : cloud.read === 0 && !cloud.done ? (
            <Loading rows={10} />
          ) : trees.length === 0 && filters.length > 0 ? (
            matches.loading ? (
              <Loading rows={10} />
            ) : (
              <Empty title="No tree matches">Try fewer conditions.</Empty>
            )
          ) : trees.length === 0 ? (
            <Empty title="There are no resource providers yet">Services of the cloud and the command line create providers.</Empty>
          ) : table ? (
            <CloudTable trees={trees} classes={cloud.cloud.classes} resourceClass={resourceClass} at={at} marks={asking.marks} onAt={({ uuid }) => choose(uuid)} />
          ) : (
            <Picture trees={grouped.groups ?? trees} resourceClass={resourceClass} size={sizes.find((one) => one === size) ?? (grouped.groups && sizeForGroups(grouped.groups.length))} at={at} marks={asking.marks} onAt={open} />
          )}
        </div>
        <aside className="placement-side" aria-label="Beside the picture">
          {address.get("at") && (
            <ProviderPanel
              key={address.get("at")}
              uuid={address.get("at")}
              revision={revision}
              nameOfAggregate={aggregates.nameOf}
              onAt={choose}
              onTrait={(trait) => address.set({ trait: [...address.all("trait").filter((other) => other !== trait), trait] })}
              onAggregate={(aggregate) => address.set({ aggregate })}
            >
              {(provider) => asking.variables && <WhyNot request={asking.request} provider={provider} revision={revision} onAt={choose} />}
            </ProviderPanel>
          )}
          {viewer.candidates && (known !== nothing || cloud.error) && <Ask asking={asking} cloud={known} traits={traits} aggregates={aggregates.all} onAt={choose} />}
          {(viewer.place || viewer.confirm) && <Place request={asking.variables && asking.request} revision={revision} renew={cloud.renew} onPlaced={setPlaced} onAt={choose} />}
        </aside>
      </div>
      {counted.length > 0 && <Capacity trees={counted} resourceClass={resourceClass} nameOf={aggregates.nameOf} onClass={(name) => address.set({ class: name }, { replace: true })} onAggregate={(aggregate) => address.set({ aggregate })} />}
    </>
  );
}

interface Asking {
  readonly request: Request;
  /** The arguments; undefined for an empty request. */
  readonly variables: PlacementAskQueryVariables | undefined;
  readonly asked: ReturnType<typeof useCandidates>;
  readonly marks: Marks | undefined;
  readonly number: number;
  readonly limit: number;
}

/** The request of the address, and its candidates and placed consumers on the picture. */
function useAsking(cloud: Cloud, revision: number, placed: string): Asking {
  const address = useAddress();
  const text = address.get("request");
  const request = useMemo(() => readRequest(text), [text]);
  const limit = limits.find((limit) => String(limit) === address.get("limit")) ?? 500;
  const settled = useSettled(JSON.stringify(argumentsOf(request) ?? null), 200);
  const variables = useMemo(() => {
    const asked = JSON.parse(settled) as PlacementAskQueryVariables | null;
    return asked ? { ...asked, first: limit } : undefined;
  }, [settled, limit]);
  const asked = useCandidates(variables, useSettled(revision, 400));
  const number = Number(address.get("candidate")) || 0;
  const marks = useMemo(() => marksOf(variables ? asked.data : undefined, cloud, number, placed ? placed.split(",") : []), [variables, asked.data, cloud, number, placed]);
  return useMemo(() => ({ request, variables, asked, marks, number, limit }), [request, variables, asked, marks, number, limit]);
}

/** The form of a request, and its candidates. */
const Ask = memo(function Ask({ asking, cloud, traits, aggregates, onAt }: { asking: Asking; cloud: Cloud; traits: readonly Choice[]; aggregates: readonly Choice[]; onAt: (uuid: string) => void }) {
  const address = useAddress();
  const { request, variables, asked, number, limit } = asking;
  const trees = useMemo(() => cloud.trees.map(({ uuid, name }) => ({ value: uuid, label: name })), [cloud]);
  return (
    <section className="panel ask" aria-label="What fits?">
      <h2>What fits?</h2>
      <Builder
        request={request}
        onChange={(next) => address.set({ request: written(next), candidate: "" }, { replace: true })}
        classes={cloud.classes}
        traits={traits}
        aggregates={aggregates}
        trees={trees}
        errors={fieldsOf(asked.error)}
      />
      {variables ? (
        <>
          <Select label="Limit" value={String(limit)} onChange={(limit) => address.set({ limit, candidate: "" }, { replace: true })} choices={limits.map((limit) => ({ value: String(limit), label: count(limit, "candidate") }))} />
          <Results asked={asked} cloud={cloud} number={number} onNumber={(number) => address.set({ candidate: number > 0 ? String(number) : "" }, { replace: true })} onAt={onAt} />
        </>
      ) : (
        <p className="hint">Add amounts or take a flavor. The picture shows the hosts that can serve the request.</p>
      )}
    </section>
  );
});

const sizes: readonly Size[] = ["small", "medium", "large"];

function Head() {
  const { whatIf } = useViewer();
  return (
    <PageHead title="Placement" below={<p className="lead">The capacity of the cloud, its use, and what still fits.</p>}>
      {whatIf && (
        <Link className="button plain" href={whatIfAt({})}>
          What if
        </Link>
      )}
    </PageHead>
  );
}

/** The conditions on the trees of the picture. */
const Filters = memo(function Filters({ traits, aggregates, capabilities, filtered }: { traits: readonly Choice[]; aggregates: readonly Choice[]; capabilities: readonly string[]; filtered: boolean }) {
  const address = useAddress();
  const needs = address.all("need");
  const [key = "", operator = "", operand = ""] = (needs[0] ?? "").split("|");
  const need = (part: { key?: string; operator?: string; operand?: string }) => {
    const next = { key, operator, operand, ...part };
    address.set({ need: next.key ? [[next.key, next.operator, next.operand].join("|"), ...needs.slice(1)] : [] }, { replace: true });
  };
  return (
    <div className="filters placement-filters" role="search">
      <Search label="Name or uuid" value={address.get("search")} onChange={(search) => address.set({ search }, { replace: true })} />
      <Names label="Trait" names={address.all("trait")} choices={traits} onChange={(trait) => address.set({ trait })} />
      <Select label="Aggregate" value={address.get("aggregate")} onChange={(aggregate) => address.set({ aggregate })} choices={[{ value: "", label: "Any" }, ...aggregates]} />
      {capabilities.length > 0 && (
        <div className="capability">
          <Select label="Capability" value={key} onChange={(key) => need({ key })} choices={[{ value: "", label: "Any" }, ...capabilities.map((value) => ({ value, label: value }))]} />
          {key && (
            <>
              <Select label="Operator" hidden value={operator} onChange={(operator) => need({ operator })} choices={[{ value: "", label: "is" }, ...operators.map((value) => ({ value, label: value }))]} />
              <Field label="Value of the capability" hidden mono value={operand} onChange={(operand) => need({ operand })} />
            </>
          )}
        </div>
      )}
      {address.get("rack") && (
        <div className="names">
          <span>Rack</span>
          <span className="chip">
            <Link href={resourceAt(address.get("rack"))}>its resource</Link>{" "}
            <Button quiet label="Remove the rack" onPress={() => address.set({ rack: "" })}>
              ×
            </Button>
          </span>
        </div>
      )}
      {filtered && (
        <Button quiet onPress={() => address.set({ search: "", trait: [], aggregate: "", need: [], rack: "" })}>
          Clear all
        </Button>
      )}
    </div>
  );
});
