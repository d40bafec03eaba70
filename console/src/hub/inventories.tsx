// The forms that create a provider and set inventories.
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";

import { providerAt, useEditing } from "../address";
import { type Change, fieldsOf, isConflict, useChange } from "../change";
import { graphql } from "../generated";
import type { HubUnitFragment, InventoryInput } from "../generated/graphql";
import { useAsk, useSettled } from "../page";
import { Button, Combo, Field, Select } from "../ui/controls";
import { Form, useRevised } from "../ui/form";

const classesDocument = graphql(`
  query ClassesOfInventories {
    resourceClasses(first: 1000) {
      nodes {
        id
        name
      }
    }
  }
`);

const parentsDocument = graphql(`
  query ParentsOfProviders($text: String!) {
    resourceProviders(filter: { search: $text }, first: 20) {
      nodes {
        id
        name
      }
    }
  }
`);

const createDocument = graphql(`
  mutation NewProvider($input: CreateResourceProviderInput!) {
    createResourceProvider(input: $input) {
      resourceProvider {
        id
        uuid
      }
    }
  }
`);

const setDocument = graphql(`
  mutation EditInventories($input: SetInventoriesInput!) {
    setInventories(input: $input) {
      resourceProvider {
        ...HubUnit
        updatedAt
      }
    }
  }
`);

type Stored = HubUnitFragment["inventories"][number];

/** An inventory as the form has it. */
type Row = Readonly<Record<"resourceClass" | Amount, string>>;

type Amount = "total" | "reserved" | "allocationRatio";

const amounts: readonly (readonly [Amount, string])[] = [
  ["total", "Total"],
  ["reserved", "Reserved"],
  ["allocationRatio", "Allocation ratio"],
];

const emptyRow: Row = { resourceClass: "", total: "", reserved: "0", allocationRatio: "1" };

const rowOf = ({ resourceClass, total, reserved, allocationRatio }: Stored): Row => ({ resourceClass, total: String(total), reserved: String(reserved), allocationRatio: String(allocationRatio) });

/** Returns the error of an amount. The server checks its range. */
function wrongAmount(amount: Amount, text: string): string | undefined {
  if (amount === "allocationRatio") return text.trim() && Number.isFinite(Number(text)) ? undefined : "Enter a number.";
  return /^\s*-?\d+\s*$/.test(text) && Math.abs(Number(text)) < 2 ** 31 ? undefined : "Enter a whole number.";
}

const isComplete = (row: Row): boolean => row.resourceClass !== "" && amounts.every(([amount]) => !wrongAmount(amount, row[amount]));

/** Returns the input of rows. A class that the provider has keeps its units. */
const inputsOf = (rows: readonly Row[], stored: readonly Stored[]): InventoryInput[] =>
  rows.map(({ resourceClass, total, reserved, allocationRatio }) => {
    const known = stored.find((one) => one.resourceClass === resourceClass);
    return { resourceClass, total: Number(total), reserved: Number(reserved), allocationRatio: Number(allocationRatio), ...(known && { minUnit: known.minUnit, maxUnit: known.maxUnit, stepSize: known.stepSize }) };
  });

const isOf = (row: Row) => (other: Row) => other.resourceClass === row.resourceClass;

/** Returns rows with the changes of others: rows that the form did not change are as they are stored. */
const mergedOf = (rows: readonly Row[], first: readonly Row[], stored: readonly Row[]): Row[] => [
  ...rows.flatMap((row) => (first.some((one) => JSON.stringify(one) === JSON.stringify(row)) ? stored.filter(isOf(row)) : [row])),
  ...stored.filter((row) => ![...first, ...rows].some(isOf(row))),
];

const shown = /^input\.(name|parentName|inventories\[\d+\]\.(resourceClass|total|reserved|allocationRatio))$/;

/** Returns the errors of a form's fields; none if another error is among them, which the form shows. */
const saidOf = (refused: ReadonlyMap<string, string>) => ([...refused.keys()].every((path) => shown.test(path)) ? refused : new Map<string, string>());

/** Edits rows of inventories. Errors name rows by number, so a removed row clears them. */
function Rows({ rows, onChange, change }: { rows: readonly Row[]; onChange: (rows: readonly Row[]) => void; change: Pick<Change<unknown, never>, "error" | "clear"> }) {
  const refused = fieldsOf(change.error);
  const classes = useAsk(classesDocument, {}).data?.resourceClasses.nodes ?? [];
  const choices = [{ value: "", label: "Choose…" }, ...classes.map(({ name }) => ({ value: name, label: name }))];
  const edit = (at: number, part: Partial<Row>) => onChange(rows.map((row, other) => (other === at ? { ...row, ...part } : row)));
  return (
    <>
      {rows.map((row, at) => (
        <fieldset className="inventory" key={at}>
          <legend>{row.resourceClass || "New inventory"}</legend>
          <Select label="Resource class" value={row.resourceClass} onChange={(resourceClass) => edit(at, { resourceClass })} choices={choices} error={refused.get(`input.inventories[${at}].resourceClass`)} />
          {amounts.map(([amount, label]) => (
            <Field key={amount} label={label} type="number" value={row[amount]} onChange={(text) => edit(at, { [amount]: text })} error={(row[amount] && wrongAmount(amount, row[amount])) || refused.get(`input.inventories[${at}].${amount}`)} />
          ))}
          <Button quiet label={`Remove ${row.resourceClass || "the new inventory"}`} onPress={() => (onChange(rows.filter((_, other) => other !== at)), isConflict(change.error) || change.clear())}>
            Remove
          </Button>
        </fieldset>
      ))}
      <div className="actions">
        <Button onPress={() => onChange([...rows, emptyRow])}>Add an inventory</Button>
      </div>
    </>
  );
}

export function NewProvider({ resource, onClose }: { resource: { readonly uuid: string; readonly name: string }; onClose: () => void }) {
  const [name, setName] = useState(resource.name);
  const [parent, setParent] = useState("");
  const [rows, setRows] = useState<readonly Row[]>([]);
  const create = useChange(createDocument);
  const [, go] = useLocation();
  const text = useSettled(parent.trim());
  const parents = useAsk(parentsDocument, { text }, text === "").data?.resourceProviders.nodes ?? [];
  const refused = fieldsOf(create.error);
  const save = async () => {
    const done = await create.send({ input: { resource: resource.uuid, name: name.trim(), inventories: inputsOf(rows, []), ...(parent.trim() && { parentName: parent.trim() }) } });
    if (done) go(providerAt(done.createResourceProvider.resourceProvider.uuid));
  };
  return (
    <Form label="Create a provider" action="Create" change={create} said={saidOf(refused)} changed={rows.length > 0} disabled={!name.trim() || !rows.every(isComplete)} onSave={save} onClose={onClose}>
      <Field label="Name" required autoFocus value={name} onChange={setName} error={refused.get("input.name")} />
      <Combo label="Parent" value={parent} onChange={setParent} choices={parents.map(({ name }) => ({ value: name, label: name }))} error={refused.get("input.parentName")} hint="The name of another provider. Optional." />
      <Rows rows={rows} onChange={setRows} change={create} />
    </Form>
  );
}

/** Opens the form of the inventories. */
export function InventoriesAction({ unit }: { unit: HubUnitFragment }) {
  const [editing, setEditing] = useEditing("inventories");
  return editing ? null : <Button onPress={() => setEditing(true)}>{unit.inventories.length > 0 ? "Edit inventories" : "Add inventories"}</Button>;
}

/** Shows the form of the inventories above them while it is open. */
export function EditableInventories({ unit, children }: { unit: HubUnitFragment; children: ReactNode }) {
  const [editing, setEditing] = useEditing("inventories");
  return (
    <>
      {editing && <EditInventories unit={unit} onClose={() => setEditing(false)} />}
      {children}
    </>
  );
}

function EditInventories({ unit, onClose }: { unit: HubUnitFragment; onClose: () => void }) {
  const stored = unit.inventories;
  const [first] = useState(() => stored.map(rowOf)); // concurrent changes by others are not overwritten
  const [rows, setRows] = useState<readonly Row[]>(first.length > 0 ? first : [emptyRow]);
  const set = useRevised(setDocument, unit.generation);
  const isChanged = JSON.stringify(rows) !== JSON.stringify(first);
  const save = async () => (await set.send({ input: { provider: unit.uuid, generation: set.seen, inventories: inputsOf(mergedOf(rows, first, stored.map(rowOf)), stored) } })) && onClose();
  return (
    <Form label={`Edit the inventories of ${unit.name}`} change={set} said={saidOf(fieldsOf(set.error))} changed={isChanged && rows[0] !== emptyRow} disabled={!isChanged || !rows.every(isComplete)} onSave={save} onClose={onClose}>
      <Rows rows={rows} onChange={setRows} change={set} />
    </Form>
  );
}
