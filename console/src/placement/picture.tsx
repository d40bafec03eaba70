// The picture of the cloud: one canvas with the visible part and, for keyboards and screen
// readers, a list box with the current tile.
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";

import { count, heldOf, numberOf } from "../ui/show";
import { fullest, percent, type Provider, share, shareOf } from "./cloud";
import { usePalette } from "./colours";
import { Group } from "./groups";
import { cellsOf, indexAt, layoutOf, type Size, sizeFor, tileAt } from "./layout";
import { type Marks, paint, type Scene } from "./paint";

interface PictureProps {
  readonly trees: readonly Provider[];
  readonly resourceClass: string;
  readonly size: Size | undefined;
  readonly at: Provider | undefined;
  readonly marks?: Marks | undefined;
  /** The roots to cross out, with why. */
  readonly crossed?: ReadonlyMap<string, string>;
  readonly onAt: (provider: Provider) => void;
}

/** The maximum height of the picture, as a part of the window. */
const part = 0.6;

export function Picture({ trees, resourceClass, size, at, marks, crossed, onAt }: PictureProps) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const palette = usePalette();
  const [room, setRoom] = useState({ width: 0, height: 0 });
  const [focused, setFocused] = useState(false);
  const [active, setActive] = useState(0);
  const [under, setUnder] = useState<Provider>();

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setRoom({ width: element.clientWidth, height: Math.max(240, Math.floor(innerHeight * part)) });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      removeEventListener("resize", measure);
    };
  }, []);

  const layout = useMemo(() => layoutOf(trees.length, room.width, size ?? sizeFor(trees.length)), [trees.length, room.width, size]);
  const height = Math.min(room.height, layout.total);
  const here = Math.min(active, trees.length - 1);
  const scene: Scene = { trees, layout, resourceClass, palette, marks, crossed, at, active: focused ? here : undefined };

  // The newest scene is painted in the next frame, and the rest of it in later frames.
  const next = useRef({ scene, height, frame: 0, from: undefined as number | undefined });
  next.current.scene = scene;
  next.current.height = height;
  const draw = useCallback(() => {
    const { current } = next;
    current.from = undefined;
    if (current.frame) return;
    const step = () => {
      current.frame = 0;
      const context = canvas.current?.getContext("2d");
      if (!context || !canvas.current || !box.current || current.height === 0) return;
      const painted = paint(context, current.scene, box.current.scrollTop, current.height, devicePixelRatio, current.from);
      canvas.current.dataset["tiles"] = String(painted.tiles);
      current.from = painted.next;
      if (painted.next !== undefined) current.frame = requestAnimationFrame(step);
      else canvas.current.dataset["trees"] = String(current.scene.trees.length);
    };
    current.frame = requestAnimationFrame(step);
  }, []);
  useEffect(() => () => cancelAnimationFrame(next.current.frame), []);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const [pixelsAcross, pixelsDown] = [Math.round(room.width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (element.width !== pixelsAcross) element.width = pixelsAcross;
    if (element.height !== pixelsDown) element.height = pixelsDown;
  }, [room.width, height]);
  useEffect(draw);

  const reveal = useCallback(
    (index: number) => {
      const element = box.current;
      if (!element || index < 0) return;
      const { y } = tileAt(layout, index);
      if (y < element.scrollTop) element.scrollTop = y;
      else if (y + layout.down > element.scrollTop + height) element.scrollTop = y + layout.down - height;
    },
    [layout, height],
  );
  // Scrolls to a tree that was selected elsewhere.
  const [giver] = marks?.givingRoots ?? [];
  const sought = giver ?? at?.root.uuid;
  const bring = useRef(reveal);
  bring.current = reveal;
  const among = useRef(trees);
  among.current = trees;
  useEffect(() => {
    if (sought !== undefined) bring.current(among.current.findIndex((tree) => tree.uuid === sought || tree.children.some(({ uuid }) => uuid === sought)));
  }, [sought, layout.total]); // does not scroll again after the user has scrolled away

  const move = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.columns, ArrowDown: layout.columns, PageUp: -layout.columns * 5, PageDown: layout.columns * 5, Home: -here, End: trees.length - 1 - here };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const to = here + step;
      const landed = Math.max(0, Math.min(trees.length - 1, to));
      setActive(landed);
      reveal(landed);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const tree = trees[here];
      if (tree) onAt(tree);
    }
  };

  const find = (event: PointerEvent | MouseEvent): { index: number; provider: Provider } | undefined => {
    const element = box.current;
    if (!element) return undefined;
    const bounds = element.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top + element.scrollTop];
    const index = indexAt(layout, x, y);
    const tree = index === undefined ? undefined : trees[index];
    if (index === undefined || !tree) return undefined;
    if (layout.size === "small") return { index, provider: tree };
    const cell = cellsOf(tree, tileAt(layout, index), layout.head).findLast((cell) => x >= cell.x && x < cell.x + cell.width && y >= cell.y && y < cell.y + cell.height);
    return { index, provider: cell?.provider ?? tree };
  };

  const option = trees[here];
  return (
    <div className="picture">
      <div
        ref={box}
        className="picture-box"
        role="listbox"
        tabIndex={0}
        aria-label={trees[0] instanceof Group ? `Picture of ${count(trees.length, "group")} of providers` : `Picture of ${count(trees.length, "tree")} of providers`}
        aria-activedescendant={option && id + option.uuid}
        aria-describedby={id + "keys"}
        style={{ height: Math.max(height, 1) }}
        onScroll={draw}
        onKeyDown={move}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onPointerMove={(event) => setUnder(find(event)?.provider)}
        onPointerLeave={() => setUnder(undefined)}
        onClick={(event) => {
          const found = find(event);
          if (!found) return;
          setActive(found.index);
          onAt(found.provider);
        }}
      >
        <canvas ref={canvas} className="picture-canvas" aria-hidden="true" style={{ width: room.width, height }} />
        <div aria-hidden="true" style={{ height: Math.max(0, layout.total - height) }} />
        {option && (
          <div className="unseen" role="option" id={id + option.uuid} aria-setsize={trees.length} aria-posinset={here + 1} aria-selected={option === at}>
            {said(option, resourceClass)}
            {crossed?.has(option.uuid) && `, ${crossed.get(option.uuid)}`}
            {marks && (isAmong(marks.givingRoots, option) ? ", chosen" : isAmong(marks.roots, option) && ", a candidate")}
          </div>
        )}
      </div>
      <p className="tile-said" aria-hidden="true">
        {(under ?? (focused ? option : undefined)) ? said((under ?? option) as Provider, resourceClass) : " "}
      </p>
      <p id={id + "keys"} className="unseen">
        Arrows move from tile to tile, Enter opens one.
      </p>
    </div>
  );
}

/** Reports whether a tile is a root of a set, or a group with one. */
const isAmong = (roots: ReadonlySet<string>, tile: Provider): boolean => roots.has(tile.uuid) || (tile instanceof Group && tile.children.some(({ uuid }) => roots.has(uuid)));

/** Describes a tile. */
export function said(provider: Provider, resourceClass: string): string {
  const all = shareOf(provider, resourceClass);
  const names = resourceClass === fullest ? [...provider.amounts.keys()].sort((a, b) => shareOfClass(provider, b) - shareOfClass(provider, a)).slice(0, 3) : [resourceClass];
  const amounts = names.flatMap((name) => {
    const amount = provider.amounts.get(name);
    return amount ? [`${name} ${percent(share(amount))} used, ${numberOf(amount.used)} of ${numberOf(amount.capacity)}${heldOf(amount.held)}`] : [];
  });
  const what = amounts.length > 0 ? amounts.join("; ") : all === undefined && resourceClass !== fullest ? `has no ${resourceClass}` : "has nothing to give";
  return `${provider.name}: ${what}${provider.below > 0 ? `; ${count(provider.below, "provider")} below it` : ""}`;
}

const shareOfClass = (provider: Provider, resourceClass: string): number => shareOf(provider, resourceClass) ?? -1;

/** The legend of the colours. */
export function Legend({ resourceClass, isHeld = false }: { resourceClass: string; isHeld?: boolean }) {
  const { steps, none, stripe, ground, mark } = usePalette();
  return (
    <ul className="legend" aria-label={`Colours: the share ${resourceClass === fullest ? "of the fullest class" : `of ${resourceClass}`} that is used`}>
      {steps.map(({ label, fill }, at) => (
        <li key={label}>
          <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
            <rect width="14" height="14" fill={fill} className="legend-box" />
            {at === steps.length - 1 && <path d="M0 14L14 0M-7 14L7 0M7 14L21 0" stroke={stripe} strokeWidth="2" />}
          </svg>
          {label}
        </li>
      ))}
      {resourceClass !== fullest && (
        <li>
          <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
            <rect width="14" height="14" fill={none} className="legend-box" />
          </svg>
          none of it
        </li>
      )}
      {isHeld && (
        <li>
          <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
            <rect width="14" height="14" fill={steps[3]?.fill} className="legend-box" />
            <rect x="1" y="9" width="12" height="4" fill={ground} />
            <path d="M2 11H13" stroke={mark} strokeWidth="3" strokeDasharray="2 2" />
          </svg>
          held part of the use
        </li>
      )}
    </ul>
  );
}
