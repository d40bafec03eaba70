// The metadata of a resource: what may be written on it, checked as one types and saved as one.
import { type FormEvent, useState } from "react";
import { useMutation, useQuery } from "urql";

import { graphql } from "./generated";

const query = graphql(`
  query Editor($uuid: UUID!) {
    resource(uuid: $uuid) {
      id name revision
      type { id name }
      metadata { id key value userModifiable }
    }
  }
`);
const offers = graphql(`
  query Offers($type: String!) {
    definitions(resourceType: $type) { id properties { id name title description enumMembers { label value { text } } } }
  }
`);
const check = graphql(`
  query Check($uuid: UUID!, $values: [KeyValueInput!]!) {
    validateMetadata(resource: $uuid, values: $values) { accepted items { key violations { message } } }
  }
`);
const save = graphql(`
  mutation Save($input: ReplaceMetadataInput!) {
    replaceMetadata(input: $input) { resource { id revision metadata { id key value userModifiable } } }
  }
`);

export function Editor({ uuid }: { uuid: string }) {
  const [{ data, error }, again] = useQuery({ query, variables: { uuid } });
  const [typed, type] = useState<Record<string, string>>({});
  const [saved, send] = useMutation(save);
  const { resource } = data ?? {};
  const [offered] = useQuery({ query: offers, variables: { type: resource?.type.name ?? "" }, pause: !resource });
  const stored = Object.fromEntries(resource?.metadata.filter((item) => item.userModifiable).map((item) => [item.key, item.value]) ?? []);
  const values = Object.entries({ ...stored, ...typed }).flatMap(([key, value]) => (value ? [{ key, value }] : []));
  const [checked] = useQuery({ query: check, variables: { uuid, values }, pause: Object.keys(typed).length === 0, requestPolicy: "network-only" });
  if (error || !resource) return <p>{error?.message ?? (data ? "There is no such resource." : "Loading")}</p>;

  const known = new Map(offered.data?.definitions.flatMap(({ properties }) => properties).map((property) => [property.name, property]));
  const wrong = new Map(checked.data?.validateMetadata.items.map((item) => [item.key, item.violations.map(({ message }) => message).join("; ")]));
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const { error } = await send({ input: { resource: uuid, revision: resource.revision, items: values } });
    if (!error) type({});
    else if (error.graphQLErrors[0]?.extensions["code"] === "CONCURRENT_UPDATE") again({ requestPolicy: "network-only" });
  };
  return (
    <form onSubmit={submit}>
      <h1>{resource.name}</h1>
      {[...new Set([...known.keys(), ...Object.keys(stored)])].map((key) => {
        const property = known.get(key);
        const field = { id: key, value: typed[key] ?? stored[key] ?? "", onChange: (event: { target: { value: string } }) => type({ ...typed, [key]: event.target.value }) };
        return (
          <div key={key} title={property?.description ?? undefined}>
            <label htmlFor={key}>{property?.title ?? key}</label>
            {property?.enumMembers ? (
              <select {...field}><option />{property.enumMembers.map(({ label, value: { text } }) => <option key={text} value={text}>{label ?? text}</option>)}</select>
            ) : (
              <input {...field} />
            )}
            <span className="wrong">{wrong.get(key)}</span>
          </div>
        );
      })}
      <button disabled={saved.fetching || Object.keys(typed).length === 0}>Save</button> <span role="status">{saved.error?.message ?? (saved.data && `Revision ${resource.revision}`)}</span>
    </form>
  );
}
