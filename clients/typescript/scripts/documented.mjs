// Writes a test of the samples in TypeScript of docs/clients.md, in their order,
// with what they leave to the reader: a token, a cursor, a signal and libraries. So it
// does with the sample of docs/placement.md, in JavaScript.
import { readFileSync, writeFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
const page = readFileSync(here("../../../docs/clients.md"), "utf8");
const claiming = /^```js\n(.*?)^```/ms.exec(readFileSync(here("../../../docs/placement.md"), "utf8"))[1];
const samples = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1]);
if (samples.length !== 4) throw new Error(`docs/clients.md has ${samples.length} samples in TypeScript: adapt this script`);
const isImport = (line) => line.startsWith("import ");
const lines = samples.map((text) => text.split("\n"));
const imports = lines.flat().filter(isImport).join("\n");
const [asking, following, withUrql, withApollo] = lines.map((of) =>
  of
    .filter((line) => !isImport(line))
    .join("\n")
    .replace('"https://cadastre.example.org/graphql"', 'process.env["CADASTRE_SERVER"] + "/graphql"'),
);

writeFileSync(
  here("../test/documented.test.ts"),
  `// Made by scripts/documented.mjs from docs/clients.md and docs/placement.md.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from "@apollo/client";
import { Client } from "@urql/core";

import { CreateNamespaceDocument, LatestChangeDocument, SetAllocationsDocument } from "@cadastre/client/operations";
${imports}
import { first, newName, server as demo, within } from "./helpers.js";

test("the samples of docs/clients.md", async () => {
  const said: string[] = [];
  const { log } = console;
  const name = newName("documented");
  const stop = new AbortController();
  console.log = (...parts: unknown[]) => {
    const line = parts.join(" ");
    said.push(line);
    if (line === "CREATED " + name) stop.abort();
  };
  try {
    const { signal } = stop;
    const token = "demo-admin";
${asking}
    assert.ok(said.length > 0, "no namespace is listed");
    const { changes } = await request(server, LatestChangeDocument, {});
    const cursor = changes.latest;
    await request(server, CreateNamespaceDocument, { input: { name } });
    const late = setTimeout(() => stop.abort(), 20_000 * Number(process.env["CADASTRE_TEST_PATIENCE"] || 1));
${following}
    clearTimeout(late);
    assert.ok(said.includes("CREATED " + name), said.join("\\n"));

    const http = new HttpLink({ uri: server.url, headers: { "X-Auth-Token": token } });
${withUrql}
${withApollo}
    const after = { after: cursor };
    const told = await within(first((next) => urql.subscription(NamespaceChangesDocument, after).subscribe(next)), "urql");
    assert.ok(JSON.stringify(told).includes("CREATED"), JSON.stringify(told));
    const also = await within(first((next) => apollo.subscribe({ query: NamespaceChangesDocument, variables: after }).subscribe(next)), "Apollo Client");
    assert.ok(JSON.stringify(also).includes("CREATED"), JSON.stringify(also));
    apollo.stop();
    close();
  } finally {
    console.log = log;
  }
});

test("the sample of docs/placement.md", async () => {
  const found = await request<{ allocationCandidates: { nodes: { claim: unknown }[] } }, object>(
    demo(),
    \`{ allocationCandidates(resources: [{ resourceClass: "VCPU", amount: 1 }], first: 1) { nodes { claim {
      __typename allocations { __typename provider resources { __typename resourceClass amount } } mappings { __typename suffix providers } } } } }\`,
    {},
  );
  const claim = found.allocationCandidates.nodes[0]?.claim as any;
  assert.ok(JSON.stringify(claim).includes("__typename"), JSON.stringify(claim));
  const [uuid, projectId, userId] = [randomUUID(), "demo", "ada"];
${claiming}
  const { setAllocations } = await request(demo(), SetAllocationsDocument, { input });
  assert.ok(JSON.stringify(setAllocations).includes(uuid), JSON.stringify(setAllocations));
});
`,
);
