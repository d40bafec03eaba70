// Who changed what, the newest first.
import { Link } from "wouter";

import { namespaceAt, propertyAt, resourceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { AuditKind, AuditPageQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, usePage, useTitle } from "../page";
import { Button, Select } from "../ui/controls";
import { Search } from "../ui/search";
import { Badge, count, Time } from "../ui/show";

const document = graphql(`
  query AuditPage($filter: AuditFilter, $after: String) {
    auditEvents(filter: $filter, first: 50, after: $after) {
      totalCount
      nodes {
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
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

type AuditEvent = AuditPageQuery["auditEvents"]["nodes"][number];

const kinds: Readonly<Record<AuditKind, string>> = {
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
};

const days = new Intl.DateTimeFormat("en", { dateStyle: "full" });

export function AuditPage() {
  const address = useAddress();
  const [user, kind, action, key, after] = ["user", "kind", "action", "key", "after"].map(address.get) as [string, string, string, string, string];
  const known = kind in kinds ? (kind as AuditKind) : undefined;
  const asked = usePage(document, { filter: { ...(user && { userId: user }), ...(known && { kind: known }), ...(action && { action }), ...(key && { key }) }, ...(after && { after }) });
  useChanges("namespace", undefined, asked.refresh);
  useChanges("resource", undefined, asked.refresh);
  useTitle("Audit");
  const filtered = Boolean(user || kind || action || key);
  return (
    <>
      <PageHead title="Audit" below={<p className="lead">Who changed what, the newest first.</p>} />
      <div className="filters" role="search">
        <Search label="User" value={user} onChange={(user) => address.set({ user }, { replace: true })} />
        <Search label="Name or uuid" value={key} onChange={(key) => address.set({ key }, { replace: true })} />
        <Select label="Kind" hidden value={kind} onChange={(kind) => address.set({ kind })} choices={[{ value: "", label: "All kinds" }, ...Object.entries(kinds).map(([value, label]) => ({ value, label }))]} />
        {filtered && (
          <Button quiet onPress={() => address.set({ user: "", kind: "", action: "", key: "" })}>
            Clear
          </Button>
        )}
      </div>
      <Answered asked={asked} rows={12}>
        {({ auditEvents }) => (
          <>
            <p className="counted" role="status">
              {count(auditEvents.totalCount, "event")}
            </p>
            {auditEvents.nodes.length === 0 ? <Empty title={filtered ? "No event matches" : "Nothing was changed yet"} /> : <Days events={auditEvents.nodes} onAction={(action) => address.set({ action })} />}
            {(auditEvents.pageInfo.hasNextPage || after) && (
              <nav className="pager" aria-label="Pages of the events">
                {after && <Button onPress={() => address.set({})}>Newest</Button>}
                {auditEvents.pageInfo.hasNextPage && <Button onPress={() => address.set({ after: auditEvents.pageInfo.endCursor ?? "" })}>Older</Button>}
              </nav>
            )}
          </>
        )}
      </Answered>
    </>
  );
}

function Days({ events, onAction }: { events: readonly AuditEvent[]; onAction: (action: string) => void }) {
  const groups: { day: string; events: AuditEvent[] }[] = [];
  for (const event of events) {
    const day = days.format(new Date(event.createdAt));
    const last = groups.at(-1);
    if (last?.day === day) last.events.push(event);
    else groups.push({ day, events: [event] });
  }
  return groups.map(({ day, events }) => (
    <section key={day} className="day">
      <h2>{day}</h2>
      <ol className="timeline">
        {events.map((event) => (
          <li key={event.id}>
            <p className="facts">
              <b>{event.userId}</b>
              <span>of {event.projectId}</span>
              <Button quiet label={`${event.action}: show only these`} onPress={() => onAction(event.action)}>
                {event.action}
              </Button>
              <Badge>{kinds[event.kind]}</Badge>
              <Thing event={event} />
              <Time at={event.createdAt} />
            </p>
            <Differences before={event.before} after={event.after} />
          </li>
        ))}
      </ol>
    </section>
  ));
}

function Thing({ event: { kind, key } }: { event: AuditEvent }) {
  const slash = key.indexOf("/");
  const at = kind === "NAMESPACE" ? namespaceAt(key) : kind === "RESOURCE" ? resourceAt(key) : kind === "PROPERTY_DEFINITION" && slash > 0 ? propertyAt(key.slice(0, slash), key.slice(slash + 1)) : undefined;
  return at && key ? (
    <Link href={at} className="mono">
      {key}
    </Link>
  ) : (
    <span className="mono">{key}</span>
  );
}

const shown = 10;

/** What is different, field by field. */
function Differences({ before, after }: { before: unknown; after: unknown }) {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const fields = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]));
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

/** What an event has of a thing, with a field for each member of a list that has names, such as metadata. */
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
    return [named, rest["userModifiable"] === false ? `${textOf(rest["value"])} (kept by the service)` : rest["value"]];
  });
  return members.every((member) => member !== undefined) ? members : undefined;
}

function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 240 ? text.slice(0, 240) + "…" : text;
}
