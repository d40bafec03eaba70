// Mutations and their errors.
import { CadastreError } from "@cadastre/client";
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { useCallback, useState } from "react";
import { type AnyVariables, useClient } from "urql";

import { errorOf } from "./page";

export interface Change<Data, Variables> {
  readonly busy: boolean;
  readonly error: CadastreError | Error | undefined;
  /** Sends the mutation; undefined if it was refused. */
  readonly send: (variables: Variables) => Promise<Data | undefined>;
  readonly clear: () => void;
}

export function useChange<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>): Change<Data, Variables> {
  const client = useClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CadastreError | Error>();
  const send = useCallback(
    async (variables: Variables) => {
      setBusy(true);
      setError(undefined);
      try {
        const { data, error } = await client.mutation(document as TypedDocumentNode<Data, AnyVariables>, variables as AnyVariables).toPromise();
        if (error) setError(errorOf(error));
        return error ? undefined : data;
      } finally {
        setBusy(false);
      }
    },
    [client, document],
  );
  const clear = useCallback(() => setError(undefined), []);
  return { busy, error, send, clear };
}

export const isConflict = (error: Error | undefined): boolean => error instanceof CadastreError && error.code === "CONCURRENT_UPDATE";

export const fieldsOf = (error: Error | undefined): ReadonlyMap<string, string> => (error instanceof CadastreError ? error.fields : new Map());
