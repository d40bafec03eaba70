// Reads the providers of the cloud page by page, without the cache of the other pages,
// which is made for hundreds of objects, not for tens of thousands. The first script of
// the page starts it.
import { type Connection, request } from "@cadastre/client";

import { graphql } from "../generated";
import type { SessionConnection } from "../opening";
import type { Row } from "./cloud";
import { readEnds } from "./ends";

// The query asks for a next page in the direction of the reading only: the other one
// would cost a search.
export const cloudDocument = graphql(`
  query PlacementCloud($filter: ResourceProviderFilter, $first: Int = 1000, $after: String, $last: Int, $before: String, $back: Boolean = false, $latest: Boolean = false) {
    changes(first: 0) @include(if: $latest) {
      latest
    }
    resourceProviders(filter: $filter, first: $first, after: $after, last: $last, before: $before) {
      totalCount
      nodes {
        uuid
        name
        parent {
          uuid
        }
        inventories {
          resourceClass
          capacity
          used
          held
        }
        aggregates
      }
      pageInfo {
        hasNextPage @skip(if: $back)
        endCursor @skip(if: $back)
        hasPreviousPage @include(if: $back)
        startCursor @include(if: $back)
      }
    }
  }
`);

const pageSize = 1000;

/** The providers during the reading. */
export interface Reading {
  /** The providers read so far, by uuid. */
  readonly rows: Map<string, Row>;
  /** The total number; 0 before the first page. */
  readonly total: number;
  /** Called after every page. */
  onPage: () => void;
  /** Resolves when all are read, with the cursor before the first page; undefined for viewers who may not follow changes. */
  readonly whole: Promise<string | undefined>;
  readonly stop: () => void;
}

/** Reads all providers: roots and other providers concurrently, each list from both ends. */
function read(connection: Connection, follows: boolean): Reading {
  const stopped = new AbortController();
  const rows = new Map<string, Row>();
  const totals = { roots: 0, below: 0 };
  let latest: string | undefined;
  let below: Promise<void> | undefined;
  const readList = (list: keyof typeof totals) =>
    readEnds(
      pageSize,
      async (end, from, met) => {
        const back = end === "back";
        const place = back ? { first: null, last: pageSize, before: from, back } : { first: pageSize, after: from };
        // Followers get changes after the first page.
        const first = follows && list === "roots" && !back && from === undefined;
        const variables = { filter: { roots: list === "roots" }, ...place, latest: first };
        const data = await request(connection, cloudDocument, variables, { signal: AbortSignal.any([stopped.signal, met]) });
        if (first) latest = data.changes?.latest;
        const { nodes, totalCount, pageInfo } = data.resourceProviders;
        const [more, cursor] = back ? [pageInfo.hasPreviousPage, pageInfo.startCursor] : [pageInfo.hasNextPage, pageInfo.endCursor];
        return { rows: nodes, total: totalCount, next: more ? (cursor ?? undefined) : undefined };
      },
      (page, total) => {
        if (!below) {
          below = readList("below");
          below.catch(() => {}); // its error is thrown once the roots are read
        }
        for (const row of page) rows.set(row.uuid, row);
        totals[list] = total;
        reading.total = totals.roots + totals.below;
        reading.onPage();
      },
    );
  const all = async () => {
    await readList("roots");
    await below;
    return latest;
  };
  const reading = { rows, total: 0, onPage: () => {}, whole: all(), stop: () => stopped.abort() };
  reading.whole.catch(() => stopped.abort()); // the caller that awaits it gets the error
  return reading;
}

let begun: { readonly first: string; readonly reading: Reading } | undefined;

/** Starts reading with a token, and assumes that its viewer may follow changes. */
export function begin(connection: SessionConnection): void {
  begun = { first: connection.first, reading: read(connection, true) };
}

/** Reads all providers, or continues the reading that began with the same token. */
export function readCloud(connection: SessionConnection, follows: boolean): Reading {
  const early = begun;
  begun = undefined;
  if (early?.first === connection.first && follows) return early.reading;
  early?.reading.stop();
  return read(connection, follows);
}
