// The providers as a table, of which only the visible rows are rendered.
import { useEffect, useMemo, useRef, useState } from "react";

import { Bar, heldOf, numberOf } from "../ui/show";
import { descend, percent, type Provider, share } from "./cloud";
import type { Marks } from "./paint";

const rowHeight = 36;
const rowsSeen = 16;

interface TableProps {
  readonly trees: readonly Provider[];
  readonly classes: readonly string[];
  readonly resourceClass: string;
  readonly at: Provider | undefined;
  readonly marks: Marks | undefined;
  readonly onAt: (provider: Provider) => void;
}

export function CloudTable({ trees, classes, resourceClass, at, marks, onAt }: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const rows = useMemo(() => trees.flatMap((tree) => [...descend(tree)]), [trees]);
  const shown = resourceClass ? [resourceClass] : classes.slice(0, 4);
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - 4, rows.length - rowsSeen));
  const seen = rows.slice(first, first + rowsSeen + 8);
  useEffect(() => box.current?.scrollTo({ top: 0 }), [trees.length]);
  return (
    <div ref={box} className="scroll cloud-table" tabIndex={0} role="region" aria-label="Providers as a table" onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Provider</th>
            {shown.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true" className="gap">
              <td colSpan={shown.length + 1} style={{ height: first * rowHeight }} />
            </tr>
          )}
          {seen.map((provider, index) => (
            <tr key={provider.uuid} aria-rowindex={first + index + 2} style={{ height: rowHeight }} data-here={provider === at}>
              <th scope="row">
                <span style={{ paddingInlineStart: provider.depth * 20 }}>
                  <button type="button" className="sort" onClick={() => onAt(provider)}>
                    {provider.name}
                  </button>
                  {marks?.giving.has(provider.uuid) ? <span className="dim"> chosen</span> : marks?.roots.has(provider.uuid) && <span className="dim"> candidate</span>}
                </span>
              </th>
              {shown.map((name) => {
                const amount = provider.amounts.get(name);
                return (
                  <td key={name}>
                    {amount ? (
                      <span className="of-class">
                        <Bar value={amount.used} most={amount.capacity} />
                        <span>
                          {percent(share(amount))} <span className="dim">of {numberOf(amount.capacity)}{heldOf(amount.held)}</span>
                        </span>
                      </span>
                    ) : (
                      <span className="dim">none</span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
          {first + seen.length < rows.length && (
            <tr aria-hidden="true" className="gap">
              <td colSpan={shown.length + 1} style={{ height: (rows.length - first - seen.length) * rowHeight }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
