// The table of resources, with facets.
import { Fragment, useState, useSyncExternalStore } from "react";
import { Link } from "wouter";

import { resourceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { ResourceFacetKind, ResourceFilter, ResourceOrder, ResourceOrderField, ResourceTableQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, usePage, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, Check, Select } from "../ui/controls";
import { Search } from "../ui/search";
import { Breaking, count, numberOf } from "../ui/show";
import { Bulk } from "./bulk";
import { type Column, columnsOf, needCapabilities, Tools } from "./columns";
import { complete, readNeed, requirementOf, written } from "./needs";
import { SavedFilters } from "./saved";

const document = graphql(`
  query ResourceTable($filter: ResourceFilter, $orderBy: ResourceOrder, $first: Int!, $after: String, $facets: [ResourceFacetInput!]!, $capabilities: Boolean!, $private: Boolean!) {
    resources(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
      totalCount
      nodes {
        ...TableRow
      }
      pageInfo {
        hasNextPage
        endCursor
      }
      facets(of: $facets) {
        by
        key
        hasMore
        values {
          value
          resourceCount
        }
      }
    }
  }
`);

type Facet = ResourceTableQuery["resources"]["facets"][number];
type Row = ResourceTableQuery["resources"]["nodes"][number];

const orders: Readonly<Record<string, ResourceOrderField>> = { name: "NAME", type: "TYPE", project: "PROJECT", created: "CREATED_AT", updated: "UPDATED_AT" };

/** Orders that begin with the newest. */
const newestFirst: readonly string[] = ["created", "updated"];

const titles: Readonly<Record<ResourceFacetKind, string>> = {
  TYPE: "Type",
  PROJECT: "Project",
  TAG: "Tag",
  VISIBILITY: "Visibility",
  METADATA_KEY: "Metadata key",
  METADATA_VALUE: "Value",
  CAPABILITY_VALUE: "Capability",
};

/** The names of facets in the address. */
const named: Readonly<Partial<Record<ResourceFacetKind, string>>> = { TYPE: "type", PROJECT: "project", TAG: "tag", VISIBILITY: "visibility", METADATA_KEY: "key", METADATA_VALUE: "value" };

/** The choices of a phone, which shows no headings. */
const sorts = [
  { value: "name", label: "By name" },
  { value: "type", label: "By type" },
  { value: "project", label: "By project" },
  { value: "-updated", label: "Changed last" },
  { value: "-created", label: "Created last" },
];

const pageSize = 50;

export function ResourceTable() {
  const address = useAddress();
  const viewer = useViewer();
  useTitle("Resources");
  const chosen = { TYPE: address.all("type"), PROJECT: address.all("project"), TAG: address.all("tag"), VISIBILITY: address.all("visibility"), METADATA_KEY: address.all("key"), METADATA_VALUE: address.all("value") };
  const search = address.get("search");
  const parent = address.get("parent");
  const needs = address.all("need").map(readNeed);
  const sort = address.get("sort") || "name";
  const field = sort.replace("-", "");
  const after = address.get("after");
  const key = chosen.METADATA_KEY.length === 1 ? chosen.METADATA_KEY[0] : undefined;
  const filter: ResourceFilter = {
    ...(search && { search }),
    ...(parent && { parent }),
    ...(chosen.TYPE.length > 0 && { types: chosen.TYPE }),
    ...(chosen.PROJECT.length > 0 && { projectIds: chosen.PROJECT }),
    ...(chosen.TAG.length > 0 && { anyTags: chosen.TAG.map((name) => ({ name })) }),
    ...(chosen.VISIBILITY.length === 1 && { visibility: chosen.VISIBILITY[0] === "PUBLIC" ? "PUBLIC" : "PRIVATE" }),
    ...(key && chosen.METADATA_VALUE.length > 0 && { metadata: chosen.METADATA_VALUE.map((value) => ({ key, value })) }),
    ...(needs.length > 0 && { requirements: complete(needs).map(requirementOf) }),
    ...(chosen.METADATA_KEY.length > 0 && { where: { any: chosen.METADATA_KEY.map((key) => ({ metadata: { key, exists: true } })) } }),
  };
  const columns = columnsOf(address.all("column"));
  const orderBy: ResourceOrder = { field: (Object.hasOwn(orders, field) && orders[field]) || "NAME", direction: sort.startsWith("-") ? "DESC" : "ASC" };
  const asked = usePage(document, {
    filter,
    orderBy,
    capabilities: needCapabilities(columns),
    private: viewer.rules.includes("CAPABILITIES_PRIVATE"),
    first: pageSize,
    ...(after && { after }),
    facets: [
      { by: "TYPE", first: 20 },
      { by: "PROJECT", first: 20 },
      { by: "VISIBILITY" },
      { by: "TAG", first: 12 },
      { by: "METADATA_KEY", first: 12 },
      ...(key ? [{ by: "METADATA_VALUE", key, first: 20 } as const] : []),
    ],
  });
  useChanges("resource", undefined, asked.refresh);
  const filtered = search !== "" || parent !== "" || needs.length > 0 || Object.values(chosen).some((values) => values.length > 0);
  const clear = () => address.set({ search: "", parent: "", need: [], ...Object.fromEntries(Object.values(named).map((name) => [name, ""])) });
  const choose = (by: ResourceFacetKind, value: string, on: boolean) => {
    const name = named[by];
    if (!name) return;
    const values = on ? [...address.all(name), value] : address.all(name).filter((other) => other !== value);
    address.set({ [name]: values, ...(by === "METADATA_KEY" && { value: "" }) });
  };
  return (
    <>
      <PageHead title="Resources" below={<p className="lead">Hosts, instances, flavors and other resources, with their metadata.</p>}>
        {viewer.createResource && (
          <Link href={"/new-resource" + (chosen.TYPE.length === 1 ? "?type=" + encodeURIComponent(chosen.TYPE[0] ?? "") : "")} className="button primary">
            New resource
          </Link>
        )}
      </PageHead>
      <div className="filters" role="search">
        <Search label="Search names, descriptions and values" value={search} onChange={(search) => address.set({ search }, { replace: true })} />
        {filtered && (
          <Button quiet onPress={clear}>
            Clear all
          </Button>
        )}
      </div>
      <SavedFilters filtered={filtered} />
      {parent && (
        <ul className="chips needs-here" aria-label="Place">
          <li className="chip">
            below <Link href={resourceAt(parent)} className="mono">{parent}</Link>{" "}
            <Button quiet label="Remove the parent" onPress={() => address.set({ parent: "" })}>
              Remove
            </Button>
          </li>
        </ul>
      )}
      {needs.length > 0 && (
        <ul className="chips needs-here" aria-label="Requirements">
          {needs.map((need, at) => (
            <li key={written(need)} className="chip mono">
              {need.key} {requirementOf(need).requirement}{" "}
              <Button quiet label={`Remove the requirement on ${need.key}`} onPress={() => address.set({ need: needs.filter((_, other) => other !== at).map(written) })}>
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      <Answered asked={asked} rows={14}>
        {({ resources }) => (
          <div className="beside">
            <Facets facets={resources.facets} chosen={chosen} onChoose={choose} />
            <div className="beside-main">
              <div className="table-head">
                <p className="counted" role="status">
                  {count(resources.totalCount, "resource")}
                  {after && " in all; this is a later page"}
                </p>
                <div className="only-phone">
                  <Select label="Sort" hidden value={sort} onChange={(sort) => address.set({ sort })} choices={sorts} />
                </div>
                <Tools columns={columns} onColumns={(column) => address.set({ column }, { replace: true })} filter={filter} orderBy={orderBy} />
              </div>
              {resources.nodes.length === 0 ? (
                <Empty title={filtered ? "No resource matches" : "There are no resources yet"}>{filtered ? "Try fewer conditions." : "Services, dashboards and the command line create resources."}</Empty>
              ) : (
                <Rows key={JSON.stringify([filter, after])} rows={resources.nodes} columns={columns} sort={sort} onSort={(sort) => address.set({ sort })} refresh={asked.refresh} />
              )}
              {(resources.pageInfo.hasNextPage || after) && (
                <nav className="pager" aria-label="Pages of the table">
                  {after && <Button onPress={() => address.set({})}>First page</Button>}
                  {resources.pageInfo.hasNextPage && <Button onPress={() => address.set({ after: resources.pageInfo.endCursor ?? "" })}>Next page</Button>}
                </nav>
              )}
            </div>
          </div>
        )}
      </Answered>
    </>
  );
}

const wideScreen = matchMedia("(min-width: 901px)");

/** Reports whether there is room for facets beside the table. */
function useIsWide(): boolean {
  return useSyncExternalStore(
    (changed) => (wideScreen.addEventListener("change", changed), () => wideScreen.removeEventListener("change", changed)),
    () => wideScreen.matches,
  );
}

function Facets({ facets, chosen, onChoose }: { facets: readonly Facet[]; chosen: Readonly<Partial<Record<ResourceFacetKind, readonly string[]>>>; onChoose: (by: ResourceFacetKind, value: string, on: boolean) => void }) {
  const groups = facets.map((facet) => {
    const own = chosen[facet.by] ?? [];
    const offered = facet.values.map(({ value, resourceCount }) => ({ value, resourceCount }));
    // Selected values are listed even if they are rare.
    for (const value of own) if (!offered.some((one) => one.value === value)) offered.unshift({ value, resourceCount: 0 });
    return { facet, own, offered };
  });
  const wide = useIsWide();
  return (
    <details className="facets" key={String(wide)} open={wide}>
      <summary>Filters</summary>
      {groups
        .filter(({ offered }) => offered.length > 0)
        .map(({ facet, own, offered }) => (
          <fieldset key={facet.by + (facet.key ?? "")}>
            <legend>
              {titles[facet.by]}
              {facet.key && <span className="mono dim"> {facet.key}</span>}
            </legend>
            {offered.map(({ value, resourceCount }) => (
              <Check
                key={value}
                checked={own.includes(value)}
                onChange={(on) => onChoose(facet.by, value, on)}
                label={
                  <span className="facet">
                    <span>{facet.by === "VISIBILITY" ? value.toLowerCase() : <Breaking name={value} />}</span>
                    <span className="dim">{numberOf(resourceCount)}</span>
                  </span>
                }
              />
            ))}
            {facet.hasMore && <p className="hint">and more: search for them</p>}
          </fieldset>
        ))}
    </details>
  );
}

/** The rows of a page, with a selection to edit together. */
function Rows({ rows, columns, sort, onSort, refresh }: { rows: readonly Row[]; columns: readonly Column[]; sort: string; onSort: (sort: string) => void; refresh: () => void }) {
  const viewer = useViewer();
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [editing, setEditing] = useState(false);
  const mine = viewer.setMetadata ? rows.filter((row) => row.viewerCanUpdate) : [];
  const chosen = mine.filter((row) => picked.has(row.uuid));
  const close = () => (setEditing(false), setPicked(new Set()));
  return (
    <>
      {chosen.length > 0 && !editing && (
        <div className="actions picked" role="status">
          <span>{numberOf(chosen.length)} selected</span>
          <Button onPress={() => setEditing(true)}>Edit their metadata</Button>
          <Button quiet onPress={() => setPicked(new Set())}>
            Choose none
          </Button>
        </div>
      )}
      {editing && chosen.length > 0 && <Bulk chosen={chosen} onClose={close} refresh={refresh} />}
      <Table rows={rows} columns={columns} sort={sort} onSort={onSort} mine={mine} chosen={chosen} onPick={editing ? undefined : (uuids) => setPicked(new Set(uuids))} />
    </>
  );
}

interface TableProps {
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  /** The rows that can be selected. */
  readonly mine: readonly Row[];
  readonly chosen: readonly Row[];
  /** Undefined while the selection is locked. */
  readonly onPick: ((uuids: readonly string[]) => void) | undefined;
}

function Table({ rows, columns, sort, onSort, mine, chosen, onPick }: TableProps) {
  const uuids = chosen.map(({ uuid }) => uuid);
  const heading = (name: string, title: string, more = "") => {
    const here = sort.replace("-", "") === name;
    const down = sort.startsWith("-");
    return (
      <th scope="col" className={more} aria-sort={here ? (down ? "descending" : "ascending") : "none"}>
        <button type="button" className="sort" onClick={() => onSort(here ? (down ? name : "-" + name) : newestFirst.includes(name) ? "-" + name : name)}>
          {title}
          <span aria-hidden="true">{here ? (down ? " ↓" : " ↑") : ""}</span>
        </button>
      </th>
    );
  };
  return (
    <div className="scroll">
      <table className="stacked">
        <thead>
          <tr>
            {mine.length > 0 && (
              <th scope="col" className="pick">
                <input type="checkbox" aria-label="Select all on this page" disabled={!onPick} checked={chosen.length === mine.length} ref={(box) => void (box && (box.indeterminate = chosen.length > 0 && chosen.length < mine.length))} onChange={(event) => onPick?.(event.target.checked ? mine.map(({ uuid }) => uuid) : [])} />
              </th>
            )}
            {heading("name", "Name")}
            {columns.map(({ id, title, sort: order, number }) =>
              order ? (
                <Fragment key={id}>{heading(order, title)}</Fragment>
              ) : (
                <th key={id} scope="col" className={number ? "number" : ""}>
                  {title}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} data-chosen={uuids.includes(row.uuid)}>
              {mine.length > 0 && (
                <td className="pick">
                  <input type="checkbox" aria-label={`Select ${row.name}`} disabled={!onPick || !mine.includes(row)} checked={uuids.includes(row.uuid)} onChange={(event) => onPick?.(event.target.checked ? [...uuids, row.uuid] : uuids.filter((other) => other !== row.uuid))} />
                </td>
              )}
              <th scope="row">
                <div>
                  <Link href={resourceAt(row.uuid)}>{row.name}</Link>
                  {row.description && <span className="below-name clip">{row.description}</span>}
                </div>
              </th>
              {columns.map(({ id, title, number, text, cell }) => (
                <td key={id} className={number ? "number" : ""} data-label={title}>
                  {cell ? cell(row) : text(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
