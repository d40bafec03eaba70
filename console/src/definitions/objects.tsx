// The objects of a namespace: properties that belong together, some of them required.
import { type ReactNode, useState } from "react";
import { Link } from "wouter";

import { newPropertyAt } from "../address";
import { fieldsOf, isConflict, useChange } from "../change";
import { graphql } from "../generated";
import type { ObjectFragment } from "../generated/graphql";
import { Button, Check, Confirm, Field } from "../ui/controls";
import { Form, Section, useRevised } from "../ui/form";
import { count } from "../ui/show";
import { Drift, useDryRun } from "./drift";
import type { Namespace } from "./namespace";

graphql(`
  fragment Object on ObjectDefinition {
    id
    name
    description
    required
    viewerCanUpdate
    viewerCanDelete
    properties {
      ...PropertyRow
    }
  }
`);

const createDocument = graphql(`
  mutation NewObject($input: CreateObjectInput!) {
    createObject(input: $input) {
      namespace {
        id
        revision
        objects {
          ...Object
        }
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditObject($input: UpdateObjectInput!) {
    updateObject(input: $input) {
      namespace {
        id
        revision
        objects {
          ...Object
        }
      }
    }
  }
`);

const dryRunDocument = graphql(`
  mutation DryRunObject($input: UpdateObjectInput!) {
    updateObject(input: $input, problems: { first: 5 }) {
      problems {
        ...Broken
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveObject($input: DeleteObjectInput!) {
    deleteObject(input: $input) {
      namespace {
        id
        revision
        objects {
          id
        }
      }
    }
  }
`);

/** Returns the error of the name of a definition. */
export const wrongName = (name: string): string | undefined => ([...name.trim()].length > 80 ? "A name has 80 characters at most." : name.includes("/") ? "A name must not contain a slash." : undefined);

export function NewObject({ namespace }: { namespace: Namespace }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useRevised(createDocument, namespace.revision);
  const wrong = fieldsOf(create.error);
  const taken = namespace.objects.some((object) => object.name === name.trim()) ? "There is an object of this name." : undefined;
  const local = wrongName(name) ?? taken;
  const close = () => (setOpen(false), setName(""), setDescription(""), create.clear());
  if (!open)
    return (
      <div className="section">
        <Button onPress={() => (create.renew?.(), setOpen(true))}>New object</Button>
      </div>
    );
  return (
    <Section title="New object">
      <Form label="New object" action="Create" change={create} said={wrong} disabled={!name.trim() || local !== undefined} onClose={close} onSave={async () => (await create.send({ input: { namespace: namespace.name, name: name.trim(), revision: create.seen, ...(description.trim() && { description: description.trim() }) } })) && close()}>
        <Field label="Name" required mono autoFocus value={name} onChange={setName} error={local ?? wrong.get("input.name")} hint="Add its properties next." />
        <Field label="Description" lines={2} value={description} onChange={setDescription} error={wrong.get("input.description")} />
      </Form>
    </Section>
  );
}

export function ObjectSection({ namespace, object, children }: { namespace: Namespace; object: ObjectFragment; children: ReactNode }) {
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const remove = useChange(deleteDocument);
  return (
    <Section
      title={object.name}
      kind="object"
      number={object.properties.length}
      action={
        <div className="actions">
          {object.viewerCanUpdate && !editing && (
            <Button quiet label={`Edit the object ${object.name}`} onPress={() => setEditing(true)}>
              Edit
            </Button>
          )}
          {object.viewerCanDelete && (
            <Button quiet label={`Delete the object ${object.name}`} onPress={() => setDeleting(true)}>
              Delete
            </Button>
          )}
          {namespace.viewerCanUpdate && (
            <Link href={newPropertyAt(namespace.name, object.name)} className="button quiet">
              New property in {object.name}
            </Link>
          )}
        </div>
      }
    >
      {deleting && (
        <Confirm
          title={`Delete the object ${object.name}?`}
          action="Delete the object"
          busy={remove.busy}
          error={remove.error?.message}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            if (await remove.send({ input: { namespace: namespace.name, name: object.name, revision: namespace.revision } })) setDeleting(false);
          }}
        >
          <p>{count(object.properties.length, "property", "properties")} {object.properties.length === 1 ? "goes" : "go"} with it. Metadata on resources stay, and are without a definition then.</p>
        </Confirm>
      )}
      {editing && <EditObject namespace={namespace} object={object} onClose={() => setEditing(false)} />}
      {object.description && !editing && <p className="hint">{object.description}</p>}
      {object.properties.length === 0 ? <p className="hint">The object has no properties yet.</p> : children}
    </Section>
  );
}

function EditObject({ namespace, object, onClose }: { namespace: Namespace; object: ObjectFragment; onClose: () => void }) {
  const [first] = useState(object); // concurrent changes by others are not overwritten
  const [name, setName] = useState(first.name);
  const [description, setDescription] = useState(first.description ?? "");
  const [required, setRequired] = useState(first.required);
  const update = useRevised(updateDocument, namespace.revision);
  const wrong = fieldsOf(update.error);
  const changed = {
    ...(name.trim() !== first.name && { newName: name.trim() }),
    ...(description !== (first.description ?? "") && { description: description || null }),
    ...(JSON.stringify([...required].sort()) !== JSON.stringify([...first.required].sort()) && { required }),
  };
  const input = { namespace: namespace.name, name: object.name, ...changed };
  const isChanged = Object.keys(changed).length > 0;
  const local = !name.trim() ? "An object needs a name." : wrongName(name);
  const dry = useDryRun(dryRunDocument, "required" in changed && local === undefined ? input : undefined, (data) => data.updateObject.problems);
  return (
    <Form label={`Edit the object ${object.name}`} change={update} said={wrong} disabled={!isChanged || local !== undefined} action={dry.broken && dry.broken.resourceCount > 0 ? "Save anyway" : "Save"} onClose={onClose} onSave={async () => (await update.send({ input: { ...input, revision: update.seen } })) && onClose()}>
      <Field label="Name" required mono value={name} onChange={setName} error={local ?? wrong.get("input.newName")} />
      <Field label="Description" lines={2} value={description} onChange={setDescription} error={wrong.get("input.description")} />
      {object.properties.length > 0 && (
        <fieldset>
          <legend>Required</legend>
          <div className="items">
            {object.properties.map((property) => (
              <Check key={property.id} label={property.name} checked={required.includes(property.name)} onChange={(on) => setRequired(on ? [...required, property.name] : required.filter((other) => other !== property.name))} />
            ))}
          </div>
        </fieldset>
      )}
      {"required" in changed && <Drift asking={dry.asking} broken={dry.broken} failed={isConflict(dry.error) ? undefined : dry.error} />}
    </Form>
  );
}
