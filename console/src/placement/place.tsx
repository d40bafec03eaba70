// The form that places consumers of a request: first a preview, then the claim. The
// consumers stay in a table, in which held ones are confirmed and released.
import { request as send } from "@cadastre/client";
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Link } from "wouter";

import { consumerAt, useAddress } from "../address";
import { fieldsOf } from "../change";
import { graphql } from "../generated";
import type { CandidateOrder, PlaceInput, PlacementPlaceMutation, PlacementRequestInput } from "../generated/graphql";
import { useFollowed } from "../live";
import { useViewer } from "../session";
import { Button, Check, Field, Select } from "../ui/controls";
import { Badge, count, Note, numberOf } from "../ui/show";
import { newUUID } from "./candidates";
import { releaseDocument } from "./provider";
import { problemOf, useConnection, useRead } from "./read";
import { argumentsOf, type Request, strategies } from "./request";
import { Why } from "./why";

const placeDocument = graphql(`
  mutation PlacementPlace($input: PlaceInput!) {
    place(input: $input) {
      results {
        consumer {
          id
          expiresAt
          allocations {
            resourceClass
            used
            provider {
              uuid
              name
            }
          }
        }
        errors {
          message
        }
      }
      explain {
        ...Explained
      }
    }
  }
`);

const placedDocument = graphql(`
  query PlacementPlaced($ids: [ID!]!, $changes: Boolean!) {
    changes(first: 0) @include(if: $changes) {
      latest
    }
    nodes(ids: $ids) {
      id
      ... on Consumer {
        expiresAt
      }
    }
  }
`);

const confirmDocument = graphql(`
  mutation PlacementConfirm($input: ConfirmAllocationsInput!) {
    confirmAllocations(input: $input) {
      consumers {
        uuid
      }
    }
  }
`);

type Placing = PlacementPlaceMutation["place"];
type Result = Placing["results"][number];

/** A consumer, and its result. */
interface Row {
  readonly uuid: string;
  readonly result: Result;
  /** When its hold ends, by the clock of the browser. */
  readonly ends?: number | undefined;
}

interface Draft {
  readonly number: string;
  readonly projectId: string;
  readonly userId: string;
  readonly type: string;
  readonly strategy: CandidateOrder;
  readonly hold: string;
  readonly atomic: boolean;
}

/** The maximum number of consumers, as many as one `nodes` query reads, and the maximum seconds of a hold. */
const most = { number: 100, hold: 86400 };

const isWhole = (text: string, most: number): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= most;

const newUUIDs = (): string[] => Array.from({ length: most.number }, newUUID);

/** Returns the input of the mutation; undefined while the request or the form is incomplete. */
function inputOf(request: Request | undefined, draft: Draft, uuids: readonly string[]): PlaceInput | undefined {
  const asked = request && (argumentsOf(request) as PlacementRequestInput | undefined);
  const { number, projectId, userId, type, strategy, hold, atomic } = draft;
  if (!asked || !isWhole(number, most.number) || (hold && !isWhole(hold, most.hold))) return undefined;
  const consumers = uuids.slice(0, Number(number)).map((uuid) => ({ uuid, projectId, userId, ...(type && { type }) }));
  return { request: asked, consumers, strategy, atomic, ...(hold && { holdFor: Number(hold) }) };
}

const providersOf = (rows: readonly Row[]): string[] => rows.flatMap(({ result }) => result.consumer?.allocations.map(({ provider }) => provider.uuid) ?? []);

const rowsOf = ({ results }: Placing, uuids: readonly string[], ends?: number): Row[] => results.map((result, at) => ({ uuid: uuids[at] ?? "", result, ends }));

interface PlaceProps {
  /** Undefined for an empty request. */
  readonly request: Request | undefined;
  readonly revision: number;
  readonly renew: (providers: ReadonlySet<string>) => void;
  /** Called with the uuids of the providers that the preview or the placed consumers use, separated by commas. */
  readonly onPlaced: (providers: string) => void;
  readonly onAt: (uuid: string) => void;
}

export function Place({ request, revision, renew, onPlaced, onAt }: PlaceProps) {
  const viewer = useViewer();
  const address = useAddress();
  const connection = useConnection();
  const [draft, setDraft] = useState<Draft>({ number: "1", projectId: viewer.projectId, userId: viewer.userId, type: "INSTANCE", strategy: "DEPTH_FIRST", hold: "", atomic: true });
  const [uuids, setUUIDs] = useState(newUUIDs);
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<{ of: string; key: string; placing: Placing }>();
  const [refused, setRefused] = useState<{ of: string; error: Error }>();
  const [last, setLast] = useState<Placing>();
  const [rows, setRows] = useState<readonly Row[]>([]);
  const placed = usePlaced(rows, revision, renew);
  const input = useMemo(() => inputOf(request, draft, uuids), [request, draft, uuids]);
  // A preview and a refusal are shown only while the form equals the input that was sent.
  const text = JSON.stringify(input ?? null);
  const preview = answer?.of === text ? answer : undefined;
  const error = refused?.of === text ? refused.error : undefined;
  const previewed = useMemo(() => preview && rowsOf(preview.placing, uuids), [preview, uuids]);
  const marked = [...new Set(providersOf(previewed ?? rows.filter((row) => placed.stateOf(row) !== "gone")))].join();
  useEffect(() => onPlaced(marked), [marked, onPlaced]);
  const press = async (key: string | undefined) => {
    if (!input || busy) return;
    setBusy(true);
    setRefused(undefined);
    const ends = draft.hold ? Date.now() + Number(draft.hold) * 1000 : undefined;
    try {
      const { place } = await send(connection, placeDocument, { input: { ...input, dryRun: key === undefined } }, { idempotencyKey: key ?? newUUID() });
      address.set({ candidate: "" }, { replace: true });
      if (key === undefined) return setAnswer({ of: text, key: newUUID(), placing: place });
      setLast(place);
      setRows((before) => [...rowsOf(place, uuids, ends), ...before.filter(({ result }) => result.consumer)]);
      setUUIDs(newUUIDs()); // the next consumers get new uuids
    } catch (error) {
      setRefused({ of: text, error: problemOf(error) });
    } finally {
      setBusy(false);
    }
  };
  if (!request && rows.length === 0) return null;
  return (
    <section className="panel ask" aria-label="Place">
      <h2>Place</h2>
      {request && viewer.place && (
        <form
          className="claim"
          aria-label="Place consumers"
          onSubmit={(event) => {
            event.preventDefault();
            void press(undefined);
          }}
        >
          <Fields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} errors={fieldsOf(error)} />
          {error && <Note>{error.message}</Note>}
          {preview && previewed && <Outcomes label="Preview" placing={preview.placing} rows={previewed} onAt={onAt} said="would be placed" stateOf={(row) => row.result.consumer && <Badge tone="accent">fits</Badge>} />}
          <div className="actions">
            <Button type="submit" primary={!preview} disabled={!input || busy}>
              Preview
            </Button>
            <Button primary={preview !== undefined} disabled={!preview || busy} onPress={() => preview && void press(preview.key)}>
              Place {count(Number(draft.number) || 0, "consumer")}
            </Button>
          </div>
        </form>
      )}
      {last && <Placed rows={rows} placing={last} placed={placed} onAt={onAt} />}
    </section>
  );
}

function Fields({ draft, onChange, errors }: { draft: Draft; onChange: (part: Partial<Draft>) => void; errors: ReadonlyMap<string, string> }) {
  const of = (field: string) => errors.get(`input.consumers[0].${field}`);
  const wrong = (text: string, most: number) => (isWhole(text, most) ? undefined : `A whole number from 1 to ${numberOf(most)}.`);
  return (
    <>
      <div className="pair">
        <Field label="Consumers" type="number" value={draft.number} onChange={(number) => onChange({ number })} error={wrong(draft.number, most.number) ?? errors.get("input.consumers")} />
        <Field label="Hold for seconds" type="number" placeholder="no hold" value={draft.hold} onChange={(hold) => onChange({ hold })} error={draft.hold ? (wrong(draft.hold, most.hold) ?? errors.get("input.holdFor")) : undefined} />
      </div>
      <div className="pair">
        <Field label="Project" value={draft.projectId} onChange={(projectId) => onChange({ projectId })} error={of("projectId")} />
        <Field label="User" value={draft.userId} onChange={(userId) => onChange({ userId })} error={of("userId")} />
      </div>
      <div className="pair">
        <Field label="Type" mono value={draft.type} onChange={(type) => onChange({ type })} error={of("type")} />
        <Select label="Strategy" value={draft.strategy} onChange={(value) => onChange({ strategy: strategies.find((one) => one.value === value)?.value ?? "DEPTH_FIRST" })} choices={strategies} />
      </div>
      <Check label="All or none" checked={draft.atomic} onChange={(atomic) => onChange({ atomic })} />
    </>
  );
}

interface OutcomesProps {
  readonly label: string;
  readonly placing: Placing;
  readonly rows: readonly Row[];
  readonly onAt: (uuid: string) => void;
  /** The words for consumers that have a place: `placed`. */
  readonly said: string;
  readonly stateOf: (row: Row) => ReactNode;
  readonly linked?: boolean;
}

/** Where each consumer goes, and why some have no place. */
function Outcomes({ label, placing: { results, explain }, rows, onAt, said, stateOf, linked }: OutcomesProps) {
  const refused = results.filter(({ errors }) => errors.length > 0).length;
  const go = ({ uuid, name }: { uuid: string; name: string }) => (
    <button type="button" className="link" onClick={() => onAt(uuid)}>
      {name}
    </button>
  );
  return (
    <>
      <p role="status">
        {numberOf(results.filter(({ consumer }) => consumer).length)} of {count(results.length, "consumer")} {said}
        {refused > 0 && `, ${numberOf(refused)} refused`}.
      </p>
      <div className="scroll">
        <table className="placed" aria-label={label}>
          <thead>
            <tr>
              <th scope="col">Consumer</th>
              <th scope="col">Place</th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.uuid}>
                <th scope="row" className="mono" title={row.uuid}>
                  {linked && row.result.consumer ? <Link href={consumerAt(row.uuid)}>{shortOf(row.uuid)}</Link> : shortOf(row.uuid)}
                </th>
                <td>
                  {placesOf(row.result).map(([provider, uses]) => (
                    <span key={provider.uuid}>
                      {go(provider)}
                      <span className="below-name">{uses.join(", ")}</span>
                    </span>
                  ))}
                </td>
                <td>{stateOf(row) ?? <Unplaced result={row.result} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {explain && (
        <details open>
          <summary>Why there is no room</summary>
          <Why explanation={explain} link={go} />
        </details>
      )}
    </>
  );
}

type Provider = NonNullable<Result["consumer"]>["allocations"][number]["provider"];

/** Returns the providers of a consumer, each with its amounts. */
function placesOf({ consumer }: Result): [Provider, string[]][] {
  const places = new Map<string, [Provider, string[]]>();
  for (const { provider, resourceClass, used } of consumer?.allocations ?? []) {
    const place = places.get(provider.uuid) ?? [provider, []];
    place[1].push(`${numberOf(used)} ${resourceClass}`);
    places.set(provider.uuid, place);
  }
  return [...places.values()];
}

const shortOf = (uuid: string): string => uuid.slice(0, 8);

function Unplaced({ result: { errors } }: { result: Result }) {
  if (errors.length === 0) return <span className="dim">not placed, because others are refused</span>;
  return (
    <>
      <Badge tone="bad">refused</Badge> <span className="error">{errors.map(({ message }) => message).join("; ")}</span>
    </>
  );
}

type State = "placed" | "held" | "confirmed" | "gone";

interface PlacedNow {
  /** The state of a consumer that was placed. */
  readonly stateOf: (row: Row) => State;
  readonly error: Error | undefined;
  /** Reads the consumers again, and their providers on the picture. */
  readonly refresh: (rows: readonly Row[]) => void;
}

/** Reads the holds of placed consumers whenever they or providers change. */
function usePlaced(rows: readonly Row[], revision: number, renew: PlaceProps["renew"]): PlacedNow {
  const connection = useConnection();
  const { changes } = useViewer();
  const ids = useMemo(() => rows.flatMap(({ result }) => result.consumer?.id ?? []), [rows]);
  const asked = useRead(ids.length > 0 ? ids.join() : undefined, revision, async (signal) => {
    const states = new Map<string, State>();
    let latest: string | undefined;
    for (let at = 0; at < ids.length; at += most.number) {
      const part = ids.slice(at, at + most.number);
      const { nodes, changes: feed } = await send(connection, placedDocument, { ids: part, changes }, { signal });
      latest ??= feed?.latest;
      part.forEach((id, index) => {
        const node = nodes[index];
        states.set(id, !node ? "gone" : "expiresAt" in node && node.expiresAt ? "held" : "placed");
      });
    }
    return { latest, states };
  });
  const { data, error, refresh: again } = asked;
  const [from, setFrom] = useState<string>();
  if (from === undefined && data?.latest !== undefined) setFrom(data.latest);
  const refresh = (changed: readonly Row[]) => {
    if (changed.length === 0) return;
    again();
    renew(new Set(providersOf(changed)));
  };
  useFollowed("consumer", from, (keys) => refresh(rows.filter(({ uuid, result }) => result.consumer && (!keys || keys.has(uuid)))));
  const stateOf = ({ result: { consumer }, ends }: Row): State => {
    const state = (consumer && data?.states.get(consumer.id)) ?? (consumer?.expiresAt ? "held" : "placed");
    return state === "placed" && ends !== undefined ? "confirmed" : state;
  };
  return { stateOf, error, refresh };
}

/** The consumers that were placed on this page, the last ones first. */
function Placed({ rows, placing, placed, onAt }: { rows: readonly Row[]; placing: Placing; placed: PlacedNow; onAt: (uuid: string) => void }) {
  const viewer = useViewer();
  const connection = useConnection();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error>();
  const held = rows.filter((row) => row.result.consumer && placed.stateOf(row) === "held");
  const now = useNow(held.length > 0);
  const act = async <Variables extends object>(of: readonly Row[], document: TypedDocumentNode<unknown, Variables>, variables: Variables) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await send(connection, document, variables, { idempotencyKey: newUUID() });
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
      placed.refresh(of);
    }
  };
  const confirm = (of: readonly Row[]) => void act(of, confirmDocument, { input: { consumers: of.map(({ uuid }) => uuid) } });
  const error = problem ?? placed.error;
  return (
    <>
      {error && <Note>{error.message}</Note>}
      <Outcomes
        label="Placed consumers"
        placing={placing}
        rows={rows}
        onAt={onAt}
        said="placed"
        linked
        stateOf={(row) => {
          if (!row.result.consumer) return undefined;
          const state = placed.stateOf(row);
          if (state === "gone") return <Badge>released</Badge>;
          return (
            <div className="placed-state">
              <Badge tone={state === "held" ? "warn" : "good"}>{state === "held" && row.ends !== undefined ? `held, ${leftOf(row.ends - now)} left` : state}</Badge>
              {state === "held" && viewer.confirm && (
                <Button quiet disabled={busy} label={`Confirm ${shortOf(row.uuid)}`} onPress={() => confirm([row])}>
                  Confirm
                </Button>
              )}
              {viewer.release && (
                <Button quiet disabled={busy} label={`Release ${shortOf(row.uuid)}`} onPress={() => void act([row], releaseDocument, { input: { consumer: row.uuid } })}>
                  Release
                </Button>
              )}
            </div>
          );
        }}
      />
      {held.length > 1 && viewer.confirm && (
        <div className="actions">
          <Button disabled={busy} onPress={() => confirm(held)}>
            Confirm all {numberOf(held.length)}
          </Button>
        </div>
      )}
    </>
  );
}

/** Returns the current time in milliseconds, updated every second while it is needed. */
function useNow(needed: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!needed) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [needed]);
  return now;
}

/** Formats the remaining time as minutes and seconds: `9:58`. */
function leftOf(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
