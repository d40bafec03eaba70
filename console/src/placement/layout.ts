// The layout of tiles: one of the same size for each tree, in rows, with tiles for the
// descendants of the root inside.
import type { Provider } from "./cloud";

export type Size = "small" | "medium" | "large" | "huge";

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Measure {
  readonly width: number; // the minimum; tiles share the rest of a row
  readonly height: number;
  readonly gap: number;
  readonly head: number; // for the name
  readonly widest: number;
}

const measures: Readonly<Record<Size, Measure>> = {
  small: { width: 12, height: 12, gap: 2, head: 0, widest: 14 },
  medium: { width: 34, height: 30, gap: 4, head: 0, widest: 40 },
  large: { width: 150, height: 92, gap: 6, head: 20, widest: 220 },
  huge: { width: 300, height: 190, gap: 8, head: 20, widest: 480 },
};

/** Returns the default size for a number of trees. */
export const sizeFor = (trees: number): Size => (trees <= 200 ? "large" : trees <= 2500 ? "medium" : "small");

/** Returns the default size for a number of groups. */
export const sizeForGroups = (groups: number): Size => (groups <= 40 ? "huge" : "large");

export interface Layout {
  readonly size: Size;
  readonly columns: number;
  readonly rows: number;
  readonly width: number; // of a tile
  readonly height: number;
  readonly across: number; // from one tile to the next
  readonly down: number;
  readonly head: number;
  readonly total: number; // the height of all rows
}

export function layoutOf(trees: number, width: number, size: Size): Layout {
  const { gap, head, widest, ...least } = measures[size];
  const room = Math.max(width, least.width);
  const columns = Math.max(1, Math.floor((room + gap) / (least.width + gap)));
  const tile = Math.min(widest, Math.floor((room + gap) / columns) - gap);
  const rows = Math.ceil(trees / columns);
  const down = least.height + gap;
  return { size, columns, rows, width: tile, height: least.height, across: tile + gap, down, head, total: rows * down };
}

/** Returns the rectangle of a tile. */
export const tileAt = ({ columns, across, down, width, height }: Layout, index: number): Rect => ({ x: (index % columns) * across, y: Math.floor(index / columns) * down, width, height });

/** Returns the index of the tile at a point; undefined between tiles. */
export function indexAt({ columns, across, down, width, height }: Layout, x: number, y: number): number | undefined {
  const column = Math.floor(x / across);
  if (x < 0 || y < 0 || column >= columns || x - column * across >= width || y % down >= height) return undefined;
  return Math.floor(y / down) * columns + column;
}

export interface Cell extends Rect {
  readonly provider: Provider;
  /** Whether it is the whole tile. */
  readonly head: boolean;
}

/** A tile within a tile that is this high has a line for its name above its own children. */
export const namedHeight = 44;

const leastSide = 5; // of a tile within a tile

/** Returns the tiles of a tree: root first, then its descendants inside, parents first. */
export function cellsOf(tree: Provider, { x, y, width, height }: Rect, head: number): Cell[] {
  const cells: Cell[] = [{ provider: tree, head: true, x, y, width, height }];
  if (tree.children.length > 0) fill(cells, tree.children, { x: x + 3, y: y + Math.max(head, 3), width: width - 6, height: height - Math.max(head, 3) - 3 });
  return cells;
}

function fill(cells: Cell[], children: readonly Provider[], { x, y, width, height }: Rect): void {
  const gap = width > 60 ? 2 : 1;
  const rows = Math.max(1, Math.min(children.length, Math.round(Math.sqrt((children.length * height * 1.6) / width))));
  const down = (height + gap) / rows;
  if ((width + gap) / Math.ceil(children.length / rows) - gap < leastSide || down - gap < leastSide) return;
  for (let row = 0, at = 0; row < rows; row++) {
    const end = Math.ceil(((row + 1) * children.length) / rows);
    const [across, first] = [(width + gap) / (end - at), at];
    const [top, bottom] = [Math.round(y + row * down), Math.round(y + (row + 1) * down - gap)];
    for (; at < end; at++) {
      const provider = children[at];
      const [left, right] = [Math.round(x + (at - first) * across), Math.round(x + (at - first + 1) * across - gap)];
      if (!provider) continue;
      const cell = { provider, head: false, x: left, y: top, width: right - left, height: bottom - top };
      cells.push(cell);
      const above = cell.height >= namedHeight ? 16 : 3;
      if (provider.children.length > 0) fill(cells, provider.children, { x: cell.x + 3, y: cell.y + above, width: cell.width - 6, height: cell.height - above - 3 });
    }
  }
}
