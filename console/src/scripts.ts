// The scripts of the pages. Each is loaded when its first page is opened, or shortly
// before.
export interface Script<Pages> {
  (): Promise<Pages>;
  /** The loaded pages. */
  loaded?: Pages;
}

function script<Pages>(load: () => Promise<Pages>): Script<Pages> {
  const of: Script<Pages> = async () => (of.loaded ??= await load());
  return of;
}

export const scripts = {
  overview: script(() => import("./overview/overview")),
  definitions: script(() => import("./definitions/pages")),
  resources: script(() => import("./resources/pages")),
  capabilities: script(() => import("./capabilities/capabilities")),
  placement: script(() => import("./placement/placement")),
  whatIf: script(() => import("./whatif/whatif")),
  audit: script(() => import("./audit/audit")),
  hub: script(() => import("./hub/pages")),
};

export type Area = keyof typeof scripts;

/** Returns the area of an address, whose script has its page. */
export function areaOf(path: string): Area {
  const first = path.split("/").find((part) => part !== "" && part !== "console") ?? "";
  if (path.endsWith("/placement/what-if")) return "whatIf";
  if (first in scripts) return first as Area;
  if (first === "providers" || first === "consumers") return "hub";
  if (first === "new-namespace" || first === "import") return "definitions";
  return first === "new-resource" ? "resources" : "overview";
}
