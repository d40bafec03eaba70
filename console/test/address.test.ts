import assert from "node:assert/strict";
import { test } from "node:test";

import { definitionAt } from "../src/address.js";

test("an event leads to its property, in an object too", () => {
  assert.equal(definitionAt("A::B/50%"), "/definitions/A%3A%3AB/properties/50%25");
  assert.equal(definitionAt("A::B/CPU/cores"), "/definitions/A%3A%3AB/properties/cores?object=CPU");
});
