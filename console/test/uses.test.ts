import assert from "node:assert/strict";
import { test } from "node:test";

import { countOf } from "../src/definitions/uses.js";

test("a key of a type counts once, with the prefix once", () => {
  const image = { type: "image", prefix: "hw_", counts: new Map([["hw_cpu", 2], ["cpu", 90]]) };
  const flavor = { type: "flavor", prefix: null, counts: new Map([["cpu", 3], ["hw_cpu", 4]]) };
  assert.equal(countOf([image, image, flavor], "cpu"), 5); // two targets of a type have one key
  assert.equal(countOf([image, flavor], "hw_cpu"), 6);
  assert.equal(countOf([image, flavor], "disk"), 0);
});
