// The metadata of several resources: keys are set on all of them or none.
import { CadastreError } from "@cadastre/client";
import { type FormEvent, useState } from "react";
import { useClient } from "urql";
import { Link } from "wouter";

import { resourceAt } from "../address";
import { useChange } from "../change";
import { graphql } from "../generated";
import { errorOf } from "../page";
import { Button, Check, Combo } from "../ui/controls";
import { Section } from "../ui/form";
import { count, Note } from "../ui/show";
import { useEdits } from "../unsaved";
import { useCheck, useOffers } from "./metadata";
import { Widget } from "./widgets";

const setDocument = graphql(`
  mutation SetOnMany($input: SetMetadataOnResourcesInput!) {
    setMetadataOnResources(input: $input) {
      resources {
        id
        revision
        updatedAt
        metadata {
          id
          key
        }
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation DeleteOfOne($input: DeleteMetadataInput!) {
    deleteMetadata(input: $input) {
      resource {
        id
        revision
        updatedAt
        metadata {
          id
          key
        }
      }
    }
  }
`);

/** A resource that is selected in the table. */
export interface Chosen {
  readonly uuid: string;
  readonly name: string;
  readonly revision: number;
  readonly type: { readonly name: string };
  readonly metadata: readonly { readonly key: string }[];
}

/** A refusal of one resource. */
interface Refusal {
  readonly resource: Chosen;
  readonly message: string;
}

/** Returns the resources that an error is about, by its fields `input.items[3].items[0].value`. */
function refusalsOf(error: Error | undefined, sent: readonly Chosen[]): Refusal[] {
  if (!(error instanceof CadastreError)) return [];
  const refusals = error.errors.flatMap(({ message, extensions }) => {
    const resource = sent[Number(/^input\.items\[(\d+)\]/.exec(String(extensions?.["field"] ?? ""))?.[1] ?? -1)];
    return resource ? [{ resource, message }] : [];
  });
  return refusals;
}

export function Bulk({ chosen, onClose, refresh }: { chosen: readonly Chosen[]; onClose: () => void; refresh: () => void }) {
  const types = [...new Set(chosen.map(({ type }) => type.name))];
  const { offers } = useOffers(types.length === 1 ? (types[0] ?? "") : "");
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const [key, setKey] = useState("");
  const [seen, setSeen] = useState<ReadonlyMap<string, number>>(() => new Map(chosen.map(({ uuid, revision }) => [uuid, revision])));
  const [refused, setRefused] = useState<readonly Refusal[]>([]);
  const [busy, setBusy] = useState(false);
  const client = useClient();
  const set = useChange(setDocument);
  const check = useCheck(types.length === 1 ? { type: types[0] ?? "" } : undefined, values);

  const edits = useEdits();
  const close = () => (edits.release(), onClose());
  const keys = Object.keys(values);
  const present = [...new Set(chosen.flatMap(({ metadata }) => metadata.map(({ key }) => key)))].filter((key) => !keys.includes(key)).sort();
  const moved = chosen.filter(({ uuid, revision }) => seen.has(uuid) && seen.get(uuid) !== revision);
  const empty = Object.values(values).includes("");
  const changes = keys.length + removed.length;
  const add = (key: string) => {
    setValues({ ...values, [key]: offers.get(key)?.definition.defaultValue?.text ?? "" });
    setRemoved(removed.filter((other) => other !== key));
    setKey("");
  };
  const drop = (key: string) => setValues(({ [key]: _, ...others }) => others);

  /** Deletes keys from one resource after the other, and returns the refusals. */
  const take = async (before: ReadonlyMap<string, number>): Promise<Refusal[]> => {
    const refusals: Refusal[] = [];
    const revisions = new Map(before);
    for (const resource of chosen) {
      const own = removed.filter((key) => resource.metadata.some((item) => item.key === key));
      if (own.length === 0) continue;
      const { data, error } = await client.mutation(deleteDocument, { input: { resource: resource.uuid, keys: own, revision: revisions.get(resource.uuid) ?? resource.revision } }).toPromise();
      if (error) refusals.push({ resource, message: errorOf(error).message });
      else if (data) revisions.set(resource.uuid, data.deleteMetadata.resource.revision);
    }
    setSeen(revisions);
    return refusals;
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (moved.length > 0 || empty || changes === 0) return;
    setBusy(true);
    setRefused([]);
    try {
      let revisions = seen;
      if (keys.length > 0) {
        const items = Object.entries(values).map(([key, value]) => ({ key, value }));
        const done = await set.send({ input: { items: chosen.map(({ uuid }) => ({ resource: uuid, items, ...(seen.has(uuid) && { revision: seen.get(uuid) }) })) } });
        if (!done) return refresh();
        revisions = new Map(chosen.map(({ uuid }, at) => [uuid, done.setMetadataOnResources.resources[at]?.revision ?? 0]));
        setValues({});
      }
      const refusals = await take(revisions);
      setRefused(refusals);
      refresh();
      if (refusals.length === 0) close();
    } finally {
      setBusy(false);
    }
  };
  const refusals = [...refusalsOf(set.error, chosen), ...refused];
  const choices = [...offers].filter(([key]) => !keys.includes(key)).map(([key, { definition, namespace }]) => ({ value: key, label: `${definition.title} — ${key} (${namespace.displayName})` }));
  return (
    <Section title={`Metadata of ${count(chosen.length, "resource")}`}>
      <form className="editor panel" onSubmit={save} onChange={edits.touch} aria-label="Edit the metadata of the selected resources">
        {types.length > 1 && <p className="hint">They are of {types.length} types: choose resources of one type to be offered what is defined there.</p>}
        {!busy && moved.length > 0 && (
          <Note tone="warn">
            <p>
              {count(moved.length, "resource")} {moved.length === 1 ? "was" : "were"} changed by somebody else: {moved.map(({ name }) => name).join(", ")}.
            </p>
            <Button onPress={() => (setSeen(new Map(chosen.map(({ uuid, revision }) => [uuid, revision]))), set.clear())}>Continue with my changes</Button>
          </Note>
        )}
        {set.error && refusals.length === 0 && moved.length === 0 && <Note>{set.error.message}</Note>}
        {refusals.length > 0 && (
          <Note>
            <p>{set.error ? "Nothing was saved. These resources refused the change:" : "These resources refused to delete the keys:"}</p>
            <ul>
              {refusals.map(({ resource, message }) => (
                <li key={resource.uuid + message}>
                  <Link href={resourceAt(resource.uuid)}>{resource.name}</Link>: {message}
                </li>
              ))}
            </ul>
          </Note>
        )}
        {check.failed && <Note>{check.failed}</Note>}
        {keys.length > 0 && (
          <ul className="editor-items">
            {keys.map((key) => {
              const offer = offers.get(key);
              const said = check.items.get(key);
              const value = values[key] ?? "";
              const error = value === "" ? "Enter a value." : said?.violations.map((violation) => violation.message).join("; ") || undefined;
              return (
                <li key={key} data-changed="true">
                  <div className="editor-key">
                    <b>{offer?.definition.title ?? key}</b>
                    <span className="mono below-name">{key}</span>
                    {said?.suggestion && <span className="hint">did you mean {said.suggestion}?</span>}
                  </div>
                  <div className="editor-value">
                    <Widget label={key} definition={offer?.definition} value={value} onChange={(value) => setValues({ ...values, [key]: value })} error={error} />
                  </div>
                  <div className="editor-end">
                    <Button quiet label={`Undo: ${key}`} onPress={() => drop(key)}>
                      Undo
                    </Button>
                  </div>
                </li>
              );
            })}
          </ul>
        )}
        <div className="editor-add">
          <Combo label="Set a key on all" value={key} onChange={setKey} choices={choices} hint="A defined key or any other." />
          <Button disabled={!key.trim() || keys.includes(key.trim())} onPress={() => add(key.trim())}>
            Add
          </Button>
        </div>
        {present.length > 0 && (
          <fieldset>
            <legend>Delete from all resources</legend>
            <div className="items">
              {present.map((key) => (
                <Check key={key} label={<span className="mono">{key}</span>} checked={removed.includes(key)} onChange={(on) => setRemoved(on ? [...removed, key] : removed.filter((other) => other !== key))} />
              ))}
            </div>
            {removed.length > 0 && <p className="hint">Keys are set on all resources or on none. They are deleted from one resource after the other; the form lists refusals.</p>}
          </fieldset>
        )}
        <div className="actions">
          <Button primary type="submit" disabled={busy || changes === 0 || empty || moved.length > 0}>
            {changes === 0 ? "Save" : `Save ${count(changes, "change")} on ${count(chosen.length, "resource")}`}
          </Button>
          <Button onPress={close}>Cancel</Button>
        </div>
      </form>
    </Section>
  );
}
