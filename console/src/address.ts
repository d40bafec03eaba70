// The state of a view in its address, so that it can be shared.
import { useCallback } from "react";
import { useSearchParams } from "wouter";

export interface Address {
  readonly get: (name: string) => string;
  readonly all: (name: string) => string[];
  /** Changes what is named, and goes back to the first page. An empty value is left out. */
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

/** The address of a property; of an object's, with the name of that. */
export const propertyAt = (namespace: string, name: string, object?: string | null): string =>
  `/definitions/${segment(namespace)}/properties/${segment(name)}` + (object ? `?object=${segment(object)}` : "");

export const newPropertyAt = (namespace: string, object?: string | null): string => `/definitions/${segment(namespace)}/new-property` + (object ? `?object=${segment(object)}` : "");

export const resourceAt = (uuid: string): string => `/resources/${uuid}`;

/** The address of the table of resources with conditions, of which some are several. */
export const resourcesAt = (conditions: Readonly<Record<string, string | readonly string[]>>): string =>
  "/resources?" + new URLSearchParams(Object.entries(conditions).flatMap(([name, value]) => (typeof value === "string" ? [value] : value).map((one) => [name, one]))).toString();

/** The address of the picture of what meets requirements, as the page of capabilities writes them. */
export const placementAt = (needs: readonly string[]): string => "/placement?" + new URLSearchParams(needs.map((need) => ["need", need])).toString();
