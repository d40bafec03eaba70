/** The client for node. Below version 22, node has no WebSocket: this client takes the one of the package `ws`. */

import { WebSocket } from "ws";

import { type WebSocketOptions, type WebSocketStream, webSocket as overWebSocket } from "./streams.js";

export * from "./index.js";

/** Returns a Stream over one WebSocket by `graphql-transport-ws`, for all that is followed at a time. */
export function webSocket(connection: WebSocketOptions): WebSocketStream {
  return overWebSocket({ webSocketImpl: globalThis.WebSocket ?? WebSocket, ...connection });
}
