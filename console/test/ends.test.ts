import assert from "node:assert/strict";
import { test } from "node:test";

import { type End, type Page, readEnds } from "../src/placement/ends.js";

interface Row {
  readonly uuid: string;
  readonly name: string;
}

// Numbers from a seed, so that a failure can be repeated.
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const placeOf = ({ name, uuid }: Row) => `${name}/${uuid}`;

/** A list of a server. It answers requests for pages in random order. */
class List {
  readonly rows = new Map<string, Row>();
  asked = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly size: number,
    private readonly random: (below: number) => number,
  ) {}

  readonly ask = async (end: End, from: string | undefined, signal: AbortSignal): Promise<Page<Row>> => {
    this.asked++;
    await new Promise<void>((answer) => this.waiting.push(answer));
    signal.throwIfAborted();
    const all = [...this.rows.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const rest = from === undefined ? all : all.filter((row) => (end === "front" ? placeOf(row) > from : placeOf(row) < from));
    const rows = end === "front" ? rest.slice(0, this.size) : rest.slice(-this.size);
    const last = end === "front" ? rows.at(-1) : rows[0];
    return { rows, total: all.length, next: rest.length > rows.length && last ? placeOf(last) : undefined };
  };

  /** Answers one page after the other until the reading ends, with changes in between. */
  async serve(reading: Promise<void>, change: () => void): Promise<void> {
    let ended = false;
    const end = reading.finally(() => (ended = true));
    end.catch(() => {}); // the caller awaits it
    while (!ended) {
      await new Promise((soon) => setImmediate(soon));
      change();
      this.waiting.splice(this.random(this.waiting.length), 1)[0]?.();
    }
    return end;
  }
}

test("a list is read whole, whatever its length and whichever end is faster", async () => {
  const random = numbers(1);
  for (let length = 0; length <= 60; length++) {
    const [size, read] = [5, new Map<string, Row>()];
    const list = new List(size, random);
    for (let at = 0; at < length; at++) list.rows.set(`u${at}`, { uuid: `u${at}`, name: `n${random(20)}` });
    await list.serve(readEnds(size, list.ask, (rows) => rows.forEach((row) => read.set(row.uuid, row))), () => {});
    assert.deepEqual([...read.keys()].sort(), [...list.rows.keys()].sort());
    // One more if the last pages of both ends touch.
    assert.ok(list.asked <= Math.max(1, Math.ceil(length / size)) + 1, `${list.asked} pages of a list of ${length}`);
  }
});

test("what stays as it is meanwhile is read, whatever else is created, renamed and deleted", async () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = numbers(seed);
    const [size, read, touched] = [1 + random(6), new Set<string>(), new Set<string>()];
    const list = new List(size, random);
    const put = (uuid: string) => list.rows.set(uuid, { uuid, name: `n${random(200)}` });
    for (let at = 0; at < random(80); at++) put(`u${at}`);
    const change = () => {
      for (let times = random(4); times > 0; times--) {
        const known = [...list.rows.keys()];
        const uuid = random(3) === 0 ? `new${random(1e6)}` : known[random(known.length)];
        if (uuid === undefined) continue;
        touched.add(uuid);
        if (random(3) === 0) list.rows.delete(uuid);
        else if (touched.size < 200) put(uuid);
      }
    };
    await list.serve(readEnds(size, list.ask, (rows) => rows.forEach(({ uuid }) => read.add(uuid))), change);
    for (const uuid of list.rows.keys()) assert.ok(touched.has(uuid) || read.has(uuid), `seed ${seed}: ${uuid} was not read`);
  }
});

test("a page that fails ends the reading, and what is on its way for the other end", async () => {
  for (let failing = 1; failing <= 6; failing++) {
    const list = new List(2, numbers(failing));
    for (let at = 0; at < 40; at++) list.rows.set(`u${at}`, { uuid: `u${at}`, name: `n${at}` });
    let asked = 0;
    const reading = readEnds(2, async (...args) => {
      const failed = ++asked === failing;
      const page = await list.ask(...args);
      if (failed) throw new Error("refused");
      return page;
    }, () => {});
    await assert.rejects(list.serve(reading, () => {}), /refused/);
    const before = asked;
    await list.serve(new Promise((soon) => setImmediate(() => setImmediate(soon))), () => {});
    assert.equal(asked, before, "more was asked for after that");
  }
});
