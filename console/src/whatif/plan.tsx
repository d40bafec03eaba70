// The plan: where the consumers of the hosts that are taken out go. It is applied wave by
// wave, can be stopped and continued, and each move shows its outcome.
import { request as send } from "@cadastre/client";
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";

import { consumerAt, providerAt, resourceAt, useAddress } from "../address";
import { graphql } from "../generated";
import type { PlannedConsumerFragment, WhatIfPlanQuery } from "../generated/graphql";
import { Loading } from "../page";
import type { Cloud } from "../placement/cloud";
import { said } from "../placement/picture";
import { problemOf, useConnection, useRead } from "../placement/read";
import { strategies } from "../placement/request";
import { Why } from "../placement/why";
import { useViewer } from "../session";
import { Button, Confirm, Select } from "../ui/controls";
import { Section } from "../ui/form";
import { Badge, count, Note, numberOf } from "../ui/show";
import type { Changes } from "./changes";
import { amountsOf } from "./failures";

const planDocument = graphql(`
  query WhatIfPlan($providers: [UUID!]!, $strategy: CandidateOrder!, $movesPerHost: Int!, $resources: Boolean!) {
    drainPlan(providers: $providers, strategy: $strategy, movesPerHost: $movesPerHost) {
      waves
      moves {
        consumer {
          ...PlannedConsumer
        }
        consumerGeneration
        wave
        from {
          ...PlannedAmounts
        }
        to {
          ...PlannedAmounts
        }
        allocations {
          provider
          resources {
            resourceClass
            amount
          }
        }
      }
      unplacedCount
      unplaced {
        consumer {
          ...PlannedConsumer
        }
        resources {
          resourceClass
          amount
        }
      }
      explain {
        ...Explained
      }
    }
  }
`);

graphql(`
  fragment PlannedConsumer on Consumer {
    uuid
    projectId
    resource @include(if: $resources) {
      uuid
      name
    }
  }
`);

graphql(`
  fragment PlannedAmounts on CandidateAllocation {
    provider {
      uuid
      name
    }
    resources {
      resourceClass
      amount
    }
  }
`);

const applyDocument = graphql(`
  mutation ApplyPlan($input: ApplyPlanInput!) {
    applyPlan(input: $input) {
      results {
        outcome
        errors {
          code
          message
        }
      }
    }
  }
`);

type Planned = WhatIfPlanQuery["drainPlan"];
type Move = Planned["moves"][number];

const perHost = [1, 2, 5, 10].map((moves) => ({ value: String(moves), label: `${count(moves, "move")} of a host at a time` }));

/** Returns the strategy and the number of moves of a host in the address. */
function useStrategy() {
  const address = useAddress();
  const found = <Of extends { value: string }>(list: readonly Of[], name: string) => (list.find(({ value }) => value === address.get(name)) ?? list[0]) as Of;
  return { strategy: found(strategies, "strategy").value, moves: found(perHost, "moves").value, set: address.set };
}

export type AskedPlan = ReturnType<typeof usePlan>;

/** Reads the plan for roots that are taken out. */
export function usePlan(providers: readonly string[], revision: number) {
  const connection = useConnection();
  const { resources } = useViewer();
  const { strategy, moves } = useStrategy();
  const key = providers.length > 0 ? JSON.stringify([providers, strategy, moves]) : undefined;
  return useRead(key, revision, async (signal) => (await send(connection, planDocument, { providers: [...providers], strategy, movesPerHost: Number(moves), resources }, { signal })).drainPlan);
}

/** The outcome of a move. */
type Outcome = { readonly kind: "MOVED" | "DONE" } | { readonly kind: "REFUSED"; readonly message: string };

interface Applying {
  /** The outcomes, by the index of the move in the plan. */
  readonly outcomes: ReadonlyMap<number, Outcome>;
  /** The indices of the moves that the server makes now. */
  readonly current: ReadonlySet<number>;
  readonly error: Error | undefined;
  readonly start: () => void;
  readonly stop: () => void;
}

type State = Pick<Applying, "outcomes" | "current" | "error">;

/** The maximum number of moves of one request: a stop waits for them. */
const together = 10;

const untouched = { outcomes: new Map<number, Outcome>(), current: new Set<number>(), error: undefined };

/** Applies a plan. Moves without an outcome are sent again after an error: the server answers `DONE` for those that it has made. */
function useApply(plan: Planned | undefined): Applying {
  const connection = useConnection();
  const [state, setState] = useState<State>(untouched);
  const running = useRef({ goes: false, isShown: false });
  useEffect(() => {
    setState(untouched);
    return () => void Object.assign(running.current, { goes: false, isShown: false }); // stops for another plan or another page
  }, [plan]);
  const start = useCallback(() => {
    if (!plan) return;
    const own = (running.current = { goes: true, isShown: true });
    const show = (change: (state: State) => State) => own.isShown && setState(change);
    const run = async () => {
      const outcomes = new Map(state.outcomes);
      for (let next = nextOf(plan.moves, outcomes); own.goes && next.length > 0; next = nextOf(plan.moves, outcomes)) {
        const current = new Set(next);
        show(() => ({ outcomes: new Map(outcomes), current, error: undefined }));
        const moves = next.map((at) => plan.moves[at]).filter((move) => move !== undefined);
        const { results } = (await send(connection, applyDocument, { input: { moves: moves.map(({ consumer, consumerGeneration, allocations }) => ({ consumer: consumer.uuid, consumerGeneration, allocations: [...allocations] })) } })).applyPlan;
        next.forEach((at, index) => {
          const result = results[index];
          if (result) outcomes.set(at, result.outcome === "REFUSED" ? { kind: "REFUSED", message: result.errors.map(({ message }) => message).join("; ") } : { kind: result.outcome });
        });
      }
      show(() => ({ outcomes, current: new Set(), error: undefined }));
    };
    run().catch((error: unknown) => show((state) => ({ ...state, current: new Set(), error: problemOf(error) })));
  }, [plan, connection, state.outcomes]);
  const stop = useCallback(() => void (running.current.goes = false), []);
  return { ...state, start, stop };
}

/** Returns the indices of the moves of the next request, in the order of the plan: the server makes them one after the other. */
const nextOf = (moves: readonly Move[], outcomes: ReadonlyMap<number, Outcome>): number[] => [...moves.keys()].filter((at) => !outcomes.has(at)).slice(0, together);

export function Plan({ plan, changes, cloud, onAgain }: { plan: AskedPlan; changes: Changes; cloud: Cloud; onAgain: () => void }) {
  const { strategy, moves, set } = useStrategy();
  const { applyPlan, isAdmin, roles } = useViewer();
  const { data } = plan;
  const apply = useApply(data);
  return (
    <Section
      title="Where consumers go"
      action={
        <div className="picture-controls">
          <Select label="Strategy" hidden value={strategy} disabled={apply.current.size > 0} onChange={(strategy) => set({ strategy }, { replace: true })} choices={strategies} />
          <Select label="Moves of a host" hidden value={moves} disabled={apply.current.size > 0} onChange={(moves) => set({ moves }, { replace: true })} choices={perHost} />
        </div>
      }
    >
      {plan.error ? (
        <Note>{plan.error.message}</Note>
      ) : !data ? (
        <Loading rows={4} />
      ) : (
        <div className="plan" data-current={plan.current}>
          <p role="status">
            {data.moves.length > 0 ? `${count(data.moves.length, "move")} in ${count(data.waves, "wave")}. ${data.unplacedCount === 0 ? "Every consumer finds a place." : ""}` : data.unplacedCount === 0 && "The hosts have no consumers to move."}{" "}
            {data.unplacedCount > 0 && <b>{count(data.unplacedCount, "consumer")} {data.unplacedCount === 1 ? "does" : "do"} not fit elsewhere.</b>}
          </p>
          {changes.off.length + changes.add.length > 0 && <p className="hint">The plan is for the cloud as it is: it does not know the hosts that are disabled or added here.</p>}
          {!isAdmin && !roles.includes("SERVICE") && <p className="hint">Only consumers that you see are moved.</p>}
          <ul className="hosts-left" aria-label="The hosts now">
            {changes.out.map((uuid) => {
              const host = cloud.providers.get(uuid);
              return host && <li key={uuid}>{[...host.amounts.values()].every(({ used }) => used === 0) ? `${host.name}: nothing is used` : said(host, "")}</li>;
            })}
          </ul>
          {data.unplaced.length > 0 && <Unplaced plan={data} />}
          {applyPlan && plan.current && data.moves.length > 0 && <Apply plan={data} apply={apply} onAgain={onAgain} />}
          {data.moves.length > 0 && <Moves plan={data} apply={apply} />}
        </div>
      )}
    </Section>
  );
}

function Apply({ plan: { moves, waves }, apply, onAgain }: { plan: Planned; apply: Applying; onAgain: () => void }) {
  const [asking, setAsking] = useState(false);
  const runs = apply.current.size > 0;
  const refused = [...apply.outcomes.values()].filter(({ kind }) => kind === "REFUSED").length;
  const made = apply.outcomes.size - refused;
  const left = moves.length - apply.outcomes.size;
  const begun = apply.outcomes.size > 0 || apply.error !== undefined;
  return (
    <div className="apply">
      {apply.error && <Note>{apply.error.message} The moves below without an outcome may have been made. Continue to send them again: no move is made twice.</Note>}
      {refused > 0 && !runs && (
        <Note tone="warn">
          <p>
            {count(refused, "move")} {refused === 1 ? "was" : "were"} refused, because the world has changed since the plan. The reasons are at the moves.
          </p>
          <Button onPress={onAgain}>Make a new plan</Button>
        </Note>
      )}
      {(begun || runs) && (
        <p role="status">
          {numberOf(made)} of {count(moves.length, "move")} made{refused > 0 && `, ${numberOf(refused)} refused`}
          {runs ? "…" : left > 0 ? `, stopped: ${numberOf(left)} left.` : "."}
        </p>
      )}
      {(runs || left > 0) && (
        <div className="actions">
          {runs ? (
            <Button onPress={apply.stop}>Stop</Button>
          ) : (
            <Button primary onPress={() => (begun ? apply.start() : setAsking(true))}>
              {begun ? "Continue" : "Apply the plan"}
            </Button>
          )}
        </div>
      )}
      {asking && (
        <Confirm
          title="Apply the plan?"
          action={`Make ${count(moves.length, "move")}`}
          busy={false}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            apply.start();
          }}
        >
          <p>
            The allocations of {count(moves.length, "consumer")} are replaced, in {count(waves, "wave")}. Nothing else is migrated: move the servers first. To stop, press Stop or leave the page.
          </p>
        </Confirm>
      )}
    </div>
  );
}

/** The consumers that do not fit elsewhere, and the missing amounts of the first. */
function Unplaced({ plan: { unplaced, unplacedCount, explain } }: { plan: Planned }) {
  return (
    <div className="part">
      <h3>Without a place</h3>
      <ul className="consumers" aria-label="Without a place">
        {unplaced.map(({ consumer, resources }) => (
          <li key={consumer.uuid}>
            <span>
              <Who consumer={consumer} /> <span className="below-name">{amountsOf(resources)}</span>
            </span>
          </li>
        ))}
      </ul>
      {unplacedCount > unplaced.length && <p className="hint">and {count(unplacedCount - unplaced.length, "other consumer")}</p>}
      {explain && (
        <details>
          <summary>Why the first has no place</summary>
          <Why explanation={explain} link={({ uuid, name }) => <Link href={providerAt(uuid)}>{name}</Link>} />
        </details>
      )}
    </div>
  );
}

const Who = ({ consumer: { uuid, projectId, resource } }: { consumer: PlannedConsumerFragment }) => (
  <>
    {resource ? <Link href={resourceAt(resource.uuid)}>{resource.name}</Link> : <Link className="mono" href={consumerAt(uuid)}>{uuid}</Link>} <span className="dim">of {projectId}</span>
  </>
);

/** In plans of more moves, only waves with a refused move open by themselves. */
const mostShown = 100;

function Moves({ plan: { moves, waves }, apply }: { plan: Planned; apply: Applying }) {
  const numbered = moves.map((move, at) => ({ move, at, outcome: apply.outcomes.get(at) }));
  const isOneByOne = waves === moves.length;
  return Array.from({ length: isOneByOne ? 1 : waves }, (_, index) => index + 1).map((wave) => {
    const own = isOneByOne ? numbered : numbered.filter(({ move }) => move.wave === wave);
    const refused = own.filter(({ outcome }) => outcome?.kind === "REFUSED").length;
    const made = own.filter(({ outcome }) => outcome && outcome.kind !== "REFUSED").length;
    return (
      <Wave key={wave} open={moves.length <= mostShown || refused > 0} title={`${isOneByOne ? "One after the other" : `Wave ${wave}`}: ${[count(own.length, "move"), ...(made > 0 ? [`${numberOf(made)} made`] : []), ...(refused > 0 ? [`${numberOf(refused)} refused`] : [])].join(", ")}`}>
        {() => own.map(({ move, at, outcome }) => <MoveRow key={at} move={move} outcome={outcome} runs={apply.current.has(at)} />)}
      </Wave>
    );
  });
}

function Wave({ open, title, children }: { open: boolean; title: string; children: () => ReactNode }) {
  const [isOpen, setOpen] = useState(open);
  useEffect(() => {
    if (open) setOpen(true);
  }, [open]);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <ul className="moves">{children()}</ul>}
    </details>
  );
}

function MoveRow({ move: { consumer, from, to }, outcome, runs }: { move: Move; outcome: Outcome | undefined; runs: boolean }) {
  return (
    <li>
      <span>
        <Who consumer={consumer} />
      </span>
      <span>
        <span className="dim">from</span> {from.map(({ provider }) => provider.name).join(", ")} <span className="dim">to</span>{" "}
        {to.map(({ provider, resources }, at) => (
          <span key={provider.uuid}>
            {at > 0 && "; "}
            <Link href={providerAt(provider.uuid)}>{provider.name}</Link>: {amountsOf(resources)}
          </span>
        ))}
      </span>
      <span className="outcome">
        {outcome?.kind === "REFUSED" ? <Badge tone="bad">refused</Badge> : outcome ? <Badge tone="good">{outcome.kind === "MOVED" ? "moved" : "already there"}</Badge> : runs && <Badge tone="accent">moving</Badge>}
        {outcome?.kind === "REFUSED" && <span className="error"> {outcome.message}</span>}
      </span>
    </li>
  );
}
