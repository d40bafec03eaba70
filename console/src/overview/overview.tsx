// The overview: how full the cloud is, what is wrong with its metadata, and what changed
// last. It is kept up to date.
import { useState } from "react";
import { Link } from "wouter";

import { pictureAt, providerAt, resourceAt, resourcesAt, useAddress } from "../address";
import { Events } from "../audit/events";
import { graphql } from "../generated";
import type { OverviewQuery } from "../generated/graphql";
import { useChanges, useFollowed } from "../live";
import { Answered, PageHead, usePage, useTitle } from "../page";
import { percent, share } from "../placement/cloud";
import { stepOf, usePalette } from "../placement/colours";
import { useViewer } from "../session";
import { Select } from "../ui/controls";
import { Section } from "../ui/form";
import { Bar, count, numberOf, Time } from "../ui/show";
import { Fits } from "./fits";
import { History } from "./history";

const document = graphql(`
  query Overview($class: String!, $placement: Boolean!, $resources: Boolean!, $audit: Boolean!, $follow: Boolean!) {
    capacity(first: 100) @include(if: $placement) {
      nodes {
        resourceClass
        total
        reserved
        capacity
        used
        free
        providers
      }
    }
    fullest: resourceProviders(filter: { hasClass: $class }, orderBy: { field: SHARE_USED, direction: DESC, resourceClass: $class }, first: 50) @include(if: $placement) {
      nodes {
        id
        uuid
        name
        root {
          id
          uuid
          name
        }
        inventory(resourceClass: $class) {
          id
          capacity
          used
        }
      }
    }
    metadataProblems(first: 6) @include(if: $resources) {
      resourceCount
      complete
      nodes {
        resource {
          id
          uuid
          name
        }
        problems {
          key
          message
        }
      }
    }
    resources(orderBy: { field: UPDATED_AT, direction: DESC }, first: 100) @include(if: $resources) {
      totalCount
      nodes {
        id
        uuid
        name
        updatedAt
        type {
          id
          name
        }
        metadataReport {
          items {
            key
            isCustom
            suggestion
          }
        }
      }
    }
    auditEvents(first: 8) @include(if: $audit) {
      nodes {
        ...Event
      }
    }
    changes(first: 0) @include(if: $follow) {
      latest
    }
  }
`);

const shown = 8;

export function OverviewPage() {
  const viewer = useViewer();
  const address = useAddress();
  const chosen = address.get("class") || "VCPU";
  const asked = usePage(document, { class: chosen, placement: viewer.placement, resources: viewer.resources, audit: viewer.audit, follow: viewer.changes });
  const [from, setFrom] = useState<string>();
  const latest = asked.data?.changes?.latest;
  if (from === undefined && latest !== undefined) setFrom(latest);
  useChanges("resource", undefined, asked.refresh);
  useChanges("namespace", undefined, asked.refresh);
  const [revision, setRevision] = useState(0);
  useFollowed("provider", from, () => {
    setRevision((revision) => revision + 1);
    asked.refresh();
  });
  useTitle("Overview");
  return (
    <>
      <PageHead title="Overview" below={<p className="lead">How full the cloud is, what needs attention, and what changed last.</p>} />
      <Answered asked={asked} rows={12}>
        {(data) => (
          <div className="overview">
            {data.capacity && <Capacity nodes={data.capacity.nodes} />}
            {data.fullest && data.capacity && <Fullest nodes={data.fullest.nodes} chosen={chosen} classes={data.capacity.nodes.map(({ resourceClass }) => resourceClass)} onClass={(name) => address.set({ class: name }, { replace: true })} />}
            {viewer.capacityHistory && data.capacity && <History chosen={chosen} />}
            {viewer.capacityFor && viewer.resources && <Fits revision={revision} />}
            {data.metadataProblems && <Drifted {...data.metadataProblems} />}
            {data.resources && <Undefined nodes={data.resources.nodes} />}
            {data.auditEvents ? (
              data.auditEvents.nodes.length > 0 && (
                <Section title="Latest changes" action={<Link href="/audit">Audit</Link>}>
                  <Events brief events={data.auditEvents.nodes} nameOf={({ key }) => data.resources?.nodes.find(({ uuid }) => uuid === key)?.name ?? key} />
                </Section>
              )
            ) : (
              <Changed nodes={data.resources?.nodes ?? []} />
            )}
          </div>
        )}
      </Answered>
    </>
  );
}

type Capacities = NonNullable<OverviewQuery["capacity"]>["nodes"];

function Capacity({ nodes }: { nodes: Capacities }) {
  const { steps } = usePalette();
  return (
    <Section title="Capacity" action={<Link href="/placement">Placement</Link>}>
      {nodes.length === 0 ? (
        <p className="hint">There are no inventories yet.</p>
      ) : (
        <div className="scroll">
          <table className="stacked">
            <thead>
              <tr>
                <th scope="col">Class</th>
                <th scope="col">Share</th>
                <th scope="col" className="number">
                  Used
                </th>
                <th scope="col" className="number">
                  Free
                </th>
                <th scope="col" className="number">
                  Reserved
                </th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((sum) => (
                <tr key={sum.resourceClass}>
                  <th scope="row">
                    <Link className="mono" href={pictureAt({ class: sum.resourceClass })}>
                      {sum.resourceClass}
                    </Link>
                  </th>
                  <td data-label="Share">
                    <span className="of-class">
                      <svg className="bar-of wide-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                        <rect width="100" height="10" className="bar-all" />
                        <rect width={Math.min(100, 100 * share(sum))} height="10" fill={steps[Math.max(4, stepOf(share(sum)))]?.fill} />
                      </svg>
                      {percent(share(sum))}
                    </span>
                  </td>
                  <td className="number" data-label="Used">
                    {numberOf(sum.used)}
                  </td>
                  <td className="number" data-label="Free">
                    {numberOf(sum.free)}
                  </td>
                  <td className="number" data-label="Reserved">
                    {numberOf(sum.reserved)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function Fullest({ nodes, chosen, classes, onClass }: { nodes: NonNullable<OverviewQuery["fullest"]>["nodes"]; chosen: string; classes: readonly string[]; onClass: (name: string) => void }) {
  const roots = new Map<string, (typeof nodes)[number]>();
  for (const node of nodes) if ((node.inventory?.used ?? 0) > 0 && !roots.has(node.root.uuid)) roots.set(node.root.uuid, node);
  return (
    <Section title="Fullest roots" action={<Select label="Resource class" hidden value={chosen} onChange={onClass} choices={classes.map((value) => ({ value, label: value }))} />}>
      {roots.size === 0 ? (
        <p className="hint">Nothing of {chosen} is used.</p>
      ) : (
        <ul className="amounts panel">
          {[...roots.values()].slice(0, shown).map(({ id, uuid, name, root, inventory }) => (
            <li key={id}>
              <span>
                <Link href={providerAt(root.uuid)}>{root.name}</Link> {uuid !== root.uuid && <span className="dim">{name}</span>}
              </span>
              <Bar value={inventory?.used ?? 0} most={inventory?.capacity ?? 0} />
              <span className="number">
                {percent(share({ used: inventory?.used ?? 0, capacity: inventory?.capacity ?? 0 }))}{" "}
                <span className="dim">
                  {numberOf(inventory?.used ?? 0)} of {numberOf(inventory?.capacity ?? 0)}
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Drifted({ resourceCount, complete, nodes }: NonNullable<OverviewQuery["metadataProblems"]>) {
  return (
    <Section title="Metadata that breaks definitions">
      {resourceCount === 0 ? (
        <p className="hint">{complete ? "All values match their definitions." : "The first resources match their definitions."}</p>
      ) : (
        <>
          <ul className="problems">
            {nodes.map(({ resource, problems }) => (
              <li key={resource.id}>
                <Link href={resourceAt(resource.uuid) + "#problems"}>{resource.name}</Link>: {problems.map(({ key, message }) => (message.includes(key) ? message : `${key}: ${message}`)).join("; ")}.
              </li>
            ))}
          </ul>
          {resourceCount > nodes.length && <p className="hint">And {count(resourceCount - nodes.length, "other resource")}{complete ? "" : " or more"}.</p>}
        </>
      )}
    </Section>
  );
}

type Changes = NonNullable<OverviewQuery["resources"]>["nodes"];

function Undefined({ nodes }: { nodes: Changes }) {
  const keys = new Map<string, { number: number; suggestion: string | null }>();
  for (const { metadataReport } of nodes)
    for (const { key, isCustom, suggestion } of metadataReport?.items ?? []) if (isCustom) keys.set(key, { number: (keys.get(key)?.number ?? 0) + 1, suggestion });
  const sorted = [...keys].sort((a, b) => b[1].number - a[1].number || (a[0] < b[0] ? -1 : 1));
  return (
    <Section title="Keys without a definition">
      {sorted.length === 0 ? (
        <p className="hint">The resources changed last use defined keys only.</p>
      ) : (
        <>
          <ul className="chips">
            {sorted.slice(0, 24).map(([key, { number, suggestion }]) => (
              <li key={key}>
                <Link className="chip mono" href={resourcesAt({ key })} title={suggestion ? `Did you mean ${suggestion}?` : undefined}>
                  {key} <span className="dim">{numberOf(number)}</span>
                </Link>
              </li>
            ))}
          </ul>
          <p className="hint">On the {count(nodes.length, "resource")} changed last.</p>
        </>
      )}
    </Section>
  );
}

function Changed({ nodes }: { nodes: Changes }) {
  if (nodes.length === 0) return null;
  return (
    <Section title="Latest changes">
      <ul className="panel changed">
        {nodes.slice(0, shown).map(({ id, uuid, name, type, updatedAt }) => (
          <li key={id}>
            <Link href={resourceAt(uuid)}>{name}</Link> <span className="dim">{type.name}</span> <Time at={updatedAt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
