/** The client for node. Below version 22, node has no WebSocket: this client takes the one of the package `ws`. */

import { WebSocket } from "ws";

import { type WebSocketOptions, type WebSocketStream, webSocket as overWebSocket } from "./streams.js";

export * from "./index.js";

/** The WebSocket of `ws`. It waits for a server that does not answer as long as browsers and newer versions of node, a minute or so. */
class Patient extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols, { handshakeTimeout: 45_000 });
  }
}

/** Returns a Stream over one WebSocket by `graphql-transport-ws`, for all that is followed at a time. */
export function webSocket(connection: WebSocketOptions): WebSocketStream {
  return overWebSocket({ webSocketImpl: globalThis.WebSocket ?? Patient, ...connection });
}
