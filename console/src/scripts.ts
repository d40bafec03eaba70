// The scripts of the pages. Each is loaded when its first page is opened, or shortly
// before.
export const scripts = {
  overview: () => import("./overview/overview"),
  definitions: () => import("./definitions/pages"),
  resources: () => import("./resources/pages"),
  capabilities: () => import("./capabilities/capabilities"),
  placement: () => import("./placement/placement"),
  audit: () => import("./audit/audit"),
  hub: () => import("./hub/pages"),
};

export type Area = keyof typeof scripts;

/** Returns the area of an address, whose script has its page. */
export function areaOf(path: string): Area {
  const first = path.split("/").find((part) => part !== "" && part !== "console") ?? "";
  if (first in scripts) return first as Area;
  if (first === "providers" || first === "consumers") return "hub";
  if (first === "new-namespace" || first === "import") return "definitions";
  return first === "new-resource" ? "resources" : "overview";
}
