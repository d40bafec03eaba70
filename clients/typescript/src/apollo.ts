/** The settings of Apollo Client. */

import { ApolloLink, type InMemoryCacheConfig } from "@apollo/client";
import { print } from "graphql";
import { Observable } from "rxjs";

import { CadastreError } from "./errors.js";
import { follow } from "./follow.js";
import { parts, possibleTypes } from "./generated/cache.js";
import type { Stream } from "./streams.js";

/**
 * The settings of InMemoryCache. An object with an `id` is the same object wherever
 * that stands; what has none is a part of what it is in, and what several queries
 * select of it is kept together.
 */
export const cacheOptions: InMemoryCacheConfig = {
  possibleTypes,
  typePolicies: Object.fromEntries(parts.map((type) => [type, { merge: true }])),
};

/** Returns a link that follows subscriptions, and resumes them when they were cut. */
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
