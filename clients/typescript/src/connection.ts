/** The connection to a server. */

import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { print } from "graphql";

/** A server, and the credentials for it. */
export interface Connection {
  /** The address of the API, for example `https://cadastre.example.org/graphql`. */
  readonly url: string;
  /** The token of a user in a project, or a function that returns the current one. */
  readonly token?: string | (() => string | undefined) | undefined;
  /** The function that sends requests (default: the global `fetch`). */
  readonly fetch?: typeof fetch | undefined;
}

/** An operation whose answer has a known type, or its text. */
export type Document<Data, Variables> = TypedDocumentNode<Data, Variables> | string;

/** The body of a request. */
export interface Request {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
}

export function textOf(document: Document<never, never> | Document<unknown, unknown>): string {
  return typeof document === "string" ? document : print(document);
}

export function tokenOf(connection: Connection): string | undefined {
  return typeof connection.token === "function" ? connection.token() : connection.token;
}

const positionHeader = "Cadastre-Position";

/** The highest position of each client. Queries that send it see the mutations before it on every server. */
const positions = new WeakMap<object, string>();

/** Sends a request of a client with its highest position, and notes the position of the response. */
export async function sendAfter(client: object, send: typeof fetch, ...[url, init]: Parameters<typeof fetch>): Promise<Response> {
  const last = positions.get(client);
  const headers = new Headers(init?.headers);
  if (last) headers.set(positionHeader, last);
  const response = await send(url, { ...init, headers });
  const position = response.headers.get(positionHeader);
  if (position && isAfter(position, positions.get(client))) positions.set(client, position);
  return response;
}

/** Sends a request by POST. */
export function post(connection: Connection, request: Request, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
  const token = tokenOf(connection);
  return sendAfter(connection, connection.fetch ?? fetch, connection.url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token ? { Authorization: `Bearer ${token}` } : {}), // which fetch sends to no other origin after a redirect
      ...headers,
    },
    body: JSON.stringify(request),
    ...(signal ? { signal } : {}),
  });
}

/** Reports whether a position is after another one: it is longer, or greater as a string. */
const isAfter = (position: string, other = ""): boolean => position.length === other.length ? position > other : position.length > other.length;

/** Waits some milliseconds, or until a signal aborts. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    if (signal?.aborted) done();
    else signal?.addEventListener("abort", done);
  });
}
