// Reads a long list from both ends until the pages meet. While the server computes a page
// of one end, the browser reads a page of the other.

export type End = "front" | "back";

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** The number of rows in the list. */
  readonly total: number;
  /** The next cursor; undefined at the other end of the list. */
  readonly next: string | undefined;
}

/**
 * Reads a list in the order of its names, page by page, and passes on the rows of each
 * page. A row can be passed on twice. The ends have met when both have read a row at
 * the same place. Rows that change during the reading can be missed: followers of
 * changes get them.
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
      // Only one end requests the last page.
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
    if (met.signal.aborted) return; // pages that arrive later are not needed
    met.abort();
    throw error;
  }
}
