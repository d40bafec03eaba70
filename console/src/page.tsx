// What every page has: its query, which can be shown in the IDE, and the states of
// what it asks for.
import { type AnswerError, CadastreError } from "@cadastre/client";
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { print } from "graphql";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { type AnyVariables, type CombinedError, useQuery } from "urql";

import { Button } from "./ui/controls";

/** What a page asks for, as the IDE is to show it. */
export interface Shown {
  readonly query: string;
  readonly variables: object;
}

export const ShownContext = createContext<(shown: Shown | undefined) => void>(() => {});

/** Reads anew what a page shows, for a form in it that was refused. */
export const RefreshContext = createContext<() => void>(() => {});

export interface Asked<Data> {
  readonly data: Data | undefined;
  readonly error: CadastreError | Error | undefined;
  readonly loading: boolean;
  /** Reads it anew, while what there is stays on the page. */
  readonly refresh: () => void;
}

/** Asks a query, and reads it anew whenever the page is opened. */
export function useAsk<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables, pause = false): Asked<Data> {
  const [result, execute] = useQuery<Data, AnyVariables>({ query: document as TypedDocumentNode<Data, AnyVariables>, variables: variables as AnyVariables, requestPolicy: "cache-and-network", pause });
  const { data, error, fetching, stale } = result;
  return useMemo(
    () => ({
      data,
      error: error && errorOf(error),
      loading: (fetching || stale) && !data,
      refresh: () => execute({ requestPolicy: "network-only" }),
    }),
    [data, error, fetching, stale, execute],
  );
}

/** Asks the query of a page, which "Show the query" opens in the IDE. */
export function usePage<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables): Asked<Data> {
  useShown(document, variables);
  return useAsk(document, variables);
}

/** Lets "Show the query" open a query in the IDE. */
export function useShown<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables): void {
  const show = useContext(ShownContext);
  const text = JSON.stringify(variables);
  useEffect(() => {
    show({ query: print(document), variables: JSON.parse(text) as object });
    return () => show(undefined);
  }, [show, document, text]);
}

/** Returns what was refused, or that the network failed. */
export function errorOf(error: CombinedError): CadastreError | Error {
  if (error.networkError && error.graphQLErrors.length === 0) return new Error("The server cannot be reached.");
  return new CadastreError(error.graphQLErrors.map(({ message, path, extensions }) => ({ message, path, extensions }) as AnswerError));
}

/** Sets the title of the tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Cadastre`;
  }, [title]);
}

/** A title with what can be done beside it. */
export function PageHead({ title, children, above, below }: { title: ReactNode; children?: ReactNode; above?: ReactNode; below?: ReactNode }) {
  return (
    <header className="page-head">
      {above && <div className="above">{above}</div>}
      <div className="title-row">
        <h1>{title}</h1>
        {children && <div className="actions">{children}</div>}
      </div>
      {below && <div className="below">{below}</div>}
    </header>
  );
}

/** Says that something is being read, in the shape of what is to come. */
export function Loading({ rows = 8 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
    </div>
  );
}

/** Says what was refused or failed, and offers to try again where that may help. */
export function Failed({ error, retry }: { error: Error; retry?: (() => void) | undefined }) {
  const code = error instanceof CadastreError ? error.code : undefined;
  const refused = code === "FORBIDDEN" || code === "UNAUTHENTICATED";
  return (
    <div className="state failed" role="alert">
      <h2>{refused ? "You may not see this" : code === "BAD_USER_INPUT" ? "The address asks for something that does not exist" : "This could not be read"}</h2>
      <p>{error.message}</p>
      {retry && !refused && code !== "BAD_USER_INPUT" && <Button onPress={retry}>Try again</Button>}
    </div>
  );
}

/** Shows what was asked for, or the state that it is in. */
export function Answered<Data>({ asked, rows, children }: { asked: Asked<Data>; rows?: number; children: (data: Data) => ReactNode }) {
  if (asked.data !== undefined) return children(asked.data);
  if (asked.error) return <Failed error={asked.error} retry={asked.refresh} />;
  return <Loading {...(rows ? { rows } : {})} />;
}

/** Returns a value when it has stayed the same for some milliseconds. */
export function useSettled<Value>(value: Value, wait = 200): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}
