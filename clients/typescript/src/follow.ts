/** Subscriptions that resume. */

import { type Document, sleep, textOf } from "./connection.js";
import { type AnswerError, CadastreError } from "./errors.js";
import { waitAfter } from "./request.js";
import type { Stream } from "./streams.js";

/** An event of a subscription. */
export interface Event<Data> {
  readonly data: Data;
  /** The errors of missing parts of the data; usually empty. */
  readonly errors: readonly AnswerError[];
}

/** Options of `follow`. */
export interface FollowOptions {
  /** Ends the iteration immediately. A `break` ends it with the next event. */
  readonly signal?: AbortSignal | undefined;
  /** Called with `true` when a stream opens, and with `false` when it was cut. */
  readonly onLive?: ((live: boolean) => void) | undefined;
  /** Whether to retry if the first connection fails. */
  readonly patient?: boolean | undefined;
}

/** The maximum wait before a stream is opened again, in milliseconds. It is multiplied by a random factor of up to 2. */
const longestPause = 5000;

/**
 * Follows a subscription until the signal aborts. If the network or a server cuts
 * the stream, it opens a new one after the last event, so that no event is missed
 * or repeated. For this the operation must declare the variable `$after`, pass it
 * to its field, and select the `cursor` of the field. Without a value of `$after`, a
 * stream of changes that is cut before its first event can miss some.
 *
 *     subscription ($after: String) { resourceChanged(after: $after) { cursor change { what key } } }
 *
 * It throws permanent errors, such as FORBIDDEN or an invalid document, and the
 * error of a failed first connection.
 */
export async function* follow<Data, Variables extends object>(
  stream: Stream,
  document: Document<Data, Variables>,
  variables?: Variables,
  options: FollowOptions = {},
): AsyncGenerator<Event<Data>, void, undefined> {
  const { signal, onLive } = options;
  const query = textOf(document as Document<unknown, unknown>);
  let asked: Record<string, unknown> = { ...variables };
  for (let begun = options.patient ?? false, failed = 0; !signal?.aborted; failed++) {
    let refused: unknown;
    try {
      const opened = () => {
        begun = true;
        onLive?.(true);
      };
      for await (const answer of stream({ query, variables: asked }, { signal, opened })) {
        const errors = answer.errors ?? [];
        if (isEmpty(answer.data)) {
          if (errors.length > 0) throw new CadastreError(errors);
          continue;
        }
        failed = 0;
        const cursor = cursorOf(answer.data);
        if (cursor !== undefined) asked = { ...asked, after: cursor };
        yield { data: answer.data as Data, errors };
        if (signal?.aborted) return;
      }
    } catch (error) {
      refused = error;
    } finally {
      onLive?.(false);
    }
    if (signal?.aborted) return;
    const pause = pauseAfter(refused, failed, begun);
    if (pause === undefined) throw refused;
    await sleep(pause, signal);
  }
}

/** Returns the milliseconds to wait before the stream is opened again; undefined for a permanent error. */
function pauseAfter(refused: unknown, failed: number, begun: boolean): number | undefined {
  const least = Math.min(longestPause, 50 * 2 ** Math.min(failed, 10));
  const pause = least + Math.random() * least;
  if (refused === undefined) return pause;
  if (!(refused instanceof CadastreError)) return begun ? pause : undefined;
  const wait = waitAfter(refused, false);
  if (wait !== undefined) return Math.max(pause, wait * 1000);
  return (begun && refused.status >= 500) || refused.code === "TIMEOUT" ? pause : undefined;
}

/** Reports whether the field of an answer has no data. */
function isEmpty(data: unknown): boolean {
  return data == null || Object.values(data).every((value) => value === null);
}

/** Returns the cursor of an event. Its data has one field. */
function cursorOf(data: unknown): string | undefined {
  const fields = Object.entries(data as Record<string, unknown>).filter(([name]) => name !== "__typename");
  const cursor = fields.length === 1 ? (fields[0]?.[1] as { cursor?: unknown } | null)?.cursor : undefined;
  return typeof cursor === "string" && cursor !== "" ? cursor : undefined;
}
