// The table of resources, with what they have beside it.
import { useSyncExternalStore } from "react";
import { Link } from "wouter";

import { resourceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { ResourceFacetKind, ResourceFilter, ResourceOrderField, ResourceTableQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, usePage, useTitle } from "../page";
import { Button, Check } from "../ui/controls";
import { Search } from "../ui/search";
import { Badge, count, numberOf, Time } from "../ui/show";

const document = graphql(`
  query ResourceTable($filter: ResourceFilter, $orderBy: ResourceOrder, $first: Int!, $after: String, $facets: [ResourceFacetInput!]!) {
    resources(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
      totalCount
      nodes {
        id
        uuid
        name
        description
        projectId
        visibility
        updatedAt
        tags
        type {
          id
          name
        }
        metadata {
          id
          key
        }
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

const orders: Readonly<Record<string, ResourceOrderField>> = { name: "NAME", type: "TYPE", project: "PROJECT", updated: "UPDATED_AT" };

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

const pageSize = 50;

export function ResourceTable() {
  const address = useAddress();
  useTitle("Resources");
  const chosen = { TYPE: address.all("type"), PROJECT: address.all("project"), TAG: address.all("tag"), VISIBILITY: address.all("visibility"), METADATA_KEY: address.all("key"), METADATA_VALUE: address.all("value") };
  const search = address.get("search");
  const sort = address.get("sort") || "name";
  const field = sort.replace("-", "");
  const after = address.get("after");
  const key = chosen.METADATA_KEY.length === 1 ? chosen.METADATA_KEY[0] : undefined;
  const filter: ResourceFilter = {
    ...(search && { search }),
    ...(chosen.TYPE.length > 0 && { types: chosen.TYPE }),
    ...(chosen.PROJECT.length > 0 && { projectIds: chosen.PROJECT }),
    ...(chosen.TAG.length > 0 && { anyTags: chosen.TAG.map((name) => ({ name })) }),
    ...(chosen.VISIBILITY.length === 1 && { visibility: chosen.VISIBILITY[0] === "PUBLIC" ? "PUBLIC" : "PRIVATE" }),
    ...(key && chosen.METADATA_VALUE.length > 0 && { metadata: chosen.METADATA_VALUE.map((value) => ({ key, value })) }),
    ...(chosen.METADATA_KEY.length > 0 && { where: { all: chosen.METADATA_KEY.map((key) => ({ metadata: { key, exists: true } })) } }),
  };
  const asked = usePage(document, {
    filter,
    orderBy: { field: orders[field] ?? "NAME", direction: sort.startsWith("-") ? "DESC" : "ASC" },
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
  const filtered = search !== "" || Object.values(chosen).some((values) => values.length > 0);
  const clear = () => address.set({ search: "", ...Object.fromEntries(Object.values(named).map((name) => [name, ""])) });
  const choose = (by: ResourceFacetKind, value: string, on: boolean) => {
    const name = named[by];
    if (!name) return;
    const values = on ? [...address.all(name), value] : address.all(name).filter((other) => other !== value);
    address.set({ [name]: values, ...(by === "METADATA_KEY" && { value: "" }) });
  };
  return (
    <>
      <PageHead title="Resources" below={<p className="lead">The things of the cloud, and what was written on them.</p>} />
      <div className="filters" role="search">
        <Search label="Search names, descriptions and values" value={search} onChange={(search) => address.set({ search }, { replace: true })} />
        {filtered && (
          <Button quiet onPress={clear}>
            Clear all
          </Button>
        )}
      </div>
      <Answered asked={asked} rows={14}>
        {({ resources }) => (
          <div className="beside">
            <Facets facets={resources.facets} chosen={chosen} onChoose={choose} />
            <div className="beside-main">
              <p className="counted" role="status">
                {count(resources.totalCount, "resource")}
                {after && " in all; this is a later page"}
              </p>
              {resources.nodes.length === 0 ? (
                <Empty title={filtered ? "No resource matches" : "There are no resources yet"}>{filtered ? "Try fewer conditions." : "They come with what writes them: a dashboard, a synchroniser, or the command line."}</Empty>
              ) : (
                <Table rows={resources.nodes} sort={sort} onSort={(sort) => address.set({ sort })} />
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
    // What is chosen stays to be seen where it is none of the most frequent.
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
                    <span>{facet.by === "VISIBILITY" ? value.toLowerCase() : value}</span>
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

function Table({ rows, sort, onSort }: { rows: readonly Row[]; sort: string; onSort: (sort: string) => void }) {
  const column = (name: string, title: string, more = "") => {
    const here = sort.replace("-", "") === name;
    const down = sort.startsWith("-");
    return (
      <th scope="col" className={more} aria-sort={here ? (down ? "descending" : "ascending") : "none"}>
        <button type="button" className="sort" onClick={() => onSort(here ? (down ? name : "-" + name) : name === "updated" ? "-updated" : name)}>
          {title}
          <span aria-hidden="true">{here ? (down ? " ↓" : " ↑") : ""}</span>
        </button>
      </th>
    );
  };
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            {column("name", "Name")}
            {column("type", "Type", "wide")}
            {column("project", "Project", "wide")}
            <th scope="col" className="wide">
              Tags
            </th>
            <th scope="col" className="number">
              Metadata
            </th>
            {column("updated", "Changed")}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <Link href={resourceAt(row.uuid)}>{row.name}</Link>
                {row.description && <span className="below-name clip">{row.description}</span>}
              </th>
              <td className="wide nowrap">{row.type.name}</td>
              <td className="wide nowrap">
                {row.projectId} {row.visibility === "PUBLIC" && <Badge>public</Badge>}
              </td>
              <td className="wide">{row.tags.join(", ")}</td>
              <td className="number">{numberOf(row.metadata.length)}</td>
              <td className="nowrap">
                <Time at={row.updatedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
