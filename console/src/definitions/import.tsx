// The import of definition files, and its preview: changes and broken metadata.
import { type DragEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useClient } from "urql";
import { Link } from "wouter";

import { namespaceAt } from "../address";
import { graphql } from "../generated";
import type { ImportMode, ImportOutcome } from "../generated/graphql";
import { useChanges } from "../live";
import { Empty, PageHead, useAsk, useShown, useTitle } from "../page";
import { useViewer } from "../session";
import { Button, Check, Field, Select } from "../ui/controls";
import { Badge, count, Note, numberOf } from "../ui/show";
import { Drift, together } from "./drift";
import { type Difference, differenceOf, isKept, namespaceOf, type Source } from "./files";
import { askedOf, dryRunDocument, importFiles, type Outcome, type Report, type Settings } from "./importing";

// The bundles that namespaces were imported from.
const bundlesDocument = graphql(`
  query Bundles {
    namespaces(first: 1000) {
      nodes {
        id
        name
        origin
      }
    }
  }
`);

type Mode = ImportMode | "UPGRADE";

const modes: readonly { value: Mode; label: string; hint: string }[] = [
  { value: "SKIP", label: "Create new namespaces only", hint: "Existing namespaces stay unchanged." },
  { value: "UPGRADE", label: "Upgrade from a bundle", hint: "Applies the changes of the bundle and keeps local edits." },
  { value: "MERGE", label: "Add what is missing", hint: "Existing definitions stay unchanged." },
  { value: "PREFER_NEW", label: "Add and replace", hint: "Definitions that are not in the files stay." },
  { value: "OVERWRITE", label: "Replace the namespace", hint: "Definitions that are not in the files are deleted." },
];

const outcomes: Readonly<Record<ImportOutcome, readonly [would: string, did: string, tone: "good" | "accent" | "plain" | "warn" | "bad"]>> = {
  CREATED: ["will be created", "created", "good"],
  UPDATED: ["will be changed", "changed", "accent"],
  UNCHANGED: ["no change", "no change", "plain"],
  SKIPPED: ["will be left as it is", "left as it is", "warn"],
  UNLOADED: ["was unloaded here and stays away", "stays away", "warn"],
  FAILED: ["cannot be imported", "failed", "bad"],
};

export function ImportPage() {
  const viewer = useViewer();
  useTitle("Import definitions");
  return (
    <>
      <PageHead above={<Link href="/definitions">Definitions</Link>} title="Import definitions" below={<p className="lead">The preview shows changes and broken metadata before anything is stored.</p>} />
      {viewer.importNamespaces ? <Import /> : <Empty title="You may not import definitions">Ask an administrator for a role that may.</Empty>}
    </>
  );
}

function Import() {
  const client = useClient();
  const [sources, setSources] = useState<readonly Source[]>([]);
  const [mode, setMode] = useState<Mode>("SKIP");
  const [bundle, setBundle] = useState<string>(); // undefined until it was typed
  const [includeProtected, setProtected] = useState(false);
  const [includeUnloaded, setUnloaded] = useState(false);
  const [done, setDone] = useState<{ outcome: Outcome; as: string }>();
  const [busy, setBusy] = useState(false);

  const read = useMemo(() => sources.map((source) => ({ source, ...namespaceOf(source) })), [sources]);
  const names = useMemo(() => [...new Set(read.flatMap((one) => ("name" in one ? [one.name] : [])))].slice(0, 1000), [read]);
  const sound = useMemo(() => read.filter((one) => "name" in one).map(({ source }) => source), [read]);
  const bundles = useAsk(bundlesDocument, {}, mode !== "UPGRADE");
  const brought = bundles.data?.namespaces.nodes.find(({ name, origin }) => origin && names.includes(name))?.origin ?? "";
  const origin = mode === "UPGRADE" ? (bundle ?? brought).trim() : "";
  const settings: Settings = { mode: mode === "UPGRADE" ? "SKIP" : mode, ...(origin && { origin }), ...(mode !== "SKIP" && mode !== "MERGE" && { includeProtected }), ...(origin === "cadastre" && { includeUnloaded }) };
  useShown(dryRunDocument, askedOf(sound, settings));
  const ready = sound.length > 0 && (mode !== "UPGRADE" || origin !== "") && !done;
  const dry = useDryRun(sound, settings, ready);
  useChanges("namespace", names, dry.refresh); // the preview is out of date

  const add = (more: readonly Source[]) => {
    setDone(undefined);
    setSources((sources) => [...sources.filter(({ name }) => !more.some((one) => one.name === name)), ...more]);
  };
  const reports = dry.outcome?.reports ?? [];
  const changing = reports.filter(({ outcome }) => outcome === "CREATED" || outcome === "UPDATED").length;
  const run = async () => {
    setBusy(true);
    const outcome = await importFiles(client, sound, settings, false);
    setBusy(false);
    setDone({ outcome, as: JSON.stringify(reports) });
  };
  if (done)
    return (
      <>
        {done.outcome.failed && <Note>{done.outcome.failed.message}</Note>}
        {!done.outcome.failed && JSON.stringify(done.outcome.reports) !== done.as && <Note tone="warn">Somebody else changed these definitions. The result differs from the preview.</Note>}
        <p className="counted" role="status">
          {count(done.outcome.reports.filter(({ outcome }) => outcome === "CREATED" || outcome === "UPDATED").length, "namespace")} imported.
        </p>
        <Reports reports={done.outcome.reports} sources={sound} did />
        <div className="actions">
          <Link href="/definitions" className="button primary">
            To the definitions
          </Link>
          <Button onPress={() => (setDone(undefined), setSources([]), setMode("SKIP"), setBundle(undefined))}>Import others</Button>
        </div>
      </>
    );
  return (
    <>
      <Files onAdd={add} />
      {read.length > 0 && (
        <ul className="chips sources" aria-label="Files">
          {read.map((one) => (
            <li key={one.source.name} className="chip">
              {one.source.name} <span className="dim">{numberOf(one.source.text.length)} characters</span>
              {"wrong" in one && <span className="error below-name">{one.wrong}</span>}{" "}
              <Button quiet label={`Remove ${one.source.name}`} onPress={() => setSources(sources.filter((source) => source !== one.source))}>
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      {sound.length > 0 && (
        <section className="panel form" aria-label="How">
          <Select label="Existing namespaces" value={mode} onChange={(mode) => setMode(mode as Mode)} choices={modes} hint={modes.find(({ value }) => value === mode)?.hint} />
          {mode === "UPGRADE" && <Field label="Bundle" required value={bundle ?? brought} onChange={setBundle} error={origin === "" && bundles.data ? "An upgrade needs the name of the bundle." : undefined} hint="The source of the files. Use the same name for later versions." />}
          {mode !== "SKIP" && mode !== "MERGE" && <Check label="Protected namespaces, too" checked={includeProtected} onChange={setProtected} />}
          {origin === "cadastre" && <Check label="Create unloaded definitions again" checked={includeUnloaded} onChange={setUnloaded} />}
        </section>
      )}
      {ready && (
        <section aria-label="Preview" aria-busy={dry.asking}>
          {dry.asking && !dry.outcome && <p className="hint">Computing the preview…</p>}
          {dry.outcome?.failed && <Note>{dry.outcome.failed.message}</Note>}
          {dry.outcome && (
            <>
              <p className="counted" role="status">
                {changing > 0 ? `${count(changing, "namespace")} of ${numberOf(reports.length)} would change.` : "Nothing would change."}
              </p>
              <Reports reports={reports} sources={sound} />
              {changing > 0 && <Drift asking={dry.asking} broken={together(dry.outcome.broken)} />}
            </>
          )}
          <div className="actions import-run">
            <Button primary disabled={busy || dry.asking || changing === 0 || dry.outcome?.failed !== undefined} onPress={() => void run()}>
              {changing > 0 ? `Import ${count(changing, "namespace")}` : "Import"}
            </Button>
          </div>
        </section>
      )}
    </>
  );
}

/** Takes files that people choose, drop or paste. */
function Files({ onAdd }: { onAdd: (sources: readonly Source[]) => void }) {
  const id = useId();
  const [over, setOver] = useState(false);
  const [pasted, setPasted] = useState("");
  const pastes = useRef(0);
  const read = async (files: readonly File[]) => onAdd(await Promise.all(files.map(async (file) => ({ name: file.name, text: await file.text() }))));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void read([...event.dataTransfer.files]);
  };
  return (
    <div className="drop" data-over={over} onDragOver={(event) => (event.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={drop}>
      <label htmlFor={id}>Definition files: choose them, or drop them here</label>
      <input id={id} type="file" multiple accept=".json,application/json" onChange={(event) => (void read([...(event.target.files ?? [])]), (event.target.value = ""))} />
      <details>
        <summary>Paste JSON</summary>
        <Field label="A definition file" mono lines={8} value={pasted} onChange={setPasted} />
        <div className="actions">
          <Button disabled={!pasted.trim()} onPress={() => (onAdd([{ name: `pasted ${++pastes.current}`, text: pasted }]), setPasted(""))}>
            Look at it
          </Button>
        </div>
      </details>
    </div>
  );
}

/** The preview of an import, computed again when files or settings change. */
function useDryRun(sources: readonly Source[], settings: Settings, ready: boolean): { outcome: Outcome | undefined; asking: boolean; refresh: () => void } {
  const client = useClient();
  const text = JSON.stringify(settings);
  const [attempt, setAttempt] = useState(0);
  const [answer, setAnswer] = useState<{ outcome: Outcome; of: unknown; as: string; at: number }>();
  useEffect(() => {
    if (!ready) return;
    let left = false;
    const timer = setTimeout(async () => {
      const outcome = await importFiles(client, sources, JSON.parse(text) as Settings, true, () => left);
      if (!left) setAnswer({ outcome, of: sources, as: text, at: attempt });
    }, 250);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, sources, text, ready, attempt]);
  const known = ready && answer?.of === sources && answer.as === text;
  const refresh = useMemo(() => () => setAttempt((attempt) => attempt + 1), []);
  return { outcome: known ? answer.outcome : undefined, asking: ready && !(known && answer.at === attempt), refresh };
}

function Reports({ reports, sources, did = false }: { reports: readonly Report[]; sources: readonly Source[]; did?: boolean }) {
  return (
    <ul className="reports">
      {reports.map((report, at) => (
        <One key={at} report={report} source={sources[at]} did={did} />
      ))}
    </ul>
  );
}

function One({ report, source, did }: { report: Report; source: Source | undefined; did: boolean }) {
  const [would, was, tone] = outcomes[report.outcome];
  const { edits } = report;
  const others = edits.length > 0 ? report.warnings.filter((warning) => !isKept(warning)) : report.warnings;
  const differences = report.differences.map(differenceOf);
  const heading = did && report.outcome !== "FAILED" ? <Link href={namespaceAt(report.namespace)}>{report.namespace}</Link> : report.namespace || source?.name;
  return (
    <li className="panel report">
      <h2>
        {heading} <Badge tone={tone}>{did ? was : would}</Badge>
      </h2>
      <ul>
        {report.problems.map(({ path, message }) => (
          <li key={`${path} ${message}`} className="error">
            {path && <span className="mono">{path}</span>} {message}
          </li>
        ))}
      </ul>
      {edits.length > 0 && <KeptHere edits={edits} did={did} />}
      {differences.length > 0 && (
        <details open={differences.length <= 30}>
          <summary>{edits.length > 0 ? `What the bundle changes: ${numberOf(differences.length)}` : count(differences.length, "difference")}</summary>
          <Differences differences={differences} />
        </details>
      )}
      {others.length > 0 && (
        <details>
          <summary>{count(others.length, "warning")}</summary>
          <ul>
            {others.map((warning) => (
              <li key={warning} className="mono">
                {warning}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

const shown = 200;

/** A path in a file, without the prefix of all paths. */
const named = (path: string) => path.replace(/^\$\.?/, "");

function Differences({ differences }: { differences: readonly Difference[] }) {
  return (
    <>
      <dl className="differences">
        {differences.slice(0, shown).map(({ what, path, before, after }) => (
          <div key={what + path}>
            <dt className="mono">{named(path) || "it"}</dt>
            <dd>
              {before !== undefined && <del>{before}</del>} {after !== undefined && <ins>{after}</ins>}
              {before === undefined && after === undefined && (what === "added" ? <ins>added</ins> : what === "removed" ? <del>removed</del> : what)}
            </dd>
          </div>
        ))}
      </dl>
      {differences.length > shown && <p className="hint">and {count(differences.length - shown, "more difference")}</p>}
    </>
  );
}

/** Local edits that an upgrade keeps: the value of the old bundle, the local one, and the value of the new bundle. */
function KeptHere({ edits, did }: { edits: Report["edits"]; did: boolean }) {
  return (
    <>
      <h3>Edited here, and {did ? "kept" : "will be kept"}</h3>
      <div className="scroll">
        <table className="three-way">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">In the bundle before</th>
              <th scope="col">Here</th>
              <th scope="col">In the bundle now</th>
            </tr>
          </thead>
          <tbody>
            {edits.slice(0, shown).map(({ path, base, here, shipped }) => (
              <tr key={path}>
                <th scope="row" className="mono">
                  {named(path)}
                </th>
                {[base, here, shipped].map((value, at) => (
                  <td key={at} className="mono">
                    {value == null ? <span className="dim">nothing</span> : written(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {edits.length > shown && <p className="hint">and {count(edits.length - shown, "more edit")}</p>}
    </>
  );
}

const written = (value: unknown): string => JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
