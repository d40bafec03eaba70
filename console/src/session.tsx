// The session: one token for the console and the IDE, kept until the tab is closed, and
// its viewer.
import { CadastreError } from "@cadastre/client";
import { exchanges } from "@cadastre/client/urql";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { Client, Provider } from "urql";

import { unreachable, whenReachable } from "./reachable";
import { api, type DemoRole, open, remember, rolesOf, tokenOf, type Viewer } from "./opening";

type State =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string }
  | { readonly kind: "open"; readonly viewer: Viewer; readonly token: string; readonly latest: string | undefined };

interface Session {
  readonly state: State;
  readonly roles: readonly DemoRole[];
  readonly token: string;
  /** Starts a session with another token; the empty token ends the session. */
  readonly use: (token: string) => void;
  readonly retry: () => void;
}

const SessionContext = createContext<Session | undefined>(undefined);

export function SessionProvider({ settings, children }: { settings: string; children: ReactNode }) {
  const roles = useMemo(() => rolesOf(settings), [settings]);
  const [token, setToken] = useState(() => tokenOf(roles));
  const [state, setState] = useState<State>({ kind: token ? "asking" : "none" });
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    if (!token) return setState({ kind: "none" });
    setState({ kind: "asking" });
    const stop = new AbortController();
    open({ url: api, token }, stop.signal).then(
      (opened) => !stop.signal.aborted && setState({ kind: "open", token, ...opened }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const refused = error instanceof CadastreError && error.code === "UNAUTHENTICATED";
        setState({ kind: refused ? "refused" : "unreachable", message: error instanceof CadastreError ? error.message : unreachable });
      },
    );
    return () => stop.abort();
  }, [token, attempt]);

  useEffect(() => (state.kind === "unreachable" ? whenReachable(() => setAttempt((attempt) => attempt + 1)) : undefined), [state]);

  const use = useCallback((given: string) => {
    remember(given);
    setToken(given);
    setAttempt((attempt) => attempt + 1);
  }, []);
  const retry = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  const session = useMemo(() => ({ state, roles, token, use, retry }), [state, roles, token, use, retry]);

  const opened = state.kind === "open" ? state.token : undefined;
  const client = useMemo(
    () => new Client({ url: api, preferGetMethod: false, fetchOptions: { headers: opened ? { "X-Auth-Token": opened } : {} }, exchanges: exchanges() }),
    [opened],
  );
  return (
    <SessionContext.Provider value={session}>
      <Provider value={client}>{children}</Provider>
    </SessionContext.Provider>
  );
}

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("there is no session");
  return session;
}

/** Returns the viewer of the open session. */
export function useViewer(): Viewer {
  const { state } = useSession();
  if (state.kind !== "open") throw new Error("the session is not open");
  return state.viewer;
}

/** Describes a viewer: `ada, admin of p1`. */
export function nameOf(viewer: Viewer): string {
  const role = (["ADMIN", "SERVICE", "MEMBER", "READER"] as const).find((role) => viewer.roles.includes(role));
  return `${viewer.userId}, ${role?.toLowerCase() ?? "without a role"} of ${viewer.projectId}`;
}
