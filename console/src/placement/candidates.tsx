// The candidates for a request, and a claim of one.
import { request as send } from "@cadastre/client";
import { useEffect, useRef, useState } from "react";

import { fieldsOf, isConflict, useChange } from "../change";
import { graphql } from "../generated";
import type { PlacementAskQuery, PlacementAskQueryVariables, PlacementConsumerQuery } from "../generated/graphql";
import type { Asked } from "../page";
import { useViewer } from "../session";
import { Button, Field } from "../ui/controls";
import { Badge, count, Note, numberOf } from "../ui/show";
import type { Cloud } from "./cloud";
import type { Marks } from "./paint";
import { releaseDocument, type Whole } from "./provider";
import { problemOf, useConnection, useRead } from "./read";
import { argumentsOf, type Request } from "./request";
import { lacks, meaning, Why } from "./why";

export const askDocument = graphql(`
  query PlacementAsk(
    $resources: [ResourceAmountInput!]
    $requiredAll: [String!]
    $requiredAnySets: [TraitSetInput!]
    $forbidden: [String!]
    $memberOf: [AggregateFilter!]
    $inTree: UUID
    $groups: [RequestGroupInput!]
    $groupPolicy: GroupPolicy! = NONE
    $sameSubtree: [SubtreeInput!]
    $rootRequired: [String!]
    $rootForbidden: [String!]
    $hosts: ResourceFilter
    $first: Int!
    $after: String
  ) {
    allocationCandidates(
      resources: $resources
      requiredAll: $requiredAll
      requiredAnySets: $requiredAnySets
      forbidden: $forbidden
      memberOf: $memberOf
      inTree: $inTree
      groups: $groups
      groupPolicy: $groupPolicy
      sameSubtree: $sameSubtree
      rootRequired: $rootRequired
      rootForbidden: $rootForbidden
      hosts: $hosts
      orderBy: BREADTH_FIRST
      first: $first
      after: $after
    ) {
      totalCount
      totalCountIsExact
      nodes {
        claim {
          allocations {
            provider
            resources {
              resourceClass
              amount
            }
          }
          mappings {
            suffix
            providers
          }
        }
      }
      explain {
        ...Explained
      }
    }
  }
`);

const consumerDocument = graphql(`
  query PlacementConsumer($uuid: UUID!) {
    consumer(uuid: $uuid) {
      id
      uuid
      generation
      projectId
      userId
      type
      allocations {
        id
        resourceClass
        used
        provider {
          id
          name
        }
      }
    }
  }
`);

const claimDocument = graphql(`
  mutation PlacementClaim($input: SetAllocationsInput!) {
    setAllocations(input: $input) {
      consumers {
        id
        uuid
        generation
      }
    }
  }
`);

export type Candidates = PlacementAskQuery["allocationCandidates"];
type Candidate = Candidates["nodes"][number]["claim"];

/** The limits of candidates on the picture. */
export const limits: readonly number[] = [100, 500, 1000];

type Answer = Asked<Candidates> & { readonly current: boolean };

/** Requests candidates, and again after a change of the cloud. */
export function useCandidates(variables: PlacementAskQueryVariables | undefined, revision: number): Answer {
  const connection = useConnection();
  return useRead(variables && JSON.stringify(variables), revision, async (signal) => {
    if (!variables) throw new Error("nothing is asked for");
    return (await send(connection, askDocument, variables, { signal })).allocationCandidates;
  });
}

/** Returns the marks of candidates on the picture, with the providers of the chosen candidate, else of placed consumers. */
export function marksOf(candidates: Candidates | undefined, cloud: Cloud, number: number, placed: readonly string[]): Marks | undefined {
  if (!candidates && placed.length === 0) return undefined;
  const rootsOf = (providers: readonly string[]) => providers.flatMap((provider) => cloud.providers.get(provider)?.root.uuid ?? []);
  const providersOf = ({ allocations }: Candidate) => allocations.map(({ provider }) => provider);
  const chosen = candidates?.nodes[number - 1]?.claim;
  const giving = chosen ? providersOf(chosen) : placed;
  return { roots: new Set(rootsOf(candidates?.nodes.flatMap(({ claim }) => providersOf(claim)) ?? [])), giving: new Set(giving), givingRoots: new Set(rootsOf(giving)) };
}

interface ResultsProps {
  readonly asked: Answer;
  readonly cloud: Cloud;
  readonly number: number;
  readonly onNumber: (number: number) => void;
  readonly onAt: (uuid: string) => void;
}

export function Results({ asked, cloud, number, onNumber, onAt }: ResultsProps) {
  const { claim } = useViewer();
  const candidates = asked.data;
  if (asked.error) return <Note>{asked.error.message}</Note>;
  if (!candidates) return <p className="hint" role="status">Looking for candidates…</p>;
  const { totalCount, totalCountIsExact, nodes } = candidates;
  const chosen = nodes[number - 1]?.claim;
  return (
    <div className="results" data-current={asked.current}>
      <p role="status" className="results-count">
        <b>{totalCount === 0 ? "No candidate" : `${totalCountIsExact ? "" : "Over "}${count(totalCount, "candidate")}`}</b>
        {totalCount > nodes.length && `; the first ${numberOf(nodes.length)} are drawn`}
      </p>
      {totalCount === 0 && <Why
          explanation={candidates.explain}
          link={({ uuid, name }) => (
            <button type="button" className="link" onClick={() => onAt(uuid)}>
              {name}
            </button>
          )}
        />}
      {nodes.length > 0 && (
        <div className="actions">
          <Button label="Previous candidate" disabled={number <= 1} onPress={() => onNumber(number - 1)}>
            ‹
          </Button>
          <span className="stepping">{chosen ? `Candidate ${numberOf(number)} of ${numberOf(nodes.length)}` : "Step through them"}</span>
          <Button label="Next candidate" disabled={number >= nodes.length} onPress={() => onNumber(number + 1)}>
            ›
          </Button>
          {chosen && (
            <Button quiet onPress={() => onNumber(0)}>
              Show all
            </Button>
          )}
        </div>
      )}
      {chosen && <Gives candidate={chosen} cloud={cloud} onAt={onAt} />}
      {claim && <Claim candidate={chosen} onStale={asked.refresh} />}
    </div>
  );
}

/** The allocations of a candidate, with the groups that they serve. */
function Gives({ candidate, cloud, onAt }: { candidate: Candidate; cloud: Cloud; onAt: (uuid: string) => void }) {
  return (
    <ul className="gives" aria-label="Allocations of the candidate">
      {candidate.allocations.map(({ provider, resources }) => {
        const groups = candidate.mappings.filter(({ suffix, providers }) => suffix !== "" && providers.includes(provider)).map(({ suffix }) => suffix);
        return (
          <li key={provider}>
            <button type="button" className="link" onClick={() => onAt(provider)}>
              {cloud.providers.get(provider)?.name ?? provider}
            </button>
            {groups.map((suffix) => (
              <Badge key={suffix}>{suffix}</Badge>
            ))}
            <span className="below-name">{resources.map(({ resourceClass, amount }) => `${numberOf(amount)} ${resourceClass}`).join(", ")}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** Says that a tree serves a request, or why not. */
export function WhyNot({ request, provider, revision, onAt }: { request: Request; provider: Whole; revision: number; onAt: (uuid: string) => void }) {
  const { root } = provider;
  const asked = useCandidates(within(request, root), revision);
  const { data } = asked;
  const said = useRef<HTMLDivElement>(null);
  const there = data !== undefined;
  useEffect(() => {
    if (there) said.current?.scrollIntoView({ block: "nearest" });
  }, [there]);
  if (asked.error) return <Note>{asked.error.message}</Note>;
  if (!data) return null;
  if (data.totalCount > 0)
    return (
      <div ref={said} className="why-not" role="status">
        <Badge tone="good">fits</Badge> {root.name} can serve the request, in {count(data.totalCount, "way")}.
      </div>
    );
  const nearest = data.explain.nearest.find((miss) => miss.provider.uuid === root.uuid);
  const ended = data.explain.steps.filter((step) => step.remaining === 0);
  return (
    <div ref={said} className="why-not" role="status">
      <p>
        <Badge tone="bad">does not fit</Badge> {root.name} cannot serve the request{nearest && `: ${lacks(nearest)}`}.
      </p>
      {ended.length > 0 && (
        <ul>
          {ended.map((step, at) => (
            <li key={at}>
              {step.kind === "HOSTS" ? "Its resource does not meet the requirements on hosts, or is hidden from you." : `No provider of its tree, and none that shares with it, ${meaning(step)}.`}
            </li>
          ))}
        </ul>
      )}
      {provider.uuid !== root.uuid && (
        <button type="button" className="link" onClick={() => onAt(root.uuid)}>
          Look at {root.name}
        </button>
      )}
    </div>
  );
}

/** Limits a request to one tree, and its sharing providers if the resource of the root is known. */
function within(request: Request, root: Whole["root"]): PlacementAskQueryVariables | undefined {
  const variables = argumentsOf(request);
  if (!variables) return undefined;
  if (root.resource) return { ...variables, hosts: { ...variables.hosts, uuids: [root.resource.uuid] }, first: 1 };
  const groups = variables.groups;
  return { ...variables, inTree: variables.inTree ?? root.uuid, ...(Array.isArray(groups) && { groups: groups.map((group) => ({ ...group, inTree: group.inTree ?? root.uuid })) }), first: 1 };
}

/** Returns a random uuid, also on a page without TLS. */
export function newUUID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 15) | 64;
  bytes[8] = ((bytes[8] ?? 0) & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

type Consumer = NonNullable<PlacementConsumerQuery["consumer"]>;

/** Claims a candidate, and releases the claim. */
function Claim({ candidate, onStale }: { candidate: Candidate | undefined; onStale: () => void }) {
  const viewer = useViewer();
  const connection = useConnection();
  const [open, setOpen] = useState(false);
  const [draft, setDraft] = useState({ uuid: "", projectId: viewer.projectId, userId: viewer.userId, type: "INSTANCE" });
  const [known, setKnown] = useState<Consumer | null>(); // undefined before the consumer was read
  const [problem, setProblem] = useState<Error>();
  const [claimed, setClaimed] = useState<string>();
  const claim = useChange(claimDocument);
  const release = useChange(releaseDocument);
  const full = claim.error && "code" in claim.error && claim.error.code === "CAPACITY_EXCEEDED";
  useEffect(() => {
    if (full) onStale();
  }, [full, onStale]);
  const edit = (part: Partial<typeof draft>) => {
    setDraft({ ...draft, ...part });
    if (part.uuid !== undefined) setKnown(undefined);
    claim.clear();
  };
  const look = async (): Promise<Consumer | null | undefined> => {
    setProblem(undefined);
    setKnown(undefined); // the next claim must not use the previous state
    claim.clear();
    try {
      const { consumer } = await send(connection, consumerDocument, { uuid: draft.uuid.trim() });
      setKnown(consumer ?? null);
      return consumer ?? null;
    } catch (error) {
      setProblem(problemOf(error));
      return undefined;
    }
  };
  const put = async (replaced: Consumer | null) => {
    if (!candidate) return;
    const uuid = draft.uuid.trim();
    const consumer = {
      uuid,
      projectId: draft.projectId,
      userId: draft.userId,
      ...(draft.type && { type: draft.type }),
      ...(replaced && { generation: replaced.generation }),
      allocations: candidate.allocations.map(({ provider, resources }) => ({ provider, resources: resources.map(({ resourceClass, amount }) => ({ resourceClass, amount })) })),
      mappings: candidate.mappings.map(({ suffix, providers }) => ({ suffix, providers })),
    };
    if (!(await claim.send({ input: { consumers: [consumer] } }))) return;
    setClaimed(uuid);
    setOpen(false);
  };
  const press = async () => {
    const found = known === undefined ? await look() : known;
    if (found === null || (found && known)) await put(found);
  };
  if (claimed)
    return (
      <Note tone="good">
        <span>
          Claimed for <span className="mono">{claimed}</span>.
        </span>
        {release.error && <p>{release.error.message}</p>}
        <div className="actions">
          {viewer.release && (
            <Button disabled={release.busy} onPress={() => void release.send({ input: { consumer: claimed } }).then((done) => done && setClaimed(undefined))}>
              Release it
            </Button>
          )}
          <Button quiet onPress={() => setClaimed(undefined)}>
            Keep it
          </Button>
        </div>
      </Note>
    );
  if (!candidate) return null;
  if (!open)
    return (
      <div className="actions">
        <Button
          primary
          onPress={() => {
            setDraft({ ...draft, uuid: newUUID() });
            setKnown(undefined);
            claim.clear();
            setOpen(true);
          }}
        >
          Claim this candidate
        </Button>
      </div>
    );
  const wrong = fieldsOf(claim.error);
  const of = (field: string) => wrong.get(`input.consumers[0].${field}`);
  const conflict = isConflict(claim.error);
  const uses = known?.allocations.map(({ used, resourceClass, provider }) => `${numberOf(used)} ${resourceClass} of ${provider.name}`).join(", ");
  return (
    <form
      className="claim"
      aria-label="Claim"
      onSubmit={(event) => {
        event.preventDefault();
        void press();
      }}
    >
      <Field label="Consumer" mono value={draft.uuid} onChange={(uuid) => edit({ uuid })} hint="The uuid of the consumer, for example of an instance." error={of("uuid")} />
      <div className="pair">
        <Field label="Project" value={draft.projectId} onChange={(projectId) => edit({ projectId })} error={of("projectId")} />
        <Field label="User" value={draft.userId} onChange={(userId) => edit({ userId })} error={of("userId")} />
      </div>
      <Field label="Type" mono value={draft.type} onChange={(type) => edit({ type })} error={of("type")} />
      {problem && <Note>{problem.message}</Note>}
      {known && !conflict && (
        <Note tone="warn">
          This consumer of {known.projectId} uses {uses} now. The claim puts the candidate in place of all that.
        </Note>
      )}
      {claim.error && (
        <Note>
          {conflict ? "Somebody else changed the allocations of this consumer." : full ? `The capacity is gone: ${claim.error.message}. The list shows the current candidates.` : claim.error.message}
          {conflict && (
            <div>
              <Button onPress={() => void look()}>Reload the consumer</Button>
            </div>
          )}
        </Note>
      )}
      <div className="actions">
        <Button primary type="submit" disabled={claim.busy || conflict || !draft.uuid.trim()}>
          {known ? "Replace its allocations" : "Claim"}
        </Button>
        <Button onPress={() => setOpen(false)}>Cancel</Button>
      </div>
    </form>
  );
}
