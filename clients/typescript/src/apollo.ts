/** The settings of Apollo Client. */

import { ApolloLink, type InMemoryCacheConfig } from "@apollo/client";
import { print } from "graphql";
import { Observable } from "rxjs";

import { CadastreError } from "./errors.js";
import { follow } from "./follow.js";
import { parts, possibleTypes } from "./generated/cache.js";
import type { Stream } from "./streams.js";

/**
 * The settings of InMemoryCache. Objects with the same `id` share one entry. An
 * object without an `id` is stored as a part of its parent, and selections of
 * several queries are merged.
 */
export const cacheOptions: InMemoryCacheConfig = {
  possibleTypes,
  typePolicies: Object.fromEntries(parts.map((type) => [type, { merge: true }])),
};

/** Returns a link for subscriptions. It resumes streams that were cut. */
export function subscriptionLink(stream: Stream): ApolloLink {
  return new ApolloLink(
    (operation) =>
      new Observable((observer) => {
        const stop = new AbortController();
        const run = async () => {
          for await (const { data, errors } of follow<unknown, Record<string, unknown>>(stream, print(operation.query), operation.variables, { signal: stop.signal }))
            observer.next({ data, ...(errors.length > 0 ? { errors: [...errors] } : {}) } as ApolloLink.Result);
        };
        run().then(
          () => observer.complete(),
          (error: unknown) => {
            if (!(error instanceof CadastreError)) return observer.error(error);
            observer.next({ data: null, errors: [...error.errors] } as ApolloLink.Result);
            observer.complete();
          },
        );
        return () => stop.abort();
      }),
  );
}
