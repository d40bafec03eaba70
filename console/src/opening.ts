// The start of a session: the viewer, and the cursor after the latest change. The first
// script of the page asks for both before the rest is loaded.
import { type Connection, request } from "@cadastre/client";

import { graphql } from "./generated";
import type { SessionQuery } from "./generated/graphql";
import type { Provider } from "./oidc";

const sessionDocument = graphql(`
  query Session {
    viewer {
      id
      userId
      projectId
      roles
      isAdmin
      rules
      namespaces: can(operation: NAMESPACES)
      createNamespace: can(operation: CREATE_NAMESPACE)
      shareNamespace: can(operation: SHARE_NAMESPACE)
      importNamespaces: can(operation: IMPORT_NAMESPACES)
      resources: can(operation: RESOURCES)
      createResource: can(operation: CREATE_RESOURCE)
      setMetadata: can(operation: SET_METADATA_ON_RESOURCES)
      setCapabilities: can(operation: SET_CAPABILITIES)
      unsetCapabilities: can(operation: UNSET_CAPABILITIES)
      createCapability: can(operation: CREATE_CAPABILITY)
      shareCapability: can(operation: SET_CAPABILITY_VISIBILITY)
      changes: can(operation: CHANGES)
      audit: can(operation: AUDIT_EVENTS)
      placement: can(operation: RESOURCE_PROVIDERS)
      candidates: can(operation: ALLOCATION_CANDIDATES)
      claim: can(operation: SET_ALLOCATIONS)
      place: can(operation: PLACE)
      confirm: can(operation: CONFIRM_ALLOCATIONS)
      release: can(operation: DELETE_ALLOCATIONS)
      whatIf: can(operation: WHAT_IF)
      applyPlan: can(operation: APPLY_PLAN)
      capacityFor: can(operation: CAPACITY_FOR)
      capacityHistory: can(operation: CAPACITY_HISTORY)
      createProvider: can(operation: CREATE_RESOURCE_PROVIDER)
      setInventories: can(operation: SET_INVENTORIES)
    }
  }
`);

const latestDocument = graphql(`
  query Latest {
    changes(first: 0) {
      latest
    }
  }
`);

/** Returns the cursor after the latest change. */
export async function latestOf(connection: Connection, signal: AbortSignal | undefined): Promise<string> {
  return (await request(connection, latestDocument, {}, { signal })).changes.latest;
}

/** A role of a demo. */
export interface DemoRole {
  readonly name: string;
  readonly token: string;
}

/** The settings of the console, which the page has. */
export interface Settings {
  readonly roles: readonly DemoRole[];
  readonly ide: boolean;
  readonly oidc: Provider | null;
  readonly keystone: boolean;
}

export type Viewer = SessionQuery["viewer"];

export const api = `${location.origin}/graphql`;

const remembered = "cadastre.token"; // the IDE reads it, too

/** Returns the settings in the page. */
export const settingsOf = (text: string | undefined): Settings => ({ roles: [], ide: false, oidc: null, keystone: false, ...(JSON.parse(text ?? "{}") as Partial<Settings>) });

/** The address to which an issuer sends users back. */
export const isCallback = (): boolean => location.pathname === "/console/signed-in";

/** Returns the token of this tab, else the token of a demo's first role, else "". */
export const tokenOf = (roles: readonly DemoRole[]): string => sessionStorage.getItem(remembered) ?? roles[0]?.token ?? "";

export const remember = (token: string): void => sessionStorage.setItem(remembered, token);

const successors = new Map<string, string>(); // of the tokens with which sessions began

/** Keeps the token that follows the first one of a session. */
export function renewed(first: string, token: string): void {
  successors.set(first, token);
  remember(token);
}

/** The server, for a session that began with a token. Requests have the latest token. */
export interface SessionConnection extends Connection {
  readonly first: string;
  readonly token: () => string;
}

export const connectionOf = (first: string): SessionConnection => ({ url: api, first, token: () => successors.get(first) ?? first });

interface Opened {
  readonly viewer: Viewer;
  /** The cursor before the first page was read; undefined for viewers who may not follow changes. */
  readonly latest: string | undefined;
}

let begun: { readonly token: string; readonly opened: Promise<Opened> } | undefined;

/** Starts the first session of the page. */
export function begin(token: string): void {
  const opened = ask(connectionOf(token), undefined);
  opened.catch(() => {}); // the caller that awaits it gets the error
  begun = { token, opened };
}

/** Opens a session, or returns the one that began with the same token. */
export function open(token: string, signal: AbortSignal): Promise<Opened> {
  const opened = begun?.token === token ? begun.opened : ask(connectionOf(token), signal);
  begun = undefined;
  return opened;
}

async function ask(connection: Connection, signal: AbortSignal | undefined): Promise<Opened> {
  const latest = latestOf(connection, signal);
  latest.catch(() => {}); // awaited only by viewers who may follow changes
  const { viewer } = await request(connection, sessionDocument, {}, { signal });
  return { viewer, latest: viewer.changes ? await latest : undefined };
}
