// Definition files and reports about their import.

/** A file of an import. */
export interface Source {
  readonly name: string;
  readonly text: string;
}

/** The maximum size of the files in one request; a larger file is the body of a separate request. */
export const batchBytes = 256 * 1024;

const encoder = new TextEncoder();

export const bytesOf = (text: string): number => encoder.encode(text).length;

/** Returns the name of the namespace in a file, or the file's error. */
export function namespaceOf({ text }: Source): { readonly name: string } | { readonly wrong: string } {
  try {
    const value = JSON.parse(text.replace(/^\uFEFF/, "")) as unknown;
    const name = value !== null && typeof value === "object" && "namespace" in value ? value.namespace : undefined;
    return typeof name === "string" ? { name } : { wrong: "This is not a definition file: it must be an object with the name of a namespace." };
  } catch (error) {
    return { wrong: `This is not JSON: ${(error as Error).message}` };
  }
}

/** A line of a preview: `changed $.properties.x.default: 5 -> 6`. */
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

/** Splits a line after its path, which may have quoted names. */
function cut(line: string): [path: string, rest: string] {
  const path = /^\$(?:\.[A-Za-z_]\w*|\['(?:[^'\\]|\\.)*'\]|\[\d+\])*/.exec(line)?.[0] ?? "";
  const rest = line.slice(path.length);
  return [path, rest.replace(/^: /, "")];
}

/** Reports whether a warning is about a local edit, which the report lists separately. */
export const isKept = (warning: string): boolean => /: was (edited|added|removed) here/.test(warning);
