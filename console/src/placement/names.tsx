// A list of names with a field that adds one.
import { useState } from "react";

import { Button, type Choice, Combo } from "../ui/controls";

interface NamesProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly choices: readonly Choice[];
  readonly onChange: (names: readonly string[]) => void;
  readonly error?: string | undefined;
  readonly hidden?: boolean;
}

/** Names as chips, with a field that adds a known name by choice or by Enter. */
export function Names({ label, names, choices, onChange, error, hidden }: NamesProps) {
  const [typed, setTyped] = useState("");
  const take = (text: string) => {
    const choice = choices.find(({ value, label }) => value === text || label === text);
    if (!choice) return;
    setTyped("");
    if (!names.includes(choice.value)) onChange([...names, choice.value]);
  };
  return (
    <div className="names">
      <Combo label={label} hidden={hidden ?? false} value={typed} onChange={setTyped} onChoose={take} choices={choices.filter(({ value }) => !names.includes(value))} error={error ?? (typed && !choices.some(({ value, label }) => `${value} ${label}`.toLowerCase().includes(typed.toLowerCase())) ? "Unknown name." : undefined)} />
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
