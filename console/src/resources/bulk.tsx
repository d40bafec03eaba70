// The metadata of many resources at once: what is set is set on all of them or none.
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

/** A resource that was chosen in the table. */
export interface Chosen {
  readonly uuid: string;
  readonly name: string;
  readonly revision: number;
  readonly type: { readonly name: string };
  readonly metadata: readonly { readonly key: string }[];
}

/** What was refused of one resource. */
interface Refusal {
  readonly resource: Chosen;
  readonly message: string;
}

/** Returns which resources an error is about, by its fields `input.items[3].items[0].value`. */
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
  const offers = useOffers(types.length === 1 ? (types[0] ?? "") : "");
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const [key, setKey] = useState("");
  const [seen, setSeen] = useState<ReadonlyMap<string, number>>(() => new Map(chosen.map(({ uuid, revision }) => [uuid, revision])));
  const [refused, setRefused] = useState<readonly Refusal[]>([]);
  const [busy, setBusy] = useState(false);
  const client = useClient();
  const set = useChange(setDocument);
  const check = useCheck(types.length === 1 ? { type: types[0] ?? "" } : undefined, values);

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

  /** Takes keys from one resource after the other, which refuse each for itself. */
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
      if (refusals.length === 0) onClose();
    } finally {
      setBusy(false);
    }
  };
  const refusals = [...refusalsOf(set.error, chosen), ...refused];
  const choices = [...offers].filter(([key]) => !keys.includes(key)).map(([key, { definition, namespace }]) => ({ value: key, label: `${definition.title} — ${key} (${namespace.displayName})` }));
  return (
    <Section title={`Metadata of ${count(chosen.length, "resource")}`}>
      <form className="editor panel" onSubmit={save} aria-label="Edit the metadata of the chosen resources">
        {types.length > 1 && <p className="hint">They are of {types.length} types: choose resources of one type to be offered what is defined there.</p>}
        {!busy && moved.length > 0 && (
          <Note tone="warn">
            <p>
              {count(moved.length, "resource")} {moved.length === 1 ? "was" : "were"} changed meanwhile: {moved.map(({ name }) => name).join(", ")}.
            </p>
            <Button onPress={() => (setSeen(new Map(chosen.map(({ uuid, revision }) => [uuid, revision]))), set.clear())}>Go on with my changes</Button>
          </Note>
        )}
        {set.error && refusals.length === 0 && moved.length === 0 && <Note>{set.error.message}</Note>}
        {refusals.length > 0 && (
          <Note>
            <p>{set.error ? "Nothing was set, for these refused it:" : "These refused to give up the keys:"}</p>
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
              const error = value === "" ? "It needs a value." : said?.violations.map((violation) => violation.message).join("; ") || undefined;
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
          <Combo label="Set a key on all" value={key} onChange={setKey} choices={choices} hint="One that is defined, or any other." />
          <Button disabled={!key.trim() || keys.includes(key.trim())} onPress={() => add(key.trim())}>
            Add
          </Button>
        </div>
        {present.length > 0 && (
          <fieldset>
            <legend>Remove from all that have it</legend>
            <div className="items">
              {present.map((key) => (
                <Check key={key} label={<span className="mono">{key}</span>} checked={removed.includes(key)} onChange={(on) => setRemoved(on ? [...removed, key] : removed.filter((other) => other !== key))} />
              ))}
            </div>
            {removed.length > 0 && <p className="hint">Keys are set on all at once or on none. They are removed from one resource after the other, and you are told which refuse.</p>}
          </fieldset>
        )}
        <div className="actions">
          <Button primary type="submit" disabled={busy || changes === 0 || empty || moved.length > 0}>
            {changes === 0 ? "Save" : `Save ${count(changes, "change")} on ${count(chosen.length, "resource")}`}
          </Button>
          <Button onPress={onClose}>Cancel</Button>
        </div>
      </form>
    </Section>
  );
}
