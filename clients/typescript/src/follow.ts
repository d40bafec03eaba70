/** Subscriptions that resume. */

import { type Document, sleep, textOf } from "./connection.js";
import { type AnswerError, CadastreError } from "./errors.js";
import { waitAfter } from "./request.js";
import type { Stream } from "./streams.js";

/** An event of a subscription. */
export interface Event<Data> {
  readonly data: Data;
  /** Why parts of the data are missing; mostly empty. */
  readonly errors: readonly AnswerError[];
}

/** How a subscription is followed. */
export interface FollowOptions {
  /** Ends the iteration at once. A `break` ends it with the next event. */
  readonly signal?: AbortSignal | undefined;
  /** Called with `true` whenever a stream is open, and with `false` when it was cut. */
  readonly onLive?: ((live: boolean) => void) | undefined;
  /** Whether a server that is not reached at first is tried again, too. */
  readonly patient?: boolean | undefined;
}

/** The longest wait before a stream that was cut is asked for again, in milliseconds; twice as much at random. */
const longestPause = 5000;

/**
 * Follows a subscription until the signal aborts. A stream that was cut, by the
 * network or by a server that stops, is asked for again behind the last event, so
 * that none is missed and none comes twice: the operation declares the variable
 * `$after`, gives it to its field, and selects the `cursor` of that.
 *
 *     subscription ($after: String) { resourceChanged(after: $after) { cursor change { what key } } }
 *
 * It throws the error of an answer that would not be another one when it is asked
 * for again, such as FORBIDDEN or an invalid document, and that of a server that
 * was not reached at first.
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

/** Returns after how many milliseconds to ask again for a stream that ended; undefined for one that would end so again. */
function pauseAfter(refused: unknown, failed: number, begun: boolean): number | undefined {
  const least = Math.min(longestPause, 50 * 2 ** Math.min(failed, 10));
  const pause = least + Math.random() * least;
  if (refused === undefined) return pause;
  if (!(refused instanceof CadastreError)) return begun ? pause : undefined;
  const wait = waitAfter(refused, false);
  if (wait !== undefined) return Math.max(pause, wait * 1000);
  return (begun && refused.status >= 500) || refused.code === "TIMEOUT" ? pause : undefined;
}

/** Reports whether the data of an answer shows nothing of its field. */
function isEmpty(data: unknown): boolean {
  return data == null || Object.values(data).every((value) => value === null);
}

/** Returns the cursor of an event, whose data has one field. */
function cursorOf(data: unknown): string | undefined {
  const fields = Object.entries(data as Record<string, unknown>).filter(([name]) => name !== "__typename");
  const cursor = fields.length === 1 ? (fields[0]?.[1] as { cursor?: unknown } | null)?.cursor : undefined;
  return typeof cursor === "string" && cursor !== "" ? cursor : undefined;
}
