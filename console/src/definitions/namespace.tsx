// The page of a namespace: its definitions and their use; and the form of a new one.
import { type FormEvent, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";

import { namespaceAt, newPropertyAt, propertyAt, useEditing } from "../address";
import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { NamespacePageQuery, Visibility } from "../generated/graphql";
import { Missing } from "../hub/parts";
import { useChanges } from "../live";
import { Answered, PageHead, RefreshContext, Refusal, useAsk, usePage, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, Check, Combo, Confirm, Field, Select } from "../ui/controls";
import { Form, Refused, Section, useRevised } from "../ui/form";
import { Badge, count, numberOf, Time } from "../ui/show";
import { useEdits } from "../unsaved";
import { Associations } from "./associations";
import { Export } from "./export";
import { Members } from "./members";
import { NewObject, ObjectSection } from "./objects";
import { nameOfType, restrictionsOf, textOfValue } from "./rules";
import { Tags } from "./tags";
import { countOf } from "./uses";

const document = graphql(`
  query NamespacePage($name: String!) {
    namespace(name: $name) {
      id
      name
      displayName
      description
      visibility
      protected
      owner
      origin
      revision
      updatedAt
      viewerCanUpdate
      viewerCanDelete
      resourceTypeAssociations {
        ...Association
      }
      properties {
        ...PropertyRow
      }
      objects {
        ...Object
      }
      tags {
        ...TagRow
      }
      members {
        ...Member
      }
    }
  }
  fragment PropertyRow on PropertyDefinition {
    id
    name
    title
    description
    type
    itemType
    enum
    itemEnum
    default
    minimum
    maximum
    minLength
    maxLength
    pattern
    minItems
    maxItems
    uniqueItems
    required
  }
`);

// The number of resources with each key. A query of its own, because it is slower than the page.
const usesDocument = graphql(`
  query NamespaceUses($name: String!) {
    namespace(name: $name) {
      id
      resourceTypeAssociations {
        id
        prefix
        resourceType {
          id
          name
          resources(first: 0) {
            facets(of: [{ by: METADATA_KEY, first: 1000 }]) {
              values {
                value
                resourceCount
              }
            }
          }
        }
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditNamespace($input: UpdateNamespaceInput!) {
    updateNamespace(input: $input) {
      namespace {
        id
        name
        displayName
        description
        visibility
        protected
        revision
        updatedAt
        viewerCanDelete
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveNamespace($input: DeleteNamespaceInput!) {
    deleteNamespace(input: $input) {
      namespace {
        name
      }
    }
  }
`);

export type Namespace = NonNullable<NamespacePageQuery["namespace"]>;
type Row = Namespace["properties"][number];
type Counts = (property: string) => number;

export function NamespacePage({ name }: { name: string }) {
  const asked = usePage(document, { name });
  const uses = useAsk(usesDocument, { name }, !asked.data?.namespace);
  useChanges("namespace", [name], asked.refresh);
  useChanges("resource", undefined, uses.refresh);
  useTitle(asked.data?.namespace?.displayName ?? name);
  const counts = useMemo(() => {
    const found = uses.data?.namespace?.resourceTypeAssociations.map(({ prefix, resourceType: { name, resources } }) => ({
      type: name,
      prefix,
      counts: new Map(resources.facets[0]?.values.map(({ value, resourceCount }) => [value, resourceCount])),
    }));
    return found && ((name: string) => countOf(found, name));
  }, [uses.data]);
  return (
    <Answered asked={asked}>
      {({ namespace }) =>
        namespace ? (
          <RefreshContext.Provider value={asked.refresh}>
            <Whole key={namespace.id} namespace={namespace} counts={counts} />
          </RefreshContext.Provider>
        ) : (
          <>
            <PageHead above={<Link href="/definitions">Definitions</Link>} title={name} />
            <Missing what="namespace" links={<Link href="/definitions">All namespaces</Link>} />
          </>
        )
      }
    </Answered>
  );
}

function Whole({ namespace, counts }: { namespace: Namespace; counts: Counts | undefined }) {
  const viewer = useViewer();
  const manages = viewer.rules.includes("DEFINITIONS_WRITE") || (viewer.createNamespace && viewer.shareNamespace && viewer.projectId === namespace.owner);
  const [editing, setEditing] = useEditing("fields");
  const [deleting, setDeleting] = useState(false);
  const remove = useChange(deleteDocument);
  const [, go] = useLocation();
  const rows = (properties: readonly Row[], object?: string) => (
    <Properties namespace={namespace.name} {...(object ? { object } : {})} properties={properties} counts={counts} />
  );
  return (
    <>
      <PageHead
        above={<Link href="/definitions">Definitions</Link>}
        title={namespace.displayName}
        below={
          <>
            <p className="facts">
              <span className="mono">{namespace.name}</span>
              <Badge tone={namespace.visibility === "PRIVATE" ? "accent" : "plain"}>{namespace.visibility.toLowerCase()}</Badge>
              {namespace.protected && <Badge>protected</Badge>}
              <span>owned by {namespace.owner}</span>
              {namespace.origin && <span>from {namespace.origin}</span>}
              <span>
                revision {numberOf(namespace.revision)}, changed <Time at={namespace.updatedAt} />
              </span>
            </p>
            {namespace.description && <p className="lead">{namespace.description}</p>}
          </>
        }
      >
        <Export name={namespace.name} />
        {namespace.viewerCanUpdate && !editing && <Button onPress={() => setEditing(true)}>Edit</Button>}
        {namespace.viewerCanDelete && (
          <Button danger onPress={() => setDeleting(true)}>
            Delete
          </Button>
        )}
        {namespace.viewerCanUpdate && (
          <Link href={newPropertyAt(namespace.name)} className="button primary">
            New property
          </Link>
        )}
      </PageHead>
      {editing && namespace.viewerCanUpdate && <EditNamespace namespace={namespace} manages={manages} onClose={() => setEditing(false)} />}
      {deleting && (
        <Confirm
          title={`Delete ${namespace.displayName}?`}
          action="Delete the namespace"
          busy={remove.busy}
          error={remove.error?.message}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            if (await remove.send({ input: { name: namespace.name, revision: namespace.revision } })) go("/definitions");
          }}
        >
          <p>
            {count(namespace.properties.length, "property", "properties")} and {count(namespace.objects.length, "object")} go with it. Metadata on resources stay, and are without a definition then.
          </p>
        </Confirm>
      )}
      <Associations namespace={namespace} manages={manages} />
      <Section title="Properties" number={namespace.properties.length}>
        {namespace.properties.length === 0 ? <p className="hint">The namespace has no properties of its own.</p> : rows(namespace.properties)}
      </Section>
      {namespace.objects.map((object) => (
        <ObjectSection key={object.id} namespace={namespace} object={object}>
          {rows(object.properties, object.name)}
        </ObjectSection>
      ))}
      {namespace.viewerCanUpdate && <NewObject namespace={namespace} />}
      <Tags namespace={namespace} />
      <Members namespace={namespace} manages={manages} />
    </>
  );
}

function Properties({ namespace, object, properties, counts }: { namespace: string; object?: string; properties: readonly Row[]; counts: Counts | undefined }) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Property</th>
            <th scope="col">Type</th>
            <th scope="col" className="wide">
              Valid values
            </th>
            <th scope="col" className="wide">
              Default
            </th>
            <th scope="col" className="number">
              Resources
            </th>
          </tr>
        </thead>
        <tbody>
          {properties.map((property) => (
            <tr key={property.id}>
              <th scope="row">
                <Link href={propertyAt(namespace, property.name, object)}>{property.title}</Link>
                <span className="mono below-name">{property.name}</span>
                {property.required && <Badge tone="warn">required</Badge>}
              </th>
              <td className="nowrap">{nameOfType(property)}</td>
              <td className="wide">{restrictionsOf(property).join("; ") || <span className="dim">any</span>}</td>
              <td className="wide mono">{property.default == null ? "" : textOfValue(property.default)}</td>
              <td className="number">{counts ? numberOf(counts(property.name)) : <span className="dim">…</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function EditNamespace({ namespace, manages, onClose }: { namespace: Namespace; manages: boolean; onClose: () => void }) {
  const [first] = useState(namespace); // concurrent changes by others are not overwritten
  const [displayName, setDisplayName] = useState(namespace.displayName);
  const [description, setDescription] = useState(namespace.description ?? "");
  const [isPrivate, setPrivate] = useState(namespace.visibility === "PRIVATE");
  const [isProtected, setProtected] = useState(namespace.protected);
  const update = useRevised(updateDocument, namespace.revision);
  const wrong = fieldsOf(update.error);
  const save = async () => {
    const visibility: Visibility = isPrivate ? "PRIVATE" : "PUBLIC";
    const done = await update.send({
      input: {
        name: namespace.name,
        revision: update.seen,
        ...(displayName !== first.displayName && { displayName }),
        ...(description !== (first.description ?? "") && { description }),
        ...(visibility !== first.visibility && { visibility }),
        ...(isProtected !== first.protected && { protected: isProtected }),
      },
    });
    if (done) onClose();
  };
  return (
    <Form label="Edit the namespace" change={update} onSave={save} onClose={onClose}>
      <Field label="Display name" value={displayName} onChange={setDisplayName} error={wrong.get("input.displayName")} autoFocus />
      <Field label="Description" lines={3} value={description} onChange={setDescription} error={wrong.get("input.description")} />
      {manages && (
        <>
          <Check label="Private: visible to the owning project and the projects it is shared with" checked={isPrivate} onChange={setPrivate} />
          <Check label="Protected: cannot be deleted" checked={isProtected} onChange={setProtected} />
        </>
      )}
    </Form>
  );
}

const createDocument = graphql(`
  mutation NewNamespace($input: CreateNamespaceInput!) {
    createNamespace(input: $input) {
      namespace {
        id
        name
      }
    }
  }
`);

const typesDocument = graphql(`
  query TypesForNamespace {
    resourceTypes(first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

export function NewNamespacePage() {
  const viewer = useViewer();
  const types = usePage(typesDocument, {});
  const create = useChange(createDocument);
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [displayName, setDisplayName] = useState("");
  const [description, setDescription] = useState("");
  const [visibility, setVisibility] = useState<Visibility>("PRIVATE");
  const [associations, setAssociations] = useState([{ resourceType: "", prefix: "" }]);
  const [tried, setTried] = useState(false);
  useTitle("New namespace");
  const wrong = fieldsOf(create.error);
  const trimmed = name.trim();
  const local = !trimmed ? (tried ? "A namespace needs a name." : undefined) : [...trimmed].length > 80 ? "A name has 80 characters at most." : trimmed.includes("/") ? "A name must not contain a slash." : undefined;
  const edits = useEdits();
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (!trimmed || local) return;
    edits.release();
    const resourceTypeAssociations = associations
      .filter((one) => one.resourceType.trim())
      .map((one) => ({ resourceType: one.resourceType.trim(), ...(one.prefix.trim() && { prefix: one.prefix.trim() }) }));
    const done = await create.send({ input: { name: trimmed, visibility, ...(displayName.trim() && { displayName: displayName.trim() }), ...(description.trim() && { description: description.trim() }), resourceTypeAssociations } });
    if (done) go(namespaceAt(trimmed));
    else edits.touch();
  };
  const choices = (types.data?.resourceTypes.nodes ?? []).map((type) => ({ value: type.name, label: type.name }));
  const change = (at: number, part: Partial<(typeof associations)[number]>) => setAssociations(associations.map((one, index) => (index === at ? { ...one, ...part } : one)));
  const general = create.error && wrong.size === 0 ? create.error : undefined;
  if (!viewer.createNamespace) return <Refusal title="You may not create namespaces" above={<Link href="/definitions">Definitions</Link>} />;
  return (
    <>
      <PageHead above={<Link href="/definitions">Definitions</Link>} title="New namespace" />
      <form className="panel form" onSubmit={save} onChange={edits.touch} aria-label="New namespace">
        <Refused error={general} />
        <Field label="Name" required mono autoFocus value={name} onChange={setName} error={local ?? wrong.get("input.name")} hint="Unique in the cloud, for example ACME::Licences." />
        <Field label="Display name" value={displayName} onChange={setDisplayName} error={wrong.get("input.displayName")} />
        <Field label="Description" lines={3} value={description} onChange={setDescription} error={wrong.get("input.description")} />
        <Select
          label="Visibility"
          value={visibility}
          onChange={(value) => setVisibility(value as Visibility)}
          choices={[
            { value: "PRIVATE", label: "Private: your project and the projects it is shared with" },
            { value: "PUBLIC", label: "Public: everyone" },
          ]}
        />
        <fieldset>
          <legend>Applies to</legend>
          {associations.map((one, at) => (
            <div className="pair" key={at}>
              <Combo label={`Resource type ${at + 1}`} value={one.resourceType} onChange={(resourceType) => change(at, { resourceType })} choices={choices} error={wrong.get(`input.resourceTypeAssociations[${at}].resourceType`)} />
              <Field label={`Prefix ${at + 1}`} mono value={one.prefix} onChange={(prefix) => change(at, { prefix })} placeholder="none, or hw:" error={wrong.get(`input.resourceTypeAssociations[${at}].prefix`)} />
            </div>
          ))}
          <Button quiet onPress={() => setAssociations([...associations, { resourceType: "", prefix: "" }])}>
            Another resource type
          </Button>
        </fieldset>
        <div className="actions">
          <Button primary type="submit" disabled={create.busy}>
            Create
          </Button>
          <Link href="/definitions" className="button plain" onClick={edits.release}>
            Cancel
          </Link>
        </div>
      </form>
    </>
  );
}
