// The colours of shares: one scale from light to dark, or from dark to light in the dark
// theme. Its steps differ in lightness, so they are readable without colour vision.
// Stripes mark use above capacity.
import { useSyncExternalStore } from "react";

export interface Step {
  /** The largest share of the step. */
  readonly upTo: number;
  readonly label: string;
  readonly fill: string;
  readonly text: string;
}

export interface Palette {
  readonly steps: readonly Step[];
  /** For providers without the class. */
  readonly none: string;
  readonly noneText: string;
  readonly line: string;
  readonly stripe: string;
  /** The outline of the selected provider. */
  readonly mark: string;
  readonly ground: string;
}

const ends: readonly [number, string][] = [
  [0, "unused"],
  [0.1, "to 10%"],
  [0.25, "to 25%"],
  [0.5, "to 50%"],
  [0.75, "to 75%"],
  [0.9, "to 90%"],
  [1, "to 100%"],
  [Infinity, "over"],
];

const steps = (fills: readonly string[], texts: readonly string[]): Step[] => ends.map(([upTo, label], at) => ({ upTo, label, fill: fills[at] ?? "", text: texts[at] ?? "" }));

const ink = "#10161c";
const paper = "#ffffff";

const day: Palette = {
  steps: steps(["#f3f7e4", "#dcefc4", "#b2dfbf", "#74c7c5", "#3795bd", "#27609f", "#1b2f72", "#1b2f72"], [ink, ink, ink, ink, ink, paper, paper, paper]),
  none: "#ededea",
  noneText: "#5d6166",
  line: "#8b8d8a",
  stripe: "#f0b429",
  mark: "#10161c",
  ground: "#ffffff",
};

const night: Palette = {
  steps: steps(["#27323a", "#1f4a5e", "#22667f", "#2b8794", "#52a990", "#93c97f", "#f0ee9a", "#f0ee9a"], [paper, paper, paper, ink, ink, ink, ink, ink]),
  none: "#202327",
  noneText: "#a3aab3",
  line: "#6b727b",
  stripe: "#a3262f",
  mark: "#ffffff",
  ground: "#1d2024",
};

/** Returns the step of a share. */
export const stepOf = (share: number): number => ends.findIndex(([upTo]) => share <= upTo);

const query = "(prefers-color-scheme: dark)";

/** Only for its events: Chromium sends none to a list that was read after the change. */
const dark = matchMedia(query);

/** Returns the colours of the theme. */
export function usePalette(): Palette {
  return useSyncExternalStore(
    (changed) => (dark.addEventListener("change", changed), () => dark.removeEventListener("change", changed)),
    () => (matchMedia(query).matches ? night : day),
  );
}
