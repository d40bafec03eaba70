// Where tiles are: a tile of one size for each tree, in rows, and within it tiles for
// what is below the root.
import type { Provider } from "./cloud";

export type Size = "small" | "medium" | "large";

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Measure {
  readonly width: number; // at least; tiles share what is left of a row
  readonly height: number;
  readonly gap: number;
  readonly head: number; // for the name
  readonly widest: number;
}

const measures: Readonly<Record<Size, Measure>> = {
  small: { width: 12, height: 12, gap: 2, head: 0, widest: 14 },
  medium: { width: 34, height: 30, gap: 4, head: 0, widest: 40 },
  large: { width: 150, height: 92, gap: 6, head: 20, widest: 220 },
};

/** Returns the size in which so many trees are looked at. */
export const sizeFor = (trees: number): Size => (trees <= 200 ? "large" : trees <= 2500 ? "medium" : "small");

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

/** Returns the place of the tile of a number. */
export const tileAt = ({ columns, across, down, width, height }: Layout, index: number): Rect => ({ x: (index % columns) * across, y: Math.floor(index / columns) * down, width, height });

/** Returns the number of the tile at a point; undefined between tiles. */
export function indexAt({ columns, across, down, width, height }: Layout, x: number, y: number): number | undefined {
  const column = Math.floor(x / across);
  if (x < 0 || y < 0 || column >= columns || x - column * across >= width || y % down >= height) return undefined;
  return Math.floor(y / down) * columns + column;
}

export interface Cell extends Rect {
  readonly provider: Provider;
}

const leastSide = 5; // of a tile within a tile

/** Returns the tiles of a tree: that of the root, and within it those of what is below, parents first. */
export function cellsOf(tree: Provider, { x, y, width, height }: Rect, head: number): Cell[] {
  const cells: Cell[] = [{ provider: tree, x, y, width, height }];
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
      const cell = { provider, x: left, y: top, width: right - left, height: bottom - top };
      cells.push(cell);
      if (provider.children.length > 0) fill(cells, provider.children, { x: cell.x + 3, y: cell.y + 3, width: cell.width - 6, height: cell.height - 6 });
    }
  }
}
