// The page "What if": hosts that are taken out, disabled or added, and what fits then.
// Nothing is stored until the plan is applied.
import { request as send } from "@cadastre/client";
import { useCallback, useEffect, useMemo, useState } from "react";
import { Link } from "wouter";

import { pictureAt, useAddress } from "../address";
import { graphql } from "../generated";
import { Empty, Failed, Loading, PageHead, Refusal, useSettled, useTitle } from "../page";
import type { Cloud, Provider } from "../placement/cloud";
import { Names } from "../placement/names";
import { Legend, Picture } from "../placement/picture";
import { type ReadCloud, useCloud, useConnection, useRead } from "../placement/read";
import { useViewer } from "../session";
import { Button, Field, Select } from "../ui/controls";
import { count, numberOf } from "../ui/show";
import { Answers } from "./answers";
import { type Changes, changesOf, mostChanges, type Model, parentsFirst, readChanges, writtenAdd } from "./changes";
import { Failures } from "./failures";
import { Plan, usePlan } from "./plan";

const modelDocument = graphql(`
  query WhatIfModel($tree: UUID!) {
    resourceProviders(filter: { inTree: $tree }, first: 1000) {
      nodes {
        uuid
        name
        parent {
          uuid
        }
        inventories {
          resourceClass
          total
          reserved
          minUnit
          maxUnit
          stepSize
          allocationRatio
        }
        traits
        aggregates
      }
    }
  }
`);

const above = <Link href={pictureAt({})}>Placement</Link>;

export function WhatIfPage() {
  useTitle("What if");
  const { whatIf } = useViewer();
  const cloud = useCloud();
  if (!whatIf) return <Refusal title="You may not ask what if" above={above} />;
  return (
    <>
      <PageHead above={above} title="What if" below={<p className="lead">What fits, and where consumers go, without some hosts or with more. Nothing is stored until you apply the plan.</p>} />
      {cloud.error && cloud.read === 0 ? <Failed error={cloud.error} retry={cloud.retry} /> : cloud.read === 0 && !cloud.done ? <Loading rows={10} /> : <WhatIf cloud={cloud} />}
    </>
  );
}

const tileChanges = [
  { value: "", label: "Tiles: take out" },
  { value: "off", label: "Tiles: disable" },
  { value: "add", label: "Tiles: add a copy" },
];

function WhatIf({ cloud }: { cloud: ReadCloud }) {
  const address = useAddress();
  const { all, set } = address;
  const changes = useMemo(() => readChanges(all), [all]);
  const on = address.get("tile");
  const { trees } = cloud.cloud;
  const toggle = useCallback(
    ({ root: { uuid } }: Provider) => {
      const without = (list: readonly string[]) => list.filter((other) => other !== uuid);
      const { out, off, add } = changes;
      const name = on === "off" ? "off" : "out";
      if (on === "add") return set({ add: writtenAdd(add.some(([of]) => of === uuid) ? add.map(([of, copies]) => [of, of === uuid ? copies + 1 : copies]) : [...add, [uuid, 1]]) });
      set({ out: without(out), off: without(off), [name]: changes[name].includes(uuid) ? without(changes[name]) : [...without(changes[name]), uuid] });
    },
    [changes, on, set],
  );
  const crossed = useMemo(() => new Map([...changes.out.map((uuid) => [uuid, "taken out"] as const), ...changes.off.map((uuid) => [uuid, "disabled"] as const)]), [changes]);
  if (trees.length === 0) return <Empty title="There are no resource providers yet">Services of the cloud and the command line create providers.</Empty>;
  return (
    <>
      <div className="placement">
        <div className="placement-main">
          <div className="picture-head">
            <p className="counted" role="status">
              {cloud.done ? count(trees.length, "tree") : `${count(trees.length, "tree")} so far`}
            </p>
            <div className="picture-controls">
              <Select label="Tiles" hidden value={on} onChange={(tile) => address.set({ tile }, { replace: true })} choices={tileChanges} />
            </div>
          </div>
          <Legend resourceClass="" isHeld={cloud.cloud.isHeld} />
          <Picture trees={trees} resourceClass="" size={undefined} at={undefined} crossed={crossed} onAt={toggle} />
        </div>
        <aside className="placement-side" aria-label="Changes">
          <Chosen changes={changes} cloud={cloud.cloud} />
        </aside>
      </div>
      {changes.out.length + changes.off.length + changes.add.length > 0 ? (
        <Answered changes={changes} cloud={cloud} />
      ) : (
        <Empty title="No changes yet">Select hosts on the picture or by name, or add copies of a host.</Empty>
      )}
    </>
  );
}

/** The form of the changes. */
function Chosen({ changes, cloud }: { changes: Changes; cloud: Cloud }) {
  const { set } = useAddress();
  const trees = useMemo(() => cloud.trees.map(({ uuid, name }) => ({ value: uuid, label: name })), [cloud.trees]);
  const { out, off, add } = changes;
  const copiesOf = (names: readonly string[]) => names.map((uuid) => [uuid, add.find(([of]) => of === uuid)?.[1] ?? 1] as const);
  return (
    <section className="panel ask" aria-label="The changes">
      <h2>Changes</h2>
      <Names label="Take out" names={out} choices={trees} onChange={(out) => set({ out, off: off.filter((uuid) => !out.includes(uuid)) })} />
      <Names label="Disable: nothing more is placed on it" names={off} choices={trees} onChange={(off) => set({ off, out: out.filter((uuid) => !off.includes(uuid)) })} />
      <Names label="Add copies of" names={add.map(([uuid]) => uuid)} choices={trees} onChange={(names) => set({ add: writtenAdd(copiesOf(names)) })} />
      {add.map(([uuid, copies]) => (
        <Copies key={uuid} name={cloud.providers.get(uuid)?.name ?? uuid} copies={copies} onChange={(copies) => set({ add: writtenAdd(add.map(([of, before]) => [of, of === uuid ? copies : before])) }, { replace: true })} />
      ))}
      {add.length > 0 && <p className="hint">A copy has the tree, inventories, traits and aggregates of its model, and no consumers.</p>}
      {(out.length > 0 || off.length > 0 || add.length > 0) && (
        <div className="actions">
          <Button quiet onPress={() => set({ out: [], off: [], add: [] })}>
            Clear all
          </Button>
        </div>
      )}
    </section>
  );
}

function Copies({ name, copies, onChange }: { name: string; copies: number; onChange: (copies: number) => void }) {
  const [typed, setTyped] = useState(String(copies));
  useEffect(() => setTyped((typed) => (Number(typed) === copies ? typed : String(copies))), [copies]);
  const isNumber = (text: string) => /^[1-9]\d{0,3}$/.test(text) && Number(text) <= mostChanges;
  return (
    <Field
      label={`Copies of ${name}`}
      type="number"
      value={typed}
      error={isNumber(typed) ? undefined : `A whole number from 1 to ${numberOf(mostChanges)}.`}
      onChange={(text) => {
        setTyped(text);
        if (isNumber(text)) onChange(Number(text));
      }}
    />
  );
}

/** The answers for changes that are not being edited, in the world of one moment. */
function Answered({ changes: edited, cloud }: { changes: Changes; cloud: ReadCloud }) {
  const connection = useConnection();
  const text = useSettled(JSON.stringify(edited), 300);
  const changes = useMemo(() => JSON.parse(text) as Changes, [text]);
  const [seen, setSeen] = useState(1);
  const revision = Math.max(1, cloud.revision);
  const again = useCallback(() => setSeen(revision), [revision]);
  const plan = usePlan(changes.out, seen);
  const models = useRead(JSON.stringify(changes.add.map(([uuid]) => uuid)), 0, async (signal) => {
    const read = changes.add.map(async ([uuid]) => [uuid, parentsFirst((await send(connection, modelDocument, { tree: uuid }, { signal })).resourceProviders.nodes)] as const);
    return new Map<string, Model>(await Promise.all(read));
  });
  const planned = changes.out.length === 0 || plan.current;
  const sent = useMemo(() => {
    if (!planned || !models.current || !models.data) return undefined;
    const whole = changesOf(changes, models.data, plan.data?.moves ?? []);
    return whole.length <= mostChanges ? whole : changesOf(changes, models.data, []);
  }, [planned, models, changes, plan.data]);
  const missing = [...changes.out, ...changes.off, ...changes.add.map(([uuid]) => uuid)].filter((uuid) => cloud.done && !cloud.cloud.providers.get(uuid));
  if (missing.length > 0) return <Empty title="The address names hosts that do not exist">They were deleted, or are hidden from you: {missing.join(", ")}. Remove them from the changes.</Empty>;
  if (models.error) return <Failed error={models.error} retry={models.refresh} />;
  const unplaced = (plan.data?.unplacedCount ?? 0) > 0 || plan.error !== undefined || (sent !== undefined && plan.data !== undefined && sent.filter(({ place }) => place).length < plan.data.moves.length);
  return (
    <div className="what-if">
      {revision > seen && (
        <div className="note warn" role="status">
          <p>The cloud has changed since these answers.</p>
          <Button onPress={again}>Ask again</Button>
        </div>
      )}
      <Answers changes={sent} revision={seen} isPartial={unplaced} />
      <Failures changes={sent} revision={seen} />
      {changes.out.length > 0 && <Plan plan={plan} changes={changes} cloud={cloud.cloud} onAgain={again} />}
    </div>
  );
}
