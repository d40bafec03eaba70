// The pages of a provider and of a consumer, each from one query.
import { useState } from "react";
import { Link } from "wouter";

import { eventsAt, pictureAt, providerAt, resourceAt } from "../address";
import { Events } from "../audit/events";
import { useChange } from "../change";
import { graphql } from "../generated";
import type { ConsumerPageQuery, ProviderPageQuery } from "../generated/graphql";
import { Answered, PageHead, RefreshContext, usePage, useTitle } from "../page";
import { releaseDocument } from "../placement/provider";
import { useViewer } from "../session";
import { Button, Confirm } from "../ui/controls";
import { Badge, numberOf, Time } from "../ui/show";
import { Missing, Parts } from "./parts";
import { Allocations, providerParts } from "./provider";
import { unitsOf, useTree } from "./units";

const providerDocument = graphql(`
  query ProviderPage($uuid: UUID!, $key: String!, $audit: Boolean!, $follow: Boolean!, $resources: Boolean!) {
    resourceProvider(uuid: $uuid) {
      id
      uuid
      name
      generation
      createdAt
      updatedAt
      parent {
        id
        uuid
        name
      }
      resource @include(if: $resources) {
        id
        uuid
        name
      }
      root {
        id
        uuid
        name
        resource @include(if: $resources) {
          id
          uuid
          name
        }
        ...HubTree
      }
    }
    resourceType(name: "OS::Nova::Aggregate") @include(if: $resources) {
      id
      resources(first: 250) {
        nodes {
          id
          uuid
          name
        }
      }
    }
    auditEvents(filter: { kind: RESOURCE_PROVIDER, key: $key }, first: 8) @include(if: $audit) {
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

const consumerDocument = graphql(`
  query ConsumerPage($uuid: UUID!, $key: String!, $audit: Boolean!, $resources: Boolean!) {
    consumer(uuid: $uuid) {
      id
      uuid
      type
      projectId
      userId
      generation
      createdAt
      updatedAt
      viewerCanDelete
      resource @include(if: $resources) {
        id
        uuid
        name
      }
      allocations {
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
      mappings {
        suffix
        providers {
          id
          uuid
          name
        }
      }
    }
    auditEvents(filter: { kind: CONSUMER, key: $key }, first: 8) @include(if: $audit) {
      totalCount
      nodes {
        ...Event
      }
    }
  }
`);

type ProviderOfPage = NonNullable<ProviderPageQuery["resourceProvider"]>;

const providersLink = <Link href="/placement">Placement</Link>;

export function ProviderPage({ uuid }: { uuid: string }) {
  const viewer = useViewer();
  const asked = usePage(providerDocument, { uuid, key: uuid, audit: viewer.audit, follow: viewer.changes, resources: viewer.resources });
  useTree(asked.data?.changes?.latest, asked.data?.resourceProvider?.root, asked.refresh);
  useTitle(asked.data ? (asked.data.resourceProvider?.name ?? "Not found") : "Provider");
  return (
    <Answered asked={asked}>
      {({ resourceProvider: provider, resourceType, auditEvents: events }) =>
        provider ? (
          <RefreshContext.Provider value={asked.refresh}>
            <ProviderHead provider={provider} />
            <Parts
              key={provider.id}
              parts={[
                ...providerParts(unitsOf(provider.root), provider.uuid, resourceType?.resources.nodes ?? [], viewer.setInventories),
                events && events.totalCount > 0 && { id: "events", title: "Events", number: events.totalCount, action: <Link href={eventsAt("RESOURCE_PROVIDER", uuid)}>All events</Link>, content: <Events events={events.nodes} /> },
              ]}
            />
          </RefreshContext.Provider>
        ) : (
          <>
            <PageHead above={providersLink} title="Not found" />
            <Missing
              what="provider"
              links={
                <>
                  <Link href="/placement?view=table">All providers</Link>
                  {viewer.resources && <Link href={resourceAt(uuid)}>A resource with this uuid</Link>}
                  {viewer.audit && <Link href={eventsAt("RESOURCE_PROVIDER", uuid)}>Its events</Link>}
                </>
              }
            />
          </>
        )
      }
    </Answered>
  );
}

function ProviderHead({ provider: { uuid, name, generation, updatedAt, parent, root, resource } }: { provider: ProviderOfPage }) {
  return (
    <PageHead
      above={
        <>
          {providersLink}
          {root.uuid !== uuid && (
            <>
              {" / "}
              <Link href={providerAt(root.uuid)}>{root.name}</Link>
            </>
          )}
          {parent && parent.uuid !== root.uuid && (
            <>
              {" / "}
              <Link href={providerAt(parent.uuid)}>{parent.name}</Link>
            </>
          )}
        </>
      }
      title={name}
      below={
        <p className="facts">
          <span className="mono">{uuid}</span>
          <Badge>provider</Badge>
          {resource && (
            <span>
              resource <Link href={resourceAt(resource.uuid)}>{resource.name}</Link>
            </span>
          )}
          {!resource && root.resource && (
            <span>
              host <Link href={resourceAt(root.resource.uuid)}>{root.resource.name}</Link>
            </span>
          )}
          <span>
            generation {numberOf(generation)}, changed <Time at={updatedAt} />
          </span>
        </p>
      }
    />
  );
}

type ConsumerOfPage = NonNullable<ConsumerPageQuery["consumer"]>;

export function ConsumerPage({ uuid }: { uuid: string }) {
  const viewer = useViewer();
  const asked = usePage(consumerDocument, { uuid, key: uuid, audit: viewer.audit, resources: viewer.resources });
  const consumer = asked.data?.consumer;
  useTitle(asked.data ? (consumer?.resource?.name ?? (consumer ? "Consumer" : "Not found")) : "Consumer");
  return (
    <Answered asked={asked}>
      {({ consumer, auditEvents: events }) => (
        <>
          {consumer ? <ConsumerHead consumer={consumer} refresh={asked.refresh} /> : <PageHead above={providersLink} title="Not found" />}
          {!consumer && <Missing what="consumer" links={viewer.resources ? <Link href={resourceAt(uuid)}>A resource with this uuid</Link> : providersLink} />}
          <Parts
            key={uuid}
            parts={[
              consumer && { id: "allocations", title: "Allocations", content: <Allocations allocations={consumer.allocations} /> },
              consumer && consumer.mappings.length > 0 && { id: "groups", title: "Request groups", number: consumer.mappings.length, content: <Groups mappings={consumer.mappings} /> },
              events && events.totalCount > 0 && { id: "events", title: "Events", number: events.totalCount, action: <Link href={eventsAt("CONSUMER", uuid)}>All events</Link>, content: <Events events={events.nodes} /> },
            ]}
          />
        </>
      )}
    </Answered>
  );
}

function ConsumerHead({ consumer, refresh }: { consumer: ConsumerOfPage; refresh: () => void }) {
  const { uuid, type, projectId, userId, generation, updatedAt, resource, viewerCanDelete, allocations } = consumer;
  const [releasing, setReleasing] = useState(false);
  const release = useChange(releaseDocument);
  return (
    <PageHead
      above={providersLink}
      title={resource?.name ?? "Consumer"}
      below={
        <p className="facts">
          <span className="mono">{uuid}</span>
          {type && <Badge>{type.toLowerCase()}</Badge>}
          <span>
            project {projectId}, user {userId}
          </span>
          {resource && (
            <span>
              resource <Link href={resourceAt(resource.uuid)}>{resource.name}</Link>
            </span>
          )}
          <span>
            generation {numberOf(generation)}, changed <Time at={updatedAt} />
          </span>
          {allocations[0] && <Link href={pictureAt({ at: allocations[0].provider.uuid })}>Show on the picture</Link>}
        </p>
      }
    >
      {viewerCanDelete && (
        <Button danger onPress={() => setReleasing(true)}>
          Release
        </Button>
      )}
      {releasing && (
        <Confirm
          title="Release all allocations?"
          action="Release"
          busy={release.busy}
          error={release.error?.message}
          onClose={() => setReleasing(false)}
          onConfirm={async () => {
            if (!(await release.send({ input: { consumer: uuid } }))) return;
            setReleasing(false);
            refresh();
          }}
        >
          <p>Others can claim the amounts immediately.</p>
        </Confirm>
      )}
    </PageHead>
  );
}

function Groups({ mappings }: { mappings: ConsumerOfPage["mappings"] }) {
  return (
    <ul>
      {mappings.map(({ suffix, providers }) => (
        <li key={suffix}>
          <b className="mono">{suffix || "without suffix"}</b>{" "}
          {providers.map(({ uuid, name }, at) => (
            <span key={uuid}>
              {at > 0 && ", "}
              <Link href={providerAt(uuid)}>{name}</Link>
            </span>
          ))}
        </li>
      ))}
    </ul>
  );
}
