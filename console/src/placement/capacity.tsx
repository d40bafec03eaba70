// The capacity of the shown trees by resource class, in total and by aggregate.
import { useMemo } from "react";

import { Select } from "../ui/controls";
import { Section } from "../ui/form";
import { count, heldOf, numberOf } from "../ui/show";
import { percent, type Provider, share, type Sum, sumsByAggregate, sumsOf } from "./cloud";
import { stepOf, usePalette } from "./colours";

interface CapacityProps {
  readonly trees: readonly Provider[];
  readonly resourceClass: string;
  readonly nameOf: (aggregate: string) => string;
  readonly onClass: (name: string) => void;
  readonly onAggregate: (aggregate: string) => void;
}

const shown = 100;

export function Capacity({ trees, resourceClass, nameOf, onClass, onAggregate }: CapacityProps) {
  const classes = useMemo(() => sumsOf(trees), [trees]);
  const names = classes.map(({ name }) => name);
  const chosen = [resourceClass, "VCPU", ...names].find((name) => names.includes(name)) ?? "";
  const sums = useMemo(() => sumsByAggregate(trees, chosen), [trees, chosen]);
  const rows = sums.map((sum) => ({ sum, title: sum.name ? nameOf(sum.name) : "in no aggregate" })).sort((a, b) => Number(b.sum.name !== "") - Number(a.sum.name !== "") || (a.title < b.title ? -1 : 1));
  if (classes.length === 0) return null;
  return (
    <div className="capacities">
      <Section title="Capacity by class" number={classes.length}>
        <ul className="amounts panel" aria-label="Capacity by class">
          {classes.map((sum) => (
            <Row key={sum.name} sum={sum} title={sum.name} label={`Colour by ${sum.name}`} onPress={() => onClass(sum.name)} />
          ))}
        </ul>
      </Section>
      <Section title="Capacity by aggregate" number={sums.length}>
        <div className="panel">
          <Select label="Resource class" value={chosen} onChange={onClass} choices={names.map((value) => ({ value, label: value }))} />
          <ul className="amounts" aria-label="Capacity by aggregate">
            {rows.slice(0, shown).map(({ sum, title }) => (
              <Row key={sum.name} sum={sum} title={title} label={sum.name ? `Only the aggregate ${title}` : undefined} onPress={sum.name ? () => onAggregate(sum.name) : undefined} />
            ))}
          </ul>
          {rows.length > shown && <p className="hint">and {count(rows.length - shown, "other aggregate")}</p>}
          <p className="hint">A provider counts in its own aggregates and in the aggregates of its root.</p>
        </div>
      </Section>
    </div>
  );
}

function Row({ sum, title, label, onPress }: { sum: Sum; title: string; label?: string | undefined; onPress?: (() => void) | undefined }) {
  const { steps } = usePalette();
  const used = share(sum);
  return (
    <li>
      {onPress ? (
        <button type="button" className="link mono" aria-label={label} onClick={onPress}>
          {title}
        </button>
      ) : (
        <span className="dim">{title}</span>
      )}
      <svg className="bar-of wide-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="10" className="bar-all" />
        <rect width={sum.used > 0 ? Math.max(0.7, Math.min(100, used * 100)) : 0} height="10" fill={steps[Math.max(4, stepOf(used))]?.fill} />
      </svg>
      <span className="number">
        <b>{percent(used)}</b>{" "}
        <span className="dim">
          {numberOf(sum.used)} of {numberOf(sum.capacity)} on {count(sum.providers, "provider")}
          {heldOf(sum.held)}
        </span>
      </span>
    </li>
  );
}
