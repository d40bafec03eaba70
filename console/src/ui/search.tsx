// A search field that changes the address after a pause.
import { useEffect, useRef, useState } from "react";

export function Search({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  const change = useRef(onChange);
  change.current = onChange;
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value; // another part of the page changed the address
    setTyped(value);
  }, [value]);
  useEffect(() => {
    if (typed === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      change.current(typed);
    }, 200);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <div className="search">
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" fill="none" stroke="currentColor" strokeWidth="1.5" />
        <path d="M10.5 10.5L14 14" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" />
      </svg>
      <input type="search" aria-label={label} placeholder={label} value={typed} spellCheck={false} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
    </div>
  );
}
