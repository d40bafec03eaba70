/** Queries and mutations without a cache. */

import { type Connection, type Document, post, sleep, textOf } from "./connection.js";
import { type Answer, type AnswerError, CadastreError, errorOf, refusalOf } from "./errors.js";

/** Options of a request. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** The maximum number of retries if the server has no capacity (default 3). */
  readonly retries?: number | undefined;
  /** The idempotency key, with which a retried mutation runs once (default: a new one). */
  readonly idempotencyKey?: string | undefined;
}

/** The maximum `retryAfter`, in seconds, after which a request is retried. */
const longestWait = 10;

/** The wait before a retry, in seconds, if the server gives no time. */
const firstWait = 0.25;

/** Returns a random key, on pages of plain HTTP, too, which have no `crypto.randomUUID`. */
const newKey = (): string => Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");

/**
 * Sends a query or a mutation and returns its data. It throws an answer with errors
 * as a CadastreError, so fields marked `@semanticNonNull` are never `null`.
 *
 * If the server has no capacity (`RATE_LIMITED`, `UNAVAILABLE`, or the status 429 or
 * 503 of a proxy), it retries after the time that the server sends. It also retries a
 * mutation without a complete answer (also the status 502 or 504 of a proxy), with an
 * unknown outcome, or that still runs: the idempotency key makes it run once. If an
 * attempt can have made the change, the thrown error does not deny it.
 */
export async function request<Data, Variables extends object>(
  connection: Connection,
  document: Document<Data, Variables>,
  variables?: Variables,
  options: RequestOptions = {},
): Promise<Data> {
  const query = textOf(document as Document<unknown, unknown>);
  const isMutation = /^\s*mutation\b/m.test(query);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (isMutation) headers["Idempotency-Key"] = options.idempotencyKey ?? newKey();
  let open: unknown; // the error of the last attempt that can have made the change
  for (let left = options.retries ?? 3; ; left--) {
    try {
      const response = await post(connection, { query, variables: variables as Record<string, unknown> | undefined }, headers, options.signal);
      if (!(response.headers.get("Content-Type") ?? "").includes("json")) throw await refusalOf(response);
      const answer = (await response.json()) as Answer<Data>;
      if (!answer.errors?.length && answer.data != null) return answer.data;
      throw errorOf(answer.errors ?? [], response);
    } catch (error) {
      const wait = waitAfter(error, isMutation);
      if (isMutation && isOpen(error)) open = error;
      const told = changedNothing(error) ? (open ?? error) : error;
      if (left <= 0 || wait === undefined || options.signal?.aborted) throw told;
      await sleep(wait * 1000, options.signal);
      if (options.signal?.aborted) throw told;
    }
  }
}

/** Returns the seconds to wait before a retry; undefined means no retry. */
export function waitAfter(error: unknown, isMutation: boolean): number | undefined {
  const canRepeat = isMutation && isOpen(error);
  if (!(error instanceof CadastreError)) return canRepeat ? firstWait : undefined;
  const isBusy = isProxy(error, 429, 503) || error.code === "RATE_LIMITED" || error.code === "UNAVAILABLE";
  const wait = error.retryAfter ?? firstWait;
  return (canRepeat || isBusy) && wait <= longestWait ? wait : undefined;
}

/** Reports whether a proxy sent an error, with one of these statuses. */
const isProxy = (error: CadastreError, ...statuses: number[]): boolean => error.code === undefined && statuses.includes(error.status);

/** Reports whether the outcome of a mutation is unknown after an error. */
const isOpen = (error: unknown): boolean =>
  error instanceof CadastreError
    ? isProxy(error, 502, 504) || error.errors.some(isUnsettled)
    : error instanceof TypeError || error instanceof SyntaxError;

/** The codes of an attempt that changed nothing. An earlier attempt can have made the change. */
const changesNothing: ReadonlySet<string | undefined> = new Set(["RATE_LIMITED", "UNAVAILABLE", "TIMEOUT"]);

/** Reports whether an error says that its attempt changed nothing. */
const changedNothing = (error: unknown): boolean =>
  error instanceof CadastreError &&
  !isOpen(error) &&
  (error.errors.length === 0 || error.errors.some(({ path, extensions }) => !path || changesNothing.has(extensions?.code)));

/** Reports whether an error of a mutation leaves its outcome open: it is unknown, or the same request is running. */
const isUnsettled = ({ extensions }: AnswerError): boolean =>
  extensions?.code === "OUTCOME_UNKNOWN" || (extensions?.code === "CONCURRENT_UPDATE" && extensions.field === "Idempotency-Key");
