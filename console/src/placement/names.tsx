// A list of names that grows by a field with choices.
import { useEffect, useRef, useState } from "react";

import { Button, type Choice, Combo } from "../ui/controls";

interface NamesProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly choices: readonly Choice[];
  readonly onChange: (names: readonly string[]) => void;
  readonly error?: string | undefined;
  readonly hidden?: boolean;
}

/** Names as chips, with a field for another one: a known name is taken when it is chosen, or typed and followed by Enter. */
export function Names({ label, names, choices, onChange, error, hidden }: NamesProps) {
  const [typed, setTyped] = useState("");
  const [taken, setTaken] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (taken > 0) box.current?.querySelector("input")?.focus(); // in a field of its own, whose list is closed
  }, [taken]);
  const take = (text: string) => {
    const choice = choices.find(({ value, label }) => value === text || label === text);
    if (!choice) return;
    setTyped("");
    setTaken(taken + 1);
    if (!names.includes(choice.value)) onChange([...names, choice.value]);
  };
  return (
    <div className="names" ref={box}>
      <Combo key={taken} label={label} hidden={hidden ?? false} value={typed} onChange={setTyped} onChoose={take} choices={choices.filter(({ value }) => !names.includes(value))} error={error ?? (typed && !choices.some(({ value, label }) => `${value} ${label}`.toLowerCase().includes(typed.toLowerCase())) ? "There is no such name." : undefined)} />
      {names.length > 0 && (
        <ul className="chips">
          {names.map((name) => {
            const shown = choices.find(({ value }) => value === name)?.label ?? name;
            return (
              <li key={name} className="chip mono">
                {shown}
                <Button quiet label={`Remove ${shown} from ${label}`} onPress={() => onChange(names.filter((other) => other !== name))}>
                  ×
                </Button>
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}
