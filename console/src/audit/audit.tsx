// The audit log: who changed what, the newest first.
import { useMemo } from "react";

import { useAddress } from "../address";
import { graphql } from "../generated";
import type { AuditFilter, AuditKind } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, usePage, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, type Choice, Field, Select } from "../ui/controls";
import { Search } from "../ui/search";
import { count } from "../ui/show";
import { Days, kinds, verbOf } from "./events";

const document = graphql(`
  query AuditPage($filter: AuditFilter, $after: String) {
    auditEvents(filter: $filter, first: 50, after: $after) {
      totalCount
      nodes {
        ...Event
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** The mutations that write events, and `releaseHold`, with which the server ends holds. */
const actions: readonly string[] = [
  "setCapabilities", "unsetCapabilities", "createCapability", "setCapabilityVisibility", "deleteCapability",
  "createNamespace", "updateNamespace", "deleteNamespace", "deleteNamespaceContents", "createProperty",
  "updateProperty", "deleteProperty", "createObject", "updateObject", "deleteObject", "setTags", "updateTag",
  "deleteTag", "createResourceType", "updateResourceType", "deleteResourceType", "associateResourceType",
  "updateResourceTypeAssociation", "disassociateResourceType", "shareNamespace", "unshareNamespace",
  "importNamespaces", "unloadNamespaces", "createResourceProvider", "createResourceProviders",
  "updateResourceProvider", "deleteResourceProvider", "setInventories", "setInventory", "updateInventories",
  "deleteInventory",
  "setProviderTraits", "setProviderAggregates", "setOnResourceProviders", "createTrait", "ensureTraits", "deleteTrait",
  "createResourceClass", "deleteResourceClass", "setAllocations", "place", "applyPlan", "confirmAllocations",
  "releaseHold", "deleteAllocations", "deleteAllocationsForMany", "reshape", "setLimits",
  "createResource", "createResources", "setMetadata", "setMetadataOnResources", "replaceMetadata",
  "deleteMetadata", "updateResource", "deleteResource", "setResourceTags", "syncResources", "endSync",
  "setDefaults", "applyDefaults",
];

const hour = 3600_000;

const ranges: Readonly<Record<string, { readonly label: string; readonly length: number }>> = {
  hour: { label: "Last hour", length: hour },
  day: { label: "Last 24 hours", length: 24 * hour },
  week: { label: "Last 7 days", length: 7 * 24 * hour },
  month: { label: "Last 30 days", length: 30 * 24 * hour },
};

const between = "between";

/** The beginning of a day in the viewer's time zone, or some days later; undefined if the string is not a date. */
function midnight(date: string, later = 0): string | undefined {
  const [year = 0, month = 1, day = 1] = date.split("-").map(Number);
  const at = /^\d{4}-\d\d-\d\d$/.test(date) ? new Date(year, month - 1, day + later) : undefined;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
}

/** Returns the times of a range, which stay the same while the range does. */
function useTimes(range: string, from: string, to: string): Pick<AuditFilter, "since" | "until"> {
  return useMemo(() => {
    const length = ranges[range]?.length;
    if (length) return { since: new Date(Date.now() - length).toISOString() };
    if (range !== between) return {};
    const [since, until] = [midnight(from), midnight(to, 1)];
    return { ...(since && { since }), ...(until && { until }) };
  }, [range, from, to]);
}

const names = ["user", "kind", "action", "key", "range", "from", "to", "after"] as const;

export function AuditPage() {
  const address = useAddress();
  const viewer = useViewer();
  const [user, kind, action, key, range, from, to, after] = names.map(address.get) as [string, string, string, string, string, string, string, string];
  const known = kind in kinds ? (kind as AuditKind) : undefined;
  const times = useTimes(range, from, to);
  const asked = usePage(document, { filter: { ...times, ...(user && { userId: user }), ...(known && { kind: known }), ...(action && { action }), ...(key && { key }) }, ...(after && { after }) });
  useChanges("namespace", undefined, asked.refresh);
  useChanges("resource", undefined, asked.refresh);
  useTitle("Audit");
  const filtered = Boolean(user || kind || action || key || range);
  const choices: Choice[] = [...new Set([...actions, ...(action ? [action] : [])])].map((value) => ({ value, label: verbOf(value) })).sort((a, b) => (a.label < b.label ? -1 : 1));
  return (
    <>
      <PageHead title="Audit" below={<p className="lead">Who changed what, the newest first.</p>} />
      <div className="filters audit-filters" role="search">
        <Search label="User" value={user} onChange={(user) => address.set({ user }, { replace: true })} />
        <Search label="Name or uuid" value={key} onChange={(key) => address.set({ key }, { replace: true })} />
        <Select label="Kind" hidden value={kind} onChange={(kind) => address.set({ kind })} choices={[{ value: "", label: "All kinds" }, ...Object.entries(kinds).map(([value, label]) => ({ value, label }))]} />
        <Select label="Action" hidden value={action} onChange={(action) => address.set({ action })} choices={[{ value: "", label: "All actions" }, ...choices]} />
        <Select
          label="Time"
          hidden
          value={range}
          onChange={(range) => address.set({ range, from: "", to: "" })}
          choices={[{ value: "", label: "Any time" }, ...Object.entries(ranges).map(([value, { label }]) => ({ value, label })), { value: between, label: "Between dates" }]}
        />
        {range === between && (
          <>
            <Field label="From" hidden type="date" value={from} onChange={(from) => address.set({ from }, { replace: true })} />
            <Field label="To" hidden type="date" value={to} onChange={(to) => address.set({ to }, { replace: true })} />
          </>
        )}
        {filtered && (
          <Button quiet onPress={() => address.set(Object.fromEntries(names.map((name) => [name, ""])))}>
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
            {auditEvents.nodes.length === 0 ? <Empty title={filtered ? "No event matches" : "There are no events yet"} /> : <Days events={auditEvents.nodes} placement={viewer.placement} />}
            {(auditEvents.pageInfo.hasNextPage || after) && (
              <nav className="pager" aria-label="Pages of events">
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
