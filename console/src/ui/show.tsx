// Small elements of several pages.
import { Fragment, type ReactNode } from "react";

const numbers = new Intl.NumberFormat("en");
const days = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const minutes = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export const count = (of: number, what: string, many = what + "s"): string => `${numbers.format(of)} ${of === 1 ? what : many}`;

export const numberOf = (of: number): string => numbers.format(of);

/** Says how much of a used amount is held, after the amount. */
export const heldOf = (held: number | null | undefined): string => (held ? `, ${numbers.format(held)} held` : "");

const units: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** A name that breaks after its colons where it does not fit on a line. */
export const Breaking = ({ name }: { name: string }) => name.split(/(?<=:)(?!:)/).map((part, at) => (
  <Fragment key={at}>
    {part}
    <wbr />
  </Fragment>
));

/** A relative time; its title is the full one. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  const seconds = (date.getTime() - Date.now()) / 1000;
  const unit = units.find(([, length]) => Math.abs(seconds) >= length);
  const said = !unit ? "just now" : unit[0] === "day" && Math.abs(seconds) > 30 * 86400 ? days.format(date) : relative.format(Math.round(seconds / unit[1]), unit[0]);
  return (
    <time dateTime={at} title={minutes.format(date)}>
      {said}
    </time>
  );
}

export function Badge({ children, tone = "plain" }: { children: ReactNode; tone?: "plain" | "accent" | "warn" | "bad" | "good" }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** A bar of a share, beside its number. */
export function Bar({ value, most }: { value: number; most: number }) {
  return (
    <svg className="bar-of" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="6" rx="1" className="bar-all" />
      <rect width={most > 0 ? Math.max(value > 0 ? 1 : 0, (100 * value) / most) : 0} height="6" rx="1" className="bar-part" />
    </svg>
  );
}

/** A message above a form: a refusal, or a change by another client. */
export function Note({ tone = "bad", children }: { tone?: "bad" | "warn" | "good"; children: ReactNode }) {
  return (
    <div className={`note ${tone}`} role={tone === "good" ? "status" : "alert"}>
      {children}
    </div>
  );
}
