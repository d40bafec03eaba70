// The parts of forms: a section of a page, a form in it, and the message after a refusal.
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { type FormEvent, type ReactNode, useContext, useEffect, useRef, useState } from "react";

import { type Change, isConflict, useChange } from "../change";
import { RefreshContext } from "../page";
import { useEdits } from "../unsaved";
import { Button } from "./controls";
import { Note, numberOf } from "./show";

export function Section({ title, kind, number, action, children }: { title: string; kind?: string; number?: number; action?: ReactNode; children: ReactNode }) {
  return (
    <section className="section">
      <div className="section-head">
        <h2>
          {title}
          {kind && <span className="dim"> {kind}</span>}
          {number !== undefined && <span className="dim"> {numberOf(number)}</span>}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}

/** Shows a refusal. After a conflict it offers to send the form again. */
export function Refused({ error, onMine }: { error: Error | undefined; onMine?: () => void }) {
  if (!error) return null;
  if (!isConflict(error)) return <Note>{error.message}</Note>;
  return (
    <Note tone="warn">
      <p>Somebody else changed this. The page around the form shows the current state.</p>
      {onMine && <Button onPress={onMine}>Continue with my changes</Button>}
    </Note>
  );
}

/** A change of an object, based on the revision that the form was opened with. */
export interface Revised<Data, Variables> extends Change<Data, Variables> {
  readonly seen: number;
  /** Bases the change on the current revision; undefined until it is read. */
  readonly renew: (() => void) | undefined;
}

export function useRevised<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, revision: number): Revised<Data, Variables> {
  const change = useChange(document);
  const [seen, setSeen] = useState(revision);
  const refresh = useContext(RefreshContext);
  const send = async (variables: Variables) => {
    const done = await change.send(variables);
    if (done === undefined) refresh(); // another client may have changed the object
    return done;
  };
  const toCome = isConflict(change.error) && revision === seen;
  return { ...change, send, seen, renew: toCome ? undefined : () => (setSeen(revision), change.clear()) };
}

interface FormProps {
  readonly label: string;
  readonly change: { readonly busy: boolean; readonly error: Error | undefined; readonly renew?: (() => void) | undefined };
  /** Errors that fields show themselves. */
  readonly said?: ReadonlyMap<string, string>;
  readonly action?: string;
  readonly disabled?: boolean;
  /** Whether a button made an edit, such as a removed row. Fields tell the form themselves. */
  readonly changed?: boolean;
  readonly onSave: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Form({ label, change, said, action = "Save", disabled, changed, onSave, onClose, children }: FormProps) {
  const edits = useEdits();
  useEffect(() => (changed ? edits.touch() : undefined), [changed, edits]);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (disabled) return;
    edits.release();
    await onSave();
    if (form.current?.isConnected) edits.touch(); // refused
  };
  const form = useRef<HTMLFormElement>(null);
  return (
    <form ref={form} className="panel form" onSubmit={send} onChange={edits.touch} aria-label={label}>
      {(isConflict(change.error) || !said?.size) && <Refused error={change.error} {...(change.renew ? { onMine: change.renew } : {})} />}
      {children}
      <div className="actions">
        <Button primary type="submit" disabled={change.busy || disabled}>
          {action}
        </Button>
        <Button onPress={() => (edits.release(), onClose())}>Cancel</Button>
      </div>
    </form>
  );
}
