// The requests of an import: small files together, a large one alone.
import type { Client } from "urql";

import { graphql } from "../generated";
import type { ImportFilesMutation, ImportNamespacesInput } from "../generated/graphql";
import { errorOf } from "../page";
import type { Broken } from "./drift";
import { batchBytes, bytesOf, type Source } from "./files";

graphql(`
  fragment Reported on ImportReport {
    namespace
    outcome
    warnings
    differences
    edits {
      path
      base
      here
      shipped
    }
    problems {
      code
      path
      message
    }
  }
`);

const importDocument = graphql(`
  mutation ImportFiles($input: ImportNamespacesInput!) {
    importNamespaces(input: $input) {
      reports {
        ...Reported
      }
    }
  }
`);

/** Previews an import; nothing is stored. */
export const dryRunDocument = graphql(`
  mutation DryRunFiles($input: ImportNamespacesInput!) {
    importNamespaces(input: $input, problems: { first: 5 }) {
      reports {
        ...Reported
      }
      problems {
        ...Broken
      }
    }
  }
`);

export type Report = ImportFilesMutation["importNamespaces"]["reports"][number];

export type Settings = Pick<ImportNamespacesInput, "mode" | "origin" | "includeProtected" | "includeUnloaded">;

export interface Outcome {
  /** The result of each file, in order; fewer if a request failed. */
  readonly reports: readonly Report[];
  readonly broken: readonly Broken[];
  readonly failed: Error | undefined;
}

/** Groups files by request. A large file has a separate request. */
function grouped(sources: readonly Source[]): Source[][] {
  const groups: Source[][] = [];
  let used = batchBytes;
  for (const source of sources) {
    const size = bytesOf(source.text);
    if (used + size > batchBytes) [used] = [0, groups.push([])];
    groups.at(-1)?.push(source);
    used += size;
  }
  return groups;
}

/** Returns the request to /import whose body is one file and whose address has the other settings. */
const carrying = (text: string): typeof fetch => (url, init) => {
  const { query, variables } = JSON.parse(init?.body as string) as { query: string; variables: unknown };
  const asked = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  return fetch(`${String(url).replace(/graphql$/, "import")}?${asked}`, { ...init, body: text });
};

/** The maximum size of settings in an address, in bytes. */
const shownBytes = 8 * 1024;

/** Returns the variables of a dry run, without the files that are too large for an address. */
export function askedOf(sources: readonly Source[], settings: Settings): { input: ImportNamespacesInput } {
  let room = shownBytes;
  const documents = sources.map(({ text }) => text).filter((text) => (room -= bytesOf(text)) >= 0);
  return { input: { ...settings, documents, dryRun: true } };
}

/** Imports files or previews the import, until left reports that the page was left. */
export async function importFiles(client: Client, sources: readonly Source[], settings: Settings, dryRun: boolean, left: () => boolean = () => false): Promise<Outcome> {
  const reports: Report[] = [];
  const broken: Broken[] = [];
  try {
    for (const group of grouped(sources)) {
      if (left()) break;
      const [first] = group;
      const large = first !== undefined && bytesOf(first.text) > batchBytes;
      const input = { ...settings, ...(!large && { documents: group.map(({ text }) => text) }) };
      const context = large ? { fetch: carrying(first.text) } : {};
      if (dryRun) {
        const { data, error } = await client.mutation(dryRunDocument, { input: { ...input, dryRun } }, context).toPromise();
        if (error) throw errorOf(error);
        reports.push(...(data?.importNamespaces.reports ?? []));
        if (data?.importNamespaces.problems) broken.push(data.importNamespaces.problems);
      } else {
        const { data, error } = await client.mutation(importDocument, { input }, context).toPromise();
        if (error) throw errorOf(error);
        reports.push(...(data?.importNamespaces.reports ?? []));
      }
    }
  } catch (error) {
    return { reports, broken, failed: error as Error };
  }
  return { reports, broken, failed: undefined };
}
