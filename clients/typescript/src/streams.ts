/** The two transports of subscriptions: event streams, and one WebSocket for all. */

import { createClient, type ClientOptions } from "graphql-ws";

import { type Connection, post, type Request, tokenOf } from "./connection.js";
import { type Answer, type AnswerError, CadastreError, refusalOf } from "./errors.js";

/** Options of a stream. */
export interface StreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when the server has opened the stream. */
  readonly opened?: (() => void) | undefined;
}

/**
 * Opens the stream of a subscription once and returns its answers. It ends when the
 * stream is cut, and throws the server's refusals.
 */
export type Stream = (request: Request, options?: StreamOptions) => AsyncIterable<Answer>;

/** The maximum silence of a stream, in milliseconds. A server sends a heartbeat every 15 seconds. */
const silence = 45_000;

/**
 * Returns a Stream by `text/event-stream`, with one connection for each
 * subscription: the distinct connections mode of graphql-sse. It does not use that
 * package, which hides heartbeats, so that a dead connection would never end.
 *
 * Browsers open at most six connections of HTTP/1.1 to one host for all tabs. A page
 * should use `webSocket`, unless the server has TLS and so HTTP/2.
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
      const isStream = response.ok && (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
      if (!isStream || !response.body) throw await refusalOf(response);
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

/** The WebSocket class, such as the class of the package `ws` (default: the global one). */
export interface WebSocketOptions extends Connection {
  readonly webSocketImpl?: ClientOptions["webSocketImpl"];
}

/** A Stream over one WebSocket, which is open while there are subscriptions. */
export interface WebSocketStream {
  readonly stream: Stream;
  /** Closes the socket permanently and ends all streams. Their followers get an error. */
  close(): void;
}

/** The codes of closed sockets that must not be opened again with the same token. */
const refusedBy: Readonly<Record<number, AnswerError>> = {
  4401: { message: "the socket was used before it was opened", extensions: { code: "BAD_REQUEST" } },
  4403: { message: "the token is not known, has expired or was revoked, or its rights have changed", extensions: { code: "UNAUTHENTICATED" } },
  1009: { message: "the request is longer than a message may be", extensions: { code: "BAD_REQUEST" } },
  4400: { message: "a message is not one of the protocol", extensions: { code: "BAD_REQUEST" } },
};

/** Returns a Stream for all subscriptions over one WebSocket, by `graphql-transport-ws`. */
export function webSocket(connection: WebSocketOptions): WebSocketStream {
  let asked: ReturnType<typeof setTimeout> | undefined;
  let isOpen = false;
  let isClosed = false;
  const stops = new Set<() => void>(); // of the open streams
  const client = createClient({
    url: connection.url.replace(/^http/, "ws"),
    connectionParams: () => {
      const token = tokenOf(connection);
      return token ? { "X-Auth-Token": token } : {};
    },
    retryAttempts: 0, // `follow` opens the stream again, after the last event
    lazyCloseTimeout: 1000,
    keepAlive: 15_000,
    on: {
      ping: (received) => {
        if (!received) asked = setTimeout(() => client.terminate(), 10_000);
      },
      pong: (received) => {
        if (received) clearTimeout(asked);
      },
      connected: () => (isOpen = true),
      closed: () => {
        isOpen = false;
        clearTimeout(asked);
      },
    },
    ...(connection.webSocketImpl ? { webSocketImpl: connection.webSocketImpl } : {}),
  });
  const stream: Stream = async function* (request, { signal, opened } = {}) {
    if (signal?.aborted) return;
    if (isClosed) throw new CadastreError([{ message: "the socket was closed by its owner" }]);
    const answers = client.iterate({ query: request.query, variables: { ...request.variables } });
    let stop = () => {};
    const stopped = new Promise<IteratorReturnResult<undefined>>((end) => (stop = () => (void answers.return?.(), end({ done: true, value: undefined }))));
    signal?.addEventListener("abort", stop);
    stops.add(stop);
    const off = client.on("connected", () => opened?.());
    if (isOpen) opened?.();
    try {
      // an iterator that waits for the socket does not end when it returns
      let next = await Promise.race([answers.next(), stopped]);
      for (; !next.done; next = await answers.next()) yield next.value as Answer;
    } catch (error) {
      if (Array.isArray(error)) throw new CadastreError(error as AnswerError[]);
      const closed = closeOf(error);
      const refused = closed === undefined ? undefined : refusedBy[closed];
      if (refused) throw new CadastreError([refused], 403);
      if (closed === undefined) throw error;
    } finally {
      off();
      stop();
      stops.delete(stop);
      signal?.removeEventListener("abort", stop);
    }
  };
  const close = () => {
    isClosed = true;
    stops.forEach((stop) => stop());
    void Promise.resolve(client.dispose()).catch(() => {}); // the socket did not open
  };
  return { stream, close };
}

/** Returns the close code of a socket. */
function closeOf(error: unknown): number | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "number" ? code : undefined;
}
