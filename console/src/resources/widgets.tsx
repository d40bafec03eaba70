// The control of a value, by the type of its definition.
import { useId } from "react";

import type { OfferedFragment } from "../generated/graphql";
import { Check, Field, Select } from "../ui/controls";
import { restrictionsOf, textOfValue } from "../definitions/rules";

export type Definition = OfferedFragment;

interface WidgetProps {
  readonly label: string;
  readonly definition: Definition | undefined;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly error?: string | undefined;
}

/** Returns the operator at the start of a value; "" without one. */
function operatorOf(definition: Definition, value: string): string {
  return definition.offeredOperators.find((operator) => value === operator || value.startsWith(operator + " ")) ?? "";
}

/** Returns the items of a list in metadata: `a,b` or `["a","b"]`. */
function itemsOf(value: string): string[] {
  if (value.startsWith("["))
    try {
      const items = JSON.parse(value) as unknown;
      if (Array.isArray(items)) return items.map(textOfValue);
    } catch {
      return []; // the text of a list that is being written
    }
  return value.split(",").map((item) => item.trim()).filter(Boolean);
}

const choicesOf = (definition: Definition) =>
  (definition.enumMembers ?? definition.itemEnumMembers ?? []).map(({ value, label }) => ({ value: value.text, label: label ? `${label} (${value.text})` : value.text }));

export function Widget({ label, definition, value, onChange, error }: WidgetProps) {
  if (!definition) return <Field label={label} hidden value={value} onChange={onChange} error={error} />;
  const operator = operatorOf(definition, value);
  // Without operators in the definition, the control has them only for values with one.
  if (definition.operators.length > 0 || operator) {
    const operand = operator ? value.slice(operator.length).trimStart() : value;
    return (
      <div className="with-operator">
        <Select
          label={`Operator of ${label}`}
          hidden
          value={operator}
          onChange={(next) => onChange(next ? `${next} ${operand}` : operand)}
          choices={[{ value: "", label: "is" }, ...definition.offeredOperators.map((value) => ({ value, label: value }))]}
        />
        {operator ? <Field label={label} hidden mono value={operand} onChange={(next) => onChange(`${operator} ${next}`)} error={error} /> : <Plain label={label} definition={definition} value={operand} onChange={onChange} error={error} />}
      </div>
    );
  }
  return <Plain label={label} definition={definition} value={value} onChange={onChange} error={error} />;
}

function Plain({ label, definition, value, onChange, error }: WidgetProps & { definition: Definition }) {
  const choices = choicesOf(definition);
  const hint = restrictionsOf({ ...definition, enum: null, itemEnum: null }).join("; ") || undefined;
  const known = (of: readonly { value: string }[]) => value === "" || of.some((choice) => choice.value === value);
  if (definition.type === "ARRAY" && choices.length > 0) return <Items label={label} choices={choices} value={value} onChange={onChange} error={error} />;
  if (definition.type === "BOOLEAN") {
    const truths = [
      { value: "true", label: "true" },
      { value: "false", label: "false" },
    ];
    return <Select label={label} hidden value={value} onChange={onChange} choices={known(truths) ? truths : [{ value, label: `${value} (not valid)` }, ...truths]} error={error} />;
  }
  if (choices.length > 0) return <Select label={label} hidden value={value} onChange={onChange} choices={known(choices) ? choices : [{ value, label: `${value} (not valid)` }, ...choices]} error={error} />;
  const { minimum, maximum } = definition;
  if (definition.type === "INTEGER" && minimum != null && maximum != null && maximum - minimum <= 1000)
    return (
      <div className="with-range">
        <input type="range" aria-label={`${label}, slider`} min={minimum} max={maximum} value={Number(value) || minimum} onChange={(event) => onChange(event.target.value)} />
        <Field label={label} hidden type="number" value={value} onChange={onChange} error={error} hint={hint} />
      </div>
    );
  const isNumber = definition.type === "INTEGER" || definition.type === "NUMBER";
  return <Field label={label} hidden type={isNumber ? "number" : "text"} value={value} onChange={onChange} error={error} hint={definition.type === "ARRAY" ? ["several with commas between", hint].filter(Boolean).join("; ") : hint} />;
}

function Items({ label, choices, value, onChange, error }: { label: string; choices: readonly { value: string; label: string }[]; value: string; onChange: (value: string) => void; error?: string | undefined }) {
  const id = useId();
  const items = itemsOf(value);
  return (
    <fieldset className="items" aria-describedby={error && id} aria-label={label}>
      {choices.map((choice) => (
        <Check
          key={choice.value}
          label={choice.label}
          checked={items.includes(choice.value)}
          onChange={(on) => onChange((on ? [...items, choice.value] : items.filter((item) => item !== choice.value)).join(","))}
        />
      ))}
      {error && (
        <span id={id} className="error">
          {error}
        </span>
      )}
    </fieldset>
  );
}
