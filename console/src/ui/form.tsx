// What forms have in common: a part of a page with its title, a form in such a part,
// and what is said when a change was refused.
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { type FormEvent, type ReactNode, useContext, useState } from "react";

import { type Change, isConflict, useChange } from "../change";
import { RefreshContext } from "../page";
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

/** Says what was refused; of a conflict, that the form can be sent over what is there now. */
export function Refused({ error, onMine }: { error: Error | undefined; onMine?: () => void }) {
  if (!error) return null;
  if (!isConflict(error)) return <Note>{error.message}</Note>;
  return (
    <Note tone="warn">
      <p>Somebody else changed this meanwhile. What you see around the form is as it is now.</p>
      {onMine && <Button onPress={onMine}>Go on with my changes</Button>}
    </Note>
  );
}

/** A change of a thing that is based on the revision that was seen when the form was opened. */
export interface Revised<Data, Variables> extends Change<Data, Variables> {
  readonly seen: number;
  /** Bases the change on what is there now; absent while that is still to come. */
  readonly renew: (() => void) | undefined;
}

export function useRevised<Data, Variables extends object>(document: TypedDocumentNode<Data, Variables>, revision: number): Revised<Data, Variables> {
  const change = useChange(document);
  const [seen, setSeen] = useState(revision);
  const refresh = useContext(RefreshContext);
  const send = async (variables: Variables) => {
    const done = await change.send(variables);
    if (done === undefined) refresh(); // somebody else may have changed it
    return done;
  };
  const toCome = isConflict(change.error) && revision === seen;
  return { ...change, send, seen, renew: toCome ? undefined : () => (setSeen(revision), change.clear()) };
}

interface FormProps {
  readonly label: string;
  readonly change: { readonly busy: boolean; readonly error: Error | undefined; readonly renew?: (() => void) | undefined };
  /** The fields that say themselves what is wrong with them. */
  readonly said?: ReadonlyMap<string, string>;
  readonly action?: string;
  readonly disabled?: boolean;
  readonly onSave: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Form({ label, change, said, action = "Save", disabled, onSave, onClose, children }: FormProps) {
  const send = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (!disabled) void onSave();
  };
  return (
    <form className="panel form" onSubmit={send} aria-label={label}>
      {(isConflict(change.error) || !said?.size) && <Refused error={change.error} {...(change.renew ? { onMine: change.renew } : {})} />}
      {children}
      <div className="actions">
        <Button primary type="submit" disabled={change.busy || disabled}>
          {action}
        </Button>
        <Button onPress={onClose}>Cancel</Button>
      </div>
    </form>
  );
}
