// The projects that a namespace is shared with.
import { useState } from "react";

import { fieldsOf, useChange } from "../change";
import { graphql } from "../generated";
import type { MemberFragment, MemberRole } from "../generated/graphql";
import { Button, Confirm, Field, Select } from "../ui/controls";
import { Form, Section, useRevised } from "../ui/form";
import type { Namespace } from "./namespace";

graphql(`
  fragment Member on NamespaceMember {
    projectId
    role
    viewerCanUpdate
    viewerCanDelete
  }
`);

const shareDocument = graphql(`
  mutation Share($input: ShareNamespaceInput!) {
    shareNamespace(input: $input) {
      namespace {
        id
        revision
        members {
          ...Member
        }
      }
    }
  }
`);

const unshareDocument = graphql(`
  mutation Unshare($input: UnshareNamespaceInput!) {
    unshareNamespace(input: $input) {
      namespace {
        id
        revision
        members {
          ...Member
        }
      }
    }
  }
`);

const roles: readonly { value: MemberRole; label: string }[] = [
  { value: "READER", label: "sees and uses it" },
  { value: "EDITOR", label: "defines in it, too" },
];

type Open = { readonly kind: "none" } | { readonly kind: "share"; readonly member?: MemberFragment } | { readonly kind: "end"; readonly member: MemberFragment };

const nameOf = (project: string) => (project === "*" ? "every project" : project);

export function Members({ namespace, manages }: { namespace: Namespace; manages: boolean }) {
  const [open, setOpen] = useState<Open>({ kind: "none" });
  const close = () => setOpen({ kind: "none" });
  const { members } = namespace;
  if (members.length === 0 && !manages) return null;
  return (
    <Section
      title="Shared with"
      number={members.length}
      action={
        manages && (
          <Button quiet onPress={() => setOpen({ kind: "share" })}>
            Share with a project
          </Button>
        )
      }
    >
      {open.kind === "share" && <Share key={open.member?.projectId ?? ""} namespace={namespace} member={open.member} onClose={close} />}
      {open.kind === "end" && <End namespace={namespace} member={open.member} onClose={close} />}
      {members.length === 0 && <p className="hint">{namespace.visibility === "PUBLIC" ? "Everyone sees it. Only the owner changes it." : "No other project sees it."}</p>}
      <ul className="chips">
        {members.map((member) => (
          <li key={member.projectId} className="chip">
            {nameOf(member.projectId)} <span className="dim">{roles.find(({ value }) => value === member.role)?.label}</span>
            {member.viewerCanUpdate && (
              <Button quiet label={`Change the role of ${nameOf(member.projectId)}`} onPress={() => setOpen({ kind: "share", member })}>
                Edit
              </Button>
            )}
            {member.viewerCanDelete && (
              <Button quiet label={`Stop sharing with ${nameOf(member.projectId)}`} onPress={() => setOpen({ kind: "end", member })}>
                Remove
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Share({ namespace, member, onClose }: { namespace: Namespace; member: MemberFragment | undefined; onClose: () => void }) {
  const [project, setProject] = useState(member?.projectId ?? "");
  const [role, setRole] = useState<MemberRole>(member?.role ?? "READER");
  const share = useRevised(shareDocument, namespace.revision);
  const wrong = fieldsOf(share.error);
  return (
    <Form label="Share" action={member ? "Save" : "Share"} change={share} said={wrong} disabled={!project.trim()} onClose={onClose} onSave={async () => (await share.send({ input: { namespace: namespace.name, projectId: project.trim(), role, revision: share.seen } })) && onClose()}>
      {member ? <p className="mono">{nameOf(member.projectId)}</p> : <Field label="Project" required mono autoFocus value={project} onChange={setProject} error={wrong.get("input.projectId")} hint="The id of the project; * for all projects." />}
      <Select label="Role of the project" value={role} onChange={(role) => setRole(role as MemberRole)} choices={roles} error={wrong.get("input.role")} />
    </Form>
  );
}

function End({ namespace, member, onClose }: { namespace: Namespace; member: MemberFragment; onClose: () => void }) {
  const unshare = useChange(unshareDocument);
  return (
    <Confirm
      title={`Stop sharing with ${nameOf(member.projectId)}?`}
      action="End the sharing"
      busy={unshare.busy}
      error={unshare.error?.message}
      onClose={onClose}
      onConfirm={async () => {
        if (await unshare.send({ input: { namespace: namespace.name, projectId: member.projectId, revision: namespace.revision } })) onClose();
      }}
    >
      <p>{namespace.visibility === "PUBLIC" ? "The namespace is public and stays visible to everyone." : "The project keeps its metadata, without definitions."}</p>
    </Confirm>
  );
}
