// Reads a long list from both of its ends at once, until the pages meet: while the
// server makes a page of one end, that of the other is read.

export type End = "front" | "back";

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** How many rows the list has. */
  readonly total: number;
  /** Where to go on; undefined at the other end of the list. */
  readonly next: string | undefined;
}

/**
 * Reads a list, in the order of its names, by pages of a size, and hands on the rows
 * of each as it comes, of which some may be handed on twice. The ends have met when
 * both have read a row at the same place. Every row that stays what it is meanwhile is
 * read; others may be missed, as whoever follows changes is told.
 */
export async function readEnds<Row extends { readonly uuid: string; readonly name: string }>(
  size: number,
  ask: (end: End, from: string | undefined, signal: AbortSignal) => Promise<Page<Row>>,
  take: (rows: readonly Row[], total: number) => void,
): Promise<void> {
  const met = new AbortController();
  const names = { front: new Map<string, string>(), back: new Map<string, string>() };
  let asked = 0; // how many rows the pages have that were asked for
  let busy = 0;
  const page = async (end: End, from: string | undefined) => {
    asked += size;
    busy++;
    try {
      return await ask(end, from, met.signal);
    } finally {
      busy--;
    }
  };
  const readOn = async (end: End, begun: Promise<Page<Row>>) => {
    const beyond = names[end === "front" ? "back" : "front"];
    for (let read = await begun; ; ) {
      if (met.signal.aborted) return;
      const meets = read.next === undefined || read.rows.some(({ uuid, name }) => beyond.get(uuid) === name);
      for (const { uuid, name } of read.rows) names[end].set(uuid, name);
      // The last page is asked for by one end alone.
      const next = meets || (asked >= read.total && busy > 0) ? undefined : page(end, read.next);
      next?.catch(() => {}); // it is awaited below
      take(read.rows, read.total);
      if (meets) return met.abort();
      if (!next) return;
      read = await next;
    }
  };
  const first = page("front", undefined);
  const front = readOn("front", first);
  const back = first.then(({ total }) => (total > 2 * size ? readOn("back", page("back", undefined)) : undefined));
  try {
    await Promise.all([front, back]);
  } catch (error) {
    if (met.signal.aborted) return; // what was still on its way is not needed
    met.abort();
    throw error;
  }
}
