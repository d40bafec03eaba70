// The requests of an import: small files together, a large one in parts.
import type { Client } from "urql";

import { graphql } from "../generated";
import type { ImportFilesMutation, ImportNamespacesInput } from "../generated/graphql";
import { errorOf } from "../page";
import type { Broken } from "./drift";
import { batchBytes, bytesOf, partsOf, type Source } from "./files";

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

/** Says what an import would do, and changes nothing. */
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

const stageDocument = graphql(`
  mutation StagePart($input: StageNamespacePartInput!) {
    stageNamespacePart(input: $input) {
      parts
    }
  }
`);

export type Report = ImportFilesMutation["importNamespaces"]["reports"][number];

export type Settings = Pick<ImportNamespacesInput, "mode" | "origin" | "includeProtected" | "includeUnloaded">;

export interface Outcome {
  /** What became of each file, in their order; of fewer where a request failed. */
  readonly reports: readonly Report[];
  readonly broken: readonly Broken[];
  readonly failed: Error | undefined;
}

/** Returns files in groups that fit into a request; one that does not is alone. */
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

/** Returns a uuid; the browser has a function for that on secure pages only. */
function newUUID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return [...bytes].map((byte, at) => ([4, 6, 8, 10].includes(at) ? "-" : "") + byte.toString(16).padStart(2, "0")).join("");
}

async function stage(client: Client, { text }: Source, left: () => boolean): Promise<{ upload: string; parts: number }> {
  const parts = partsOf(text, batchBytes);
  const upload = newUUID();
  for (const [part, text] of parts.entries()) {
    if (left()) break;
    const { error } = await client.mutation(stageDocument, { input: { upload, part, text } }).toPromise();
    if (error) throw errorOf(error);
  }
  return { upload, parts: parts.length };
}

/** The files that an address has room for, in bytes. */
const shownBytes = 8 * 1024;

/** Returns what is asked of files, but for those that are too large to be part of an address. */
export function askedOf(sources: readonly Source[], settings: Settings): { input: ImportNamespacesInput } {
  let room = shownBytes;
  const documents = sources.map(({ text }) => text).filter((text) => (room -= bytesOf(text)) >= 0);
  return { input: { ...settings, documents, dryRun: true } };
}

/** Imports files, or says what that would do, until left says that nobody waits for it. */
export async function importFiles(client: Client, sources: readonly Source[], settings: Settings, dryRun: boolean, left: () => boolean = () => false): Promise<Outcome> {
  const reports: Report[] = [];
  const broken: Broken[] = [];
  try {
    for (const group of grouped(sources)) {
      if (left()) break;
      const [first] = group;
      const large = first !== undefined && bytesOf(first.text) > batchBytes;
      const input = { ...settings, ...(large ? { uploads: [await stage(client, first, left)] } : { documents: group.map(({ text }) => text) }) };
      if (dryRun) {
        const { data, error } = await client.mutation(dryRunDocument, { input: { ...input, dryRun } }).toPromise();
        if (error) throw errorOf(error);
        reports.push(...(data?.importNamespaces.reports ?? []));
        if (data?.importNamespaces.problems) broken.push(data.importNamespaces.problems);
      } else {
        const { data, error } = await client.mutation(importDocument, { input }).toPromise();
        if (error) throw errorOf(error);
        reports.push(...(data?.importNamespaces.reports ?? []));
      }
    }
  } catch (error) {
    return { reports, broken, failed: error as Error };
  }
  return { reports, broken, failed: undefined };
}
