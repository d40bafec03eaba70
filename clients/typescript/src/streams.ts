/** The two ways of following a subscription: event streams, and one WebSocket for all. */

import { createClient, type ClientOptions } from "graphql-ws";

import { type Connection, post, type Request, tokenOf } from "./connection.js";
import { type Answer, type AnswerError, CadastreError, refusalOf } from "./errors.js";

/** What is around a stream that is asked for once. */
export interface StreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when the server has opened the stream. */
  readonly opened?: (() => void) | undefined;
}

/**
 * A Stream asks for a subscription once and returns its answers. It ends where the
 * stream was cut, and throws what the server refused.
 */
export type Stream = (request: Request, options?: StreamOptions) => AsyncIterable<Answer>;

/** How long a stream may send nothing, in milliseconds. A server sends a heartbeat every 15 seconds. */
const silence = 45_000;

/**
 * Returns a Stream by `text/event-stream`, a connection for each: the distinct
 * connections of graphql-sse. Read here and not by that package, which hands over
 * no heartbeats, so that a connection that died would never end.
 *
 * Browsers open six connections of HTTP/1.1 to one host for all of their tabs: a
 * page takes `webSocket`, unless the server has TLS and so HTTP/2.
 */
export function eventStream(connection: Connection): Stream {
  return async function* (request, { signal, opened } = {}) {
    const stop = new AbortController();
    const abort = () => stop.abort();
    if (signal?.aborted) return;
    signal?.addEventListener("abort", abort);
    let silent: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(silent);
      silent = setTimeout(abort, silence);
    };
    try {
      alive();
      const response = await post(connection, request, { Accept: "text/event-stream" }, stop.signal);
      if (!response.ok || !response.body) throw await refusalOf(response);
      opened?.();
      yield* answersOf(response.body, alive);
    } finally {
      clearTimeout(silent);
      signal?.removeEventListener("abort", abort);
      stop.abort();
    }
  };
}

/** Reads the answers of an event stream until it ends or is cut. */
async function* answersOf(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<Answer, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    let read: { done: boolean; value?: Uint8Array | undefined };
    try {
      read = await reader.read();
    } catch {
      return; // it was cut
    }
    if (read.done) return;
    alive();
    text += decoder.decode(read.value, { stream: true });
    const events = text.split(/\r?\n\r?\n/);
    text = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split(/\r?\n/);
      const of = (field: string) => lines.filter((line) => line.startsWith(field + ":")).map((line) => line.slice(field.length + 1).replace(/^ /, ""));
      const kind = of("event")[0];
      if (kind === "complete") return;
      if (kind === "next") yield JSON.parse(of("data").join("\n")) as Answer;
    }
  }
}

/** The class of WebSockets, such as that of the package `ws`; the global one when absent. */
export interface WebSocketOptions extends Connection {
  readonly webSocketImpl?: ClientOptions["webSocketImpl"];
}

/** A Stream over one WebSocket, which is open while something is followed. */
export interface WebSocketStream {
  readonly stream: Stream;
  /** Closes the socket, which ends all streams. */
  close(): void;
}

/** Why a server closes a socket that is not to be opened again with the same token. */
const refusedBy: Readonly<Record<number, AnswerError>> = {
  4401: { message: "the socket was used before it was opened", extensions: { code: "BAD_REQUEST" } },
  4403: { message: "the token is not known, has expired or was revoked, or its rights have changed", extensions: { code: "UNAUTHENTICATED" } },
  1009: { message: "the request is longer than a message may be", extensions: { code: "BAD_REQUEST" } },
  4400: { message: "a message is not one of the protocol", extensions: { code: "BAD_REQUEST" } },
};

/** Returns a Stream over one WebSocket by `graphql-transport-ws`, for all that is followed at a time. */
export function webSocket(connection: WebSocketOptions): WebSocketStream {
  let asked: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: connection.url.replace(/^http/, "ws"),
    connectionParams: () => {
      const token = tokenOf(connection);
      return token ? { "X-Auth-Token": token } : {};
    },
    retryAttempts: 0, // who follows asks again, behind the last event
    lazyCloseTimeout: 1000,
    keepAlive: 15_000,
    on: {
      ping: (received) => {
        if (!received) asked = setTimeout(() => client.terminate(), 10_000);
      },
      pong: (received) => {
        if (received) clearTimeout(asked);
      },
      closed: () => clearTimeout(asked),
    },
    ...(connection.webSocketImpl ? { webSocketImpl: connection.webSocketImpl } : {}),
  });
  const stream: Stream = async function* (request, { signal, opened } = {}) {
    if (signal?.aborted) return;
    const answers = client.iterate({ query: request.query, variables: { ...request.variables } });
    const stop = () => void answers.return?.();
    signal?.addEventListener("abort", stop);
    const off = client.on("connected", () => opened?.());
    try {
      for await (const answer of answers) yield answer as Answer;
    } catch (error) {
      if (Array.isArray(error)) throw new CadastreError(error as AnswerError[]);
      const closed = closeOf(error);
      const refused = closed === undefined ? undefined : refusedBy[closed];
      if (refused) throw new CadastreError([refused], 403);
      if (closed === undefined) throw error;
    } finally {
      off();
      signal?.removeEventListener("abort", stop);
    }
  };
  return { stream, close: () => void client.dispose() };
}

/** Returns the code that a socket was closed with. */
function closeOf(error: unknown): number | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "number" ? code : undefined;
}
