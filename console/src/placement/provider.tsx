// The selected provider: inventories, traits, aggregates, consumers.
import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";

import { consumerAt, providerAt, resourceAt, whatIfAt } from "../address";
import { useChange } from "../change";
import { graphql } from "../generated";
import type { PlacementProviderQuery } from "../generated/graphql";
import { Failed, Loading, useAsk } from "../page";
import { useViewer } from "../session";
import { Button } from "../ui/controls";
import { Bar, heldOf, Note, numberOf } from "../ui/show";
import { percent, share } from "./cloud";

const document = graphql(`
  query PlacementProvider($uuid: UUID!) {
    resourceProvider(uuid: $uuid) {
      id
      uuid
      name
      generation
      parent {
        id
        uuid
        name
      }
      root {
        id
        uuid
        name
        resource {
          id
          uuid
          name
        }
      }
      resource {
        id
        uuid
        name
      }
      children(first: 100) {
        totalCount
        nodes {
          id
          uuid
          name
        }
      }
      inventories {
        id
        resourceClass
        total
        reserved
        allocationRatio
        capacity
        used
        held
      }
      traits
      aggregates
      allocations(first: 50) {
        totalCount
        nodes {
          id
          resourceClass
          used
          consumer {
            id
            uuid
            type
            projectId
            resource {
              id
              uuid
              name
            }
          }
        }
      }
    }
  }
`);

export const releaseDocument = graphql(`
  mutation ReleaseConsumer($input: DeleteAllocationsInput!) {
    deleteAllocations(input: $input) {
      consumer {
        uuid
      }
    }
  }
`);

export type Whole = NonNullable<PlacementProviderQuery["resourceProvider"]>;

interface PanelProps {
  readonly uuid: string;
  readonly revision: number;
  readonly nameOfAggregate: (uuid: string) => string;
  readonly onAt: (uuid: string) => void;
  readonly onTrait: (trait: string) => void;
  readonly onAggregate: (aggregate: string) => void;
  /** More about the provider, such as why it cannot serve the request. */
  readonly children?: (provider: Whole) => ReactNode;
}

export function ProviderPanel({ uuid, revision, nameOfAggregate, onAt, onTrait, onAggregate, children }: PanelProps) {
  const asked = useAsk(document, { uuid });
  const { whatIf } = useViewer();
  const { refresh } = asked;
  useEffect(() => {
    if (revision > 1) refresh();
  }, [revision, refresh]);
  const panel = useRef<HTMLElement>(null);
  const there = asked.data !== undefined;
  useEffect(() => {
    if (there) panel.current?.querySelector("h2")?.scrollIntoView({ block: "nearest" });
  }, [there]);
  if (asked.error && !asked.data) return <Failed error={asked.error} retry={asked.refresh} />;
  if (!asked.data) return <Loading rows={4} />;
  const provider = asked.data.resourceProvider;
  return (
    <section ref={panel} className="panel provider" aria-label="The selected provider">
      <div className="section-head">
        <h2>{provider ? <Link href={providerAt(uuid)}>{provider.name}</Link> : "Not found"}</h2>
        <Button quiet onPress={() => onAt("")}>
          Close
        </Button>
      </div>
      {provider ? (
        <>
          <p className="facts">
            {provider.parent && (
              <span>
                in <Go provider={provider.parent} onAt={onAt} />
              </span>
            )}
            {provider.resource && (
              <span>
                is <Link href={resourceAt(provider.resource.uuid)}>{provider.resource.name}</Link>
              </span>
            )}
            <span>generation {numberOf(provider.generation)}</span>
            {whatIf && (
              <span>
                <Link href={whatIfAt({ out: provider.root.uuid })}>What if it is taken out?</Link>
              </span>
            )}
          </p>
          {children?.(provider)}
          <Inventories provider={provider} />
          {provider.children.nodes.length > 0 && (
            <Part title={`Below it (${numberOf(provider.children.totalCount)})`}>
              <ul className="chips">
                {provider.children.nodes.map((child) => (
                  <li key={child.id}>
                    <Go provider={child} onAt={onAt} />
                  </li>
                ))}
              </ul>
            </Part>
          )}
          {provider.traits.length > 0 && (
            <details className="part">
              <summary>Traits ({numberOf(provider.traits.length)})</summary>
              <ul className="chips">
                {provider.traits.map((trait) => (
                  <li key={trait}>
                    <Button quiet label={`Only with the trait ${trait}`} onPress={() => onTrait(trait)}>
                      <span className="mono">{trait}</span>
                    </Button>
                  </li>
                ))}
              </ul>
            </details>
          )}
          {provider.aggregates.length > 0 && (
            <Part title="Aggregates">
              <ul className="chips">
                {provider.aggregates.map((aggregate) => (
                  <li key={aggregate}>
                    <Button quiet label={`Only in the aggregate ${nameOfAggregate(aggregate)}`} onPress={() => onAggregate(aggregate)}>
                      {nameOfAggregate(aggregate)}
                    </Button>
                  </li>
                ))}
              </ul>
            </Part>
          )}
          <Consumers provider={provider} onDone={refresh} />
        </>
      ) : (
        <p className="hint">The provider was deleted.</p>
      )}
    </section>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="part">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function Go({ provider, onAt }: { provider: { uuid: string; name: string }; onAt: (uuid: string) => void }) {
  return (
    <button type="button" className="link" onClick={() => onAt(provider.uuid)}>
      {provider.name}
    </button>
  );
}

function Inventories({ provider }: { provider: Whole }) {
  if (provider.inventories.length === 0) return <p className="hint">The provider has no inventory.</p>;
  return (
    <ul className="bars amounts">
      {provider.inventories.map(({ id, resourceClass, capacity, used, held, total, reserved, allocationRatio }) => (
        <li key={id} title={`total ${numberOf(total)}, reserved ${numberOf(reserved)}, ratio ${allocationRatio}`}>
          <span className="mono">{resourceClass}</span>
          <Bar value={used} most={capacity} />
          <span className="number">
            {percent(share({ capacity, used }))}{" "}
            <span className="dim">
              {numberOf(used)} of {numberOf(capacity)}
              {heldOf(held)}
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The consumers, each once, with their amounts. */
function Consumers({ provider: { allocations }, onDone }: { provider: Whole; onDone: () => void }) {
  const { release } = useViewer();
  const change = useChange(releaseDocument);
  if (allocations.nodes.length === 0) return null;
  const consumers = new Map<string, { consumer: Whole["allocations"]["nodes"][number]["consumer"]; uses: string[] }>();
  for (const { consumer, resourceClass, used } of allocations.nodes) {
    const known = consumers.get(consumer.uuid) ?? { consumer, uses: [] };
    known.uses.push(`${numberOf(used)} ${resourceClass}`);
    consumers.set(consumer.uuid, known);
  }
  return (
    <Part title="Consumers">
      {change.error && <Note>{change.error.message}</Note>}
      <ul className="consumers">
        {[...consumers.values()].map(({ consumer, uses }) => {
          const name = consumer.resource?.name ?? consumer.uuid;
          return (
            <li key={consumer.uuid}>
              <span>
                {consumer.resource ? <Link href={resourceAt(consumer.resource.uuid)}>{name}</Link> : <Link className="mono" href={consumerAt(consumer.uuid)}>{name}</Link>} <span className="dim">of {consumer.projectId}</span>
                <span className="below-name">{uses.join(", ")}</span>
              </span>
              {release && (
                <Button quiet disabled={change.busy} label={`Release ${name}`} onPress={() => void change.send({ input: { consumer: consumer.uuid } }).then((done) => done && onDone())}>
                  Release
                </Button>
              )}
            </li>
          );
        })}
      </ul>
      {allocations.totalCount > allocations.nodes.length && <p className="hint">and {numberOf(allocations.totalCount - allocations.nodes.length)} other allocations</p>}
    </Part>
  );
}
