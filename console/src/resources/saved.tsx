// Saved filters of the table. The browser stores a name and the parameters of the address.
import { type FormEvent, useState, useSyncExternalStore } from "react";
import { Link, useSearch } from "wouter";

import { Button, Field } from "../ui/controls";
import { Note } from "../ui/show";

interface Saved {
  readonly name: string;
  readonly search: string;
}

const kept = "cadastre.filters";
const changed = "cadastre.filters changed"; // in this page, which the browser tells to other pages only

function subscribe(listener: () => void): () => void {
  addEventListener("storage", listener);
  addEventListener(changed, listener);
  return () => (removeEventListener("storage", listener), removeEventListener(changed, listener));
}

function stored(): string {
  try {
    return localStorage.getItem(kept) ?? "[]";
  } catch {
    return "[]"; // a browser that keeps nothing
  }
}

function read(text: string): readonly Saved[] {
  try {
    const all = JSON.parse(text) as unknown;
    return Array.isArray(all) ? all.filter((one): one is Saved => typeof one?.name === "string" && typeof one?.search === "string") : [];
  } catch {
    return [];
  }
}

/** Stores filters; false if the browser cannot. */
function keep(all: readonly Saved[]): boolean {
  try {
    localStorage.setItem(kept, JSON.stringify(all));
  } catch {
    return false;
  }
  dispatchEvent(new Event(changed));
  return true;
}

/** Returns the canonical parameters of a filter: without the page, sorted by name. */
function filterOf(search: string): string {
  const params = new URLSearchParams(search);
  params.delete("after");
  params.sort();
  return params.toString();
}

type Open = { readonly kind: "none" | "new" } | { readonly kind: "rename"; readonly name: string };

export function SavedFilters({ filtered }: { filtered: boolean }) {
  const all = read(useSyncExternalStore(subscribe, stored));
  const here = filterOf(useSearch());
  const [open, setOpen] = useState<Open>({ kind: "none" });
  const [failed, setFailed] = useState(false);
  const current = all.find(({ search }) => search === here);
  if (all.length === 0 && !filtered) return null;
  const put = (next: readonly Saved[]) => {
    setFailed(!keep(next.toSorted((a, b) => a.name.localeCompare(b.name))));
    setOpen({ kind: "none" });
  };
  return (
    <section className="saved" aria-label="Saved filters">
      {failed && <Note>This browser cannot store the filter.</Note>}
      <ul className="chips">
        {all.map(({ name, search }) => (
          <li key={name}>
            <Link href={"/resources?" + search} className="chip" aria-current={search === here ? "true" : undefined}>
              {name}
            </Link>
          </li>
        ))}
      </ul>
      {open.kind === "none" && (
        <div className="actions">
          {filtered && !current && (
            <Button quiet onPress={() => setOpen({ kind: "new" })}>
              Save this filter
            </Button>
          )}
          {current && (
            <>
              <Button quiet label={`Rename the filter ${current.name}`} onPress={() => setOpen({ kind: "rename", name: current.name })}>
                Rename
              </Button>
              <Button quiet label={`Delete the filter ${current.name}`} onPress={() => put(all.filter((one) => one !== current))}>
                Delete
              </Button>
            </>
          )}
        </div>
      )}
      {open.kind !== "none" && (
        <Name
          first={open.kind === "rename" ? open.name : ""}
          taken={all.map(({ name }) => name)}
          onClose={() => setOpen({ kind: "none" })}
          onSave={(name) => put(open.kind === "rename" ? all.map((one) => (one.name === open.name ? { ...one, name } : one)) : [...all, { name, search: here }])}
        />
      )}
    </section>
  );
}

function Name({ first, taken, onSave, onClose }: { first: string; taken: readonly string[]; onSave: (name: string) => void; onClose: () => void }) {
  const [name, setName] = useState(first);
  const wrong = name.trim() !== first && taken.includes(name.trim()) ? "There is a filter of this name." : undefined;
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() && !wrong) onSave(name.trim());
  };
  return (
    <form className="saved-name" onSubmit={send} aria-label="Name of the filter">
      <Field label="Name of the filter" hidden autoFocus value={name} onChange={setName} error={wrong} placeholder="Name of the filter" />
      <Button primary type="submit" disabled={!name.trim() || wrong !== undefined}>
        Save
      </Button>
      <Button onPress={onClose}>Cancel</Button>
    </form>
  );
}
