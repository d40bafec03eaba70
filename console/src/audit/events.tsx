// Audit events as a list: who changed what, the newest first, with the differences.
import { useMemo } from "react";
import { Link } from "wouter";

import { consumerAt, definitionAt, namespaceAt, providerAt, resourceAt } from "../address";
import { graphql } from "../generated";
import type { AuditKind, EventFragment } from "../generated/graphql";
import { useAsk } from "../page";
import { Badge, count, Time } from "../ui/show";

graphql(`
  fragment Event on AuditEvent {
    id
    createdAt
    userId
    projectId
    action
    kind
    key
    before
    after
  }
`);

const namesDocument = graphql(`
  query NamesOfEvents($uuids: [UUID!]!, $placement: Boolean!) {
    resources(filter: { uuids: $uuids }, first: 250) {
      nodes {
        id
        uuid
        name
      }
    }
    resourceProviders(filter: { uuids: $uuids }, first: 250) @include(if: $placement) {
      nodes {
        id
        uuid
        name
      }
    }
  }
`);

export const kinds: Readonly<Record<AuditKind, string>> = {
  NAMESPACE: "Namespace",
  PROPERTY_DEFINITION: "Property",
  OBJECT_DEFINITION: "Object",
  TAG: "Tag",
  RESOURCE_TYPE: "Resource type",
  RESOURCE_TYPE_ASSOCIATION: "Association",
  RESOURCE: "Resource",
  CAPABILITY: "Capability",
  RESOURCE_PROVIDER: "Provider",
  CONSUMER: "Consumer",
  TRAIT: "Trait",
  RESOURCE_CLASS: "Resource class",
  SYNC: "Sync",
  LIMIT: "Limits",
};

/** What people say for verbs that mutations begin with. Other verbs are shown as they are. */
const past: Readonly<Record<string, string>> = { create: "created", update: "changed", delete: "deleted", import: "imported", unload: "unloaded", share: "shared", unshare: "unshared", associate: "added", disassociate: "removed", replace: "replaced", reshape: "reshaped", place: "placed", ensure: "ensured", apply: "applied", confirm: "confirmed", release: "released", sync: "synced", end: "ended", unset: "unset" };

/** Returns a mutation as people say it: `createResource` is "created resource". */
export function verbOf(action: string): string {
  const [verb = "", ...words] = action.replace(/([A-Z])/g, " $1").toLowerCase().split(" ");
  return [past[verb] ?? verb, ...words].join(" ");
}

const days = new Intl.DateTimeFormat("en", { dateStyle: "full" });

/** Returns the names of the resources and providers of events: from their content, otherwise the current names. */
function useNames(events: readonly EventFragment[], placement: boolean): (event: EventFragment) => string {
  const uuids = useMemo(() => [...new Set(events.filter((event) => named.has(event.kind) && !nameIn(event)).map(({ key }) => key))].filter((key) => /^[0-9a-f-]{36}$/.test(key)).slice(0, 250), [events]);
  const { data } = useAsk(namesDocument, { uuids, placement }, uuids.length === 0);
  return useMemo(() => {
    const names = new Map([...(data?.resourceProviders?.nodes ?? []), ...(data?.resources.nodes ?? [])].map(({ uuid, name }) => [uuid, name]));
    return (event) => nameIn(event) ?? names.get(event.key) ?? event.key;
  }, [data]);
}

const named: ReadonlySet<AuditKind> = new Set(["RESOURCE", "RESOURCE_PROVIDER", "CONSUMER"]);

function nameIn({ before, after }: EventFragment): string | undefined {
  const { name } = { ...(before as object | null), ...(after as object | null) } as { name?: unknown };
  return typeof name === "string" ? name : undefined;
}

interface EventsProps {
  readonly events: readonly EventFragment[];
  /** Whether the viewer may read the names of providers. */
  readonly placement: boolean;
}

/** Shows events day by day, each with the object that it changed. */
export function Days({ events, placement }: EventsProps) {
  const nameOf = useNames(events, placement);
  const groups: { day: string; events: EventFragment[] }[] = [];
  for (const event of events) {
    const day = days.format(new Date(event.createdAt));
    const last = groups.at(-1);
    if (last?.day === day) last.events.push(event);
    else groups.push({ day, events: [event] });
  }
  return groups.map(({ day, events }) => (
    <section key={day} className="day">
      <h2>{day}</h2>
      <Events events={events} nameOf={nameOf} />
    </section>
  ));
}

/** Shows events, without names of objects if all events are about one object. */
export function Events({ events, nameOf, brief }: { events: readonly EventFragment[]; nameOf?: (event: EventFragment) => string; brief?: boolean }) {
  return (
    <ol className="timeline">
      {events.map((event) => (
        <li key={event.id}>
          <p className="facts">
            <b>{event.userId}</b>
            <span title={event.action}>{verbOf(event.action)}</span>
            {nameOf && (
              <>
                <Badge>{kinds[event.kind]}</Badge>
                <Thing event={event} name={nameOf(event)} />
              </>
            )}
            <span className="dim">project {event.projectId}</span>
            <Time at={event.createdAt} />
          </p>
          {!brief && <Differences before={event.before} after={event.after} />}
        </li>
      ))}
    </ol>
  );
}

function addressOf({ kind, key }: EventFragment): string | undefined {
  switch (kind) {
    case "NAMESPACE":
      return namespaceAt(key);
    case "RESOURCE":
      return resourceAt(key);
    case "RESOURCE_PROVIDER":
      return providerAt(key);
    case "CONSUMER":
      return consumerAt(key);
    case "PROPERTY_DEFINITION":
      return definitionAt(key);
    default:
      return undefined;
  }
}

function Thing({ event, name }: { event: EventFragment; name: string }) {
  const at = event.key ? addressOf(event) : undefined;
  return at ? <Link href={at}>{name}</Link> : <span>{name}</span>;
}

const shown = 10;

/** Shows the differences, field by field. */
function Differences({ before, after }: { before: unknown; after: unknown }) {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const fields = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]) && !(isNothing(old[field]) && isNothing(now[field])));
  if (fields.length === 0) return null;
  return (
    <dl className="differences">
      {fields.slice(0, shown).map((field) => (
        <div key={field}>
          <dt>{field}</dt>
          <dd>
            {field in old && <del>{textOf(old[field])}</del>} {field in now && <ins>{textOf(now[field])}</ins>}
          </dd>
        </div>
      ))}
      {fields.length > shown && (
        <div>
          <dt>and {count(fields.length - shown, "other field")}</dt>
          <dd />
        </div>
      )}
    </dl>
  );
}

/** Reports whether a field has no content: a created object has many of these. */
const isNothing = (value: unknown): boolean => value == null || (Array.isArray(value) && value.length === 0);

/** Returns the content of an object by field. Members of a list with names, such as metadata, are separate fields. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (value == null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return { value };
  return Object.fromEntries(Object.entries(value).flatMap(([field, of]) => membersOf(of)?.map(([name, member]): [string, unknown] => [`${field} ${name}`, member]) ?? [[field, of]]));
}

function membersOf(value: unknown): [string, unknown][] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const members = value.map((item: unknown): [string, unknown] | undefined => {
    const { key, name, ...rest } = (item ?? {}) as Record<string, unknown>;
    const named = key ?? name;
    if (typeof named !== "string") return undefined;
    if (!("value" in rest)) return [named, rest];
    return [named, rest["userModifiable"] === false ? `${textOf(rest["value"])} (read-only)` : rest["value"]];
  });
  return members.every((member) => member !== undefined) ? members : undefined;
}

function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 240 ? text.slice(0, 240) + "…" : text;
}
