// The resource types of a namespace, and the prefixes of its keys on them.
import { useState } from "react";
import { Link } from "wouter";

import { resourcesAt } from "../address";
import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { AssociationFragment } from "../generated/graphql";
import { useAsk } from "../page";
import { Button, Combo, Confirm, Field } from "../ui/controls";
import { Form, Section, useRevised } from "../ui/form";
import type { Namespace } from "./namespace";

graphql(`
  fragment Association on ResourceTypeAssociation {
    id
    prefix
    propertiesTarget
    viewerCanUpdate
    viewerCanDelete
    resourceType {
      id
      name
      strict
    }
  }
`);

const typesDocument = graphql(`
  query TypesToAssociate {
    resourceTypes(first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

const addDocument = graphql(`
  mutation NewAssociation($input: AssociateResourceTypeInput!) {
    associateResourceType(input: $input) {
      namespace {
        id
        revision
        resourceTypeAssociations {
          ...Association
        }
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditAssociation($input: UpdateResourceTypeAssociationInput!) {
    updateResourceTypeAssociation(input: $input) {
      namespace {
        id
        revision
        resourceTypeAssociations {
          ...Association
        }
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveAssociation($input: DisassociateResourceTypeInput!) {
    disassociateResourceType(input: $input) {
      namespace {
        id
        revision
        resourceTypeAssociations {
          ...Association
        }
      }
    }
  }
`);

type Open = { readonly kind: "none" | "new" } | { readonly kind: "edit" | "delete"; readonly one: AssociationFragment };

/** Returns the error of a prefix. */
const wrongPrefix = (prefix: string) => (prefix && !/[:_.\-/]$/.test(prefix) ? "A prefix must end in one of : _ . - /" : undefined);

export function Associations({ namespace, manages }: { namespace: Namespace; manages: boolean }) {
  const [open, setOpen] = useState<Open>({ kind: "none" });
  const close = () => setOpen({ kind: "none" });
  const all = namespace.resourceTypeAssociations;
  return (
    <Section
      title="Applies to"
      number={all.length}
      action={
        manages && (
          <Button quiet onPress={() => setOpen({ kind: "new" })}>
            Add a resource type
          </Button>
        )
      }
    >
      {open.kind === "new" && <Edit namespace={namespace} onClose={close} />}
      {open.kind === "edit" && <Edit key={open.one.id} namespace={namespace} one={open.one} onClose={close} />}
      {open.kind === "delete" && <Remove namespace={namespace} one={open.one} onClose={close} />}
      {all.length === 0 && <p className="hint">No resource type yet. Add one to use the namespace.</p>}
      <ul className="chips">
        {all.map((one) => (
          <li key={one.id} className="chip">
            <Link href={resourcesAt({ type: one.resourceType.name })}>{one.resourceType.name}</Link>
            {one.prefix && <span className="mono"> {one.prefix}…</span>}
            {one.propertiesTarget && <span> for {one.propertiesTarget}</span>}
            {one.viewerCanUpdate && (
              <Button quiet label={`Edit: ${nameOf(one)}`} onPress={() => setOpen({ kind: "edit", one })}>
                Edit
              </Button>
            )}
            {one.viewerCanDelete && (
              <Button quiet label={`Remove: ${nameOf(one)}`} onPress={() => setOpen({ kind: "delete", one })}>
                Remove
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

const nameOf = ({ resourceType, prefix, propertiesTarget }: AssociationFragment) => [resourceType.name, prefix, propertiesTarget].filter(Boolean).join(" ");

/** Creates or changes an association. */
function Edit({ namespace, one, onClose }: { namespace: Namespace; one?: AssociationFragment; onClose: () => void }) {
  const types = useAsk(typesDocument, {}, one !== undefined);
  const [first] = useState(one); // concurrent changes by others are not overwritten
  const [resourceType, setResourceType] = useState(one?.resourceType.name ?? "");
  const [prefix, setPrefix] = useState(one?.prefix ?? "");
  const [target, setTarget] = useState(one?.propertiesTarget ?? "");
  const add = useRevised(addDocument, namespace.revision);
  const update = useRevised(updateDocument, namespace.revision);
  const change = one ? update : add;
  const wrong = fieldsOf(change.error);
  const local = wrongPrefix(prefix.trim());
  const save = async () => {
    const done = one
      ? await update.send({ input: { id: one.id, revision: update.seen, ...(prefix.trim() !== (first?.prefix ?? "") && { newPrefix: prefix.trim() || null }), ...(target.trim() !== (first?.propertiesTarget ?? "") && { newPropertiesTarget: target.trim() || null }) } })
      : await add.send({ input: { namespace: namespace.name, resourceType: resourceType.trim(), revision: add.seen, ...(prefix.trim() && { prefix: prefix.trim() }), ...(target.trim() && { propertiesTarget: target.trim() }) } });
    if (done) onClose();
  };
  const choices = (types.data?.resourceTypes.nodes ?? []).map(({ name }) => ({ value: name, label: name }));
  return (
    <Form label={one ? `Edit ${nameOf(one)}` : "Add a resource type"} action={one ? "Save" : "Add"} change={change} said={wrong} disabled={!resourceType.trim() || local !== undefined} onSave={save} onClose={onClose}>
      {one ? <p className="mono">{one.resourceType.name}</p> : <Combo label="Resource type" value={resourceType} onChange={setResourceType} choices={choices} error={wrong.get("input.resourceType")} hint="A new name creates a resource type." />}
      <div className="pair">
        <Field label="Prefix" mono value={prefix} onChange={setPrefix} error={local ?? wrong.get(one ? "input.newPrefix" : "input.prefix")} hint="The beginning of keys on this type, for example hw:" />
        <Field label="Target" mono value={target} onChange={setTarget} error={wrong.get(one ? "input.newPropertiesTarget" : "input.propertiesTarget")} hint="For types with several sets of key-value pairs." />
      </div>
      {one && prefix.trim() !== (one.prefix ?? "") && <p className="hint">Metadata keep their keys. Keys that do not begin with the new prefix have no definition.</p>}
    </Form>
  );
}

function Remove({ namespace, one, onClose }: { namespace: Namespace; one: AssociationFragment; onClose: () => void }) {
  const remove = useChange(deleteDocument);
  return (
    <Confirm
      title={`Remove ${nameOf(one)}?`}
      action="Remove the resource type"
      busy={remove.busy}
      error={remove.error?.message}
      onClose={onClose}
      onConfirm={async () => {
        if (await remove.send({ input: { id: one.id, revision: namespace.revision } })) onClose();
      }}
    >
      <p>The namespace no longer applies to the type. Metadata stay, without a definition.</p>
    </Confirm>
  );
}
