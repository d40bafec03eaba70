// The metadata of a resource, and their editor: it validates changes during typing, and
// saves all of them or none.
import { type FormEvent, useEffect, useMemo, useState } from "react";
import { useClient } from "urql";
import { Link } from "wouter";

import { namespaceAt, propertyAt, useEditing } from "../address";
import { isConflict, useChange } from "../change";
import { nameOfType } from "../definitions/rules";
import { graphql } from "../generated";
import type { CheckMetadataQuery } from "../generated/graphql";
import type { Part } from "../hub/parts";
import { errorOf, Loading, useAsk } from "../page";
import { Button, Combo } from "../ui/controls";
import { Badge, count, Note } from "../ui/show";
import { useEdits } from "../unsaved";
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

/** A definition where it applies. */
interface Offer {
  readonly definition: Definition;
  readonly namespace: { readonly name: string; readonly displayName: string };
  readonly object: string | undefined;
  /** The keys that go with it. */
  readonly required: readonly string[];
  readonly inConflict: boolean;
}

/** A change of one item: null deletes it. Base is the value before the change. */
interface Edit {
  readonly value: string | null;
  readonly base: string | undefined;
}

type Edits = Readonly<Record<string, Edit>>;

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
  const [edits, setEdits] = useState<Edits>({});
  const [key, setKey] = useState("");
  const save = useChange(saveDocument);
  const check = useCheck({ resource: resource.uuid }, useMemo(() => Object.fromEntries(Object.entries(edits).map(([key, { value }]) => [key, value])), [edits]));
  const stored = useMemo(() => new Map(resource.metadata.map((item) => [item.key, item])), [resource.metadata]);
  const report = new Map((resource.metadataReport?.items ?? []).map((item) => [item.key, item]));

  const change = (key: string, value: string | null) =>
    setEdits((edits) => {
      const base = edits[key]?.base ?? stored.get(key)?.value;
      const { [key]: _, ...others } = edits;
      return value === (stored.get(key)?.value ?? null) && base === stored.get(key)?.value ? others : { ...edits, [key]: { value, base } };
    });
  const drop = (key: string) => setEdits(({ [key]: _, ...others }) => others);
  const keep = (key: string) => setEdits((edits) => ({ ...edits, [key]: { value: edits[key]?.value ?? null, base: stored.get(key)?.value } }));
  const add = (key: string) => {
    const wanted = [key, ...(offers.get(key)?.required ?? [])].filter((one) => !stored.has(one) && !(edits[one]?.value != null));
    for (const one of wanted) change(one, offers.get(one)?.definition.defaultValue?.text ?? "");
    setKey("");
  };

  const { touch, release } = useEdits();
  const changed = Object.keys(edits).length;
  useEffect(() => (changed > 0 ? touch() : release()), [changed, touch, release]);

  const moved = Object.entries(edits).filter(([key, { base }]) => stored.get(key)?.value !== base);
  const keys = [...new Set([...stored.keys(), ...Object.keys(edits)])].sort();
  const empty = Object.values(edits).some(({ value }) => value === "");
  const close = () => (release(), onClose());
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (moved.length > 0 || empty || changed === 0) return;
    const items = keys.flatMap((key) => {
      const item = stored.get(key);
      const edit = edits[key];
      if (!edit && item && !item.userModifiable) return []; // stays by itself
      const value = edit ? edit.value : item?.value;
      return value == null ? [] : [{ key, value }];
    });
    const done = await save.send({ input: { resource: resource.uuid, items, revision: resource.revision } });
    if (done) close();
    else refresh(); // where it changed meanwhile, what it is now comes with the next answer
  };
  const choices = [...offers].filter(([key]) => !keys.includes(key)).map(([key, { definition, namespace }]) => ({ value: key, label: `${definition.title} — ${key} (${namespace.displayName})` }));
  if (loading) return <Loading />;
  return (
    <form className="editor" onSubmit={send} aria-label="Edit metadata">
      {save.error && (isConflict(save.error) ? moved.length === 0 && <Note tone="warn">Somebody else changed the resource. Your changes still apply: save again.</Note> : <Note>{save.error.message}</Note>)}
      {check.failed && <Note>{check.failed}</Note>}
      {moved.map(([key, { value }]) => (
        <Note tone="warn" key={key}>
          <p>
            <b className="mono">{key}</b> was changed by somebody else: it is <span className="mono">{stored.get(key)?.value ?? "deleted"}</span> now, and you wrote <span className="mono">{value ?? "nothing (delete)"}</span>.
          </p>
          <div className="actions">
            <Button onPress={() => keep(key)} label={`Keep mine: ${key}`}>
              Keep mine
            </Button>
            <Button onPress={() => drop(key)} label={`Take theirs: ${key}`}>
              Take theirs
            </Button>
          </div>
        </Note>
      ))}
      <ul className="editor-items">
        {keys.map((key) => {
          const item = stored.get(key);
          const edit = edits[key];
          const offer = offers.get(key);
          const value = edit ? edit.value : (item?.value ?? "");
          const said = edit ? check.items.get(key) : report.get(key);
          const error = value === "" ? "Enter a value." : said?.violations.map((violation) => violation.message).join("; ") || undefined;
          const locked = item !== undefined && !item.viewerCanUpdate;
          return (
            <li key={key} data-changed={edit !== undefined} data-deleted={value === null}>
              <div className="editor-key">
                <b>{offer?.definition.title ?? key}</b>
                <span className="mono below-name">{key}</span>
                <span className="dim">
                  {offer ? `${nameOfType(offer.definition)}, ${offer.namespace.displayName}` : "custom"}
                  {item && !item.userModifiable && ", read-only"}
                </span>
                {said?.suggestion && <span className="hint">did you mean {said.suggestion}?</span>}
              </div>
              <div className="editor-value">
                {value === null ? <span className="dim">will be deleted</span> : locked ? <span className="mono">{value}</span> : <Widget label={key} definition={offer?.definition} value={value} onChange={(value) => change(key, value)} error={error} />}
              </div>
              <div className="editor-end">
                {edit ? (
                  <Button quiet onPress={() => drop(key)} label={`Undo: ${key}`}>
                    Undo
                  </Button>
                ) : (
                  item?.viewerCanDelete &&
                  item.userModifiable && (
                    <Button quiet onPress={() => change(key, null)} label={`Delete: ${key}`}>
                      Delete
                    </Button>
                  )
                )}
              </div>
            </li>
          );
        })}
      </ul>
      <div className="editor-add">
        <Combo label="Add a key" value={key} onChange={setKey} choices={choices} hint="A defined key or any other." />
        <Button disabled={!key.trim() || keys.includes(key.trim())} onPress={() => add(key.trim())}>
          Add
        </Button>
      </div>
      <div className="actions editor-save">
        <Button primary type="submit" disabled={save.busy || changed === 0 || moved.length > 0 || empty}>
          {changed === 0 ? "Save" : `Save ${count(changed, "change")}`}
        </Button>
        <Button onPress={close}>Cancel</Button>
      </div>
    </form>
  );
}
