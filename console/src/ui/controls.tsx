// The controls of forms: React Aria's, which handle keyboards, screen readers and touch,
// and native ones where they do as well.
import { type ComponentProps, type ReactNode, useEffect, useId, useRef, useState } from "react";
import * as Aria from "react-aria-components";

interface ButtonProps {
  readonly children: ReactNode;
  readonly onPress?: () => void;
  readonly primary?: boolean;
  readonly danger?: boolean;
  readonly quiet?: boolean;
  readonly type?: "submit" | "button";
  readonly disabled?: boolean | undefined;
  readonly label?: string | undefined;
}

export function Button({ children, onPress, primary, danger, quiet, type = "button", disabled, label }: ButtonProps) {
  const look = primary ? "primary" : danger ? "danger" : quiet ? "quiet" : "plain";
  return (
    <Aria.Button className={`button ${look}`} type={type} isDisabled={disabled ?? false} {...(onPress ? { onPress } : {})} {...(label ? { "aria-label": label } : {})}>
      {children}
    </Aria.Button>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly type?: "text" | "password" | "search" | "number" | "date";
  readonly lines?: number;
  readonly mono?: boolean;
  readonly required?: boolean;
  readonly hidden?: boolean; // hides the label, which screen readers still say
  readonly readOnly?: boolean;
  readonly autoFocus?: boolean;
  readonly autoComplete?: string;
  readonly placeholder?: string;
}

/** A text field with its label, hint and error. */
export function Field({ label, value, onChange, hint, error, type = "text", lines, mono, required, hidden, readOnly, autoFocus, autoComplete = "off", placeholder }: FieldProps) {
  const naming = hidden ? { "aria-label": label } : {};
  const input = { className: mono ? "mono" : undefined, placeholder, spellCheck: false } as const;
  return (
    <Aria.TextField
      className="field"
      value={value}
      onChange={onChange}
      type={type === "number" ? "text" : type}
      inputMode={type === "number" ? "decimal" : undefined}
      isInvalid={error !== undefined}
      isRequired={required ?? false}
      isReadOnly={readOnly ?? false}
      autoComplete={autoComplete}
      validationBehavior="aria"
      {...(autoFocus ? { autoFocus } : {})}
      {...naming}
    >
      {!hidden && (
        <Aria.Label>
          {label}
          {required && <span aria-hidden="true"> *</span>}
        </Aria.Label>
      )}
      {lines ? <Aria.TextArea rows={lines} {...(input as ComponentProps<typeof Aria.TextArea>)} /> : <Aria.Input {...(input as ComponentProps<typeof Aria.Input>)} />}
      {hint && (
        <Aria.Text slot="description" className="hint">
          {hint}
        </Aria.Text>
      )}
      <Aria.FieldError className="error">{error}</Aria.FieldError>
    </Aria.TextField>
  );
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly Choice[];
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly hidden?: boolean;
  readonly disabled?: boolean;
}

/** A native list of a few values. */
export function Select({ label, value, onChange, choices, hint, error, hidden, disabled }: SelectProps) {
  const id = useId();
  const said = [hint && id + "h", error && id + "e"].filter(Boolean).join(" ") || undefined;
  return (
    <div className="field">
      {!hidden && <label htmlFor={id}>{label}</label>}
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)} disabled={disabled} aria-label={hidden ? label : undefined} aria-describedby={said} aria-invalid={error ? true : undefined}>
        {!choices.some((choice) => choice.value === value) && <option value={value}>{value || "—"}</option>}
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
      {hint && (
        <span id={id + "h"} className="hint">
          {hint}
        </span>
      )}
      {error && (
        <span id={id + "e"} className="error">
          {error}
        </span>
      )}
    </div>
  );
}

/** A box; `named` is its name for screen readers where the label alone is not one. */
export function Check({ label, named, checked, onChange, disabled }: { label: ReactNode; named?: string; checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} disabled={disabled} aria-label={named} onChange={(event) => onChange(event.target.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** An input that offers choices during typing. A choice goes into the field or, with onChoose, to that function. */
export function Combo({ label, value, onChange, onChoose, choices, error, hint, hidden }: Omit<SelectProps, "disabled"> & { readonly onChoose?: (value: string) => void }) {
  const naming = hidden ? { "aria-label": label } : {};
  const [chosen, setChosen] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen > 0) box.current?.querySelector("input")?.focus();
  }, [chosen]);
  // After a choice a new field takes the place of the old one, so its list is closed.
  const choose = (value: string) => (setChosen(chosen + 1), onChoose?.(value));
  const choosing = onChoose ? { selectedKey: null, onSelectionChange: (key: Aria.Key | null) => choose(key === null ? value : String(key)) } : { onSelectionChange: (key: Aria.Key | null) => key !== null && onChange(String(key)) };
  return (
    <div ref={box}>
    <Aria.ComboBox key={chosen} className="field combo" inputValue={value} onInputChange={onChange} {...choosing} allowsCustomValue allowsEmptyCollection={false} menuTrigger={onChoose ? "input" : "focus"} isInvalid={error !== undefined} items={choices.filter((choice) => (choice.label + choice.value).toLowerCase().includes(value.toLowerCase())).slice(0, 60)} {...naming}>
      {!hidden && <Aria.Label>{label}</Aria.Label>}
      <div className="combo-box">
        <Aria.Input spellCheck={false} autoComplete="off" />
        <Aria.Button aria-label="Choices">
          <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <path d="M2 4l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.5" />
          </svg>
        </Aria.Button>
      </div>
      {hint && (
        <Aria.Text slot="description" className="hint">
          {hint}
        </Aria.Text>
      )}
      <Aria.FieldError className="error">{error}</Aria.FieldError>
      <Aria.Popover className="popover">
        <Aria.ListBox<Choice> className="list-box">
          {(choice) => (
            <Aria.ListBoxItem id={choice.value} textValue={choice.value}>
              {choice.label}
            </Aria.ListBoxItem>
          )}
        </Aria.ListBox>
      </Aria.Popover>
    </Aria.ComboBox>
    </div>
  );
}

/** Asks before an action that cannot be undone. */
export function Confirm({ title, children, action, busy, error, onConfirm, onClose }: { title: string; children: ReactNode; action: string; busy: boolean; error?: string | undefined; onConfirm: () => void; onClose: () => void }) {
  return (
    <Aria.ModalOverlay className="overlay" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Aria.Modal className="modal">
        <Aria.Dialog role="alertdialog">
          <Aria.Heading slot="title">{title}</Aria.Heading>
          <div>{children}</div>
          {error && (
            <p className="error" role="alert">
              {error}
            </p>
          )}
          <div className="actions end">
            <Button onPress={onClose}>Cancel</Button>
            <Button danger disabled={busy} onPress={onConfirm}>
              {action}
            </Button>
          </div>
        </Aria.Dialog>
      </Aria.Modal>
    </Aria.ModalOverlay>
  );
}
