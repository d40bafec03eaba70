// The page of a resource: everything about it, from one query.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { consumerAt, eventsAt, propertyAt, providerAt, resourceAt, resourcesAt, useEditing } from "../address";
import { Events } from "../audit/events";
import { useChange } from "../change";
import { graphql } from "../generated";
import type { ResourcePageQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { asksForHosts, Fits } from "../hub/fits";
import { NewProvider } from "../hub/inventories";
import { Missing, type Part, Parts } from "../hub/parts";
import { Allocations, providerParts } from "../hub/provider";
import { unitsOf, useTree } from "../hub/units";
import { Answered, PageHead, RefreshContext, usePage, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, Confirm } from "../ui/controls";
import { Badge, count, numberOf, Time } from "../ui/show";
import { useCapabilities } from "./capabilities";
import { EditResource } from "./form";
import { useMetadata } from "./metadata";

const document = graphql(`
  query ResourcePage(
    $uuid: UUID!
    $key: String!
    $private: Boolean!
    $placement: Boolean!
    $fits: Boolean!
    $audit: Boolean!
    $follow: Boolean!
  ) {
    resource(uuid: $uuid) {
      id
      uuid
      name
      description
      projectId
      visibility
      revision
      createdAt
      updatedAt
      tags
      viewerCanUpdate
      viewerCanDelete
      type {
        id
        name
        strict
      }
      parent {
        id
        uuid
        name
        parent {
          id
          uuid
          name
          parent {
            id
            uuid
            name
          }
        }
      }
      children(first: 100) {
        totalCount
        nodes {
          id
          uuid
          name
          type {
            id
            name
          }
        }
      }
      ...MetadataOfResource
      ...CapabilitiesOfResource
      provider @include(if: $placement) {
        id
        uuid
        root {
          id
          ...HubTree
        }
      }
      consumer @include(if: $placement) {
        id
        uuid
        type
      }
      allocations @include(if: $placement) {
        id
        resourceClass
        used
        provider {
          id
          uuid
          name
          root {
            id
            uuid
            name
          }
        }
      }
      allocationCandidates(orderBy: BREADTH_FIRST, first: 20) @include(if: $fits) {
        ...HubFits
      }
    }
    placementRequest(resource: $uuid) @include(if: $placement) {
      ...HubRequest
    }
    resourceType(name: "OS::Nova::Aggregate") @include(if: $placement) {
      id
      resources(first: 250) {
        nodes {
          id
          uuid
          name
        }
      }
    }
    auditEvents(filter: { kind: RESOURCE, key: $key }, first: 8) @include(if: $audit) {
      totalCount
      nodes {
        ...Event
      }
    }
    changes(first: 0) @include(if: $follow) {
      latest
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveResource($input: DeleteResourceInput!) {
    deleteResource(input: $input) {
      resource {
        uuid
      }
    }
  }
`);

export type Resource = NonNullable<ResourcePageQuery["resource"]>;

/** The server can refuse capabilities and candidates while it answers the rest. */
const mayLack = ([first, second]: readonly (string | number)[]): boolean => first === "resource" && (second === "capabilities" || second === "allocationCandidates");

export function ResourcePage({ uuid }: { uuid: string }) {
  const viewer = useViewer();
  const asked = usePage(
    document,
    {
      uuid,
      key: uuid,
      private: viewer.rules.includes("CAPABILITIES_PRIVATE"),
      placement: viewer.placement,
      fits: viewer.candidates,
      audit: viewer.audit,
      follow: viewer.changes,
    },
    mayLack,
  );
  useChanges("resource", [uuid], asked.refresh);
  useTree(asked.data?.changes?.latest, asked.data?.resource?.provider?.root, asked.refresh);
  const data = asked.data;
  useTitle(data ? (data.resource?.name ?? "Not found") : "Resource");
  return (
    <Answered asked={asked}>
      {(page) =>
        page.resource ? (
          <RefreshContext.Provider value={asked.refresh}>
            <Whole key={page.resource.id} page={page} resource={page.resource} refresh={asked.refresh} />
          </RefreshContext.Provider>
        ) : (
          <NoResource uuid={uuid} />
        )
      }
    </Answered>
  );
}

function NoResource({ uuid }: { uuid: string }) {
  const viewer = useViewer();
  return (
    <>
      <PageHead above={<Link href="/resources">Resources</Link>} title="Not found" />
      <Missing
        what="resource"
        links={
          <>
            <Link href="/resources">All resources</Link>
            {viewer.placement && <Link href={providerAt(uuid)}>A provider with this uuid</Link>}
            {viewer.audit && <Link href={eventsAt("RESOURCE", uuid)}>Its events</Link>}
          </>
        }
      />
    </>
  );
}

/** The keys whose values break their definitions. */
function Problems({ resource }: { resource: Resource }) {
  const broken = resource.metadataReport?.items.filter(({ violations }) => violations.length > 0) ?? [];
  const defined = new Map(resource.metadata.map(({ key, definitions }) => [key, definitions[0]]));
  return (
    <ul className="problems">
      {broken.map(({ key, violations }) => {
        const definition = defined.get(key);
        return (
          <li key={key}>
            <b className="mono">{definition ? <Link href={propertyAt(definition.namespace.name, definition.baseName, definition.object?.name)}>{key}</Link> : key}</b>{" "}
            {violations.map(({ message }) => message).join("; ")}
          </li>
        );
      })}
    </ul>
  );
}

function Children({ resource: { uuid, children } }: { resource: Resource }) {
  return (
    <>
      <ul className="tree">
        {children.nodes.map((child) => (
          <li key={child.id}>
            <Link href={resourceAt(child.uuid)}>{child.name}</Link> <span className="dim">{child.type.name}</span>
          </li>
        ))}
      </ul>
      <p className="hint">
        <Link href={resourcesAt({ parent: uuid })}>{children.totalCount > children.nodes.length ? `and ${count(children.totalCount - children.nodes.length, "other resource")}` : "Show them in the table"}</Link>
      </p>
    </>
  );
}

/** Returns the placement request of the resource, if it asks for hosts or amounts. */
const requestOf = ({ placementRequest: request, resource }: ResourcePageQuery) => (request && (resource?.allocationCandidates || asksForHosts(request)) ? request : undefined);

/** Returns the parts of the page that exist. */
function partsOf(page: ResourcePageQuery, resource: Resource, metadata: Part, capabilities: Part | undefined, maySet: boolean): (Part | false | null | undefined)[] {
  const { allocations, provider, allocationCandidates: fits } = resource;
  const broken = resource.metadataReport?.items.filter(({ violations }) => violations.length > 0).length ?? 0;
  const request = requestOf(page);
  const events = page.auditEvents;
  return [
    broken > 0 && { id: "problems", title: "Problems", number: broken, content: <Problems resource={resource} /> },
    request && { id: "candidates", title: "Candidates", content: <Fits fits={fits} request={request} /> },
    allocations && allocations.length > 0 && { id: "allocations", title: "Allocations", action: <Link href={consumerAt(resource.uuid)}>Consumer</Link>, content: <Allocations allocations={allocations} /> },
    metadata,
    capabilities,
    ...(provider ? providerParts(unitsOf(provider.root), provider.uuid, page.resourceType?.resources.nodes ?? [], maySet) : []),
    resource.children.totalCount > 0 && { id: "children", title: "Children", number: resource.children.totalCount, content: <Children resource={resource} /> },
    events && events.totalCount > 0 && { id: "events", title: "Events", number: events.totalCount, action: <Link href={eventsAt("RESOURCE", resource.uuid)}>All events</Link>, content: <Events events={events.nodes} /> },
  ];
}

function Whole({ page, resource, refresh }: { page: ResourcePageQuery; resource: Resource; refresh: () => void }) {
  const viewer = useViewer();
  const [editing, setEditing] = useEditing("fields");
  const [creating, setCreating] = useEditing("provider");
  const [deleting, setDeleting] = useState(false);
  const remove = useChange(deleteDocument);
  const [, go] = useLocation();
  const mayCreate = viewer.createProvider && resource.provider === null && !requestOf(page) && !resource.allocations?.length;
  const above = [resource.parent?.parent?.parent, resource.parent?.parent, resource.parent].filter((one) => one != null);
  return (
    <>
      <PageHead
        above={
          <>
            <Link href="/resources">Resources</Link> / <Link href={resourcesAt({ type: resource.type.name })}>{resource.type.name}</Link>
            {above.map((parent) => (
              <span key={parent.id}>
                {" / "}
                <Link href={resourceAt(parent.uuid)}>{parent.name}</Link>
              </span>
            ))}
          </>
        }
        title={resource.name}
        below={
          <>
            <p className="facts">
              <span className="mono">{resource.uuid}</span>
              <Badge tone={resource.visibility === "PRIVATE" ? "accent" : "plain"}>{resource.visibility.toLowerCase()}</Badge>
              <span>of {resource.projectId}</span>
              <span>
                revision {numberOf(resource.revision)}, changed <Time at={resource.updatedAt} />
              </span>
              {resource.type.strict && <Badge tone="warn">strict</Badge>}
            </p>
            {resource.description && <p className="lead">{resource.description}</p>}
            {resource.tags.length > 0 && (
              <ul className="chips" aria-label="Tags">
                {resource.tags.map((tag) => (
                  <li key={tag}>
                    <Link href={resourcesAt({ tag })} className="chip">
                      {tag}
                    </Link>
                  </li>
                ))}
              </ul>
            )}
          </>
        }
      >
        {resource.viewerCanUpdate && !editing && <Button onPress={() => setEditing(true)}>Edit</Button>}
        {mayCreate && !creating && <Button onPress={() => setCreating(true)}>Create a provider</Button>}
        {resource.viewerCanDelete && (
          <Button danger onPress={() => setDeleting(true)}>
            Delete
          </Button>
        )}
      </PageHead>
      {editing && resource.viewerCanUpdate && <EditResource resource={resource} onClose={() => setEditing(false)} />}
      {creating && mayCreate && <NewProvider resource={resource} onClose={() => setCreating(false)} />}
      {deleting && (
        <Confirm
          title={`Delete ${resource.name}?`}
          action="Delete the resource"
          busy={remove.busy}
          error={remove.error?.message}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            if (await remove.send({ input: { uuid: resource.uuid, revision: resource.revision } })) go("/resources");
          }}
        >
          <p>Its metadata, capabilities and tags are deleted, too.</p>
        </Confirm>
      )}
      <Parts parts={partsOf(page, resource, useMetadata(resource, refresh), useCapabilities(resource, refresh), viewer.setInventories)} />
    </>
  );
}
