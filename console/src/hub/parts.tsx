// The page of one thing: its parts, each with a title, an address and a place in the
// list at the top.
import { type ReactNode, useEffect } from "react";

import { numberOf } from "../ui/show";

export interface Part {
  /** The part's name in the address, after `#`. */
  readonly id: string;
  readonly title: string;
  readonly number?: number | undefined;
  readonly action?: ReactNode;
  readonly content: ReactNode;
}

/** Lists the parts that exist, and shows them. A link to a part leads there once the page has been read. */
export function Parts({ parts }: { parts: readonly (Part | false | null | undefined)[] }) {
  const there = parts.filter((part) => !!part);
  useEffect(() => {
    const reveal = () => document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
    const frame = requestAnimationFrame(reveal); // after the frame of the page has scrolled to its top
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <>
      {there.length > 1 && (
        <nav className="parts" aria-label="On this page">
          {there.map(({ id, title, number }) => (
            <a key={id} href={"#" + id}>
              {title}
              {number !== undefined && <span className="dim"> {numberOf(number)}</span>}
            </a>
          ))}
        </nav>
      )}
      {there.map(({ id, title, number, action, content }) => (
        <section key={id} className="section" id={id} tabIndex={-1} aria-labelledby={id + "-title"}>
          <div className="section-head">
            <h2 id={id + "-title"}>
              {title}
              {number !== undefined && <span className="dim"> {numberOf(number)}</span>}
            </h2>
            {action}
          </div>
          {content}
        </section>
      ))}
    </>
  );
}

/** Says that the address names nothing that the viewer may see, and offers links. */
export function Missing({ what, links }: { what: string; links: ReactNode }) {
  return (
    <div className="state">
      <h2>There is no {what} here</h2>
      <p>It does not exist, was deleted, or is hidden from you.</p>
      <p className="facts">{links}</p>
    </div>
  );
}
