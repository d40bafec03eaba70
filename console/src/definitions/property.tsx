// The page of a property: its constraints and use, and the form that changes it and shows
// the metadata that would break.
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useClient } from "urql";
import { Link, useLocation } from "wouter";

import { namespaceAt, propertyAt, resourcesAt, useAddress, useEditing } from "../address";
import { fieldsOf, isConflict, useChange } from "../change";
import { graphql } from "../generated";
import type { PropertyPageQuery, PropertyType } from "../generated/graphql";
import { Missing } from "../hub/parts";
import { useChanges } from "../live";
import { Answered, errorOf, Loading, PageHead, RefreshContext, Refusal, useAsk, usePage, useShown, useTitle } from "../page";
import { Button, Check, Confirm, Field, Select } from "../ui/controls";
import { Form, Refused, Section, useRevised } from "../ui/form";
import { Badge, Bar, count, numberOf, Time } from "../ui/show";
import { useEdits } from "../unsaved";
import { Drift, useDryRun } from "./drift";
import { type Draft, draftOf, emptyDraft, nameOfType, read, restrictionsOf, takes, textOfValue, type Wrong, wrongOf } from "./rules";
import { keyOf } from "./uses";

const document = graphql(`
  query PropertyPage($namespace: String!, $name: String!, $object: String!, $inObject: Boolean!) {
    namespace(name: $namespace) {
      id
      name
      displayName
      revision
      resourceTypeAssociations {
        id
        prefix
        propertiesTarget
        resourceType {
          id
          name
          strict
        }
      }
      property(name: $name) @skip(if: $inObject) {
        ...WholeProperty
      }
      object(name: $object) @include(if: $inObject) {
        id
        name
        properties {
          ...WholeProperty
        }
      }
    }
  }
  fragment WholeProperty on PropertyDefinition {
    id
    name
    baseName
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
    readOnly
    required
    operators
    updatedAt
    viewerCanUpdate
    viewerCanDelete
    enumMembers {
      label
      value {
        text
      }
    }
  }
`);

// The values of one key on the resources of one type.
const usesDocument = graphql(`
  query PropertyUses($type: String!, $key: String!) {
    resources(filter: { types: [$type], where: { metadata: { key: $key, exists: true } } }, first: 0) {
      totalCount
      metadataFacets(keys: [$key], first: 6) {
        key
        values {
          value
          resourceCount
        }
      }
    }
  }
`);

const dryRunDocument = graphql(`
  mutation DryRunProperty($input: UpdatePropertyInput!) {
    updateProperty(input: $input, problems: { first: 5 }) {
      problems {
        ...Broken
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditProperty($input: UpdatePropertyInput!) {
    updateProperty(input: $input) {
      propertyDefinition {
        ...WholeProperty
      }
      namespace {
        id
        revision
        updatedAt
      }
    }
  }
`);

const createDocument = graphql(`
  mutation NewProperty($input: CreatePropertyInput!) {
    createProperty(input: $input) {
      propertyDefinition {
        id
        name
      }
      namespace {
        id
        revision
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveProperty($input: DeletePropertyInput!) {
    deleteProperty(input: $input) {
      namespace {
        id
        revision
      }
    }
  }
`);

const mayDocument = graphql(`
  query MayCreateProperty($namespace: String!) {
    namespace(name: $namespace) {
      id
      displayName
      viewerCanUpdate
    }
  }
`);

type Namespace = NonNullable<PropertyPageQuery["namespace"]>;
type Property = NonNullable<Namespace["property"]>;

export function PropertyPage({ namespace, name }: { namespace: string; name: string }) {
  const object = useAddress().get("object");
  const asked = usePage(document, { namespace, name, object, inObject: object !== "" });
  useChanges("namespace", [namespace], asked.refresh);
  const found = asked.data?.namespace;
  const property = object ? found?.object?.properties.find((one) => one.baseName === name) : found?.property;
  useTitle(property?.title ?? name);
  const above = <Above namespace={namespace} title={found?.displayName} object={object} />;
  return (
    <Answered asked={asked}>
      {() =>
        found && property ? (
          <RefreshContext.Provider value={asked.refresh}>
            <Whole key={property.id} namespace={found} object={object} property={property} above={above} />
          </RefreshContext.Provider>
        ) : (
          <>
            <PageHead above={above} title={name} />
            <Missing what="property" links={<Link href={namespaceAt(namespace)}>Its namespace</Link>} />
          </>
        )
      }
    </Answered>
  );
}

function Above({ namespace, title, object }: { namespace: string; title: string | undefined; object: string }) {
  return (
    <>
      <Link href="/definitions">Definitions</Link> / <Link href={namespaceAt(namespace)}>{title ?? namespace}</Link>
      {object && " / " + object}
    </>
  );
}

function Whole({ namespace, object, property, above }: { namespace: Namespace; object: string; property: Property; above: ReactNode }) {
  const [editing, setEditing] = useEditing("fields");
  const [deleting, setDeleting] = useState(false);
  const remove = useChange(deleteDocument);
  const [, go] = useLocation();
  const place = { namespace: namespace.name, ...(object && { object }), name: property.baseName };
  return (
    <>
      <PageHead
        above={above}
        title={property.title}
        below={
          <>
            <p className="facts">
              <span className="mono">{property.baseName}</span>
              <Badge>{nameOfType(property)}</Badge>
              {property.required && <Badge tone="warn">required</Badge>}
              {property.readOnly && <Badge>read-only</Badge>}
              <span>
                changed <Time at={property.updatedAt} />
              </span>
            </p>
            {property.description && <p className="lead">{property.description}</p>}
          </>
        }
      >
        {property.viewerCanUpdate && !editing && (
          <Button primary onPress={() => setEditing(true)}>
            Edit
          </Button>
        )}
        {property.viewerCanDelete && !editing && (
          <Button danger onPress={() => setDeleting(true)}>
            Delete
          </Button>
        )}
      </PageHead>
      {deleting && (
        <Confirm
          title={`Delete ${property.title}?`}
          action="Delete the property"
          busy={remove.busy}
          error={remove.error?.message}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            if (await remove.send({ input: { ...place, revision: namespace.revision } })) go(namespaceAt(namespace.name));
          }}
        >
          <p>Metadata with this key stay on their resources, without a definition.</p>
        </Confirm>
      )}
      {editing && property.viewerCanUpdate ? <Edit namespace={namespace} property={property} place={place} onClose={() => setEditing(false)} /> : <Facts property={property} />}
      <Section title="Used by">
        {namespace.resourceTypeAssociations.length === 0 ? (
          <p className="hint">The namespace applies to no resource type yet.</p>
        ) : (
          <div className="uses">
            {namespace.resourceTypeAssociations.map((one) => (
              <Uses key={one.id} type={one.resourceType.name} target={one.propertiesTarget ?? ""} name={keyOf(one.prefix, property.baseName)} />
            ))}
          </div>
        )}
      </Section>
    </>
  );
}

function Facts({ property }: { property: Property }) {
  const rules = restrictionsOf({ ...property, enum: null, itemEnum: null });
  const members = property.enum ?? property.itemEnum;
  const labels = new Map((property.enumMembers ?? []).map((member) => [member.value.text, member.label]));
  return (
    <dl className="definition">
      <dt>Valid values</dt>
      <dd>
        {members ? (
          <ul className="chips">
            {members.map((member) => {
              const label = labels.get(textOfValue(member));
              return (
                <li key={textOfValue(member)} className="chip mono">
                  {textOfValue(member)}
                  {label && <span className="dim"> {label}</span>}
                </li>
              );
            })}
          </ul>
        ) : (
          rules.length === 0 && `any ${nameOfType(property)}`
        )}
        {rules.join("; ")}
      </dd>
      {property.default != null && (
        <>
          <dt>Default</dt>
          <dd className="mono">{textOfValue(property.default)}</dd>
        </>
      )}
      {property.operators.length > 0 && (
        <>
          <dt>Operators</dt>
          <dd className="mono">{property.operators.join("  ")}</dd>
        </>
      )}
    </dl>
  );
}

function Uses({ type, target, name }: { type: string; target: string; name: string }) {
  const client = useClient();
  const [uses, setUses] = useState<{ total: number; values: readonly { value: string; resourceCount: number }[] }>();
  const [failed, setFailed] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  useChanges("resource", undefined, () => setAttempt((attempt) => attempt + 1));
  useEffect(() => {
    let left = false;
    void client
      .query(usesDocument, { type, key: name }, { requestPolicy: "network-only" })
      .toPromise()
      .then(({ data, error }) => {
        if (left) return;
        setFailed(error && errorOf(error).message);
        if (data) setUses({ total: data.resources.totalCount, values: data.resources.metadataFacets[0]?.values ?? [] });
      });
    return () => {
      left = true;
    };
  }, [client, type, name, attempt]);
  return (
    <section className="use">
      <h3>
        {type}
        {target && <span className="dim"> for {target}</span>}
      </h3>
      <p className="mono">{name}</p>
      {failed && <p className="error">{failed}</p>}
      {uses && (
        <>
          <p>
            {uses.total > 0 ? <Link href={resourcesAt({ type, key: name })}>{count(uses.total, "resource")}</Link> : <span className="dim">no resource yet</span>}
          </p>
          <ul className="bars">
            {uses.values.map(({ value, resourceCount }) => (
              <li key={value}>
                <Link href={resourcesAt({ type, key: name, value })} className="mono">
                  {value}
                </Link>
                <Bar value={resourceCount} most={uses.total} />
                <span className="number">{numberOf(resourceCount)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Edit({ namespace, property, place, onClose }: { namespace: Namespace; property: Property; place: { namespace: string; object?: string; name: string }; onClose: () => void }) {
  const first = useRef(draftOf(property)).current;
  const [draft, setDraft] = useState(first);
  const update = useRevised(updateDocument, namespace.revision);
  const [, go] = useLocation();
  const { input, wrong: local } = useMemo(() => read(draft), [draft]);
  const { name, ...rest } = input;
  const changed = JSON.stringify(draft) !== JSON.stringify(first);
  const before = useMemo(() => read(first).input, [first]) as unknown as Record<string, unknown>;
  // Unchanged fields are not sent: somebody else may have changed them.
  const changes = Object.fromEntries(Object.entries(rest).filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field])));
  const sent = { ...place, ...changes, ...(name !== place.name && { newName: name }) };
  const valid = Object.keys(local).length === 0;
  const dry = useDryRun(dryRunDocument, changed && valid ? sent : undefined, (data) => data.updateProperty.problems);
  const dryWrong = wrongOf(fieldsOf(dry.error));
  const save = async () => {
    const done = await update.send({ input: { ...sent, revision: update.seen } });
    if (!done) return;
    onClose();
    if (name !== place.name) go(propertyAt(place.namespace, name, place.object), { replace: true });
  };
  const refused = wrongOf(isConflict(update.error) ? new Map() : fieldsOf(update.error));
  const said = new Map(Object.entries(refused));
  return (
    <Form label="Edit the property" action={dry.broken && dry.broken.resourceCount > 0 ? "Save anyway" : "Save"} change={update} said={said} disabled={!valid || !changed} onSave={save} onClose={onClose}>
      <DraftFields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} wrong={{ ...refused, ...dryWrong, ...local }} />
      {changed && valid && <Drift asking={dry.asking} broken={dry.broken} failed={isConflict(dry.error) || Object.keys(dryWrong).length > 0 ? undefined : dry.error} />}
    </Form>
  );
}

export function NewPropertyPage({ namespace }: { namespace: string }) {
  const object = useAddress().get("object");
  const [draft, setDraft] = useState(emptyDraft);
  const [tried, setTried] = useState(false);
  const create = useChange(createDocument);
  const [, go] = useLocation();
  useTitle("New property");
  const { input, wrong: local } = useMemo(() => read(draft), [draft]);
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)) as typeof input;
  const variables = { input: { namespace, ...(object && { object }), ...given } };
  useShown(createDocument, variables);
  const refused = wrongOf(fieldsOf(create.error));
  const untouched: Wrong = tried ? {} : { name: undefined, title: undefined }; // no errors for fields that the user has not reached
  const shown = Object.fromEntries(Object.entries({ ...refused, ...local }).filter(([field]) => tried || draft[field as keyof Draft] || !(field in untouched)));
  const edits = useEdits();
  const asked = useAsk(mayDocument, { namespace });
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(local).length > 0) return;
    edits.release();
    const done = await create.send(variables);
    if (done) go(propertyAt(namespace, input.name, object));
    else edits.touch();
  };
  const above = <Above namespace={namespace} title={asked.data?.namespace?.displayName} object={object} />;
  if (!asked.data) return <Loading />;
  if (!asked.data.namespace?.viewerCanUpdate) return <Refusal title="You may not define properties here" above={above} />;
  return (
    <>
      <PageHead above={above} title="New property" />
      <form className="panel form" onSubmit={save} onChange={edits.touch} aria-label="New property">
        <Refused error={Object.keys(refused).length > 0 ? undefined : create.error} />
        <DraftFields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} wrong={shown} fresh />
        <div className="actions">
          <Button primary type="submit" disabled={create.busy}>
            Create
          </Button>
          <Link href={namespaceAt(namespace)} className="button plain" onClick={edits.release}>
            Cancel
          </Link>
        </div>
      </form>
    </>
  );
}

const types = (["STRING", "INTEGER", "NUMBER", "BOOLEAN", "ARRAY"] as const).map((value) => ({ value, label: { STRING: "Text", INTEGER: "Whole number", NUMBER: "Number", BOOLEAN: "True or false", ARRAY: "List" }[value] }));

function DraftFields({ draft, onChange, wrong, fresh }: { draft: Draft; onChange: (part: Partial<Draft>) => void; wrong: Wrong; fresh?: boolean }) {
  const text = (field: keyof Draft, label: string, more: Partial<Parameters<typeof Field>[0]> = {}) => (
    <Field label={label} value={draft[field] as string} onChange={(value) => onChange({ [field]: value })} error={wrong[field]} {...more} />
  );
  return (
    <>
      <div className="pair">
        {text("name", "Name", { mono: true, required: true, ...(fresh && { autoFocus: true }), hint: "The key without the prefix of the resource type." })}
        {text("title", "Title", { required: true })}
      </div>
      {text("description", "Description", { lines: 2 })}
      <div className="pair">
        <Select label="Type" value={draft.type} onChange={(type) => onChange({ type: type as PropertyType })} choices={types} error={wrong.type} />
        {takes.items(draft) && <Select label="Type of each item" value={draft.itemType} onChange={(itemType) => onChange({ itemType: itemType as PropertyType })} choices={types.filter((type) => type.value !== "ARRAY")} error={wrong.itemType} />}
      </div>
      {takes.members(draft) && text("members", takes.items(draft) ? "Valid items" : "Valid values", { lines: 4, mono: true, hint: "One per line. Empty: any value is valid." })}
      {takes.range(draft) && (
        <div className="pair">
          {text("minimum", "Minimum", { type: "number" })}
          {text("maximum", "Maximum", { type: "number" })}
        </div>
      )}
      {takes.length(draft) && (
        <>
          <div className="pair">
            {text("minLength", "Minimum length", { type: "number" })}
            {text("maxLength", "Maximum length", { type: "number" })}
          </div>
          {text("pattern", "Pattern", { mono: true, hint: "A regular expression that matches a part of each valid value." })}
        </>
      )}
      {takes.items(draft) && (
        <>
          <div className="pair">
            {text("minItems", "Minimum number of items", { type: "number" })}
            {text("maxItems", "Maximum number of items", { type: "number" })}
          </div>
          <Check label="Unique items" checked={draft.uniqueItems} onChange={(uniqueItems) => onChange({ uniqueItems })} />
        </>
      )}
      <div className="pair">
        {text("default", "Default", { mono: true })}
        {text("operators", "Operators", { mono: true, hint: "Separate operators with spaces. For requirements." })}
      </div>
      <Check label="Read-only" checked={draft.readOnly} onChange={(readOnly) => onChange({ readOnly })} />
    </>
  );
}
