// The catalogue of namespaces.
import { Link } from "wouter";

import { namespaceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { CatalogueQuery } from "../generated/graphql";
import { useChanges } from "../live";
import { Answered, Empty, PageHead, usePage, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, Select } from "../ui/controls";
import { Search } from "../ui/search";
import { Badge, count, numberOf } from "../ui/show";

const document = graphql(`
  query Catalogue($filter: NamespaceFilter, $after: String) {
    namespaces(filter: $filter, orderBy: { field: DISPLAY_NAME }, first: 100, after: $after) {
      totalCount
      nodes {
        id
        name
        displayName
        description
        visibility
        protected
        origin
        resourceTypeAssociations {
          id
          prefix
          resourceType {
            id
            name
          }
        }
        propertyConnection(first: 0) {
          totalCount
        }
        objectConnection(first: 0) {
          totalCount
        }
        tagConnection(first: 0) {
          totalCount
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
    resourceTypes(first: 1000) {
      nodes {
        id
        name
      }
    }
    tags(first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

type Listed = CatalogueQuery["namespaces"]["nodes"][number];

export function Catalogue() {
  const address = useAddress();
  const viewer = useViewer();
  const [search, type, tag, visibility, after] = ["search", "type", "tag", "visibility", "after"].map(address.get) as [string, string, string, string, string];
  const asked = usePage(document, {
    filter: {
      ...(search && { search }),
      ...(type && { resourceTypes: [type] }),
      ...(tag && { tag }),
      ...((visibility === "PUBLIC" || visibility === "PRIVATE") && { visibility }),
    },
    ...(after && { after }),
  });
  useChanges("namespace", undefined, asked.refresh);
  useTitle("Definitions");
  const filtered = Boolean(search || type || tag || visibility);
  const names = (of: readonly { name: string }[] | undefined, all: string) => [{ value: "", label: all }, ...[...new Set((of ?? []).map(({ name }) => name))].map((name) => ({ value: name, label: name }))];
  return (
    <>
      <PageHead title="Definitions" below={<p className="lead">The metadata keys of resources and their meaning.</p>}>
        {viewer.importNamespaces && (
          <Link href="/import" className="button plain">
            Import
          </Link>
        )}
        {viewer.createNamespace && (
          <Link href="/new-namespace" className="button primary">
            New namespace
          </Link>
        )}
      </PageHead>
      <div className="filters" role="search">
        <Search label="Search names, titles and descriptions" value={search} onChange={(search) => address.set({ search }, { replace: true })} />
        <Select label="Resource type" hidden value={type} onChange={(type) => address.set({ type })} choices={names(asked.data?.resourceTypes.nodes, "All resource types")} />
        <Select label="Tag" hidden value={tag} onChange={(tag) => address.set({ tag })} choices={names(asked.data?.tags.nodes, "All tags")} />
        <Select
          label="Visibility"
          hidden
          value={visibility}
          onChange={(visibility) => address.set({ visibility })}
          choices={[
            { value: "", label: "Public and private" },
            { value: "PUBLIC", label: "Public" },
            { value: "PRIVATE", label: "Private" },
          ]}
        />
        {filtered && (
          <Button quiet onPress={() => address.set({ search: "", type: "", tag: "", visibility: "" })}>
            Clear
          </Button>
        )}
      </div>
      <Answered asked={asked} rows={12}>
        {({ namespaces }) => (
          <>
            <p className="counted" role="status">
              {count(namespaces.totalCount, "namespace")}
            </p>
            {namespaces.nodes.length === 0 ? (
              <Empty title={filtered ? "No namespace matches" : "Nothing is defined yet"}>
                {filtered ? (
                  "Try fewer conditions."
                ) : (
                  <>
                    An administrator loads the definitions that come with the program by <code>cadastre metadefs load --builtin</code>.
                  </>
                )}
              </Empty>
            ) : (
              <ul className="cards">
                {namespaces.nodes.map((namespace) => (
                  <Card key={namespace.id} namespace={namespace} />
                ))}
              </ul>
            )}
            {(namespaces.pageInfo.hasNextPage || after) && (
              <nav className="pager" aria-label="Pages of the list">
                {after && <Button onPress={() => address.set({})}>First page</Button>}
                {namespaces.pageInfo.hasNextPage && <Button onPress={() => address.set({ after: namespaces.pageInfo.endCursor ?? "" })}>Next page</Button>}
              </nav>
            )}
          </>
        )}
      </Answered>
    </>
  );
}

function Card({ namespace }: { namespace: Listed }) {
  const types = [...new Set(namespace.resourceTypeAssociations.map((one) => one.resourceType.name))];
  const holds = [
    [namespace.propertyConnection.totalCount, "property", "properties"],
    [namespace.objectConnection.totalCount, "object", "objects"],
    [namespace.tagConnection.totalCount, "tag", "tags"],
  ] as const;
  return (
    <li className="card">
      <h2>
        <Link href={namespaceAt(namespace.name)}>{namespace.displayName}</Link>
      </h2>
      <p className="mono name">{namespace.name}</p>
      {namespace.description && <p className="about">{namespace.description}</p>}
      <p className="facts">
        {holds
          .filter(([number]) => number > 0)
          .map(([number, one, many]) => (
            <span key={one}>
              <b>{numberOf(number)}</b> {number === 1 ? one : many}
            </span>
          ))}
        {namespace.visibility === "PRIVATE" && <Badge tone="accent">private</Badge>}
        {namespace.protected && <Badge>protected</Badge>}
      </p>
      <p className="types">{types.length === 0 ? "applies to nothing yet" : types.slice(0, 3).join(", ") + (types.length > 3 ? ` and ${types.length - 3} more` : "")}</p>
    </li>
  );
}
