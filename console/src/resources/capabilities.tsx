// The capabilities of a resource, and their editor.
import { useMemo, useState } from "react";
import { Link } from "wouter";

import { capabilityAt, useEditing } from "../address";
import { visibilityDocument } from "../capabilities/visibility";
import { type Change, fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { CapabilitiesOfResourceFragment } from "../generated/graphql";
import type { Part } from "../hub/parts";
import { Loading, useAsk } from "../page";
import { useViewer } from "../session";
import { Button, Check, Field } from "../ui/controls";
import { Badge, Note } from "../ui/show";
import { KeyedForm, Row, useKeyed } from "./keyed";
import type { Resource } from "./resource";

graphql(`
  fragment CapabilitiesOfResource on Resource {
    capabilities(includePrivate: $private) {
      name
      value
      private
    }
  }
`);

const registryDocument = graphql(`
  query RegisteredCapabilities($type: String!, $private: Boolean!) {
    resourceType(name: $type) {
      id
      capabilities(includePrivate: $private) {
        id
        name
        private
      }
    }
  }
`);

const createDocument = graphql(`
  mutation RegisterCapability($input: CreateCapabilityInput!) {
    createCapability(input: $input) {
      capability {
        id
        private
      }
    }
  }
`);

const setDocument = graphql(`
  mutation SaveCapabilities($input: SetCapabilitiesInput!, $private: Boolean!) {
    setCapabilities(input: $input) {
      resource {
        id
        revision
        updatedAt
        ...CapabilitiesOfResource
      }
    }
  }
`);

const unsetDocument = graphql(`
  mutation RemoveCapabilities($input: UnsetCapabilitiesInput!, $private: Boolean!) {
    unsetCapabilities(input: $input) {
      resource {
        id
        revision
        updatedAt
        ...CapabilitiesOfResource
      }
    }
  }
`);

type Capability = NonNullable<CapabilitiesOfResourceFragment["capabilities"]>[number];

/** Returns the capabilities of a resource as a part of its page, or their editor; undefined if there is nothing to show. */
export function useCapabilities(resource: Resource, refresh: () => void): Part | undefined {
  const viewer = useViewer();
  const [editing, setEditing] = useEditing("capabilities");
  const { capabilities } = resource;
  const maySet = viewer.setCapabilities && resource.viewerCanUpdate;
  if (!capabilities || (capabilities.length === 0 && !maySet)) return undefined;
  return {
    id: "capabilities",
    title: "Capabilities",
    number: capabilities.length,
    action: maySet && !editing && <Button onPress={() => setEditing(true)}>Edit capabilities</Button>,
    content:
      editing && maySet ? (
        <Editor resource={resource} capabilities={capabilities} refresh={refresh} onClose={() => setEditing(false)} />
      ) : capabilities.length === 0 ? (
        <p className="hint">There are no capabilities yet.</p>
      ) : (
        <Items of={capabilities} type={resource.type.name} />
      ),
  };
}

function Items({ of, type }: { of: readonly Capability[]; type: string }) {
  return (
    <div className="scroll">
      <table className="pairs stacked">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {of.map(({ name, value, private: hidden }) => (
            <tr key={name}>
              <th scope="row">
                <Link className="mono" href={capabilityAt(type, name, value)}>
                  {name}
                </Link>{" "}
                {hidden && <Badge tone="accent">private</Badge>}
              </th>
              <td className="mono">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const said = (isPrivate: boolean) => (isPrivate ? "private" : "public");

const mostOfValue = 4096; // characters

interface EditorProps {
  readonly resource: Resource;
  readonly capabilities: readonly Capability[];
  readonly refresh: () => void;
  readonly onClose: () => void;
}

function Editor({ resource, capabilities, refresh, onClose }: EditorProps) {
  const viewer = useViewer();
  const mayShare = viewer.createCapability && viewer.shareCapability;
  const shows = viewer.rules.includes("CAPABILITIES_PRIVATE");
  const registry = useAsk(registryDocument, { type: resource.type.name, private: shows });
  const values = useKeyed(useMemo(() => new Map(capabilities.map(({ name, value }) => [name, value])), [capabilities]));
  const registered = useMemo(() => new Map([...(registry.data?.resourceType?.capabilities ?? []), ...capabilities].map((one) => [one.name, said(one.private)])), [registry.data, capabilities]);
  const shared = useKeyed(registered);
  const create = useChange(createDocument);
  const share = useChange(visibilityDocument);
  const set = useChange(setDocument);
  const unset = useChange(unsetDocument);
  const [busy, setBusy] = useState(false);
  const [sent, setSent] = useState<readonly string[]>([]); // the names in the last mutation, to which errors refer by index

  const names = [...new Set([...values.stored.keys(), ...values.edits.keys()])].sort();
  const edited = names.filter((name) => values.edits.has(name) || shared.edits.has(name));
  const long = (name: string) => [...(values.edits.get(name)?.value ?? "")].length > mostOfValue;
  const undo = (name: string) => (values.drop(name), shared.drop(name));
  const add = (name: string) => {
    values.change(name, "");
    if (mayShare && !registered.has(name)) shared.change(name, said(true));
  };
  const close = () => (values.release(), shared.release(), onClose());

  const visibility = (name: string) => ({ input: { resourceType: resource.type.name, name, private: shared.valueOf(name) === said(true) } });
  const attempt = <Variables, Data>({ send }: Change<Data, Variables>, names: readonly string[], variables: Variables) => (setSent(names), send(variables));
  /** Saves the values together. Names are registered before, and made private or public after. */
  const save = async (): Promise<boolean> => {
    for (const name of edited.filter((name) => shared.edits.has(name) && !registered.has(name))) {
      if (!(await attempt(create, [name], visibility(name)))) return false;
      shared.drop(name);
    }
    let { revision } = resource;
    const written = edited.flatMap((key) => {
      const value = values.edits.get(key)?.value;
      return value == null ? [] : [{ key, value }];
    });
    if (written.length > 0) {
      const names = written.map(({ key }) => key);
      const done = await attempt(set, names, { input: { resource: resource.uuid, capabilities: written, revision }, private: shows });
      if (!done) return false;
      names.forEach(values.drop);
      ({ revision } = done.setCapabilities.resource);
    }
    const removed = edited.filter((name) => values.edits.get(name)?.value === null);
    if (removed.length > 0) {
      if (!(await attempt(unset, removed, { input: { resource: resource.uuid, names: removed, revision }, private: shows }))) return false;
      removed.forEach(undo);
    }
    for (const name of edited.filter((name) => shared.edits.has(name) && registered.has(name) && values.valueOf(name) !== null)) {
      if (!(await attempt(share, [name], visibility(name)))) return false;
      shared.drop(name);
    }
    return true;
  };
  const send = async () => {
    for (const change of [create, set, unset, share]) change.clear();
    setBusy(true);
    const done = await save();
    refresh(); // a capability is private or public on every resource, and another client may have changed this one
    if (done) return close();
    registry.refresh();
    setBusy(false);
  };

  const error = create.error ?? set.error ?? unset.error ?? share.error;
  const refused = refusedOf(error, sent);
  if (registry.loading) return <Loading />;
  return (
    <KeyedForm
      label="Edit capabilities"
      revision={resource.revision}
      of={[
        [values, ""],
        [shared, "visibility of "],
      ]}
      changed={edited.length}
      busy={busy}
      wrong={edited.some(long)}
      error={refused.size > 0 ? undefined : error}
      notes={edited.some((name) => shared.edits.has(name) && registered.has(name)) && <Note tone="warn">Private or public applies to every {resource.type.name}, not to this resource alone.</Note>}
      adding={{
        label: "Add a capability",
        hint: mayShare ? "A registered name or a new one." : "A registered name. A new name works only if the server registers names on first use.",
        choices: [...registered.keys()].filter((name) => !names.includes(name)).map((name) => ({ value: name, label: name })),
        has: (name) => names.includes(name),
        onAdd: add,
      }}
      onSave={send}
      onClose={close}
    >
      {names.length > 0 && (
        <ul className="editor-items">
          {names.map((name) => {
            const value = values.valueOf(name) ?? null;
            const now = shared.valueOf(name);
            return (
              <Row
                key={name}
                name={name}
                about={registered.has(name) ? !mayShare && registered.get(name) : "not registered yet"}
                edited={edited.includes(name)}
                deleted={value === null}
                onUndo={() => undo(name)}
                onDelete={viewer.unsetCapabilities ? () => values.change(name, null) : undefined}
              >
                <Field label={name} hidden mono value={value ?? ""} onChange={(value) => values.change(name, value)} error={long(name) ? `A value has ${mostOfValue} characters at most.` : refused.get(name)} />
                {mayShare && <Check label="private" named={`private: ${name}`} checked={now === said(true)} onChange={(on) => shared.change(name, said(on))} />}
              </Row>
            );
          })}
        </ul>
      )}
    </KeyedForm>
  );
}

/** Returns the errors of capabilities by name; none if another error is among them, which the form shows. */
function refusedOf(error: Error | undefined, sent: readonly string[]): ReadonlyMap<string, string> {
  const refused = new Map<string, string>();
  for (const [path, message] of fieldsOf(error)) {
    const at = path === "input.name" ? 0 : Number(/^input\.(?:capabilities|names)\[(\d+)\]/.exec(path)?.[1] ?? -1);
    const name = sent[at];
    if (name === undefined) return new Map();
    refused.set(name, message);
  }
  return refused;
}
