// A property in a form, its errors, and its constraints in words.
import type { PropertyType, UpdatePropertyInput } from "../generated/graphql";
import { numberOf } from "../ui/show";

/** The fields of a property that pages show. */
export interface Restrictions {
  readonly type: PropertyType;
  readonly itemType?: PropertyType | null;
  readonly enum?: readonly unknown[] | null;
  readonly itemEnum?: readonly unknown[] | null;
  readonly minimum?: number | null;
  readonly maximum?: number | null;
  readonly minLength?: number | null;
  readonly maxLength?: number | null;
  readonly pattern?: string | null;
  readonly minItems?: number | null;
  readonly maxItems?: number | null;
  readonly uniqueItems?: boolean | null;
}

export const textOfValue = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

export const nameOfType = ({ type, itemType }: Pick<Restrictions, "type" | "itemType">): string =>
  type === "ARRAY" ? `list of ${(itemType ?? "STRING").toLowerCase()}` : type.toLowerCase();

function between(least: number | null | undefined, most: number | null | undefined, what = ""): string | undefined {
  const unit = what && " " + what;
  if (least != null && most != null) return least === most ? `exactly ${numberOf(least)}${unit}` : `${numberOf(least)} to ${numberOf(most)}${unit}`;
  if (least != null) return `at least ${numberOf(least)}${unit}`;
  return most != null ? `at most ${numberOf(most)}${unit}` : undefined;
}

/** Describes the valid values; empty if any value of the type is valid. */
export function restrictionsOf(of: Restrictions): string[] {
  const members = of.enum ?? of.itemEnum;
  const shown = members?.slice(0, 6).map(textOfValue).join(", ");
  return [
    shown !== undefined && (of.itemEnum ? "of " : "") + shown + (members && members.length > 6 ? ` and ${members.length - 6} more` : ""),
    between(of.minimum, of.maximum),
    between(of.minLength, of.maxLength, "characters"),
    between(of.minItems, of.maxItems, "items"),
    of.uniqueItems && "no item twice",
    of.pattern && `matches ${of.pattern}`,
  ].filter((text): text is string => Boolean(text));
}

/** A property in a form: strings as typed. */
export interface Draft {
  name: string;
  title: string;
  description: string;
  type: PropertyType;
  itemType: PropertyType;
  members: string; // of the enum, one a line
  default: string;
  minimum: string;
  maximum: string;
  minLength: string;
  maxLength: string;
  minItems: string;
  maxItems: string;
  pattern: string;
  operators: string;
  uniqueItems: boolean;
  readOnly: boolean;
}

export const emptyDraft: Draft = {
  name: "", title: "", description: "", type: "STRING", itemType: "STRING", members: "", default: "", minimum: "", maximum: "", minLength: "",
  maxLength: "", minItems: "", maxItems: "", pattern: "", operators: "", uniqueItems: false, readOnly: false,
}; // prettier-ignore

interface Property extends Restrictions {
  readonly baseName: string;
  readonly title: string;
  readonly description?: string | null;
  readonly default?: unknown;
  readonly operators: readonly string[];
  readonly readOnly?: boolean | null;
}

export function draftOf(property: Property): Draft {
  const number = (value: number | null | undefined) => (value == null ? "" : String(value));
  return {
    name: property.baseName,
    title: property.title,
    description: property.description ?? "",
    type: property.type,
    itemType: property.itemType ?? "STRING",
    members: (property.enum ?? property.itemEnum ?? []).map(textOfValue).join("\n"),
    default: property.default == null ? "" : textOfValue(property.default),
    minimum: number(property.minimum),
    maximum: number(property.maximum),
    minLength: number(property.minLength),
    maxLength: number(property.maxLength),
    minItems: number(property.minItems),
    maxItems: number(property.maxItems),
    pattern: property.pattern ?? "",
    operators: property.operators.join(" "),
    uniqueItems: property.uniqueItems ?? false,
    readOnly: property.readOnly ?? false,
  };
}

export type Wrong = Partial<Record<keyof Draft, string>>;

const isNumber = (type: PropertyType) => type === "INTEGER" || type === "NUMBER";

/** The constraints of each type. */
export const takes = {
  range: (draft: Draft) => isNumber(draft.type),
  length: (draft: Draft) => draft.type === "STRING",
  items: (draft: Draft) => draft.type === "ARRAY",
  members: (draft: Draft) => draft.type !== "BOOLEAN",
};

/** Parses a value of a type; undefined if the string is not valid. */
function valueOf(text: string, type: PropertyType, itemType: PropertyType): unknown {
  if (type === "STRING") return text;
  if (type === "ARRAY") {
    const items = text.trim().startsWith("[") ? parse(text) : text.split(",").map((item) => valueOf(item.trim(), itemType, "STRING"));
    return Array.isArray(items) && !items.includes(undefined) ? items : undefined;
  }
  const value = parse(text.trim());
  if (type === "BOOLEAN") return typeof value === "boolean" ? value : undefined;
  return typeof value === "number" && (type === "NUMBER" || Number.isInteger(value)) ? value : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Returns the input of a form, and its errors. A field that the type does not have is null. */
export function read(draft: Draft): { input: Omit<UpdatePropertyInput, "namespace" | "name"> & { name: string; title: string; type: PropertyType }; wrong: Wrong } {
  const wrong: Wrong = {};
  const name = draft.name.trim();
  if (!name) wrong.name = "A property needs a name.";
  else if ([...name].length > 80) wrong.name = "A name has 80 characters at most.";
  else if (name.includes("/")) wrong.name = "A name must not contain a slash.";
  if (!draft.title.trim()) wrong.title = "A property needs a title.";
  const number = (field: "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems", applies: boolean): number | null => {
    const text = draft[field].trim();
    if (!applies || !text) return null;
    const value = Number(text);
    if (!Number.isFinite(value)) wrong[field] = "This is not a number.";
    else if (field !== "minimum" && field !== "maximum" && (!Number.isInteger(value) || value < 0)) wrong[field] = "Enter a whole number from 0.";
    return value;
  };
  const ordered = (least: "minimum" | "minLength" | "minItems", most: "maximum" | "maxLength" | "maxItems", applies: boolean) => {
    const [low, high] = [number(least, applies), number(most, applies)];
    if (low !== null && high !== null && low > high) wrong[most] ??= "This is less than the minimum.";
    return { [least]: low, [most]: high };
  };
  const of = draft.type === "ARRAY" ? draft.itemType : draft.type;
  const members = takes.members(draft) ? lines(draft.members).map((line) => valueOf(line, of, "STRING")) : [];
  const odd = members.indexOf(undefined);
  if (odd >= 0) wrong.members = `${lines(draft.members)[odd]} is not of the type ${of.toLowerCase()}.`;
  const twice = members.find((member, at) => members.findIndex((other) => JSON.stringify(other) === JSON.stringify(member)) !== at);
  if (twice !== undefined) wrong.members = `${textOfValue(twice)} is there twice.`;
  const offered = draft.default === "" ? null : valueOf(draft.default, draft.type, draft.itemType);
  if (offered === undefined) wrong.default = `This is not of the type ${nameOfType(draft)}.`;
  else if (offered !== null && draft.type !== "ARRAY" && members.length > 0 && !members.includes(offered)) wrong.default = "This is not one of the valid values.";
  const input = {
    name,
    title: draft.title.trim(),
    description: draft.description.trim() || null,
    type: draft.type,
    itemType: takes.items(draft) ? draft.itemType : null,
    enum: members.length > 0 && !takes.items(draft) ? members : null,
    itemEnum: members.length > 0 && takes.items(draft) ? members : null,
    default: offered ?? null,
    ...ordered("minimum", "maximum", takes.range(draft)),
    ...ordered("minLength", "maxLength", takes.length(draft)),
    ...ordered("minItems", "maxItems", takes.items(draft)),
    pattern: takes.length(draft) && draft.pattern ? draft.pattern : null,
    uniqueItems: takes.items(draft) && draft.uniqueItems ? true : null,
    readOnly: draft.readOnly ? true : null,
    operators: draft.operators.trim() ? draft.operators.trim().split(/\s+/) : null,
  };
  return { input, wrong };
}

/** Returns the server's errors by the fields of the form. */
export function wrongOf(fields: ReadonlyMap<string, string>): Wrong {
  const wrong: Wrong = {};
  for (const [path, message] of fields) {
    const field = /^input\.(\w+)/.exec(path)?.[1] ?? "name";
    const shown = field === "enum" || field === "itemEnum" || field === "enumLabels" ? "members" : field === "newName" ? "name" : field;
    wrong[shown in emptyDraft ? (shown as keyof Draft) : "name"] ??= message;
  }
  return wrong;
}
