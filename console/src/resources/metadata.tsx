// The metadata of a resource, and their editor: it validates changes during typing, and
// saves all of them or none.
import { useEffect, useMemo, useState } from "react";
import { useClient } from "urql";
import { Link } from "wouter";

import { namespaceAt, propertyAt, useEditing } from "../address";
import { useChange } from "../change";
import { nameOfType } from "../definitions/rules";
import { graphql } from "../generated";
import type { CheckMetadataQuery } from "../generated/graphql";
import type { Part } from "../hub/parts";
import { errorOf, Loading, useAsk } from "../page";
import { Button } from "../ui/controls";
import { Badge, Note } from "../ui/show";
import { KeyedForm, Row, useKeyed } from "./keyed";
import type { Resource } from "./resource";
import { type Definition, Widget } from "./widgets";

const definitionsDocument = graphql(`
  query OfferedDefinitions($type: String!) {
    definitions(resourceType: $type) {
      id
      namespace {
        id
        name
        displayName
      }
      properties {
        ...Offered
      }
      objects {
        id
        name
        required
        properties {
          ...Offered
        }
      }
      conflicts {
        name
      }
    }
  }
  fragment Offered on PropertyDefinition {
    id
    name
    baseName
    title
    description
    type
    itemType
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
    operators
    offeredOperators
    enumMembers {
      label
      value {
        text
      }
    }
    itemEnumMembers {
      label
      value {
        text
      }
    }
    defaultValue {
      text
    }
  }
`);

const checkDocument = graphql(`
  query CheckMetadata($resource: UUID, $type: String, $values: [KeyValueInput!]!) {
    validateMetadata(resource: $resource, resourceType: $type, values: $values) {
      valid
      accepted
      items {
        key
        isCustom
        suggestion
        accepted
        violations {
          rule
          message
        }
      }
    }
  }
`);

graphql(`
  fragment MetadataOfResource on Resource {
    metadata {
      id
      key
      value
      userModifiable
      viewerCanUpdate
      viewerCanDelete
      definitions {
        id
        baseName
        title
        namespace {
          id
          name
          displayName
        }
        object {
          id
          name
        }
      }
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
`);

const saveDocument = graphql(`
  mutation SaveMetadata($input: ReplaceMetadataInput!) {
    replaceMetadata(input: $input) {
      resource {
        id
        revision
        updatedAt
        ...MetadataOfResource
      }
    }
  }
`);

/** A definition with the namespace and the object that it belongs to. */
interface Offer {
  readonly definition: Definition;
  readonly namespace: { readonly name: string; readonly displayName: string };
  readonly object: string | undefined;
  /** The keys that the object requires. */
  readonly required: readonly string[];
  readonly inConflict: boolean;
}

/** Returns the definitions of a resource type by key: none until the server has answered. */
export function useOffers(type: string): { offers: ReadonlyMap<string, Offer>; loading: boolean } {
  const asked = useAsk(definitionsDocument, { type }, type === "");
  const offers = useMemo(() => {
    const offers = new Map<string, Offer>();
    for (const { namespace, properties, objects, conflicts } of asked.data?.definitions ?? []) {
      const inConflict = (key: string) => conflicts.some((conflict) => conflict.name === key);
      const add = (definition: Definition, object: string | undefined, required: readonly string[]) => {
        if (!offers.has(definition.name)) offers.set(definition.name, { definition, namespace, object, required, inConflict: inConflict(definition.name) });
      };
      for (const definition of properties) add(definition, undefined, []);
      for (const object of objects) for (const definition of object.properties) add(definition, object.name, object.required);
    }
    return offers;
  }, [asked.data]);
  return { offers, loading: asked.loading };
}

/** Returns the metadata of a resource as a part of its page, or their editor. */
export function useMetadata(resource: Resource, refresh: () => void): Part {
  const [editing, setEditing] = useEditing("metadata");
  return {
    id: "metadata",
    title: "Metadata",
    number: resource.metadata.length,
    action: resource.viewerCanUpdate && !editing && <Button onPress={() => setEditing(true)}>Edit metadata</Button>,
    content:
      editing && resource.viewerCanUpdate ? (
        <Editor resource={resource} refresh={refresh} onClose={() => setEditing(false)} />
      ) : resource.metadata.length === 0 ? (
        <p className="hint">There are no metadata yet.</p>
      ) : (
        <Items resource={resource} />
      ),
  };
}

type Item = Resource["metadata"][number];

/** Returns items by the namespace that defines them; custom ones last. */
function groupsOf(items: readonly Item[]): { title: string; namespace: string | undefined; items: Item[] }[] {
  const groups = new Map<string, { title: string; namespace: string | undefined; items: Item[] }>();
  for (const item of items) {
    const namespace = item.definitions[0]?.namespace;
    const group = groups.get(namespace?.name ?? "") ?? { title: namespace?.displayName ?? "Custom", namespace: namespace?.name, items: [] };
    group.items.push(item);
    groups.set(namespace?.name ?? "", group);
  }
  return [...groups.values()].sort((a, b) => Number(!a.namespace) - Number(!b.namespace) || a.title.localeCompare(b.title));
}

function Items({ resource }: { resource: Resource }) {
  const report = new Map((resource.metadataReport?.items ?? []).map((item) => [item.key, item]));
  return (
    <div className="scroll">
      <table className="metadata">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        {groupsOf(resource.metadata).map(({ title, namespace, items }) => (
          <tbody key={title}>
            <tr className="group-row">
              <th scope="rowgroup" colSpan={2}>
                {namespace ? <Link href={namespaceAt(namespace)}>{title}</Link> : title}
              </th>
            </tr>
            {items.map((item) => {
              const [definition, ...others] = item.definitions;
              const said = report.get(item.key);
              return (
                <tr key={item.id}>
                  <th scope="row">
                    {definition ? <Link href={propertyAt(definition.namespace.name, definition.baseName, definition.object?.name)}>{definition.title}</Link> : item.key} {others.length > 0 && <Badge tone="warn">several definitions</Badge>}
                    {definition && <span className="mono below-name">{item.key}</span>}
                    {said?.suggestion && <span className="below-name">Did you mean {said.suggestion}?</span>}
                  </th>
                  <td>
                    <span className="mono">{item.value}</span> {!item.userModifiable && <Badge>read-only</Badge>}
                    {said?.violations.map((violation) => (
                      <span className="error below-name" key={violation.rule + violation.message}>
                        {violation.message}
                      </span>
                    ))}
                  </td>
                </tr>
              );
            })}
          </tbody>
        ))}
      </table>
    </div>
  );
}

type Checked = CheckMetadataQuery["validateMetadata"]["items"][number];

/** Validates values on a resource, or on a type, after a pause in typing. */
export function useCheck(on: { readonly resource: string } | { readonly type: string } | undefined, given: Readonly<Record<string, string | null>>): { items: ReadonlyMap<string, Checked>; failed: string | undefined } {
  const client = useClient();
  const values = Object.entries(given).flatMap(([key, value]) => (value === null || value === "" ? [] : [{ key, value }]));
  const text = JSON.stringify({ on, values });
  const [answer, setAnswer] = useState<{ items: ReadonlyMap<string, Checked>; failed: string | undefined }>({ items: new Map(), failed: undefined });
  useEffect(() => {
    const { on, values } = JSON.parse(text) as { on?: object; values: { key: string; value: string }[] };
    if (!on) return;
    let left = false;
    const timer = setTimeout(async () => {
      const { data, error } = await client.query(checkDocument, { ...on, values }, { requestPolicy: "network-only" }).toPromise();
      if (!left) setAnswer({ items: new Map((data?.validateMetadata.items ?? []).map((item) => [item.key, item])), failed: error && errorOf(error).message });
    }, 200);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, text]);
  return answer;
}

function Editor({ resource, refresh, onClose }: { resource: Resource; refresh: () => void; onClose: () => void }) {
  const { offers, loading } = useOffers(resource.type.name);
  const save = useChange(saveDocument);
  const stored = useMemo(() => new Map(resource.metadata.map((item) => [item.key, item])), [resource.metadata]);
  const values = useKeyed(useMemo(() => new Map(resource.metadata.map(({ key, value }) => [key, value])), [resource.metadata]));
  const check = useCheck({ resource: resource.uuid }, Object.fromEntries([...values.edits].map(([key, { value }]) => [key, value])));
  const report = new Map((resource.metadataReport?.items ?? []).map((item) => [item.key, item]));
  const add = (key: string) => {
    const wanted = [key, ...(offers.get(key)?.required ?? [])].filter((one) => !stored.has(one) && values.valueOf(one) == null);
    for (const one of wanted) values.change(one, offers.get(one)?.definition.defaultValue?.text ?? "");
  };

  const keys = [...new Set([...stored.keys(), ...values.edits.keys()])].sort();
  const close = () => (values.release(), onClose());
  const send = async () => {
    const items = keys.flatMap((key) => {
      if (!values.edits.has(key) && stored.get(key)?.userModifiable === false) return []; // stays without being sent
      const value = values.valueOf(key);
      return value == null ? [] : [{ key, value }];
    });
    const done = await save.send({ input: { resource: resource.uuid, items, revision: resource.revision } });
    if (done) close();
    else refresh(); // the next answer has the change of another client
  };
  const choices = [...offers].filter(([key]) => !keys.includes(key)).map(([key, { definition, namespace }]) => ({ value: key, label: `${definition.title} — ${key} (${namespace.displayName})` }));
  if (loading) return <Loading />;
  return (
    <KeyedForm
      label="Edit metadata"
      revision={resource.revision}
      of={[[values, ""]]}
      changed={values.edits.size}
      busy={save.busy}
      wrong={[...values.edits.values()].some(({ value }) => value === "")}
      error={save.error}
      notes={check.failed && <Note>{check.failed}</Note>}
      adding={{ label: "Add a key", hint: "A defined key or any other.", choices, has: (key) => keys.includes(key), onAdd: add }}
      onSave={send}
      onClose={close}
    >
      <ul className="editor-items">
        {keys.map((key) => {
          const item = stored.get(key);
          const edited = values.edits.has(key);
          const offer = offers.get(key);
          const value = values.valueOf(key) ?? null;
          const said = edited ? check.items.get(key) : report.get(key);
          const error = value === "" ? "Enter a value." : said?.violations.map((violation) => violation.message).join("; ") || undefined;
          const locked = item !== undefined && !item.viewerCanUpdate;
          return (
            <Row
              key={key}
              name={key}
              title={offer?.definition.title ?? key}
              about={(offer ? `${nameOfType(offer.definition)}, ${offer.namespace.displayName}` : "custom") + (item && !item.userModifiable ? ", read-only" : "")}
              hint={said?.suggestion ? `did you mean ${said.suggestion}?` : undefined}
              edited={edited}
              deleted={value === null}
              onUndo={() => values.drop(key)}
              onDelete={item?.viewerCanDelete && item.userModifiable ? () => values.change(key, null) : undefined}
            >
              {locked ? <span className="mono">{value}</span> : <Widget label={key} definition={offer?.definition} value={value ?? ""} onChange={(value) => values.change(key, value)} error={error} />}
            </Row>
          );
        })}
      </ul>
    </KeyedForm>
  );
}
