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

/** Sends a request by POST. */
export function post(connection: Connection, request: Request, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
  const token = tokenOf(connection);
  const send = connection.fetch ?? fetch;
  return send(connection.url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token ? { "X-Auth-Token": token } : {}), ...headers },
    body: JSON.stringify(request),
    ...(signal ? { signal } : {}),
  });
}

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
