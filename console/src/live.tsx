// What happens, as it happens: one socket, one stream for each kind of thing, from
// before the first page was read until the session ends.
import { CadastreError, follow, webSocket } from "@cadastre/client";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";

import { graphql } from "./generated";
import { api, latestOf } from "./session";

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
};

type Event = Record<string, { change: { key: string } } | null>;

export type Kind = keyof typeof documents;

/** Handles a change of the thing with a key; undefined is that anything may have changed. */
type Handler = (key: string | undefined) => void;

interface Feed {
  readonly on: (kind: Kind, handler: Handler) => () => void;
  readonly live: boolean;
}

const FeedContext = createContext<Feed>({ on: () => () => {}, live: false });

export function FeedProvider({ token, latest, children }: { token: string; latest: string | undefined; children: ReactNode }) {
  const [live, setLive] = useState(false);
  const handlers = useRef<Record<Kind, Set<Handler>>>({ namespace: new Set(), resource: new Set() });

  useEffect(() => {
    if (latest === undefined) return; // who looks may not follow
    const connection = { url: api, token };
    const socket = webSocket(connection);
    const stop = new AbortController();
    const tell = (kind: Kind, key: string | undefined) => handlers.current[kind].forEach((handler) => handler(key));
    const run = async (kind: Kind) => {
      for (let after = latest; !stop.signal.aborted; ) {
        const options = { signal: stop.signal, patient: true, onLive: setLive };
        try {
          for await (const { data } of follow<Event, { after: string }>(socket.stream, documents[kind] as never, { after }, options))
            for (const event of Object.values(data)) if (event) tell(kind, event.change.key);
        } catch (error) {
          if (!(error instanceof CadastreError) || error.code !== "BAD_USER_INPUT") return;
          after = await latestOf(connection, stop.signal); // changes are kept for a time only
          tell(kind, undefined);
        }
      }
    };
    void run("namespace");
    void run("resource");
    return () => {
      stop.abort();
      socket.close();
    };
  }, [token, latest]);

  const feed = useMemo<Feed>(
    () => ({
      live,
      on: (kind, handler) => {
        handlers.current[kind].add(handler);
        return () => handlers.current[kind].delete(handler);
      },
    }),
    [live],
  );
  return <FeedContext.Provider value={feed}>{children}</FeedContext.Provider>;
}

export const useLive = (): boolean => useContext(FeedContext).live;

/** Calls a function soon after things of a kind changed: of some keys, or of all. Several changes at a time are one. */
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
