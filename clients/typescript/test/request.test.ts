import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { CadastreError, dateOf, dateTimeOf, errorCodes, request } from "../src/index.js";
import { CreateNamespaceDocument, ListNamespacesDocument, ReadNamespaceDocument, ReadViewerDocument } from "../src/operations.js";
import { newName, server } from "./helpers.js";

test("operations have typed answers", async () => {
  const { viewer } = await request(server("demo-member"), ReadViewerDocument);
  assert.equal(viewer.userId, "demo-member");
  const { namespaces } = await request(server(), ListNamespacesDocument, { first: 3, filter: { search: "cpu" } });
  assert.equal(namespaces.nodes.length, 3);
  for (const node of namespaces.nodes) assert.equal(dateTimeOf(dateOf(node.createdAt)).slice(0, 22), node.createdAt.slice(0, 22));
  const found = await request(server(), ReadNamespaceDocument, { name: "no such namespace" });
  assert.equal(found.namespace, null);
  // @ts-expect-error: a look-up by key can be null
  assert.throws(() => found.namespace.name);
  // @ts-expect-error: there is no such condition
  await assert.rejects(request(server(), ListNamespacesDocument, { filter: { nothing: 1 } }), CadastreError);
});

test("what is refused is thrown with its code and the fields that are wrong", async () => {
  const refused = async (of: Promise<unknown>): Promise<CadastreError> =>
    of.then(
      () => assert.fail("nothing was refused"),
      (error: unknown) => (assert.ok(error instanceof CadastreError, String(error)), error),
    );
  const bad = await refused(request(server(), CreateNamespaceDocument, { input: { name: "", owner: "" } }));
  assert.equal(bad.code, "BAD_USER_INPUT");
  assert.ok(bad.fields.has("input.name"), [...bad.fields.keys()].join());
  assert.equal((await refused(request(server("nobody"), ReadViewerDocument))).code, "UNAUTHENTICATED");
  assert.equal((await refused(request(server("demo-reader"), CreateNamespaceDocument, { input: { name: newName("reader") } }))).code, "FORBIDDEN");
  assert.equal((await refused(request(server(), "query { nothing }"))).code, "GRAPHQL_VALIDATION_FAILED");
});

test("a mutation of which no answer came is made once", async () => {
  const name = newName("once");
  let lost = 0;
  const losing: typeof fetch = async (...args) => {
    const response = await fetch(...args);
    if (lost++ < 2) {
      await response.arrayBuffer();
      throw new TypeError("the connection was cut");
    }
    return response;
  };
  const made = await request({ ...server(), fetch: losing }, CreateNamespaceDocument, { input: { name } });
  assert.equal(lost, 3);
  assert.equal(made.createNamespace.namespace.name, name);
});

test("a redirect to another origin does not get the token", async () => {
  const tokens: (string | undefined)[] = [];
  const site = createServer((incoming, outgoing) => {
    tokens.push(incoming.headers.authorization, incoming.headers["x-auth-token"] as string | undefined);
    const { port } = site.address() as AddressInfo;
    if (incoming.url === "/graphql") outgoing.writeHead(307, { Location: `http://localhost:${port}/` }).end();
    else outgoing.setHeader("Content-Type", "application/json").end('{"data": {}}');
  });
  await new Promise<void>((resolve) => site.listen(0, resolve));
  await request({ url: `http://127.0.0.1:${(site.address() as AddressInfo).port}/graphql`, token: "secret" }, ReadViewerDocument);
  site.close();
  assert.deepEqual(tokens, ["Bearer secret", undefined, undefined, undefined]);
});

test("a proxy without a server is asked again", async () => {
  let sent = 0;
  const busy: typeof fetch = (...args) => (sent++ > 0 ? fetch(...args) : Promise.resolve(new Response("no server", { status: 503 })));
  assert.equal((await request({ ...server(), fetch: busy }, ReadViewerDocument)).viewer.userId, "demo-admin");
  assert.equal(sent, 2);
});

test("a mutation whose answers a proxy spoils is made once", async () => {
  const name = newName("spoilt");
  const answers = [
    () => new Response("no answer", { status: 502 }),
    () => new Response('{"data": {', { headers: { "Content-Type": "application/json" } }),
    () => Response.json({ errors: ["NOT_FOUND", "OUTCOME_UNKNOWN"].map((code) => ({ message: "m", extensions: { code } })) }),
  ];
  let sent = 0;
  const spoiling: typeof fetch = async (...args) => {
    const response = await fetch(...args);
    return answers[sent++]?.() ?? response;
  };
  const made = await request({ ...server(), fetch: spoiling }, CreateNamespaceDocument, { input: { name } });
  assert.equal(sent, 4);
  assert.equal(made.createNamespace.namespace.name, name);
});

test("a mutation that still runs when it is sent again is waited for", async () => {
  let sent = 0;
  const busy: typeof fetch = async (...args) => {
    if (sent++ > 0) return fetch(...args);
    const extensions = { code: "CONCURRENT_UPDATE", field: "Idempotency-Key", retryAfter: 0.1 };
    return Response.json({ errors: [{ message: "the same request is running", extensions }] }, { status: 409 });
  };
  const name = newName("running");
  const made = await request({ ...server(), fetch: busy }, CreateNamespaceDocument, { input: { name } });
  assert.equal(sent, 2);
  assert.equal(made.createNamespace.namespace.name, name);
});

test("each mutation has another key, on a page without crypto.randomUUID, too", async (t) => {
  t.mock.method(crypto, "randomUUID", () => assert.fail("such a page has no crypto.randomUUID"));
  const keys = new Set<string | null>();
  const noting: typeof fetch = (input, init) => {
    keys.add(new Headers(init?.headers).get("Idempotency-Key"));
    return fetch(input, init);
  };
  for (let i = 0; i < 2; i++) {
    await request({ ...server(), fetch: noting }, CreateNamespaceDocument, { input: { name: newName("key") } });
  }
  assert.equal(keys.size, 2);
  for (const key of keys) assert.match(key ?? "none", /^\w+(-\w+){3}$/);
});

test("a query has the position after the last mutation of its connection", async () => {
  const sent: (string | null)[] = [];
  const given: (string | null)[] = [];
  const noting: typeof fetch = async (input, init) => {
    sent.push(new Headers(init?.headers).get("Cadastre-Position"));
    const response = await fetch(input, init);
    given.push(response.headers.get("Cadastre-Position"));
    return response;
  };
  const connection = { ...server(), fetch: noting };
  for (let i = 0; i < 3; i++) {
    await request(connection, CreateNamespaceDocument, { input: { name: newName("position") } });
    await request(connection, ReadViewerDocument);
  }
  assert.deepEqual(sent, [null, given[0], given[0], given[2], given[2], given[4]]);
  assert.match(given[4] ?? "", /^[0-9a-z]+$/);
  await request({ ...server(), fetch: noting }, ReadViewerDocument);
  assert.equal(sent.at(-1), null);
});

test("an earlier mutation that is answered last does not move the position back", async () => {
  const sent: (string | null)[] = [];
  let answerFirst = () => {};
  const swapping: typeof fetch = async (_, init) => {
    sent.push(new Headers(init?.headers).get("Cadastre-Position"));
    const isFirst = sent.length === 1;
    if (isFirst) await new Promise<void>((resolve) => (answerFirst = resolve));
    return Response.json({ data: {} }, { headers: { "Cadastre-Position": isFirst ? "10" : "20" } });
  };
  const connection = { ...server(), fetch: swapping };
  const first = request(connection, "mutation { first }");
  await request(connection, "mutation { second }");
  answerFirst();
  await first;
  await request(connection, "{ third }");
  assert.deepEqual(sent, [null, null, "20"]);
});

test("an error does not deny a change that an earlier attempt can have made", async () => {
  const refusal = (code: string, path?: string[]) => () => Response.json({ errors: [{ message: code, path, extensions: { code, retryAfter: 0.01 } }] });
  const cut = () => assert.fail(new TypeError("cut"));
  const busy = refusal("UNAVAILABLE", ["m"]);
  for (const [answers, want] of [
    [[cut, busy, busy], "cut"],
    [[refusal("OUTCOME_UNKNOWN", ["m"]), busy, busy], "OUTCOME_UNKNOWN"],
    [[cut, refusal("UNAUTHENTICATED")], "cut"],
    [[cut, refusal("NOT_FOUND", ["m"])], "NOT_FOUND"],
    [[busy, busy, busy], "UNAVAILABLE"],
  ] as const) {
    let sent = 0;
    const faulty: typeof fetch = () => new Promise((resolve) => resolve(answers[sent++]!()));
    await assert.rejects(request({ ...server(), fetch: faulty }, "mutation { m }", {}, { retries: 2 }), { message: want });
    assert.equal(sent, answers.length);
  }
});

test("the codes are those of docs/errors.md", () => {
  const page = readFileSync(new URL("../../../../docs/errors.md", import.meta.url), "utf8");
  const documented = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
  assert.deepEqual([...errorCodes].sort(), documented.sort());
});
