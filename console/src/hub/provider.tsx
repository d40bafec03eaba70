// What a provider has: the picture of its tree, inventories, consumers, traits and
// aggregates. The pages of resources and of providers share these parts.
import type { CSSProperties } from "react";
import { Link } from "wouter";

import { consumerAt, pictureAt, providerAt, resourceAt } from "../address";
import type { HubUseFragment } from "../generated/graphql";
import { fullest, percent, type Provider, share, shareOf } from "../placement/cloud";
import { stepOf, usePalette } from "../placement/colours";
import { Legend, said } from "../placement/picture";
import { Badge, Bar, count, heldOf, numberOf } from "../ui/show";
import { EditableInventories, InventoriesAction } from "./inventories";
import type { Part } from "./parts";
import { below, treeOf, type Unit } from "./units";

interface Named {
  readonly uuid: string;
  readonly name: string;
}

/** Returns the parts of a provider, given all providers of its tree. Viewers who may set inventories get a form. */
export function providerParts(units: readonly Unit[], uuid: string, aggregates: readonly Named[], maySet: boolean): (Part | false)[] {
  const own = below(units, uuid);
  const [unit] = own;
  const root = treeOf(units);
  if (!unit || !root) return [];
  const inventories = own.reduce((sum, { inventories }) => sum + inventories.length, 0);
  const consumers = consumersOf(own);
  const traits = [...new Set(unit.traits)].sort();
  const groups = [...new Set([...unit.aggregates, ...(root.aggregates ?? [])])];
  const left = units.reduce((sum, { more }) => sum + more.children, 0);
  const listed = inventories > 0 ? <Inventories units={own} /> : <p className="hint">There are no inventories yet.</p>;
  return [
    {
      id: "provider",
      title: "Provider",
      action: (
        <div className="actions">
          <Link href={providerAt(uuid)}>{unit.name}</Link>
          <Link href={pictureAt({ at: uuid })}>Show on the picture</Link>
        </div>
      ),
      content: (
        <>
          <Legend resourceClass={fullest} />
          <Tree provider={root} here={uuid} />
          {left > 0 && <p className="hint">{count(left, "other provider")} of the tree {left === 1 ? "is" : "are"} on the picture only.</p>}
        </>
      ),
    },
    (inventories > 0 || maySet) && { id: "inventories", title: "Inventories", number: inventories, action: maySet && <InventoriesAction unit={unit} />, content: maySet ? <EditableInventories unit={unit}>{listed}</EditableInventories> : listed },
    consumers.length > 0 && { id: "consumers", title: "Consumers", number: consumers.length, content: <Consumers consumers={consumers} more={own.reduce((sum, { more }) => sum + more.uses, 0)} several={own.length > 1} /> },
    traits.length > 0 && {
      id: "traits",
      title: "Traits",
      number: traits.length,
      content: (
        <ul className="chips">
          {traits.map((trait) => (
            <li key={trait}>
              <Link className="chip mono" href={pictureAt({ trait })}>
                {trait}
              </Link>
            </li>
          ))}
        </ul>
      ),
    },
    groups.length > 0 && {
      id: "aggregates",
      title: "Aggregates",
      number: groups.length,
      content: (
        <ul className="chips">
          {groups.map((aggregate) => (
            <li key={aggregate}>
              <Link className="chip" href={pictureAt({ aggregate })}>
                {aggregates.find((one) => one.uuid === aggregate)?.name ?? aggregate}
              </Link>
            </li>
          ))}
        </ul>
      ),
    },
  ];
}

/** A provider as a box with a link, and its children as boxes inside. */
function Tree({ provider, here }: { provider: Provider; here: string }) {
  return (
    <ul className="boxes">
      <Box provider={provider} here={here} />
    </ul>
  );
}

function Box({ provider, here }: { provider: Provider; here: string }) {
  const { steps, none, noneText } = usePalette();
  const used = shareOf(provider, fullest);
  const step = used === undefined ? undefined : steps[stepOf(used)];
  const colours: CSSProperties = { background: step?.fill ?? none, color: step?.text ?? noneText };
  return (
    <li className="box" style={colours} data-here={provider.uuid === here}>
      <Link href={providerAt(provider.uuid)} aria-current={provider.uuid === here ? "true" : undefined} title={said(provider, fullest)}>
        {provider.name}
      </Link>{" "}
      {used !== undefined && <span>{percent(used)}</span>}
      {provider.children.length > 0 && (
        <ul className="boxes">
          {provider.children.map((child) => (
            <Box key={child.uuid} provider={child} here={here} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Inventories({ units }: { units: readonly Unit[] }) {
  const several = units.filter(({ inventories }) => inventories.length > 0).length > 1;
  return (
    <div className="scroll">
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Class</th>
            {several && <th scope="col">Provider</th>}
            <th scope="col">Used</th>
            <th scope="col" className="number">
              Free
            </th>
            <th scope="col" className="number">
              Total
            </th>
            <th scope="col" className="number">
              Reserved
            </th>
            <th scope="col" className="number">
              Ratio
            </th>
          </tr>
        </thead>
        <tbody>
          {units.flatMap((unit) =>
            unit.inventories.map(({ id, resourceClass, total, reserved, allocationRatio, capacity, used, held }) => (
              <tr key={id}>
                <th scope="row">
                  <Link className="mono" href={pictureAt({ class: resourceClass, at: unit.uuid })}>
                    {resourceClass}
                  </Link>
                </th>
                {several && (
                  <td data-label="Provider">
                    <Link href={providerAt(unit.uuid)}>{unit.name}</Link>
                  </td>
                )}
                <td data-label="Used">
                  <span className="of-class">
                    <Bar value={used} most={capacity} />
                    <span>
                      {percent(share({ capacity, used }))}{" "}
                      <span className="dim">
                        {numberOf(used)} of {numberOf(capacity)}
                        {heldOf(held)}
                      </span>
                    </span>
                  </span>
                </td>
                <td className="number" data-label="Free">
                  {numberOf(Math.max(0, capacity - used))}
                </td>
                <td className="number" data-label="Total">
                  {numberOf(total)}
                </td>
                <td className="number" data-label="Reserved">
                  {numberOf(reserved)}
                </td>
                <td className="number" data-label="Ratio">
                  {allocationRatio}
                </td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

interface Consuming {
  readonly consumer: HubUseFragment["consumer"];
  readonly uses: { readonly unit: Unit; readonly amounts: string[] }[];
}

/** Returns each consumer of some providers once, by name. */
function consumersOf(units: readonly Unit[]): Consuming[] {
  const consumers = new Map<string, Consuming>();
  for (const unit of units)
    for (const { consumer, resourceClass, used } of unit.uses) {
      const known = consumers.get(consumer.uuid) ?? { consumer, uses: [] };
      const last = known.uses.at(-1);
      const amount = `${numberOf(used)} ${resourceClass}`;
      if (last?.unit === unit) last.amounts.push(amount);
      else known.uses.push({ unit, amounts: [amount] });
      consumers.set(consumer.uuid, known);
    }
  const name = ({ consumer }: Consuming) => consumer.resource?.name ?? consumer.uuid;
  return [...consumers.values()].sort((a, b) => name(a).localeCompare(name(b)));
}

function Consumers({ consumers, more, several }: { consumers: readonly Consuming[]; more: number; several: boolean }) {
  return (
    <>
      <div className="scroll">
        <table className="stacked">
          <thead>
            <tr>
              <th scope="col">Consumer</th>
              <th scope="col">Type</th>
              <th scope="col">Project</th>
              <th scope="col">Uses</th>
            </tr>
          </thead>
          <tbody>
            {consumers.map(({ consumer, uses }) => (
              <tr key={consumer.uuid}>
                <th scope="row">
                  {consumer.resource ? <Link href={resourceAt(consumer.resource.uuid)}>{consumer.resource.name}</Link> : <Link className="mono" href={consumerAt(consumer.uuid)}>{consumer.uuid}</Link>}
                </th>
                <td data-label="Type">{consumer.type ? <Badge>{consumer.type.toLowerCase()}</Badge> : ""}</td>
                <td data-label="Project">{consumer.projectId}</td>
                <td data-label="Uses">
                  <div>
                  {uses.map(({ unit, amounts }) => (
                    <span key={unit.uuid} className="uses-of">
                      {amounts.join(", ")}
                      {several && (
                        <span className="dim">
                          {" "}
                          on <Link href={providerAt(unit.uuid)}>{unit.name}</Link>
                        </span>
                      )}
                    </span>
                  ))}
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && <p className="hint">and {count(more, "other allocation")}</p>}
    </>
  );
}

interface Placed {
  readonly id: string;
  readonly resourceClass: string;
  readonly used: number;
  readonly provider: Named & { readonly root: Named };
}

/** Lists what a consumer uses, provider by provider, with the root of each tree. */
export function Allocations({ allocations }: { allocations: readonly Placed[] }) {
  const providers = [...new Map(allocations.map(({ provider }) => [provider.uuid, provider])).values()];
  return (
    <div className="scroll">
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Provider</th>
            <th scope="col">Root</th>
            <th scope="col">Uses</th>
          </tr>
        </thead>
        <tbody>
          {providers.map((provider) => (
            <tr key={provider.uuid}>
              <th scope="row">
                <Link href={providerAt(provider.uuid)}>{provider.name}</Link>
              </th>
              <td data-label="Root">
                <Link href={providerAt(provider.root.uuid)}>{provider.root.name}</Link>
              </td>
              <td data-label="Uses">
                {allocations
                  .filter((one) => one.provider.uuid === provider.uuid)
                  .map(({ resourceClass, used }) => `${numberOf(used)} ${resourceClass}`)
                  .join(", ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
