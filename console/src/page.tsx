// The parts of all pages: a query, which the IDE can show, and its states.
import { type AnswerError, CadastreError } from "@cadastre/client";
import { readAgain } from "@cadastre/client/urql";
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { print } from "graphql";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import { type AnyVariables, type CombinedError, useClient, useQuery } from "urql";

import { whenReachable } from "./reachable";
import { Button } from "./ui/controls";

/** The query of a page, for the IDE. */
export interface Shown {
  readonly query: string;
  readonly variables: object;
}

export const ShownContext = createContext<(shown: Shown | undefined) => void>(() => {});

/** Reads the page again, after a form in it was refused. */
export const RefreshContext = createContext<() => void>(() => {});

export interface Asked<Data> {
  readonly data: Data | undefined;
  readonly error: CadastreError | Error | undefined;
  readonly loading: boolean;
  /** Reads it again; the page shows the old data until then. */
  readonly refresh: () => void;
}

/** Reports whether a page can be shown without the field at a path, because the server refused it. */
type MayLack = (path: readonly (string | number)[]) => boolean;

/** Reports whether data that are shown already stay in spite of an error: a form may be open beside them. */
const isPassing = (error: CombinedError): boolean =>
  error.graphQLErrors.every(({ extensions }) => ["RATE_LIMITED", "TIMEOUT", "UNAVAILABLE", "UNAUTHENTICATED"].includes(String(extensions["code"])));

/**
 * Sends a query, and sends it again whenever the page is opened. If the server cannot be
 * reached, the data stay, and are read again later.
 */
export function useAsk<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables, pause = false, mayLack?: MayLack): Asked<Data> {
  const client = useClient();
  const text = JSON.stringify(variables);
  const context = useMemo(() => ({ partialData: mayLack !== undefined }), [mayLack]);
  const [result] = useQuery<Data, AnyVariables>({ query: document as TypedDocumentNode<Data, AnyVariables>, variables: variables as AnyVariables, requestPolicy: "cache-and-network", pause, context });
  const { data, error, fetching, stale } = result;
  const kept = useRef<{ readonly text: string; readonly data: Data }>(undefined);
  const fails = error !== undefined && !(data && error.graphQLErrors.length > 0 && error.graphQLErrors.every(({ path }) => mayLack?.(path ?? [])));
  if (data && !fails && !fetching) kept.current = { text, data };
  const before = fails && isPassing(error) && kept.current?.text === text ? kept.current.data : undefined;
  const refresh = useCallback(() => readAgain(client, document as TypedDocumentNode<Data, AnyVariables>, JSON.parse(text) as AnyVariables, context), [client, document, text, context]);
  const unreachable = before !== undefined && error?.networkError !== undefined;
  useEffect(() => (unreachable ? whenReachable(refresh) : undefined), [unreachable, refresh]);
  return useMemo(
    () => ({
      data: fails ? before : data,
      error: fails && before === undefined ? errorOf(error) : undefined,
      loading: (fetching || stale) && !data,
      refresh,
    }),
    [data, before, fails, error, fetching, stale, refresh],
  );
}

/** Sends the query of a page, which "Show the query" opens in the IDE. */
export function usePage<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, variables: Variables, mayLack?: MayLack): Asked<Data> {
  useShown(document, variables);
  return useAsk(document, variables, false, mayLack);
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

/** Returns the refusal of the server or the failure of the network. */
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

/** The title of a page, with its actions. */
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

/** Shows the outline of a page that is being read. */
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

/** Stands in place of a form that the viewer may not use. */
export function Refusal({ title, above }: { title: string; above: ReactNode }) {
  return (
    <>
      <PageHead above={above} title="Not allowed" />
      <Empty title={title}>Ask an administrator for a role that may.</Empty>
    </>
  );
}

/** Shows a refusal or failure, and offers a retry where that may help. */
export function Failed({ error, retry }: { error: Error; retry?: (() => void) | undefined }) {
  const code = error instanceof CadastreError ? error.code : undefined;
  const refused = code === "FORBIDDEN" || code === "UNAUTHENTICATED";
  const unknown = code === "BAD_USER_INPUT" || code === "GRAPHQL_VALIDATION_FAILED"; // the uuid in the address is invalid
  return (
    <div className="state failed" role="alert">
      <h2>{refused ? "You may not see this" : unknown ? "The address names something that does not exist" : "The page cannot be shown"}</h2>
      <p>{error.message}</p>
      {retry && !refused && !unknown && <Button onPress={retry}>Try again</Button>}
    </div>
  );
}

/** Shows the data of a query, or its state. */
export function Answered<Data>({ asked, rows, children }: { asked: Asked<Data>; rows?: number; children: (data: Data) => ReactNode }) {
  if (asked.data !== undefined) return children(asked.data);
  if (asked.error) return <Failed error={asked.error} retry={asked.refresh} />;
  return <Loading {...(rows ? { rows } : {})} />;
}

/** Returns a value after it has not changed for some milliseconds. */
export function useSettled<Value>(value: Value, wait = 200): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}
