import assert from "node:assert/strict";
import { test } from "node:test";

import { cloudOf, type Row, shareOf } from "../src/placement/cloud.js";

const row = (uuid: string, parent: string | undefined, capacity: number, used: number): Row => ({
  uuid,
  name: uuid,
  parent: parent === undefined ? null : { uuid: parent },
  inventories: capacity > 0 ? [{ resourceClass: "VCPU", capacity, used }] : [],
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
  assert.deepEqual(of("a"), [0, "a", undefined, "b", { capacity: 13, used: 6 }]);
  assert.deepEqual(of("b"), [1, "a", "a", "c,d", { capacity: 13, used: 6 }]);
  assert.deepEqual(of("d"), [2, "a", "b", "", { capacity: 4, used: 4 }]);
  assert.deepEqual(providers.get("b")?.inventories, [{ resourceClass: "VCPU", capacity: 1, used: 0 }]);
  assert.equal(shareOf(trees[0]!, ""), 1);
  assert.deepEqual([classes, aggregates], [["VCPU"], ["of A", "of a", "of b", "of c", "of d"]]);
});

test("what is below a provider that was not read is left out", () => {
  const { trees, providers, classes } = cloudOf([row("c", "b", 8, 2), row("b", "a", 1, 0), row("z", undefined, 0, 0)]);
  assert.deepEqual(trees.map(({ uuid }) => uuid), ["z"]);
  assert.deepEqual([[...providers.keys()], classes], [["z"], []]);
});
