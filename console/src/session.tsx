// The session: one token for the console and the IDE, kept until the tab is closed, and
// its viewer.
import { CadastreError } from "@cadastre/client";
import { exchanges } from "@cadastre/client/urql";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { Client, Provider } from "urql";

import { unreachable, whenReachable } from "./reachable";
import { api, connectionOf, isCallback, open, remember, renewed, type Settings, settingsOf, tokenOf, type Viewer } from "./opening";

type State =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string }
  | { readonly kind: "open"; readonly viewer: Viewer; readonly token: string; readonly latest: string | undefined };

interface Session {
  readonly state: State;
  readonly settings: Settings;
  /** The token with which the session began. */
  readonly token: string;
  /** Starts a session with another token. */
  readonly use: (token: string) => void;
  readonly signOut: () => void;
  readonly retry: () => void;
}

const SessionContext = createContext<Session | undefined>(undefined);

const unknown = "This token is not known, or has expired.";

const oidc = () => import("./oidc"); // only where users sign in with it

export function SessionProvider({ settings: text, children }: { settings: string | undefined; children: ReactNode }) {
  const settings = useMemo(() => settingsOf(text), [text]);
  const [token, setToken] = useState(() => (isCallback() ? "" : tokenOf(settings.roles)));
  const [state, setState] = useState<State>({ kind: token || isCallback() ? "asking" : "none" });
  const [attempt, setAttempt] = useState(0);

  const use = useCallback((given: string) => {
    remember(given);
    setToken(given);
    setAttempt((attempt) => attempt + 1);
  }, []);
  const refuse = useCallback((message: string) => {
    remember("");
    setToken("");
    setState({ kind: "refused", message });
  }, []);

  useEffect(() => {
    if (!isCallback()) return;
    let left = false;
    const back = async () => {
      if (!settings.oidc) throw new Error("The console does not use OpenID Connect.");
      return (await oidc()).complete(settings.oidc);
    };
    back().then(
      ({ token, from }) => {
        if (left) return;
        history.replaceState(null, "", from);
        use(token);
      },
      async (error: unknown) => {
        const reason = await oidc().then(({ reasonOf }) => reasonOf(error), () => unreachable);
        if (left) return;
        history.replaceState(null, "", "/console");
        const before = tokenOf(settings.roles); // of a session that a forged answer must not end
        if (before) use(before);
        else refuse(`You are not signed in. ${reason}`);
      },
    );
    return () => void (left = true);
  }, [settings, use, refuse]);

  useEffect(() => {
    if (!token) return setState((state) => (isCallback() || state.kind === "refused" ? state : { kind: "none" }));
    if (/[^\x20-\xff]/.test(token)) return refuse(unknown); // browsers cannot send such a token
    setState({ kind: "asking" });
    const stop = new AbortController();
    open(token, stop.signal).then(
      (opened) => !stop.signal.aborted && setState({ kind: "open", token, ...opened }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const refused = error instanceof CadastreError && error.code === "UNAUTHENTICATED";
        const message = refused ? unknown : error instanceof CadastreError ? error.message : unreachable;
        setState({ kind: refused ? "refused" : "unreachable", message });
      },
    );
    return () => stop.abort();
  }, [token, attempt, refuse]);

  useEffect(() => (state.kind === "unreachable" ? whenReachable(() => setAttempt((attempt) => attempt + 1)) : undefined), [state]);

  useEffect(() => {
    const { oidc: provider } = settings;
    if (!provider || !token) return;
    let stop: (() => void) | undefined;
    let left = false;
    const ended = () => refuse("Your session has ended. Sign in again.");
    oidc().then(({ keepRenewed }) => {
      if (!left) stop = keepRenewed(provider, token, (next) => renewed(token, next), ended);
    }, () => {}); // the session lasts as long as its token
    return () => {
      left = true;
      stop?.();
    };
  }, [settings, token, refuse]);

  const signOut = useCallback(() => {
    use("");
    const { oidc: provider } = settings;
    if (provider) void oidc().then(({ signOut }) => signOut(provider)).catch(() => {}); // the tab has forgotten the tokens
  }, [settings, use]);
  const retry = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  const session = useMemo(() => ({ state, settings, token, use, signOut, retry }), [state, settings, token, use, signOut, retry]);

  const opened = state.kind === "open" ? state.token : undefined;
  const client = useMemo(() => {
    const fetchOptions = () => ({ headers: opened ? { "X-Auth-Token": connectionOf(opened).token() } : ({} as Record<string, string>) });
    return new Client({ url: api, preferGetMethod: false, fetchOptions, exchanges: exchanges() });
  }, [opened]);
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
