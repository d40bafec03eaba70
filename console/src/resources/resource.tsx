// A resource: where it stands, and what is written on it.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { resourceAt, resourcesAt } from "../address";
import { useChange } from "../change";
import { graphql } from "../generated";
import type { ResourcePageQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, RefreshContext, usePage, useTitle } from "../page";
import { Button, Confirm } from "../ui/controls";
import { Section } from "../ui/form";
import { Badge, count, numberOf, Time } from "../ui/show";
import { EditResource } from "./form";
import { Metadata } from "./metadata";

const document = graphql(`
  query ResourcePage($uuid: UUID!) {
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
      metadata {
        id
        key
        value
        userModifiable
        viewerCanUpdate
        viewerCanDelete
      }
      metadataReport {
        valid
        items {
          key
          isCustom
          suggestion
          violations {
            rule
            message
          }
        }
      }
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

export function ResourcePage({ uuid }: { uuid: string }) {
  const asked = usePage(document, { uuid });
  useChanges("resource", [uuid], asked.refresh);
  useTitle(asked.data?.resource?.name ?? "Resource");
  return (
    <Answered asked={asked}>
      {({ resource }) =>
        resource ? (
          <RefreshContext.Provider value={asked.refresh}>
            <Whole key={resource.id} resource={resource} refresh={asked.refresh} />
          </RefreshContext.Provider>
        ) : (
          <>
            <PageHead above={<Link href="/resources">Resources</Link>} title="No such resource" />
            <Empty title="There is no resource with this uuid">It may have been deleted, or you may not see it.</Empty>
          </>
        )
      }
    </Answered>
  );
}

function Whole({ resource, refresh }: { resource: Resource; refresh: () => void }) {
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const remove = useChange(deleteDocument);
  const [, go] = useLocation();
  const above = [resource.parent?.parent?.parent, resource.parent?.parent, resource.parent].filter((one) => one != null);
  const below = resource.children;
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
        {resource.viewerCanDelete && (
          <Button danger onPress={() => setDeleting(true)}>
            Delete
          </Button>
        )}
      </PageHead>
      {editing && <EditResource resource={resource} onClose={() => setEditing(false)} />}
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
          <p>Its metadata, capabilities and tags go with it.</p>
        </Confirm>
      )}
      <Metadata resource={resource} refresh={refresh} />
      {below.totalCount > 0 && (
        <Section title="Below it" number={below.totalCount}>
          <ul className="tree">
            {below.nodes.map((child) => (
              <li key={child.id}>
                <Link href={resourceAt(child.uuid)}>{child.name}</Link> <span className="dim">{child.type.name}</span>
              </li>
            ))}
          </ul>
          <p className="hint">
            <Link href={resourcesAt({ parent: resource.uuid })}>{below.totalCount > below.nodes.length ? `and ${count(below.totalCount - below.nodes.length, "other resource")}` : "Show them in the table"}</Link>
          </p>
        </Section>
      )}
    </>
  );
}
