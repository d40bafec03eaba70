import assert from "node:assert/strict";
import { test } from "node:test";

import { cloudOf, heldPartOf, type Row, shareOf } from "../src/placement/cloud.js";

const row = (uuid: string, parent: string | undefined, capacity: number, used: number, held: number | null = 0): Row => ({
  uuid,
  name: uuid,
  parent: parent === undefined ? null : { uuid: parent },
  inventories: capacity > 0 ? [{ resourceClass: "VCPU", capacity, used, held }] : [],
  aggregates: [`of ${uuid}`],
});

test("a provider has what it and all below it have", () => {
  const { trees, providers, classes, aggregates } = cloudOf([row("c", "b", 8, 2), row("d", "b", 4, 4), row("b", "a", 1, 0), row("a", undefined, 0, 0), row("A", undefined, 2, 2)]);
  assert.deepEqual(trees.map(({ uuid, below }) => [uuid, below]), [["A", 0], ["a", 3]]);
  const of = (uuid: string) => {
    const provider = providers.get(uuid);
    assert(provider);
    return [provider.depth, provider.root.uuid, provider.parent?.uuid, provider.children.map(({ uuid }) => uuid).join(), provider.amounts.get("VCPU")];
  };
  assert.deepEqual(of("a"), [0, "a", undefined, "b", { capacity: 13, used: 6, held: 0 }]);
  assert.deepEqual(of("b"), [1, "a", "a", "c,d", { capacity: 13, used: 6, held: 0 }]);
  assert.deepEqual(of("d"), [2, "a", "b", "", { capacity: 4, used: 4, held: 0 }]);
  assert.deepEqual(providers.get("b")?.inventories, [{ resourceClass: "VCPU", capacity: 1, used: 0, held: 0 }]);
  assert.equal(shareOf(trees[0]!, ""), 1);
  assert.deepEqual([classes, aggregates], [["VCPU"], ["of A", "of a", "of b", "of c", "of d"]]);
});

test("what is below a provider that was not read is left out", () => {
  const { trees, providers, classes } = cloudOf([row("c", "b", 8, 2), row("b", "a", 1, 0), row("z", undefined, 0, 0)]);
  assert.deepEqual(trees.map(({ uuid }) => uuid), ["z"]);
  assert.deepEqual([[...providers.keys()], classes], [["z"], []]);
});

test("what is held below counts, and is unknown to some viewers", () => {
  const seen = cloudOf([row("b", "a", 8, 4, 1), row("c", "a", 8, 4, 2), row("a", undefined, 8, 0), row("d", undefined, 8, 8)]);
  assert.deepEqual([seen.isHeld, seen.trees.map(({ amounts }) => amounts.get("VCPU")?.held)], [true, [3, 0]]);
  assert.deepEqual(seen.trees.map((tree) => [heldPartOf(tree, ""), heldPartOf(tree, "VCPU"), heldPartOf(tree, "PCPU")]), [[3 / 8, 3 / 8, 0], [0, 0, 0]]);
  const hidden = cloudOf([row("a", undefined, 8, 4, null)]);
  assert.deepEqual([hidden.isHeld, hidden.trees[0]?.amounts.get("VCPU")?.held, heldPartOf(hidden.trees[0]!, "")], [false, 0, 0]);
});
