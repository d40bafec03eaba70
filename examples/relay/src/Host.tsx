import { useState } from "react";
import { graphql, useFragment, useMutation } from "react-relay";

import type { Host_resource$key } from "./__generated__/Host_resource.graphql";
import type { HostTagsMutation } from "./__generated__/HostTagsMutation.graphql";

/** A host with its tags. Relay writes the payload of the mutation to the host in its store. */
export function Host({ resource }: { resource: Host_resource$key }) {
  const { name, uuid, revision, tags } = useFragment(
    graphql`
      fragment Host_resource on Resource @throwOnFieldError {
        uuid
        name
        revision
        tags
      }
    `,
    resource,
  );
  const [commit, isSending] = useMutation<HostTagsMutation>(graphql`
    mutation HostTagsMutation($input: SetResourceTagsInput!) @raw_response_type {
      setResourceTags(input: $input) {
        resource {
          id
          ...Host_resource
        }
      }
    }
  `);
  const [wrong, say] = useState("");
  const add = () =>
    commit({
      variables: { input: { resource: uuid, revision, tags: [...tags, "seen"] } },
      onCompleted: (_, errors) => say(errors?.map(({ message }) => message).join("; ") ?? ""),
      onError: ({ message }) => say(message),
    });
  return (
    <li>
      {name}: {tags.join(", ") || "no tags"}{" "}
      <button disabled={isSending || tags.includes("seen")} onClick={add}>
        Mark {name}
      </button>
      <span className="wrong">{wrong}</span>
    </li>
  );
}
