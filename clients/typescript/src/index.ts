/** A client of Cadastre: requests, errors, subscriptions that resume. */

export type { Connection, Document, Request } from "./connection.js";
export { type Answer, type AnswerError, CadastreError, type ErrorCode, errorCodes } from "./errors.js";
export { type Event, follow, type FollowOptions } from "./follow.js";
export { request, type RequestOptions } from "./request.js";
export { type DateTime, dateOf, dateTimeOf, type Int64, type Json, type UUID } from "./scalars.js";
export { eventStream, type Stream, type StreamOptions, webSocket, type WebSocketOptions, type WebSocketStream } from "./streams.js";
