// Paints the visible part of the picture, in slices of a frame.
import { heldPartOf, percent, type Provider, shareOf } from "./cloud";
import { type Palette, stepOf } from "./colours";
import { Group } from "./groups";
import { type Cell, cellsOf, type Layout, namedHeight, tileAt } from "./layout";

/** The marks of candidates: the trees of all, and the providers of one. */
export interface Marks {
  readonly roots: ReadonlySet<string>;
  /** The providers of the selected candidate. */
  readonly giving: ReadonlySet<string>;
  /** The roots of their trees. */
  readonly givingRoots: ReadonlySet<string>;
}

export interface Scene {
  readonly trees: readonly Provider[];
  readonly layout: Layout;
  readonly resourceClass: string;
  readonly palette: Palette;
  readonly marks: Marks | undefined;
  /** The roots to cross out, with why. */
  readonly crossed?: ReadonlyMap<string, string> | undefined;
  /** The selected provider. */
  readonly at: Provider | undefined;
  /** The tile that has the focus. */
  readonly active: number | undefined;
}

/** The time of a slice, in milliseconds; a frame has 16. */
const slice = 8;

/**
 * Paints the visible rows from a row on. Returns the row to continue with in the next
 * frame, or undefined when all are painted.
 */
export function paint(context: CanvasRenderingContext2D, scene: Scene, top: number, height: number, scale: number, from: number | undefined): { next: number | undefined; tiles: number } {
  const { layout, trees } = scene;
  const first = Math.max(0, Math.floor(top / layout.down));
  const last = Math.min(layout.rows - 1, Math.floor((top + height) / layout.down));
  const begun = performance.now();
  context.setTransform(scale, 0, 0, scale, 0, -top * scale);
  const width = layout.columns * layout.across;
  let tiles = 0;
  for (let row = Math.max(from ?? first, first); row <= last; row++) {
    if (tiles > 0 && performance.now() - begun > slice) return { next: row, tiles };
    context.clearRect(0, row * layout.down, width + layout.across, layout.down);
    for (let index = row * layout.columns; index < Math.min(trees.length, (row + 1) * layout.columns); index++) {
      const tree = trees[index];
      if (tree) paintTree(context, scene, tree, index);
      tiles++;
    }
  }
  context.globalAlpha = 1;
  context.clearRect(0, (last + 1) * layout.down, width + layout.across, height);
  return { next: undefined, tiles };
}

function paintTree(context: CanvasRenderingContext2D, scene: Scene, tree: Provider, index: number): void {
  const { layout, resourceClass, palette, marks, at } = scene;
  const rect = tileAt(layout, index);
  const roots = rootsOf(tree);
  const beside = marks !== undefined && !roots.some(({ uuid }) => marks.roots.has(uuid) || marks.givingRoots.has(uuid));
  const isAt = at !== undefined && roots.includes(at.root);
  const gives = marks !== undefined && roots.some(({ uuid }) => marks.givingRoots.has(uuid));
  context.globalAlpha = beside ? 0.22 : 1;
  if (layout.size === "small") {
    const step = stepOfProvider(tree, resourceClass);
    context.fillStyle = step === undefined ? palette.none : (palette.steps[step]?.fill ?? palette.none);
    context.fillRect(rect.x, rect.y, rect.width, rect.height);
    if (step === 7) stripes(context, palette, rect);
  } else for (const cell of cellsOf(tree, rect, layout.head)) paintCell(context, scene, cell);
  context.globalAlpha = 1;
  if (scene.crossed?.has(tree.uuid)) cross(context, palette, rect);
  if (marks && !beside) outline(context, palette, rect, layout.size === "small" ? 1.5 : 2);
  if (isAt || gives)
    for (const cell of layout.size === "small" ? [{ provider: tree, head: true, ...rect }] : cellsOf(tree, rect, layout.head)) {
      const whole = layout.size === "small";
      if (whole ? gives : marks?.giving.has(cell.provider.uuid)) giving(context, palette, cell);
      if (whole ? isAt : cell.provider === at) outline(context, palette, cell, 3);
    }
  context.globalAlpha = beside ? 0.22 : 1;
  held(context, palette, heldPartOf(tree, resourceClass), rect);
  context.globalAlpha = 1;
  if (index === scene.active) {
    context.setLineDash([3, 2]);
    outline(context, palette, { x: rect.x - 1, y: rect.y - 1, width: rect.width + 2, height: rect.height + 2 }, 2);
    context.setLineDash([]);
  }
}

/** Returns the roots of a tile: one, or the roots of a group. */
const rootsOf = (tile: Provider): readonly Provider[] => (tile instanceof Group ? tile.children : [tile]);

function stepOfProvider(provider: Provider, resourceClass: string): number | undefined {
  const share = shareOf(provider, resourceClass);
  return share === undefined ? undefined : stepOf(share);
}

function paintCell(context: CanvasRenderingContext2D, { resourceClass, palette, layout }: Scene, cell: Cell): void {
  const { provider, x, y, width, height } = cell;
  const share = shareOf(provider, resourceClass);
  const number = share === undefined ? undefined : stepOf(share);
  const step = number === undefined ? undefined : palette.steps[number];
  context.fillStyle = step?.fill ?? palette.none;
  context.fillRect(x, y, width, height);
  if (number === 7) stripes(context, palette, cell);
  context.strokeStyle = palette.line;
  context.lineWidth = 0.5;
  context.strokeRect(x + 0.25, y + 0.25, width - 0.5, height - 0.5);
  if (!cell.head && height >= 24) held(context, palette, heldPartOf(provider, resourceClass), cell);
  if (layout.head === 0) return; // no room for names
  const root = cell.head;
  context.fillStyle = step?.text ?? palette.noneText;
  const said = share === undefined ? "" : share > 0 && share < 0.01 ? "<1%" : percent(share); // the name needs the room
  if (root) {
    context.font = "600 12px system-ui, sans-serif";
    const taken = said ? context.measureText(said).width + 10 : 0;
    context.fillText(cut(context, provider.name, width - 12 - taken), x + 6, y + 14);
    if (said) context.fillText(said, x + width - taken + 4, y + 14);
  } else if (width >= 34 && height >= 14 && (provider.children.length === 0 || height >= namedHeight)) {
    context.font = "11px system-ui, sans-serif";
    const baseline = y + Math.min(height - 3, 12);
    const name = shortName(provider);
    const taken = said ? context.measureText(said).width + 6 : 0;
    if (context.measureText(name).width <= width - 8 - taken) {
      context.fillText(name, x + 4, baseline);
      if (said) context.fillText(said, x + width - taken + 2, baseline);
    } else if (height >= 27 && provider.children.length === 0) {
      context.fillText(cut(context, name, width - 8), x + 4, baseline);
      if (said && taken <= width - 2) context.fillText(said, x + 4, baseline + 13);
    } else if (said && taken <= width - 2 && provider.parent !== undefined && context.measureText(name).width > width - 8)
      context.fillText(said, x + 4, baseline);
    else context.fillText(cut(context, name, width - 8), x + 4, baseline);
  }
}

/** Returns the name of a provider without the name of its root, which the tile of the root shows. */
function shortName({ name, root }: Provider): string {
  return root.name !== name && name.startsWith(root.name) ? name.slice(root.name.length).replace(/^\W+/, "") : name;
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(text.slice(0, end) + "…").width > width) end--;
  return text.slice(0, end) + "…";
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function outline(context: CanvasRenderingContext2D, palette: Palette, { x, y, width, height }: Box, line: number): void {
  context.strokeStyle = palette.mark;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, width - line, height - line);
}

function cross(context: CanvasRenderingContext2D, palette: Palette, { x, y, width, height }: Box): void {
  for (const [colour, line] of [[palette.ground, 5], [palette.mark, 2]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + width - 2, y + height - 2);
    context.moveTo(x + width - 2, y + 2);
    context.lineTo(x + 2, y + height - 2);
    context.stroke();
  }
}

/** Marks a provider of the selected candidate. */
function giving(context: CanvasRenderingContext2D, palette: Palette, cell: Box): void {
  const { x, y, width, height } = cell;
  context.strokeStyle = palette.ground;
  context.lineWidth = 5;
  context.strokeRect(x + 2, y + 2, width - 4, height - 4);
  outline(context, palette, cell, 3);
  if (width < 10 || height < 10) return;
  context.fillStyle = palette.mark;
  context.beginPath();
  context.arc(x + width - 7, y + height - 7, 3, 0, 7);
  context.fill();
}

/** Draws dashes along the lower edge for the held part of the use: the whole edge is the whole use. */
function held(context: CanvasRenderingContext2D, palette: Palette, part: number, { x, y, width, height }: Box): void {
  if (part === 0) return;
  const [left, top, length] = [x + 2, y + height - (height < 20 ? 6 : 9), width - 4]; // above the marks of a larger tile
  context.fillStyle = palette.ground;
  context.fillRect(left, top, length, 4);
  context.fillStyle = palette.mark;
  for (let at = 0; at < Math.max(2, part * length); at += 4) context.fillRect(left + at, top + 0.5, 2, 3);
}

function stripes(context: CanvasRenderingContext2D, palette: Palette, { x, y, width, height }: Box): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = palette.stripe;
  context.lineWidth = 2;
  context.beginPath();
  for (let at = -height; at < width; at += 7) {
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
  }
  context.stroke();
  context.restore();
}
