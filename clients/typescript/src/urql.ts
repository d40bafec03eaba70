/** The settings of urql with its normalised cache. */

import { type AnyVariables, type Client, createRequest, type DocumentInput, type Exchange, fetchExchange, makeOperation, mapExchange, type Operation, type OperationContext, type OperationResult, subscriptionExchange } from "@urql/core";
import { cacheExchange, type CacheExchangeOpts } from "@urql/exchange-graphcache";
import { delay, filter, fromValue, makeSubject, merge, mergeMap, onPush, pipe, share, takeUntil } from "wonka";

import { sendAfter } from "./connection.js";
import { type AnswerError, CadastreError, errorOf } from "./errors.js";
import { follow } from "./follow.js";
import { waitAfter } from "./request.js";
import type { Stream } from "./streams.js";

type Keys = NonNullable<CacheExchangeOpts["keys"]>;

const keyOf = (object: { readonly [name: string]: unknown }): string | null => (typeof object["id"] === "string" ? object["id"] : null);

/**
 * The keys of graphcache. Objects with the same `id` share one entry. An object
 * without an `id` is stored as a part of its parent. This applies to every type of
 * the schema, including future ones.
 */
export const keys: Keys = new Proxy({} as Keys, { get: () => keyOf, has: () => true });

/**
 * Removes the data of an answer with errors, so that fields marked
 * `@semanticNonNull` are never `null`. An operation whose context has
 * `partialData: true` keeps them.
 */
export function withoutPartialData<Data>(result: OperationResult<Data>): OperationResult<Data> {
  return result.error && !result.operation.context["partialData"] ? ({ ...result, data: undefined } as OperationResult<Data>) : result;
}

/**
 * Returns two exchanges, for above and below the cache. They repeat a query only
 * after its answer. Otherwise an older answer could arrive last, and the cache would
 * keep it. A query that is in flight when a mutation is answered may have read the
 * state before it, so it is repeated in place of its answer, and shows the answer of
 * the mutation until then.
 */
function oneAfterTheOther(): readonly [Exchange, Exchange] {
  const sent = new Map<number, Operation>();
  const waiting = new Map<number, Operation>();
  const outdated = new Set<number>();
  const again = (operation: Operation) => makeOperation("query", operation, { ...operation.context, requestPolicy: "network-only" });
  const above: Exchange = ({ forward }) => (operations) =>
    forward(
      pipe(
        operations,
        filter((operation) => {
          const waits = operation.kind === "query" && operation.context.requestPolicy === "network-only" && sent.has(operation.key);
          if (waits) waiting.set(operation.key, operation);
          else if (operation.kind === "teardown") waiting.delete(operation.key);
          return !waits;
        }),
      ),
    );
  const note = (operation: Operation) => {
    if (operation.kind !== "query" && operation.kind !== "teardown") return;
    outdated.delete(operation.key);
    if (operation.kind === "query") sent.set(operation.key, operation);
    else sent.delete(operation.key);
  };
  const below: Exchange = ({ client, forward }) => (operations) =>
    pipe(
      forward(pipe(operations, onPush(note))),
      filter(({ operation: { kind, key } }) => {
        if (kind === "mutation")
          for (const [key, operation] of sent) {
            outdated.add(key);
            client.reexecuteOperation(again(operation)); // the client has a place for it, which the cache takes for what changed
          }
        if (kind !== "query") return true;
        const asked = sent.get(key);
        const isOld = outdated.delete(key);
        const next = waiting.get(key) ?? (isOld && asked ? again(asked) : undefined);
        sent.delete(key);
        waiting.delete(key);
        if (next) insist(client, next);
        return !isOld;
      }),
    );
  return [above, below];
}

/**
 * Reads a query from the server once more, for all components that show it. urql ignores a
 * request for a query whose answer it waits for, even if that answer is older than
 * an event. Here it is sent after that answer.
 */
export function readAgain<Data, Variables extends AnyVariables>(client: Client, query: DocumentInput<Data, Variables>, variables: Variables, context?: Partial<OperationContext>): void {
  insist(client, client.createRequestOperation("query", createRequest(query, variables), { ...context, requestPolicy: "network-only" }));
}

/** Sends an operation even if the client waits for its answer: the second call ends that wait. */
function insist(client: Client, operation: Operation): void {
  client.reexecuteOperation(operation);
  client.reexecuteOperation(operation);
}

/** The maximum number of retries of a query for which the server has no capacity. */
const retries = 3;

/** Sends a query again after the time that the server names, if it has no capacity (`RATE_LIMITED`, `UNAVAILABLE`, or the status 429 or 503 of a proxy). */
const retrying: Exchange = ({ forward }) => (operations) => {
  const sent = pipe(operations, share);
  const { source, next } = makeSubject<{ readonly operation: Operation; readonly wait: number }>();
  const isEnd = ({ key }: Operation) => pipe(sent, filter((other) => other.kind === "teardown" && other.key === key));
  const again = pipe(
    source,
    mergeMap(({ operation, wait }) => pipe(fromValue(operation), delay(wait * 1000), takeUntil(isEnd(operation)))),
  );
  return pipe(
    forward(merge([sent, again])),
    filter(({ operation, error }) => {
      const response = error?.response as Response | undefined; // none if the server was not reached
      if (operation.kind !== "query" || !response) return true;
      const tried = Number(operation.context["retries"] ?? 0);
      const wait = waitAfter(errorOf(error?.graphQLErrors as readonly AnswerError[], response), false);
      if (wait === undefined || tried >= retries) return true;
      next({ operation: makeOperation("query", operation, { ...operation.context, retries: tried + 1 }), wait });
      return false;
    }),
  );
};

/** Returns an exchange whose requests have the highest position of the answers before, so that a query sees the mutations before it on every server. */
function afterAnswers(): Exchange {
  const client = {};
  return mapExchange({
    onOperation: (operation) => {
      const { fetch: send = fetch } = operation.context;
      return makeOperation(operation.kind, operation, { ...operation.context, fetch: (...sent) => sendAfter(client, send, ...sent) });
    },
  });
}

/** Options of the exchanges. */
export interface ExchangeOptions {
  /** The transport of subscriptions, which are resumed when they are cut (default: no subscriptions). */
  readonly stream?: Stream | undefined;
  /** Further settings of graphcache, such as `updates`. */
  readonly cache?: Partial<CacheExchangeOpts> | undefined;
}

/** Returns the exchanges of a client: errors, cache, retries, subscriptions, positions, requests. */
export function exchanges({ stream, cache }: ExchangeOptions = {}): Exchange[] {
  const [above, below] = oneAfterTheOther();
  return [
    mapExchange({ onResult: withoutPartialData }),
    above,
    cacheExchange({ ...cache, keys }),
    below,
    retrying,
    ...(stream ? [subscriptionExchange({ forwardSubscription: forward(stream) })] : []),
    afterAnswers(),
    fetchExchange,
  ];
}

type Forward = Parameters<typeof subscriptionExchange>[0]["forwardSubscription"];

function forward(stream: Stream): Forward {
  return (request) => ({
    subscribe(sink) {
      const stop = new AbortController();
      const run = async () => {
        const variables = (request.variables ?? {}) as Record<string, unknown>;
        for await (const { data, errors } of follow<unknown, Record<string, unknown>>(stream, request.query ?? "", variables, { signal: stop.signal }))
          sink.next({ data, ...(errors.length > 0 ? { errors: [...errors] as never } : {}) } as never);
      };
      run().then(
        () => sink.complete(),
        (error: unknown) => {
          if (!(error instanceof CadastreError)) return sink.error(error);
          sink.next({ data: null, errors: [...error.errors] } as never);
          sink.complete();
        },
      );
      return { unsubscribe: () => stop.abort() };
    },
  });
}
