// The addresses of pages, and the state of a page in its address.
import { useCallback } from "react";
import { useSearchParams } from "wouter";

export interface Address {
  readonly get: (name: string) => string;
  readonly all: (name: string) => string[];
  /** Changes some parameters, and returns to the first page. An empty value removes the parameter. */
  readonly set: (changes: Readonly<Record<string, string | readonly string[]>>, options?: { replace?: boolean }) => void;
}

export function useAddress(): Address {
  const [params, setParams] = useSearchParams();
  const set = useCallback<Address["set"]>(
    (changes, options) =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          next.delete("after");
          for (const [name, value] of Object.entries(changes)) {
            next.delete(name);
            for (const one of typeof value === "string" ? [value] : value) if (one) next.append(name, one);
          }
          return next;
        },
        { replace: options?.replace ?? false },
      ),
    [setParams],
  );
  return { get: (name) => params.get(name) ?? "", all: (name) => params.getAll(name), set };
}

const segment = (text: string) => encodeURIComponent(text);

export const namespaceAt = (name: string): string => `/definitions/${segment(name)}`;

/** The address of a property, of an object or of the namespace itself. */
export const propertyAt = (namespace: string, name: string, object?: string | null): string =>
  `/definitions/${segment(namespace)}/properties/${segment(name)}` + (object ? `?object=${segment(object)}` : "");

/** The address of a property by its key in events: namespace, object if it is in one, and name, with slashes between. */
export function definitionAt(key: string): string {
  const [namespace = "", ...names] = key.split("/");
  return propertyAt(namespace, names.at(-1) ?? "", names.length > 1 ? names[0] : undefined);
}

export const newPropertyAt = (namespace: string, object?: string | null): string => `/definitions/${segment(namespace)}/new-property` + (object ? `?object=${segment(object)}` : "");

export const resourceAt = (uuid: string): string => `/resources/${uuid}`;

/** The address of the table of resources with conditions. */
export const resourcesAt = (conditions: Readonly<Record<string, string | readonly string[]>>): string =>
  "/resources?" + new URLSearchParams(Object.entries(conditions).flatMap(([name, value]) => (typeof value === "string" ? [value] : value).map((one) => [name, one]))).toString();

/** The address of the picture with requirements in the form of the page of capabilities. */
export const placementAt = (needs: readonly string[]): string => "/placement?" + new URLSearchParams(needs.map((need) => ["need", need])).toString();

export const providerAt = (uuid: string): string => `/providers/${uuid}`;

export const consumerAt = (uuid: string): string => `/consumers/${uuid}`;

/** The address of the picture with filters, a class, a chosen provider or a request. */
export const pictureAt = (of: Readonly<Record<string, string>>): string => "/placement?" + new URLSearchParams(of).toString();

/** The address of a what-if with changes, such as `out`, the uuid of a root that is taken out. */
export const whatIfAt = (of: Readonly<Record<string, string>>): string => "/placement/what-if?" + new URLSearchParams(of).toString();

/** The address of the page of capabilities, with a requirement on one value. */
export const capabilityAt = (type: string, name: string, value: string): string => "/capabilities?" + new URLSearchParams({ type, need: `${name}|${value.startsWith("[") ? "<in>" : ""}|${value}` }).toString();

/** The address of the events of one object. */
export const eventsAt = (kind: string, key: string): string => "/audit?" + new URLSearchParams({ kind, key }).toString();

/** Whether the address opens a form of the page, and a function that opens or closes it. */
export function useEditing(name: string): [boolean, (editing: boolean) => void] {
  const address = useAddress();
  return [address.get("edit") === name, (editing) => address.set({ edit: editing ? name : "" })];
}
