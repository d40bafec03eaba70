// The columns of the table of resources: fields, metadata keys and capabilities; and the
// rows as a file.
import { request } from "@cadastre/client";
import { type ReactNode, useState } from "react";

import { keep } from "../definitions/export";
import { graphql } from "../generated";
import type { ResourceFilter, ResourceOrder, TableRowFragment } from "../generated/graphql";
import { useAsk } from "../page";
import { problemOf, useConnection } from "../placement/read";
import { useViewer } from "../session";
import { Button, Check, type Choice, Combo } from "../ui/controls";
import { Badge, Note, numberOf, Time } from "../ui/show";

graphql(`
  fragment TableRow on Resource {
    id
    uuid
    name
    description
    projectId
    visibility
    revision
    createdAt
    updatedAt
    tags
    viewerCanUpdate
    type {
      id
      name
    }
    metadata {
      id
      key
      value
    }
    capabilities(includePrivate: $private) @include(if: $capabilities) {
      name
      value
    }
  }
`);

const fileDocument = graphql(`
  query ResourceFile($filter: ResourceFilter, $orderBy: ResourceOrder, $after: String, $capabilities: Boolean!, $private: Boolean!) {
    resources(filter: $filter, orderBy: $orderBy, first: 500, after: $after) {
      nodes {
        ...TableRow
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

const keysDocument = graphql(`
  query ColumnKeys {
    metadataKeys(first: 250) {
      nodes {
        key
      }
    }
  }
`);

const capabilitiesDocument = graphql(`
  query ColumnCapabilities($private: Boolean!) {
    resourceTypes(first: 250) {
      nodes {
        id
        capabilities(includePrivate: $private) {
          id
          name
        }
      }
    }
  }
`);

type Row = TableRowFragment;

export interface Column {
  /** The column in the address. */
  readonly id: string;
  readonly title: string;
  /** The order of the address that sorts by it. */
  readonly sort?: string;
  readonly number?: boolean;
  readonly text: (row: Row) => string;
  readonly cell?: (row: Row) => ReactNode;
}

const fields: readonly Column[] = [
  { id: "type", title: "Type", sort: "type", text: ({ type }) => type.name },
  {
    id: "project",
    title: "Project",
    sort: "project",
    text: ({ projectId }) => projectId,
    cell: ({ projectId, visibility }) => (
      <span>
        {projectId} {visibility === "PUBLIC" && <Badge>public</Badge>}
      </span>
    ),
  },
  { id: "visibility", title: "Visibility", text: ({ visibility }) => visibility.toLowerCase() },
  { id: "tags", title: "Tags", text: ({ tags }) => tags.join(", ") },
  { id: "metadata", title: "Metadata", number: true, text: ({ metadata }) => String(metadata.length), cell: ({ metadata }) => numberOf(metadata.length) },
  { id: "uuid", title: "UUID", text: ({ uuid }) => uuid, cell: ({ uuid }) => <span className="mono">{uuid}</span> },
  { id: "created", title: "Created", sort: "created", text: ({ createdAt }) => createdAt, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { id: "updated", title: "Changed", sort: "updated", text: ({ updatedAt }) => updatedAt, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

const shownFirst: readonly string[] = ["type", "project", "tags", "metadata", "updated"];

const ofKey = "key:";
const ofCapability = "capability:";

/** Returns the columns of an address, or the default columns. */
export function columnsOf(ids: readonly string[]): Column[] {
  return (ids.length > 0 ? ids : shownFirst).flatMap((id) => {
    const field = fields.find((field) => field.id === id);
    if (field) return [field];
    if (id.startsWith(ofKey)) return [{ id, title: id.slice(ofKey.length), text: (row: Row) => row.metadata.find(({ key }) => key === id.slice(ofKey.length))?.value ?? "" }];
    if (id.startsWith(ofCapability)) return [{ id, title: id.slice(ofCapability.length), text: (row: Row) => row.capabilities?.find(({ name }) => name === id.slice(ofCapability.length))?.value ?? "" }];
    return [];
  });
}

/** Reports whether columns need the capabilities of the rows. */
export const needCapabilities = (columns: readonly Column[]): boolean => columns.some(({ id }) => id.startsWith(ofCapability));

interface ToolsProps {
  readonly columns: readonly Column[];
  readonly onColumns: (ids: readonly string[]) => void;
  readonly filter: ResourceFilter;
  readonly orderBy: ResourceOrder;
}

/** The tools of the table: its columns, and its rows as a file. */
export function Tools({ columns, onColumns, filter, orderBy }: ToolsProps) {
  const connection = useConnection();
  const viewer = useViewer();
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Error>();
  const load = async (write: (rows: readonly Row[], columns: readonly Column[]) => string, extension: string) => {
    setBusy(true);
    setFailed(undefined);
    try {
      const rows: Row[] = [];
      for (let after: string | null | undefined; ; ) {
        const variables = { filter, orderBy, after: after ?? null, capabilities: needCapabilities(columns), private: viewer.rules.includes("CAPABILITIES_PRIVATE") };
        const { nodes, pageInfo } = (await request(connection, fileDocument, variables)).resources;
        rows.push(...nodes);
        after = pageInfo.endCursor;
        if (!pageInfo.hasNextPage) break;
      }
      keep(write(rows, columns), `resources.${extension}`);
    } catch (error) {
      setFailed(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className="actions tools">
        <Button quiet onPress={() => setOpen(!open)}>
          Columns
        </Button>
        <Button quiet disabled={busy} label="Download the rows as CSV" onPress={() => void load(csvOf, "csv")}>
          CSV
        </Button>
        <Button quiet disabled={busy} label="Download the rows as JSON" onPress={() => void load(jsonOf, "json")}>
          JSON
        </Button>
      </div>
      {failed && <Note>{failed.message}</Note>}
      {open && <Choose columns={columns} onColumns={onColumns} />}
    </>
  );
}

function Choose({ columns, onColumns }: Pick<ToolsProps, "columns" | "onColumns">) {
  const viewer = useViewer();
  const [typed, setTyped] = useState("");
  const keys = useAsk(keysDocument, {});
  const capabilities = useAsk(capabilitiesDocument, { private: viewer.rules.includes("CAPABILITIES_PRIVATE") }, !viewer.namespaces);
  const ids = columns.map(({ id }) => id);
  const choices: Choice[] = [
    ...(keys.data?.metadataKeys.nodes ?? []).map(({ key }) => ({ value: ofKey + key, label: `${key} (metadata)` })),
    ...[...new Set((capabilities.data?.resourceTypes.nodes ?? []).flatMap((type) => (type.capabilities ?? []).map(({ name }) => name)))].sort().map((name) => ({ value: ofCapability + name, label: `${name} (capability)` })),
  ];
  const toggle = (id: string, on: boolean) => onColumns(on ? [...ids, id] : ids.filter((other) => other !== id));
  return (
    <fieldset className="panel columns" aria-label="Columns">
      <div className="items">
        {[...fields, ...columns.filter(({ id }) => !fields.some((field) => field.id === id))].map(({ id, title }) => (
          <Check key={id} label={title} checked={ids.includes(id)} disabled={ids.length === 1 && ids.includes(id)} onChange={(on) => toggle(id, on)} />
        ))}
      </div>
      <Combo
        label="Add a metadata key or a capability"
        value={typed}
        onChange={setTyped}
        choices={choices.filter(({ value }) => !ids.includes(value))}
        onChoose={(id) => {
          if (!choices.some(({ value }) => value === id)) return;
          setTyped("");
          toggle(id, true);
        }}
      />
    </fieldset>
  );
}

/** Returns a cell of a CSV file, which spreadsheets do not take for a formula. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns rows as CSV (RFC 4180), with the columns of the table. */
export function csvOf(rows: readonly Row[], columns: readonly Column[]): string {
  const lines = [["Name", ...columns.map(({ title }) => title)], ...rows.map((row) => [row.name, ...columns.map(({ text }) => text(row))])];
  return lines.map((cells) => cells.map(quoted).join(",") + "\r\n").join("");
}

/** Returns rows as JSON, each with its fields, metadata and, if the table shows one, capabilities. */
function jsonOf(rows: readonly Row[]): string {
  const pairs = (of: readonly (readonly [string, string])[]) => Object.fromEntries(of);
  const objects = rows.map(({ uuid, name, description, type, projectId, visibility, revision, createdAt, updatedAt, tags, metadata, capabilities }) => ({
    uuid,
    name,
    description,
    type: type.name,
    projectId,
    visibility,
    revision,
    createdAt,
    updatedAt,
    tags,
    metadata: pairs(metadata.map(({ key, value }) => [key, value] as const)),
    ...(capabilities && { capabilities: pairs(capabilities.map(({ name, value }) => [name, value] as const)) }),
  }));
  return JSON.stringify(objects, null, 2) + "\n";
}
