// Changes as they happen: one socket with a stream for each kind of object, from before
// the first page is read until the session ends.
import { CadastreError, follow, webSocket } from "@cadastre/client";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";

import { graphql } from "./generated";
import { connectionOf, latestOf } from "./opening";

const documents = {
  namespace: graphql(`
    subscription FollowNamespaces($after: String) {
      namespaceChanged(after: $after) {
        cursor
        change {
          key
          what
        }
      }
    }
  `),
  resource: graphql(`
    subscription FollowResources($after: String) {
      resourceChanged(after: $after) {
        cursor
        change {
          key
          what
        }
      }
    }
  `),
  provider: graphql(`
    subscription FollowProviders($after: String) {
      resourceProviderChanged(after: $after) {
        cursor
        change {
          key
          what
        }
      }
    }
  `),
  consumer: graphql(`
    subscription FollowConsumers($after: String) {
      consumerChanged(after: $after) {
        cursor
        change {
          key
          what
        }
      }
    }
  `),
};

type Event = Record<string, { cursor: string; change: { key: string } } | null>;

export type Kind = keyof typeof documents;

/** Handles a change of the object with this key; undefined means any object. */
type Handler = (key: string | undefined) => void;

/** The kinds that every page follows. Providers and consumers can have thousands of changes a second: only pages that show them follow them. */
const always = ["namespace", "resource"] as const;

/** Whether changes appear: yes, not at the moment, or refused with a reason. */
export type Liveness = boolean | { readonly refused: string };

interface Feed {
  readonly on: (kind: Kind, handler: Handler) => () => void;
  /** Follows a kind from a cursor on, until the signal aborts. */
  readonly run: ((kind: Kind, after: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly live: Liveness;
}

const FeedContext = createContext<Feed>({ on: () => () => {}, run: undefined, live: false });

export function FeedProvider({ token, latest, children }: { token: string; latest: string | undefined; children: ReactNode }) {
  const [live, setLive] = useState<Liveness>(false);
  const [run, setRun] = useState<Feed["run"]>();
  const handlers = useRef<Record<Kind, Set<Handler>>>({ namespace: new Set(), resource: new Set(), provider: new Set(), consumer: new Set() });

  useEffect(() => {
    if (latest === undefined) return; // the viewer may not follow changes
    const connection = connectionOf(token);
    const socket = webSocket(connection);
    const stop = new AbortController();
    const tell = (kind: Kind, key: string | undefined) => handlers.current[kind].forEach((handler) => handler(key));
    const run = async (kind: Kind, after: string, signal: AbortSignal) => {
      while (!signal.aborted) {
        const sent = connection.token();
        const options = { signal, patient: true, onLive: (live: boolean) => !signal.aborted && setLive(live) };
        try {
          for await (const { data } of follow<Event, { after: string }>(socket.stream, documents[kind] as never, { after }, options))
            for (const event of Object.values(data)) {
              if (!event) continue;
              after = event.cursor;
              tell(kind, event.change.key);
            }
        } catch (error) {
          if (error instanceof CadastreError && error.code === "UNAUTHENTICATED" && sent !== connection.token()) continue; // the token was renewed
          if (!(error instanceof CadastreError) || error.code !== "BAD_USER_INPUT") {
            if (!signal.aborted) setLive({ refused: error instanceof CadastreError ? error.message : "the server refused to send changes" });
            return;
          }
          after = await latestOf(connection, signal); // changes are kept for a time only
          tell(kind, undefined);
        }
      }
    };
    for (const kind of always) void run(kind, latest, stop.signal);
    setRun(() => run);
    return () => {
      setRun(undefined);
      stop.abort();
      socket.close();
    };
  }, [token, latest]);

  const on = useCallback<Feed["on"]>((kind, handler) => {
    handlers.current[kind].add(handler);
    return () => handlers.current[kind].delete(handler);
  }, []);
  const feed = useMemo<Feed>(() => ({ live, run, on }), [live, run, on]);
  return <FeedContext.Provider value={feed}>{children}</FeedContext.Provider>;
}

export const useLive = (): Liveness => useContext(FeedContext).live;

/** Calls a function soon after a change of a kind, for some keys or all. Changes in quick succession cause one call. */
export function useChanges(kind: Kind, keys: readonly string[] | undefined, changed: () => void): void {
  const { on } = useContext(FeedContext);
  const latest = useRef({ keys, changed });
  latest.current = { keys, changed };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const off = on(kind, (key) => {
      const { keys } = latest.current;
      if (timer !== undefined || (key !== undefined && keys && !keys.includes(key))) return;
      timer = setTimeout(() => {
        timer = undefined;
        latest.current.changed();
      }, 150);
    });
    return () => {
      clearTimeout(timer);
      off();
    };
  }, [on, kind]);
}

/**
 * Follows a kind from a cursor on. Calls a function soon after changes, with their
 * keys; undefined means any object.
 */
export function useFollowed(kind: Kind, after: string | undefined, changed: (keys: ReadonlySet<string> | undefined) => void): void {
  const { on, run } = useContext(FeedContext);
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    if (after === undefined || !run) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let keys: Set<string> | undefined = new Set();
    const off = on(kind, (key) => {
      if (key === undefined) keys = undefined;
      else keys?.add(key);
      timer ??= setTimeout(() => {
        timer = undefined;
        const told = keys;
        keys = new Set();
        latest.current(told);
      }, 150);
    });
    const stop = new AbortController();
    void run(kind, after, stop.signal);
    return () => {
      stop.abort();
      clearTimeout(timer);
      off();
    };
  }, [on, run, kind, after]);
}
