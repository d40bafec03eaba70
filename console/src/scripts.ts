// The scripts of pages, each of which comes when the first page of it is opened, or
// soon will be.
export const scripts = {
  definitions: () => import("./definitions/pages"),
  resources: () => import("./resources/pages"),
  capabilities: () => import("./capabilities/capabilities"),
  placement: () => import("./placement/placement"),
  audit: () => import("./audit/audit"),
};

export type Area = keyof typeof scripts;

/** Returns whose script the page of an address is in; that of none is the first one's, to which the console leads. */
export function areaOf(path: string): Area {
  const first = path.split("/").find((part) => part !== "" && part !== "console") ?? "";
  if (first in scripts) return first as Area;
  return first === "new-resource" ? "resources" : "definitions";
}
