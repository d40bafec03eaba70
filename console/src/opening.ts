// The start of a session: the viewer, and the cursor after the latest change. The first
// script of the page asks for both before the rest is loaded.
import { type Connection, request } from "@cadastre/client";

import { graphql } from "./generated";
import type { SessionQuery } from "./generated/graphql";

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
      changes: can(operation: CHANGES)
      audit: can(operation: AUDIT_EVENTS)
      placement: can(operation: RESOURCE_PROVIDERS)
      candidates: can(operation: ALLOCATION_CANDIDATES)
      claim: can(operation: SET_ALLOCATIONS)
      release: can(operation: DELETE_ALLOCATIONS)
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

export type Viewer = SessionQuery["viewer"];

export const api = `${location.origin}/graphql`;

const remembered = "cadastre.token"; // the IDE reads it, too

/** Returns the roles of a demo, from the settings in the page. */
export const rolesOf = (settings: string): readonly DemoRole[] => (JSON.parse(settings) as { roles?: DemoRole[] }).roles ?? [];

/** Returns the token of this tab, else the token of a demo's first role, else "". */
export const tokenOf = (roles: readonly DemoRole[]): string => sessionStorage.getItem(remembered) ?? roles[0]?.token ?? "";

export const remember = (token: string): void => sessionStorage.setItem(remembered, token);

interface Opened {
  readonly viewer: Viewer;
  /** The cursor before the first page was read; undefined for viewers who may not follow changes. */
  readonly latest: string | undefined;
}

let begun: { readonly token: string; readonly opened: Promise<Opened> } | undefined;

/** Starts the first session of the page. */
export function begin(token: string): void {
  const opened = ask({ url: api, token }, undefined);
  opened.catch(() => {}); // told to who takes it
  begun = { token, opened };
}

/** Opens a session, or returns the one that began with the same token. */
export function open(connection: Connection & { readonly token: string }, signal: AbortSignal): Promise<Opened> {
  const opened = begun?.token === connection.token ? begun.opened : ask(connection, signal);
  begun = undefined;
  return opened;
}

async function ask(connection: Connection, signal: AbortSignal | undefined): Promise<Opened> {
  const latest = latestOf(connection, signal);
  latest.catch(() => {}); // awaited of who may follow
  const { viewer } = await request(connection, sessionDocument, {}, { signal });
  return { viewer, latest: viewer.changes ? await latest : undefined };
}
