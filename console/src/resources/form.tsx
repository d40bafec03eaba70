// The forms that create a resource and change its own fields.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { resourceAt, useAddress } from "../address";
import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { Visibility } from "../generated/graphql";
import { PageHead, Refusal, useAsk, useSettled, useShown, useTitle } from "../page";
import { useViewer } from "../session";
import { Check, Combo, Field, Select } from "../ui/controls";
import { Form, useRevised } from "../ui/form";
import type { Resource } from "./resource";

const typesDocument = graphql(`
  query TypesOfResources {
    resourceTypes(first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

const parentsDocument = graphql(`
  query Parents($text: String!) {
    resources(filter: { nameContains: $text }, first: 20) {
      nodes {
        id
        uuid
        name
        type {
          id
          name
        }
      }
    }
  }
`);

const createDocument = graphql(`
  mutation NewResource($input: CreateResourceInput!) {
    createResource(input: $input) {
      resource {
        id
        uuid
      }
    }
  }
`);

const updateDocument = graphql(`
  mutation EditResource($input: UpdateResourceInput!) {
    updateResource(input: $input) {
      resource {
        id
        name
        description
        visibility
        revision
        updatedAt
        parent {
          id
          uuid
          name
        }
      }
    }
  }
`);

const tagsDocument = graphql(`
  mutation EditResourceTags($input: SetResourceTagsInput!) {
    setResourceTags(input: $input) {
      resource {
        id
        tags
        revision
        updatedAt
      }
    }
  }
`);

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The field of the parent: found by name, stored by uuid. */
function Parent({ value, onChange, error }: { value: string; onChange: (value: string) => void; error: string | undefined }) {
  const text = useSettled(value.trim());
  const search = text !== "" && !uuidForm.test(text);
  const asked = useAsk(parentsDocument, { text }, !search);
  const choices = search ? (asked.data?.resources.nodes ?? []).map(({ uuid, name, type }) => ({ value: uuid, label: `${name} (${type.name})` })) : [];
  return <Combo label="Parent" value={value} onChange={onChange} choices={choices} error={error ?? (search && asked.data?.resources.nodes.length === 0 ? "No resource has this name." : undefined)} hint="A part of the name of the parent, or its uuid. Optional." />;
}

const tagsOf = (text: string) => text.split(",").map((tag) => tag.trim()).filter(Boolean);

/** Returns the error of tags. */
function wrongTags(text: string): string | undefined {
  const tags = tagsOf(text);
  const twice = tags.find((tag, at) => tags.findIndex((other) => other.toLowerCase() === tag.toLowerCase()) < at);
  if (twice) return `${twice} is there twice.`;
  return tags.some((tag) => [...tag].length > 80) ? "A tag has 80 characters at most." : tags.length > 128 ? "A resource has 128 tags at most." : undefined;
}

const firstOf = (wrong: ReadonlyMap<string, string>, field: string) => [...wrong].find(([path]) => path === field || path.startsWith(field + "["))?.[1];

interface Draft {
  readonly name: string;
  readonly description: string;
  readonly isPublic: boolean;
  readonly parent: string;
  readonly tags: string;
}

/** Returns the errors of a form. */
const wrongOf = (draft: Draft): Partial<Record<keyof Draft, string>> => ({
  ...([...draft.name.trim()].length > 255 && { name: "A name has 255 characters at most." }),
  ...([...draft.description].length > 1023 && { description: "A description has 1023 characters at most." }),
  ...(draft.parent.trim() && !uuidForm.test(draft.parent.trim()) && { parent: "Choose one of the resources." }),
  ...(wrongTags(draft.tags) && { tags: wrongTags(draft.tags) }),
});

function Fields({ draft, onChange, refused, nameField }: { draft: Draft; onChange: (part: Partial<Draft>) => void; refused: ReadonlyMap<string, string>; nameField: string }) {
  const { parent: unchosen, ...wrong } = wrongOf(draft);
  return (
    <>
      <Field label="Name" required value={draft.name} onChange={(name) => onChange({ name })} error={wrong.name ?? refused.get(nameField)} />
      <Field label="Description" lines={2} value={draft.description} onChange={(description) => onChange({ description })} error={wrong.description ?? refused.get("input.description")} />
      <Parent value={draft.parent} onChange={(parent) => onChange({ parent })} error={refused.get("input.parent")} />
      {unchosen && <p className="hint">{unchosen}</p>}
      <Field label="Tags" value={draft.tags} onChange={(tags) => onChange({ tags })} error={wrong.tags ?? firstOf(refused, "input.tags")} hint="Separate tags with commas." />
      <Check label="Public: everyone sees it" checked={draft.isPublic} onChange={(isPublic) => onChange({ isPublic })} />
    </>
  );
}

export function NewResourcePage() {
  const viewer = useViewer();
  const types = useAsk(typesDocument, {});
  const [type, setType] = useState(useAddress().get("type"));
  const [project, setProject] = useState("");
  const [draft, setDraft] = useState<Draft>({ name: "", description: "", isPublic: false, parent: useAddress().get("parent"), tags: "" });
  const create = useChange(createDocument);
  const [, go] = useLocation();
  useTitle("New resource");
  const refused = fieldsOf(create.error);
  const visibility: Visibility = draft.isPublic ? "PUBLIC" : "PRIVATE";
  const { name, description, parent, tags } = draft;
  const variables = {
    input: { type, name: name.trim(), visibility, tags: tagsOf(tags), ...(description.trim() && { description: description.trim() }), ...(parent.trim() && { parent: parent.trim() }), ...(project.trim() && { projectId: project.trim() }) },
  };
  useShown(createDocument, variables);
  const save = async () => {
    const done = await create.send(variables);
    if (done) go(resourceAt(done.createResource.resource.uuid));
  };
  if (!viewer.createResource) return <Refusal title="You may not create resources" above={<Link href="/resources">Resources</Link>} />;
  return (
    <>
      <PageHead above={<Link href="/resources">Resources</Link>} title="New resource" />
      <Form label="New resource" action="Create" change={create} said={refused} disabled={!type || !draft.name.trim() || Object.keys(wrongOf(draft)).length > 0} onSave={save} onClose={() => go("/resources")}>
        <Select label="Type" value={type} onChange={setType} choices={[{ value: "", label: "Choose…" }, ...(types.data?.resourceTypes.nodes ?? []).map(({ name }) => ({ value: name, label: name }))]} error={refused.get("input.type")} />
        <Fields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} refused={refused} nameField="input.name" />
        {viewer.rules.includes("RESOURCES_WRITE_ANY") && <Field label="Project" mono value={project} onChange={setProject} error={refused.get("input.projectId")} hint={`The id of the project that owns it; ${viewer.projectId || "yours"} when empty.`} />}
        <p className="hint">Add its metadata next.</p>
      </Form>
    </>
  );
}

export function EditResource({ resource, onClose }: { resource: Resource; onClose: () => void }) {
  const [first] = useState<Draft>({ name: resource.name, description: resource.description ?? "", isPublic: resource.visibility === "PUBLIC", parent: resource.parent?.uuid ?? "", tags: resource.tags.join(", ") });
  const [draft, setDraft] = useState(first);
  const update = useRevised(updateDocument, resource.revision);
  const setTags = useChange(tagsDocument);
  const refused = new Map([...fieldsOf(update.error), ...fieldsOf(setTags.error)]);
  const changes = {
    ...(draft.name.trim() !== first.name && { newName: draft.name.trim() }),
    ...(draft.description !== first.description && { description: draft.description.trim() || null }),
    ...(draft.isPublic !== first.isPublic && { visibility: (draft.isPublic ? "PUBLIC" : "PRIVATE") as Visibility }),
    ...(draft.parent.trim() !== first.parent && { parent: draft.parent.trim() || null }),
  };
  const retagged = JSON.stringify(tagsOf(draft.tags)) !== JSON.stringify(tagsOf(first.tags));
  const isChanged = Object.keys(changes).length > 0 || retagged;
  const save = async () => {
    let revision = update.seen;
    if (Object.keys(changes).length > 0) {
      const done = await update.send({ input: { uuid: resource.uuid, revision, ...changes } });
      if (!done?.updateResource.resource) return;
      revision = done.updateResource.resource.revision;
    }
    if (retagged && !(await setTags.send({ input: { resource: resource.uuid, tags: tagsOf(draft.tags), revision } }))) return;
    onClose();
  };
  const { renew: renewed } = update;
  const renew = renewed && (() => (renewed(), setTags.clear()));
  const change = { busy: update.busy || setTags.busy, error: update.error ?? setTags.error, renew };
  return (
    <Form label="Edit the resource" change={change} said={refused} disabled={!draft.name.trim() || !isChanged || Object.keys(wrongOf(draft)).length > 0} onSave={save} onClose={onClose}>
      <Fields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} refused={refused} nameField="input.newName" />
    </Form>
  );
}
