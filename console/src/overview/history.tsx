// The capacity of a class as it was: a plot, and the same numbers as a table.
import { request as send } from "@cadastre/client";
import { type PointerEvent, useEffect, useId, useRef, useState } from "react";

import { useAddress } from "../address";
import { graphql } from "../generated";
import type { OverviewHistoryQuery } from "../generated/graphql";
import { Loading } from "../page";
import { percent, share } from "../placement/cloud";
import { useConnection, useRead } from "../placement/read";
import { Select } from "../ui/controls";
import { Section } from "../ui/form";
import { Note, numberOf } from "../ui/show";

const document = graphql(`
  query OverviewHistory($bucket: CapacityBucketSize!, $class: String!, $since: DateTime!, $last: Int!) {
    capacityHistory(bucket: $bucket, filter: { resourceClasses: [$class], since: $since }, last: $last) {
      nodes {
        beginsAt
        capacity {
          mean
        }
        used {
          min
          max
          mean
        }
      }
    }
  }
`);

const minute = 60_000;
const day = 1440 * minute;

const periods = [
  { value: "", label: "The last day", bucket: "FIVE_MINUTES", step: 5 * minute, length: day },
  { value: "week", label: "The last week", bucket: "HOUR", step: 60 * minute, length: 7 * day },
  { value: "year", label: "The last year", bucket: "DAY", step: day, length: 365 * day },
] as const;

type Period = (typeof periods)[number];

const times = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const days = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

export function History({ chosen }: { chosen: string }) {
  const address = useAddress();
  const period = periods.find(({ value }) => value === address.get("history")) ?? periods[0];
  const box = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!box.current) return;
    const observer = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && setSeen(true));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return (
    <Section title="Capacity over time" kind={chosen} action={<Select label="Period" hidden value={period.value} onChange={(history) => address.set({ history }, { replace: true })} choices={periods} />}>
      <div ref={box}>{isSeen ? <Read chosen={chosen} period={period} /> : <Loading rows={5} />}</div>
    </Section>
  );
}

interface Sample {
  readonly at: number;
  readonly capacity: number;
  readonly least: number;
  readonly used: number;
  readonly most: number;
}

/** Reads the history when it is shown, and again when a bucket has ended. */
function Read({ chosen, period }: { chosen: string; period: Period }) {
  const connection = useConnection();
  const [revision, setRevision] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setRevision((revision) => revision + 1), period.step);
    return () => clearInterval(timer);
  }, [period]);
  const asked = useRead(chosen + period.value, revision, async (signal) => {
    const until = Date.now();
    const since = until - period.length;
    const variables = { bucket: period.bucket, class: chosen, since: new Date(since).toISOString(), last: Math.ceil(period.length / period.step) + 1 };
    return { until, since, samples: samplesOf((await send(connection, document, variables, { signal })).capacityHistory.nodes) };
  });
  if (asked.error) return <Note>{asked.error.message}</Note>;
  if (!asked.data || !asked.current) return <Loading rows={5} />;
  if (asked.data.samples.length === 0) return <p className="hint">There is no history of {chosen} in this period. The server takes a sample every five minutes.</p>;
  return <Plot {...asked.data} chosen={chosen} period={period} />;
}

const samplesOf = (nodes: OverviewHistoryQuery["capacityHistory"]["nodes"]): Sample[] =>
  nodes.flatMap(({ beginsAt, capacity, used }) => (capacity && used ? [{ at: Date.parse(beginsAt), capacity: capacity.mean, least: used.min, used: used.mean, most: used.max }] : []));

const [width, height] = [1000, 240];

function Plot({ samples, since: asked, until, chosen, period }: { samples: readonly Sample[]; since: number; until: number; chosen: string; period: Period }) {
  const id = useId();
  const [under, setUnder] = useState<Sample>();
  const since = Math.max(asked, samples[0]?.at ?? asked); // a young history fills the plot
  const top = Math.max(1, ...samples.map(({ capacity, most }) => Math.max(capacity, most)));
  const across = (at: number) => ((Math.max(at, since) - since) / (until - since)) * width;
  const down = (amount: number) => height - (amount / top) * height;
  // A bucket without a sample ends a line. Each sample is a step as wide as its bucket, so one alone is visible.
  const runs: Sample[][] = [];
  for (const sample of samples) {
    const run = runs.at(-1);
    if (run && sample.at - (run.at(-1)?.at ?? 0) <= period.step) run.push(sample);
    else runs.push([sample]);
  }
  const end = (at: number) => Math.min(at + period.step, until);
  const steps = (run: readonly Sample[], value: (sample: Sample) => number) => run.map((sample) => `${across(sample.at)} ${down(value(sample))}L${across(end(sample.at))} ${down(value(sample))}`).join("L");
  const line = (value: (sample: Sample) => number) => runs.map((run) => `M${steps(run, value)}`).join("");
  const area = (from: (sample: Sample) => number, to: (sample: Sample) => number) =>
    runs.map((run) => `M${steps(run, to)}L${[...run].reverse().map((sample) => `${across(end(sample.at))} ${down(from(sample))}L${across(sample.at)} ${down(from(sample))}`).join("L")}Z`).join("");
  const format = period.bucket === "DAY" ? days : times;
  const said = ({ at, used, most, capacity }: Sample) => `${format.format(at)}: ${percent(share({ used, capacity }))} used, ${amount(used)} of ${amount(capacity)}${most > used ? `, at most ${amount(most)}` : ""}`;
  const last = samples.at(-1) as Sample;
  const fullest = samples.reduce((one, other) => (other.most > one.most ? other : one));
  const find = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = since + ((event.clientX - left) / width) * (until - since);
    setUnder(samples.findLast((sample) => sample.at <= at && at <= sample.at + period.step));
  };
  return (
    <figure className="panel history">
      <div className="history-plot">
        <span className="dim history-top" aria-hidden="true">
          {amount(top)}
        </span>
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-labelledby={`${id}t ${id}d`} onPointerMove={find} onPointerLeave={() => setUnder(undefined)}>
          <title id={id + "t"}>{`${chosen} used, and capacity. ${period.label}.`}</title>
          <desc id={id + "d"}>{`Last, ${said(last)}. Most used: ${amount(fullest.most)}, ${format.format(fullest.at)}.`}</desc>
          <path className="history-used" d={area(() => 0, ({ used }) => used)} />
          <path className="history-range" d={area(({ least }) => least, ({ most }) => most)} />
          <path className="history-line" d={line(({ used }) => used)} />
          <path className="history-capacity" d={line(({ capacity }) => capacity)} />
        </svg>
        <span className="dim history-ends" aria-hidden="true">
          <span>{format.format(since)}</span>
          <span>{period.bucket === "DAY" ? "today" : "now"}</span>
        </span>
      </div>
      <figcaption>
        <ul className="legend">
          <li>
            <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
              <rect width="14" height="14" className="history-used" />
              <path d="M0 1H14" className="history-line" />
            </svg>
            used
          </li>
          <li>
            <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
              <path d="M0 7H14" className="history-capacity" />
            </svg>
            capacity
          </li>
        </ul>
        <p className="tile-said" aria-hidden="true">
          {said(under ?? last)}
        </p>
      </figcaption>
      <details>
        <summary>As a table</summary>
        <div className="scroll history-table" tabIndex={0} role="region" aria-label={`History of ${chosen}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col" className="number">
                  Used
                </th>
                <th scope="col" className="number">
                  At most
                </th>
                <th scope="col" className="number">
                  Capacity
                </th>
              </tr>
            </thead>
            <tbody>
              {[...samples].reverse().map(({ at, used, most, capacity }) => (
                <tr key={at}>
                  <th scope="row">{format.format(at)}</th>
                  <td className="number">{amount(used)}</td>
                  <td className="number">{amount(most)}</td>
                  <td className="number">{amount(capacity)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

const amount = (of: number): string => numberOf(Math.round(of));
