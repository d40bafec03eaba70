// Forms that edit values by key: edits, conflicts with the edits of others, and rows.
import { type FormEvent, type ReactNode, useEffect, useState } from "react";

import { isConflict } from "../change";
import { Button, type Choice, Combo } from "../ui/controls";
import { count, Note } from "../ui/show";
import { useEdits } from "../unsaved";

/** A change of one value: null deletes it. Base is the value before the change. */
interface Edit {
  readonly value: string | null;
  readonly base: string | undefined;
}

/** The edits of stored values. While there are any, leaving the page asks. */
export interface Keyed {
  readonly edits: ReadonlyMap<string, Edit>;
  readonly stored: ReadonlyMap<string, string>;
  /** The keys that others changed, too. */
  readonly moved: readonly string[];
  /** Returns a value as edited: null if it will be deleted, undefined if there is none. */
  readonly valueOf: (key: string) => string | null | undefined;
  readonly change: (key: string, value: string | null) => void;
  readonly drop: (key: string) => void;
  /** Bases an edit on the stored value. */
  readonly keep: (key: string) => void;
  /** Call before the form closes. */
  readonly release: () => void;
}

const without = (edits: Keyed["edits"], key: string): Keyed["edits"] => new Map([...edits].filter(([other]) => other !== key));

export function useKeyed(stored: ReadonlyMap<string, string>): Keyed {
  const [edits, setEdits] = useState<Keyed["edits"]>(new Map());
  const { touch, release } = useEdits();
  const edited = edits.size > 0;
  useEffect(() => (edited ? touch() : release()), [edited, touch, release]);
  return {
    edits,
    stored,
    moved: [...edits].filter(([key, { base }]) => stored.get(key) !== base).map(([key]) => key),
    valueOf: (key) => (edits.has(key) ? edits.get(key)?.value : stored.get(key)),
    change: (key, value) =>
      setEdits((edits) => {
        const now = stored.get(key);
        const base = edits.has(key) ? edits.get(key)?.base : now;
        return value === (now ?? null) && base === now ? without(edits, key) : new Map(edits).set(key, { value, base });
      }),
    drop: (key) => setEdits((edits) => without(edits, key)),
    keep: (key) => setEdits((edits) => new Map(edits).set(key, { value: edits.get(key)?.value ?? null, base: stored.get(key) })),
    release,
  };
}

interface KeyedFormProps {
  readonly label: string;
  /** The revision that the edits are based on. */
  readonly revision: number;
  /** The edits, each with the words before its keys in messages. */
  readonly of: readonly (readonly [keyed: Keyed, what: string])[];
  readonly changed: number;
  readonly busy: boolean;
  /** Whether a value cannot be saved. */
  readonly wrong: boolean;
  /** A refusal that no row shows. */
  readonly error: Error | undefined;
  readonly notes?: ReactNode;
  readonly adding?: { readonly label: string; readonly hint: string; readonly choices: readonly Choice[]; readonly has: (key: string) => boolean; readonly onAdd: (key: string) => void } | undefined;
  readonly onSave: () => Promise<unknown>;
  readonly onClose: () => void;
  /** The rows. */
  readonly children: ReactNode;
}

export function KeyedForm({ label, revision, of, changed, busy, wrong, error, notes, adding, onSave, onClose, children }: KeyedFormProps) {
  const [key, setKey] = useState("");
  const [sent, setSent] = useState<number>();
  const toCome = isConflict(error) && sent === revision; // the change of another client is not read yet
  const moved = (busy ? [] : of).flatMap(([keyed, what]) => keyed.moved.map((key) => ({ keyed, what, key })));
  const blocked = wrong || changed === 0 || toCome || moved.length > 0;
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (blocked) return;
    setSent(revision);
    await onSave();
  };
  return (
    <form className="editor" onSubmit={send} aria-label={label}>
      {error && (isConflict(error) ? moved.length === 0 && <Note tone="warn">Somebody else changed the resource. {!toCome && "Your changes still apply: save again."}</Note> : <Note>{error.message}</Note>)}
      {notes}
      {moved.map(({ keyed, what, key }) => (
        <Note tone="warn" key={what + key}>
          <p>
            {what}
            <b className="mono">{key}</b> was changed by somebody else: it is <span className="mono">{keyed.stored.get(key) ?? "deleted"}</span> now, and you wrote <span className="mono">{keyed.edits.get(key)?.value ?? "nothing (delete)"}</span>.
          </p>
          <div className="actions">
            <Button onPress={() => keyed.keep(key)} label={`Keep mine: ${what}${key}`}>
              Keep mine
            </Button>
            <Button onPress={() => keyed.drop(key)} label={`Take theirs: ${what}${key}`}>
              Take theirs
            </Button>
          </div>
        </Note>
      ))}
      {children}
      {adding && (
        <div className="editor-add">
          <Combo label={adding.label} value={key} onChange={setKey} choices={adding.choices} hint={adding.hint} />
          <Button disabled={!key.trim() || adding.has(key.trim())} onPress={() => (adding.onAdd(key.trim()), setKey(""))}>
            Add
          </Button>
        </div>
      )}
      <div className="actions editor-save">
        <Button primary type="submit" disabled={busy || blocked}>
          {changed === 0 ? "Save" : `Save ${count(changed, "change")}`}
        </Button>
        <Button onPress={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

interface RowProps {
  readonly name: string;
  readonly title?: string | undefined;
  readonly about?: ReactNode;
  readonly hint?: string | undefined;
  readonly edited: boolean;
  readonly deleted: boolean;
  readonly onUndo: () => void;
  readonly onDelete: (() => void) | undefined;
  /** The control of the value. */
  readonly children: ReactNode;
}

export function Row({ name, title, about, hint, edited, deleted, onUndo, onDelete, children }: RowProps) {
  return (
    <li data-changed={edited} data-deleted={deleted}>
      <div className="editor-key">
        <b className={title === undefined ? "mono" : undefined}>{title ?? name}</b>
        {title !== undefined && <span className="mono below-name">{name}</span>}
        {about && <span className="dim">{about}</span>}
        {hint && <span className="hint">{hint}</span>}
      </div>
      <div className="editor-value">{deleted ? <span className="dim">will be deleted</span> : children}</div>
      <div className="editor-end">
        {edited ? (
          <Button quiet onPress={onUndo} label={`Undo: ${name}`}>
            Undo
          </Button>
        ) : (
          onDelete && (
            <Button quiet onPress={onDelete} label={`Delete: ${name}`}>
              Delete
            </Button>
          )
        )}
      </div>
    </li>
  );
}
