/** Queries and mutations without a cache. */

import { type Connection, type Document, post, sleep, textOf } from "./connection.js";
import { type Answer, CadastreError, refusalOf } from "./errors.js";

/** How a request is sent. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** How often a request is sent again at most that the server had no capacity for; 3 when absent. */
  readonly retries?: number | undefined;
  /** By which a mutation happens once however often it is sent; one of its own when absent. */
  readonly idempotencyKey?: string | undefined;
}

/** The longest time that a server may tell to wait, in seconds, for a request to be sent again. */
const longestWait = 10;

/**
 * Sends a query or a mutation and returns its data. An answer with errors is
 * thrown as a CadastreError, so that fields marked `@semanticNonNull` are there.
 *
 * What the server had no capacity for (`RATE_LIMITED`, `UNAVAILABLE`) is sent again
 * after the time that it says. So is a mutation of which no answer came, or whose
 * outcome is not known: a key makes it happen once.
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
  if (isMutation) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
  for (let left = options.retries ?? 3; ; left--) {
    try {
      const response = await post(connection, { query, variables: variables as Record<string, unknown> | undefined }, headers, options.signal);
      if (!(response.headers.get("Content-Type") ?? "").includes("json")) throw await refusalOf(response);
      const answer = (await response.json()) as Answer<Data>;
      if (!answer.errors?.length && answer.data != null) return answer.data;
      const after = Number(response.headers.get("Retry-After") ?? NaN);
      throw new CadastreError(answer.errors ?? [], response.status, Number.isFinite(after) ? after : undefined);
    } catch (error) {
      const wait = waitAfter(error, isMutation);
      if (left <= 0 || wait === undefined || options.signal?.aborted) throw error;
      await sleep(wait * 1000, options.signal);
      if (options.signal?.aborted) throw error;
    }
  }
}

/** Returns after how many seconds to send a request again, undefined for never. */
export function waitAfter(error: unknown, isMutation: boolean): number | undefined {
  if (!(error instanceof CadastreError)) return isMutation && error instanceof TypeError ? 0.2 : undefined;
  const passes = error.code === "RATE_LIMITED" || error.code === "UNAVAILABLE" || (isMutation && error.code === "OUTCOME_UNKNOWN");
  const wait = error.retryAfter ?? (error.code === "OUTCOME_UNKNOWN" ? 0.2 : undefined);
  return passes && wait !== undefined && wait <= longestWait ? wait : undefined;
}
