// Definition files as they are imported: what they are called, how a large one goes
// in parts, and what a report says of them. Texts of values stay as they are in the
// file, digit for digit, so nothing here writes a value anew.

/** A file that was chosen, dropped or pasted. */
export interface Source {
  readonly name: string;
  readonly text: string;
}

/** How many bytes of files a request has; a larger file goes in parts of that. */
export const batchBytes = 256 * 1024;

const encoder = new TextEncoder();

export const bytesOf = (text: string): number => encoder.encode(text).length;

/** Returns the name of the namespace that a file is about, or what is wrong with the file. */
export function namespaceOf({ text }: Source): { readonly name: string } | { readonly wrong: string } {
  try {
    const value = JSON.parse(text.replace(/^\uFEFF/, "")) as unknown;
    const name = value !== null && typeof value === "object" && "namespace" in value ? value.namespace : undefined;
    return typeof name === "string" ? { name } : { wrong: "This is no definition file: it must be a map with the name of a namespace." };
  } catch (error) {
    return { wrong: `This is not JSON: ${(error as Error).message}` };
  }
}

interface Member {
  readonly key: string;
  readonly raw: string;
}

const blank = /[\s,:]/;

/** Returns where the value that begins at a place of a sound text ends. */
function endOf(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      while (text[++at] !== '"') if (text[at] === "\\") at++;
      if (depth === 0) return at + 1;
    } else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && blank.test(char ?? "")) return at;
  }
  return text.length;
}

/** Returns the texts within a sound map or list: of a map keys and values in turn. */
function within(text: string): string[] {
  const found: string[] = [];
  for (let at = text.search(/[[{]/) + 1; at < text.length; ) {
    if (blank.test(text[at] ?? "")) at++;
    else if (text[at] === "}" || text[at] === "]") break;
    else {
      const end = endOf(text, at);
      found.push(text.slice(at, end));
      at = end;
    }
  }
  return found;
}

function membersOf(map: string): Member[] {
  const texts = within(map);
  return texts.flatMap((key, at) => (at % 2 === 0 ? [{ key: JSON.parse(key) as string, raw: texts[at + 1] ?? "" }] : []));
}

const mapOf = (members: readonly Member[]): string => `{${members.map(({ key, raw }) => `${JSON.stringify(key)}:${raw}`).join(",")}}`;

/** An item of a list of a file, as it stands in a part. */
interface Item {
  readonly list: string;
  readonly raw: string; // of a property with its key
}

const property = ({ key, raw }: Member): string => `${JSON.stringify(key)}:${raw}`;

/** Splits an object that is too large for a part into ones that continue it. */
function continued(object: string, size: number): string[] {
  const members = membersOf(object);
  const name = members.find(({ key }) => key === "name");
  const properties = members.find(({ key, raw }) => key === "properties" && raw.startsWith("{"));
  if (!name || !properties) return [object];
  const parts = [mapOf(members.filter((member) => member !== properties))];
  let some: Member[] = [];
  let used = 0;
  const end = () => {
    if (some.length > 0) parts.push(mapOf([name, { key: "continued", raw: "true" }, { key: "properties", raw: mapOf(some) }]));
    [some, used] = [[], 0];
  };
  for (const one of membersOf(properties.raw)) {
    if (used + bytesOf(one.raw) > size) end();
    some.push(one);
    used += bytesOf(one.raw);
  }
  end();
  return parts;
}

/** Returns a sound definition file in parts of about a size, one definition being at least a part of its own. */
export function partsOf(text: string, size: number): string[] {
  const members = membersOf(text);
  const name = members.find(({ key }) => key === "namespace");
  const isList = ({ key, raw }: Member) => (key === "properties" ? raw.startsWith("{") : ["resource_type_associations", "objects", "tags"].includes(key) && raw.startsWith("["));
  const items = members.filter(isList).flatMap(({ key, raw }): Item[] => {
    if (key === "properties") return membersOf(raw).map((one) => ({ list: key, raw: property(one) }));
    return within(raw).flatMap((item) => (key === "objects" && bytesOf(item) > size ? continued(item, size / 2) : [item]).map((raw) => ({ list: key, raw })));
  });
  const parts: string[] = [];
  let other = members.filter((member) => !isList(member) && member !== name);
  // A list that is there but empty says something, too.
  const lists = new Map<string, string[]>(members.filter(isList).map(({ key }) => [key, []]));
  let used = other.reduce((sum, { raw }) => sum + bytesOf(raw), 0);
  const end = () => {
    const filled = [...lists].map(([key, raws]) => ({ key, raw: key === "properties" ? `{${raws.join(",")}}` : `[${raws.join(",")}]` }));
    parts.push(mapOf([{ key: "namespace", raw: name?.raw ?? '""' }, ...other, ...filled]));
    lists.clear();
    [other, used] = [[], 0];
  };
  for (const { list, raw } of items) {
    if (used > 0 && used + bytesOf(raw) > size) end();
    lists.set(list, [...(lists.get(list) ?? []), raw]);
    used += bytesOf(raw) + 1;
  }
  end();
  return parts;
}

/** A line of what an import changes: `changed $.properties.x.default: 5 -> 6`. */
export interface Difference {
  readonly what: string;
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

export function differenceOf(line: string): Difference {
  const [, what, rest] = /^(added|removed|changed|reordered) (.*)$/s.exec(line) ?? [];
  if (what === undefined || rest === undefined) return { what: line, path: "" };
  const [path, said] = cut(rest);
  if (what === "added") return { what, path, ...(said && { after: said }) };
  if (what === "removed") return { what, path, ...(said && { before: said }) };
  const arrow = what === "changed" ? said.indexOf(" -> ") : -1;
  return arrow < 0 ? { what, path } : { what, path, before: said.slice(0, arrow), after: said.slice(arrow + 4) };
}

/** Cuts a line behind its path, which may have quoted names. */
function cut(line: string): [path: string, rest: string] {
  const path = /^\$(?:\.[A-Za-z_]\w*|\['(?:[^'\\]|\\.)*'\]|\[\d+\])*/.exec(line)?.[0] ?? "";
  const rest = line.slice(path.length);
  return [path, rest.replace(/^: /, "")];
}

/** Whether a warning of an upgrade is about what was edited here, which the report has as an edit. */
export const isKept = (warning: string): boolean => /: was (edited|added|removed) here/.test(warning);
