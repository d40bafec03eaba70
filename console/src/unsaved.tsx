// Asks before edits are lost: on a link, back, a reload, a closed tab and at the end of a session.
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";

import { Confirm } from "./ui/controls";

/** The forms of the page with unsaved edits. */
const unsaved = new Set<symbol>();

export interface Edits {
  /** Call after the first edit. */
  readonly touch: () => void;
  /** Call before the form is left on purpose: edits were cancelled, or are being saved. */
  readonly release: () => void;
}

/** Lets a form say that it has unsaved edits. */
export function useEdits(): Edits {
  const own = useRef(Symbol()).current;
  useEffect(() => () => void unsaved.delete(own), [own]);
  return useMemo(() => ({ touch: () => void unsaved.add(own), release: () => void unsaved.delete(own) }), [own]);
}

/** Returns whether an address leads to another page, closes a form that the present address opens, or has other filters above a form that no address opens. */
function leaves(to: URL): boolean {
  const form = (url: URL) => url.searchParams.get("edit");
  const here = new URL(location.href);
  return to.origin !== here.origin || to.pathname !== here.pathname || (form(here) === null ? form(to) === null && to.search !== here.search : form(here) !== form(to));
}

const LeavingContext = createContext<(leave: () => void) => void>((leave) => leave());

/** Returns a function that calls another one, and asks first if there are unsaved edits. */
export const useLeaving = () => useContext(LeavingContext);

/** Asks before the browser leaves a page with unsaved edits. */
export function Guard({ children }: { children: ReactNode }) {
  const [leaving, setLeaving] = useState<() => void>();
  useEffect(() => {
    const close = (event: BeforeUnloadEvent) => unsaved.size > 0 && event.preventDefault();
    const leave = (event: NavigateEvent) => {
      if (unsaved.size === 0 || !event.cancelable || event.navigationType === "reload" || event.downloadRequest !== null) return;
      const { url, key } = event.destination;
      if (!leaves(new URL(url))) return;
      event.preventDefault();
      const { navigationType } = event;
      setLeaving(() => () => {
        unsaved.clear();
        if (navigationType === "traverse") navigation.traverseTo(key);
        else if (new URL(url).pathname.startsWith("/console")) history.pushState(null, "", url);
        else location.assign(url);
      });
    };
    addEventListener("beforeunload", close);
    const browser = "navigation" in window ? navigation : undefined; // an old browser asks on reload and close only
    browser?.addEventListener("navigate", leave);
    return () => {
      removeEventListener("beforeunload", close);
      browser?.removeEventListener("navigate", leave);
    };
  }, []);
  const stay = useCallback(() => setLeaving(undefined), []);
  const ask = useCallback((leave: () => void) => (unsaved.size === 0 ? leave() : setLeaving(() => () => (unsaved.clear(), leave()))), []);
  return (
    <LeavingContext.Provider value={ask}>
      {children}
      {leaving && (
        <Confirm
          title="Leave without saving?"
          action="Leave"
          busy={false}
          onClose={stay}
          onConfirm={() => {
            stay();
            leaving();
          }}
        >
          <p>Your edits on this page would be lost.</p>
        </Confirm>
      )}
    </LeavingContext.Provider>
  );
}
