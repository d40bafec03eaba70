import assert from "node:assert/strict";
import { test } from "node:test";

import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { Client, gql as document } from "@urql/core";

import { cacheOptions, subscriptionLink } from "../src/apollo.js";
import { eventStream, request } from "../src/index.js";
import { CreateNamespaceDocument, NamespaceChangesDocument, UpdateNamespaceDocument } from "../src/operations.js";
import { exchanges, readAgain } from "../src/urql.js";
import { first, newName, server, until, within } from "./helpers.js";

const listed = `query Listed($filter: NamespaceFilter) {
  viewer { id userId }
  namespaces(filter: $filter, first: 5) { totalCount nodes { id name description properties { id name enumMembers { label value { text } } } } }
}`;
const others = `query Others($filter: NamespaceFilter) {
  namespaces(filter: $filter, first: 5) { nodes { id revision displayName } pageInfo { endCursor } }
}`;
const description = `query Read($name: String!) { namespace(name: $name) { id name description } }`;

/** Makes changes until a promise is settled: a subscription that begins late misses the first ones. */
async function untilSettled(promise: Promise<unknown>, change: (number: number) => Promise<unknown>): Promise<void> {
  let isSettled = false;
  void promise.catch(() => {}).finally(() => (isSettled = true));
  for (let i = 0; i < 5 || !isSettled; i++) {
    await change(i);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Returns the warnings that are logged while a function runs. */
async function warnings(during: () => Promise<void>): Promise<string[]> {
  const said: string[] = [];
  const { warn, error } = console;
  console.warn = console.error = (...parts: unknown[]) => void said.push(parts.join(" "));
  try {
    await during();
  } finally {
    console.warn = warn;
    console.error = error;
  }
  return said;
}

test("urql: one object wherever its id stands, no partial data, and live", async () => {
  const name = newName("urql");
  await request(server(), CreateNamespaceDocument, { input: { name, description: "before" } });
  const said = await warnings(async () => {
    const client = new Client({
      url: server().url,
      preferGetMethod: false,
      fetchOptions: { headers: { "X-Auth-Token": "demo-admin" } },
      exchanges: exchanges({ stream: eventStream(server()) }),
    });
    const filter = { search: name };
    const answer = await client.query(document(listed), { filter }).toPromise();
    assert.equal(answer.error, undefined);
    assert.equal(answer.data.namespaces.nodes[0].description, "before");
    await client.query(document(others), { filter }, { requestPolicy: "network-only" }).toPromise();

    const event = within(
      first((next) => client.subscription(NamespaceChangesDocument, { names: [name] }).subscribe(next)),
      "an event",
    );
    let last = "";
    const changing = untilSettled(event, async (i) => {
      const changed = document(`mutation Change($input: UpdateNamespaceInput!) { updateNamespace(input: $input) { namespace { id description } } }`);
      await client.mutation(changed, { input: { name, description: (last = `after ${i}`) } }).toPromise();
    });
    assert.equal(((await event) as { data: { namespaceChanged: { namespace: { name: string } } } }).data.namespaceChanged.namespace.name, name);
    await changing;
    const cached = await client.query(document(listed), { filter }, { requestPolicy: "cache-only" }).toPromise();
    assert.equal(cached.data.namespaces.nodes[0].description, last, "the mutation did not reach the list");

    const partial = await client.query(document(`query { viewer { id userId } auditEvents(filter: {action: "nothing"}, first: -1) { totalCount } }`), {}).toPromise();
    assert.ok(partial.error);
    assert.equal(partial.data, undefined);
  });
  assert.deepEqual(said, []);
});

/** A client that follows the description of a namespace, and can hold back one answer. */
async function following(name: string) {
  await request(server(), CreateNamespaceDocument, { input: { name, description: "before" } });
  const begun: Promise<unknown>[] = [];
  let answered = 0;
  let hold: Promise<void> | undefined;
  let release = () => {};
  let wait = () => 0; // milliseconds that an answer takes longer
  const late: typeof fetch = (...asked) => {
    const held = hold;
    hold = undefined;
    const answer = fetch(...asked).then(async (answer) => (answered++, await held, await new Promise((resolve) => setTimeout(resolve, wait())), answer));
    begun.push(answer);
    return answer;
  };
  const client = new Client({ url: server().url, preferGetMethod: false, fetch: late, fetchOptions: { headers: { "X-Auth-Token": "demo-admin" } }, exchanges: exchanges() });
  const seen: string[] = [];
  const query = document(description);
  const follow = client.query(query, { name }).subscribe(({ data }) => void seen.push(data.namespace.description));
  const shows = (description: string) => until(() => seen.at(-1) === description, description);
  const read = () => readAgain(client, query, { name });
  await shows("before");
  /** Reads again, and holds the answer back until it is released. */
  const readLate = async () => {
    hold = new Promise((resolve) => (release = resolve));
    read();
    await until(() => answered === 2, "the server has read twice");
  };
  /** Releases the answer, and returns when there is no other to come and it is shown. */
  const settle = async (requests: number, isShown = () => seen.at(-1) === "after") => {
    release();
    try {
      await until(() => begun.length === requests, `${requests} requests`);
      await Promise.all(begun);
      await until(isShown, "the last answer is shown");
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      follow.unsubscribe();
    }
  };
  const delay = (milliseconds: () => number) => void (wait = milliseconds);
  return { client, begun, seen, shows, read, readLate, delay, settle };
}

test("urql: a query has the position after the last mutation", async () => {
  const sent: (string | null)[] = [];
  const answering: typeof fetch = async (_, init) => {
    sent.push(new Headers(init?.headers).get("Cadastre-Position"));
    return Response.json({ data: { viewer: null } }, { headers: sent.length === 2 ? { "Cadastre-Position": "2a" } : {} });
  };
  const client = new Client({ url: server().url, preferGetMethod: false, fetch: answering, exchanges: exchanges() });
  const read = () => client.query(document("{ viewer { id } }"), {}, { requestPolicy: "network-only" }).toPromise();
  await read();
  await client.mutation(document("mutation { viewer { id } }"), {}).toPromise();
  await read();
  assert.deepEqual(sent, [null, null, "2a"]);
});

test("urql: a query that a proxy without a server refuses is sent again", async () => {
  let sent = 0;
  const answering: typeof fetch = async () => (++sent < 3 ? new Response("busy", { status: 503, headers: { "Retry-After": "0" } }) : Response.json({ data: { viewer: null } }));
  const client = new Client({ url: server().url, preferGetMethod: false, fetch: answering, exchanges: exchanges() });
  const { error } = await client.query(document("{ viewer { id } }"), {}).toPromise();
  assert.deepEqual([error, sent], [undefined, 3]);
});

test("urql: an answer that comes late does not replace what was read after it", async () => {
  const name = newName("late");
  const { begun, seen, read, readLate, settle } = await following(name);
  await readLate();
  await request(server(), UpdateNamespaceDocument, { input: { name, description: "after" } });
  read();
  await new Promise((resolve) => setTimeout(resolve, 200)); // a third answer would be there
  assert.equal(begun.length, 2);
  await settle(3);
  assert.equal(seen.at(-1), "after");
  assert.equal(begun.length, 3);
});

test("urql: while a query is in flight, the answers of mutations are shown, and its older answer never", async () => {
  const name = newName("outdated");
  const { client, begun, seen, shows, readLate, settle } = await following(name);
  await readLate();
  const change = document(`mutation($input: UpdateNamespaceInput!) { updateNamespace(input: $input) { namespace { id description } } }`);
  for (const description of ["first", "second", "after"]) {
    await client.mutation(change, { input: { name, description } }).toPromise();
    await shows(description);
  }
  const shown = seen.length;
  await settle(6, () => seen.length > shown); // the two, the mutations, and one in place of the late answer
  assert.ok(seen.length > shown && seen.slice(shown).every((description) => description === "after"), seen.join());
  assert.equal(begun.length, 6);
});

for (const [what, input] of Object.entries({ refused: { newName: "" }, "dry run": { dryRun: true, description: "never" }, "about another": { name: "OS::Compute::Watchdog", description: "Another." } }))
  test(`urql: a query in flight is answered after a mutation that is ${what}`, async () => {
    const name = newName("untouched");
    const { client, begun, seen, readLate, settle } = await following(name);
    await readLate();
    await request(server(), UpdateNamespaceDocument, { input: { name, description: "after" } });
    await client.mutation(document(`mutation($input: UpdateNamespaceInput!) { updateNamespace(input: $input) { namespace { id description } } }`), { input: { name, ...input } }).toPromise();
    await settle(4);
    assert.equal(seen.at(-1), "after");
    assert.equal(begun.length, 4);
  });

test("urql: however reads and changes follow each other, the last state is shown", async () => {
  const change = document(`mutation($input: UpdateNamespaceInput!) { updateNamespace(input: $input) { namespace { id description } } }`);
  for (let round = 0; round < 12; round++) {
    const name = newName("random");
    const { client, begun, seen, shows, read, delay, settle } = await following(name);
    delay(() => 40 * Math.random());
    const did: string[] = [];
    const asked: Promise<unknown>[] = [];
    const actions = {
      read,
      mine: () => asked.push(client.mutation(change, { input: { name, description: `mine ${did.length}` } }).toPromise()),
      dry: () => asked.push(client.mutation(change, { input: { name, description: `never ${did.length}`, dryRun: true } }).toPromise()),
      refused: () => asked.push(client.mutation(change, { input: { name, newName: "", description: `refused ${did.length}` } }).toPromise()),
      theirs: () => asked.push(request(server(), UpdateNamespaceDocument, { input: { name, description: `theirs ${did.length}` } })),
    };
    for (let i = 0; i < 12; i++) {
      const [what, act] = Object.entries(actions)[Math.floor(5 * Math.random())]!;
      did.push(what);
      act();
      await new Promise((resolve) => setTimeout(resolve, 30 * Math.random()));
    }
    await Promise.all(asked);
    read();
    const { namespace } = (await request(server(), document(description), { name })) as { namespace: { description: string } };
    await shows(namespace.description);
    await settle(begun.length, () => seen.at(-1) === namespace.description);
    assert.equal(seen.at(-1), namespace.description, did.join());
  }
});

test("Apollo Client: one object wherever its id stands, parts together, and live", async () => {
  const name = newName("apollo");
  await request(server(), CreateNamespaceDocument, { input: { name, description: "before" } });
  const said = await warnings(async () => {
    const http = new HttpLink({ uri: server().url, headers: { "X-Auth-Token": "demo-admin" } });
    const link = ApolloLink.split(({ operationType }) => operationType === "subscription", subscriptionLink(eventStream(server())), http);
    const client = new ApolloClient({ link, cache: new InMemoryCache(cacheOptions) });
    const filter = { search: name };
    await client.query({ query: gql(listed), variables: { filter } });
    await client.query({ query: gql(others), variables: { filter } });
    const both = await client.query<{ namespaces: { nodes: { description: string }[] } }>({ query: gql(listed), variables: { filter }, fetchPolicy: "cache-only" });
    assert.equal(both.data?.namespaces.nodes[0]?.description, "before");
    await client.query({ query: gql(description), variables: { name } });

    const event = within(
      first((next) => client.subscribe({ query: NamespaceChangesDocument, variables: { names: [name] } }).subscribe({ next, error: next })),
      "an event",
    );
    const changing = untilSettled(event, (i) => request(server(), UpdateNamespaceDocument, { input: { name, description: `after ${i}` } }));
    assert.match(JSON.stringify(await event), new RegExp(name));
    await changing;
    client.stop();
  });
  assert.deepEqual(said, []);
});
