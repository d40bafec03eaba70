/** The client for node. Below version 22, node has no WebSocket: this client takes the one of the package `ws`. */

import { WebSocket } from "ws";

import { type WebSocketOptions, type WebSocketStream, webSocket as overWebSocket } from "./streams.js";

export * from "./index.js";

/** The WebSocket of `ws`. Like browsers and newer versions of node, it waits about a minute for a server that does not answer. */
class Patient extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols, { handshakeTimeout: 45_000 });
  }
}

/** Returns a Stream for all subscriptions over one WebSocket, by `graphql-transport-ws`. */
export function webSocket(connection: WebSocketOptions): WebSocketStream {
  return overWebSocket({ webSocketImpl: globalThis.WebSocket ?? Patient, ...connection });
}
