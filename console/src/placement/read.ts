// Reads the cloud and keeps it up to date; queries bypass the cache of the other pages.
import { CadastreError, type Connection, request } from "@cadastre/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { graphql } from "../generated";
import type { ResourceProviderFilter } from "../generated/graphql";
import { useFollowed } from "../live";
import { connectionOf, type SessionConnection } from "../opening";
import type { Asked } from "../page";
import { whenReachable } from "../reachable";
import { useSession, useViewer } from "../session";
import type { Choice } from "../ui/controls";
import { type Cloud, cloudOf, nothing, type Row } from "./cloud";
import { cloudDocument, readCloud } from "./reading";

const matchesDocument = graphql(`
  query PlacementMatches($filter: ResourceProviderFilter, $after: String) {
    resourceProviders(filter: $filter, first: 1000, after: $after) {
      nodes {
        root {
          uuid
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

const namesDocument = graphql(`
  query PlacementNames($uuids: [UUID!]!) {
    resources(filter: { uuids: $uuids }, first: 250) {
      nodes {
        uuid
        name
      }
    }
  }
`);

/** Returns the server's address with the viewer's token. */
export function useConnection(): SessionConnection {
  const { token } = useSession();
  return useMemo(() => connectionOf(token), [token]);
}

interface State {
  readonly cloud: Cloud;
  readonly read: number;
  readonly total: number | undefined;
  readonly done: boolean;
  readonly error: Error | undefined;
  /** Grows with every change of the cloud. */
  readonly revision: number;
}

export interface ReadCloud extends State {
  readonly retry: () => void;
  /** Reads some providers again, by uuid. */
  readonly renew: (uuids: ReadonlySet<string>) => void;
}

/** The maximum number of changed providers to read by uuid; after more changes, all are read again. */
const mostByName = 1000;
const namesOfPage = 250;

/** The pause between drawings during the reading: a minimum in milliseconds, and a multiple of the time of a drawing, because drawing delays reading. */
const pause = { least: 250, times: 20 };

/** Reads all providers, shows each page as it comes, and keeps them up to date. */
export function useCloud(): ReadCloud {
  const connection = useConnection();
  const { changes } = useViewer();
  const [state, setState] = useState<State>({ cloud: nothing, read: 0, total: undefined, done: false, error: undefined, revision: 0 });
  const [from, setFrom] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  const rows = useRef(new Map<string, Row>());

  useEffect(() => {
    let stopped = false;
    const anew = rows.current.size > 0; // the shown rows stay until all are read
    const reading = readCloud(connection, changes);
    let next = -Infinity;
    const show = (done: boolean) => {
      const begun = performance.now();
      const { total } = reading;
      const cloud = cloudOf(reading.rows.values());
      setState((state) => ({ cloud, read: reading.rows.size, total, done, error: undefined, revision: state.revision + (done ? 1 : 0) }));
      const made = performance.now();
      next = made + Math.max(pause.least, pause.times * (made - begun));
    };
    const showSome = () => {
      if (!anew && reading.rows.size > 0 && reading.rows.size < reading.total && performance.now() > next) show(false);
    };
    reading.onPage = showSome;
    showSome();
    reading.whole.then(
      (latest) => {
        if (stopped) return;
        rows.current = reading.rows;
        show(true);
        setFrom(latest);
      },
      (error: unknown) => !stopped && setState((state) => ({ ...state, error: problemOf(error) })),
    );
    return () => {
      stopped = true;
      reading.onPage = () => {};
      reading.stop();
    };
  }, [connection, changes, attempt]);

  const retry = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  const { error } = state;
  useEffect(() => (error && isPassing(error) ? whenReachable(retry) : undefined), [error, retry]);

  const waiting = useRef<{ keys: Set<string>; busy: boolean }>({ keys: new Set(), busy: false });
  const changed = useCallback(
    (keys: ReadonlySet<string> | undefined) => {
      const { current } = waiting;
      keys?.forEach((key) => current.keys.add(key));
      if (!keys || current.keys.size > mostByName) {
        current.keys.clear();
        return retry();
      }
      const update = async () => {
        while (current.keys.size > 0) {
          const uuids = [...current.keys].slice(0, namesOfPage);
          uuids.forEach((uuid) => current.keys.delete(uuid));
          const { resourceProviders } = await request(connection, cloudDocument, { filter: { uuids } });
          for (const uuid of uuids) rows.current.delete(uuid);
          for (const row of resourceProviders.nodes) rows.current.set(row.uuid, row);
        }
        const cloud = cloudOf(rows.current.values());
        setState((state) => ({ ...state, cloud, read: rows.current.size, total: rows.current.size, revision: state.revision + 1 }));
      };
      if (current.busy) return;
      current.busy = true;
      update()
        .catch(() => retry())
        .finally(() => (current.busy = false));
    },
    [connection, retry],
  );
  useFollowed("provider", from, changed);
  return useMemo(() => ({ ...state, retry, renew: changed }), [state, retry, changed]);
}

/** Reports whether a failure is of the network, of a proxy, or of a busy server. */
const isPassing = (error: Error): boolean => !(error instanceof CadastreError) || [undefined, "RATE_LIMITED", "TIMEOUT", "UNAVAILABLE"].includes(error.code);

export const problemOf = (error: unknown): Error => (error instanceof CadastreError ? error : new Error("The server cannot be reached."));

/**
 * Reads data whenever the key or the revision changes. The old data stay until the new
 * arrive; without a key there are no data.
 */
export function useRead<Data>(key: string | undefined, revision: number, read: (signal: AbortSignal) => Promise<Data>): Asked<Data> & { readonly current: boolean } {
  const [state, setState] = useState<{ key?: string; data?: Data; error?: Error }>({});
  const [attempt, setAttempt] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (key === undefined) return setState({});
    const stop = new AbortController();
    latest.current(stop.signal).then(
      (data) => !stop.signal.aborted && setState({ key, data }),
      (error: unknown) => !stop.signal.aborted && setState({ key, error: problemOf(error) }),
    );
    return () => stop.abort();
  }, [key, revision, attempt]);
  const refresh = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  return useMemo(() => {
    const there = key === undefined ? {} : state;
    return { data: there.data, error: there.error, loading: key !== undefined && state.key !== key, current: key !== undefined && state.key === key, refresh };
  }, [key, state, refresh]);
}

/**
 * Reads the roots of the trees that meet all filters. Different providers of a tree can
 * meet them: a device has the trait, its host the aggregate.
 */
export function useMatches(filters: readonly ResourceProviderFilter[], revision: number): ReturnType<typeof useRead<ReadonlySet<string>>> {
  const connection = useConnection();
  return useRead(filters.length > 0 ? JSON.stringify(filters) : undefined, revision, async (signal) => {
    const found = await Promise.all(filters.map((filter) => rootsOf(connection, filter, signal)));
    return found.reduce((left, roots) => new Set([...left].filter((root) => roots.has(root))));
  });
}

async function rootsOf(connection: Connection, filter: ResourceProviderFilter, signal: AbortSignal): Promise<Set<string>> {
  const roots = new Set<string>();
  for (let after: string | null | undefined; ; ) {
    const { nodes, pageInfo } = (await request(connection, matchesDocument, { filter, ...(after && { after }) }, { signal })).resourceProviders;
    for (const { root } of nodes) roots.add(root.uuid);
    after = pageInfo.endCursor;
    if (!pageInfo.hasNextPage) return roots;
  }
}

interface Aggregates {
  readonly all: readonly Choice[];
  readonly nameOf: (uuid: string) => string;
}

/** Returns the aggregates with the names of the resources of the same uuids. */
export function useAggregates(uuids: readonly string[]): Aggregates {
  const connection = useConnection();
  const { resources } = useViewer();
  const asked = useRead(resources && uuids.length > 0 ? uuids.join() : undefined, 0, async (signal) => {
    const names = new Map<string, string>();
    for (let at = 0; at < uuids.length; at += 250) {
      const { nodes } = (await request(connection, namesDocument, { uuids: uuids.slice(at, at + 250) }, { signal })).resources;
      for (const { uuid, name } of nodes) names.set(uuid, name);
    }
    return names;
  });
  return useMemo(() => {
    const nameOf = (uuid: string) => asked.data?.get(uuid) ?? uuid;
    return { nameOf, all: uuids.map((value) => ({ value, label: nameOf(value) })).sort((a, b) => (a.label < b.label ? -1 : 1)) };
  }, [asked.data, uuids]);
}
