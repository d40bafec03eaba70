// The tags of a namespace, and their parents.
import { useState } from "react";
import { Link } from "wouter";

import { resourcesAt } from "../address";
import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { TagRowFragment } from "../generated/graphql";
import { Button, Confirm, Field, Select } from "../ui/controls";
import { Form, Section, useRevised } from "../ui/form";
import { numberOf } from "../ui/show";
import type { Namespace } from "./namespace";
import { wrongName } from "./objects";

graphql(`
  fragment TagRow on Tag {
    id
    name
    resourceCount
    viewerCanUpdate
    viewerCanDelete
    parent {
      id
      name
    }
  }
`);

const addDocument = graphql(`
  mutation NewTag($input: SetTagsInput!) {
    setTags(input: $input) {
      namespace {
        id
        revision
        tags {
          ...TagRow
        }
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditTag($input: UpdateTagInput!) {
    updateTag(input: $input) {
      namespace {
        id
        revision
        tags {
          ...TagRow
        }
      }
    }
  }
`);

const deleteDocument = graphql(`
  mutation RemoveTag($input: DeleteTagInput!) {
    deleteTag(input: $input) {
      namespace {
        id
        revision
        tags {
          ...TagRow
        }
      }
    }
  }
`);

type Open = { readonly kind: "none" | "new" } | { readonly kind: "edit" | "delete"; readonly tag: TagRowFragment };

export function Tags({ namespace }: { namespace: Namespace }) {
  const [open, setOpen] = useState<Open>({ kind: "none" });
  const close = () => setOpen({ kind: "none" });
  if (namespace.tags.length === 0 && !namespace.viewerCanUpdate) return null;
  return (
    <Section
      title="Tags"
      number={namespace.tags.length}
      action={
        namespace.viewerCanUpdate && (
          <Button quiet onPress={() => setOpen({ kind: "new" })}>
            New tag
          </Button>
        )
      }
    >
      {open.kind === "new" && <NewTag namespace={namespace} onClose={close} />}
      {open.kind === "edit" && <EditTag key={open.tag.id} namespace={namespace} tag={open.tag} onClose={close} />}
      {open.kind === "delete" && <DeleteTag namespace={namespace} tag={open.tag} onClose={close} />}
      {namespace.tags.length === 0 && <p className="hint">None yet.</p>}
      <ul className="chips">
        {namespace.tags.map((tag) => (
          <li key={tag.id} className="chip">
            <Link href={resourcesAt({ tag: tag.name })}>{tag.name}</Link> <span className="dim">{numberOf(tag.resourceCount)}</span>
            {tag.parent && <span className="dim"> a kind of {tag.parent.name}</span>}
            {tag.viewerCanUpdate && (
              <Button quiet label={`Edit the tag ${tag.name}`} onPress={() => setOpen({ kind: "edit", tag })}>
                Edit
              </Button>
            )}
            {tag.viewerCanDelete && (
              <Button quiet label={`Delete the tag ${tag.name}`} onPress={() => setOpen({ kind: "delete", tag })}>
                Delete
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The possible parents of a tag: all tags but itself and its descendants. */
function parentsOf(namespace: Namespace, tag?: TagRowFragment) {
  const below = new Set(tag ? [tag.name] : []);
  for (let before = -1; before !== below.size; ) {
    before = below.size;
    for (const one of namespace.tags) if (one.parent && below.has(one.parent.name)) below.add(one.name);
  }
  return [{ value: "", label: "nothing: it stands at the top" }, ...namespace.tags.filter(({ name }) => !below.has(name)).map(({ name }) => ({ value: name, label: name }))];
}

const takenBy = (namespace: Namespace, name: string, except?: TagRowFragment) =>
  namespace.tags.some((tag) => tag.id !== except?.id && tag.name.toLowerCase() === name.trim().toLowerCase()) ? "There is a tag of this name." : undefined;

function NewTag({ namespace, onClose }: { namespace: Namespace; onClose: () => void }) {
  const [name, setName] = useState("");
  const [parent, setParent] = useState("");
  const add = useRevised(addDocument, namespace.revision);
  const wrong = fieldsOf(add.error);
  const local = wrongName(name) ?? takenBy(namespace, name);
  return (
    <Form label="New tag" action="Create" change={add} said={wrong} disabled={!name.trim() || local !== undefined} onClose={onClose} onSave={async () => (await add.send({ input: { namespace: namespace.name, mode: "APPEND", revision: add.seen, tags: [{ name: name.trim(), ...(parent && { parent }) }] } })) && onClose()}>
      <Field label="Tag" required autoFocus value={name} onChange={setName} error={local ?? [...wrong.values()][0]} />
      <Select label="A kind of" value={parent} onChange={setParent} choices={parentsOf(namespace)} />
    </Form>
  );
}

function EditTag({ namespace, tag, onClose }: { namespace: Namespace; tag: TagRowFragment; onClose: () => void }) {
  const [first] = useState(tag); // concurrent changes by others are not overwritten
  const [name, setName] = useState(tag.name);
  const [parent, setParent] = useState(tag.parent?.name ?? "");
  const update = useRevised(updateDocument, namespace.revision);
  const wrong = fieldsOf(update.error);
  const local = !name.trim() ? "A tag needs a name." : (wrongName(name) ?? takenBy(namespace, name, tag));
  const changes = { ...(name.trim() !== first.name && { newName: name.trim() }), ...(parent !== (first.parent?.name ?? "") && { parent: parent || null }) };
  return (
    <Form label={`Edit the tag ${tag.name}`} change={update} said={wrong} disabled={local !== undefined || Object.keys(changes).length === 0} onClose={onClose} onSave={async () => (await update.send({ input: { namespace: namespace.name, name: tag.name, revision: update.seen, ...changes } })) && onClose()}>
      <Field label="Tag" required autoFocus value={name} onChange={setName} error={local ?? wrong.get("input.newName")} />
      <Select label="A kind of" value={parent} onChange={setParent} choices={parentsOf(namespace, tag)} error={wrong.get("input.parent")} />
    </Form>
  );
}

function DeleteTag({ namespace, tag, onClose }: { namespace: Namespace; tag: TagRowFragment; onClose: () => void }) {
  const remove = useChange(deleteDocument);
  return (
    <Confirm
      title={`Delete the tag ${tag.name}?`}
      action="Delete the tag"
      busy={remove.busy}
      error={remove.error?.message}
      onClose={onClose}
      onConfirm={async () => {
        if (await remove.send({ input: { namespace: namespace.name, name: tag.name, revision: namespace.revision } })) onClose();
      }}
    >
      <p>Resources keep the tag.</p>
    </Confirm>
  );
}
