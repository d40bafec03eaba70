import assert from "node:assert/strict";
import { test } from "node:test";

import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { Client, createRequest, gql as document } from "@urql/core";

import { cacheOptions, subscriptionLink } from "../src/apollo.js";
import { eventStream, request } from "../src/index.js";
import { CreateNamespaceDocument, NamespaceChangesDocument, UpdateNamespaceDocument } from "../src/operations.js";
import { exchanges } from "../src/urql.js";
import { first, newName, server, within } from "./helpers.js";

const listed = `query Listed($filter: NamespaceFilter) {
  viewer { id userId }
  namespaces(filter: $filter, first: 5) { totalCount nodes { id name description properties { id name enumMembers { label value { text } } } } }
}`;
const others = `query Others($filter: NamespaceFilter) {
  namespaces(filter: $filter, first: 5) { nodes { id revision displayName } pageInfo { endCursor } }
}`;
const read = `query Read($name: String!) { namespace(name: $name) { id name description } }`;

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
    const changing = (async () => {
      for (let i = 0; i < 5; i++) {
        const changed = document(`mutation Change($input: UpdateNamespaceInput!) { updateNamespace(input: $input) { namespace { id description } } }`);
        await client.mutation(changed, { input: { name, description: `after ${i}` } }).toPromise();
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    assert.equal(((await event) as { data: { namespaceChanged: { namespace: { name: string } } } }).data.namespaceChanged.namespace.name, name);
    await changing;
    const cached = await client.query(document(listed), { filter }, { requestPolicy: "cache-only" }).toPromise();
    assert.equal(cached.data.namespaces.nodes[0].description, "after 4", "the mutation did not reach the list");

    const partial = await client.query(document(`query { viewer { id userId } auditEvents(filter: {action: "nothing"}, first: -1) { totalCount } }`), {}).toPromise();
    assert.ok(partial.error);
    assert.equal(partial.data, undefined);
  });
  assert.deepEqual(said, []);
});

test("urql: an answer that comes late does not replace what was read after it", async () => {
  const name = newName("late");
  await request(server(), CreateNamespaceDocument, { input: { name, description: "before" } });
  const begun: Promise<unknown>[] = [];
  let hold: Promise<void> | undefined;
  let release = () => {};
  const late: typeof fetch = (...asked) => {
    const held = hold;
    hold = undefined;
    const answer = fetch(...asked).then(async (answer) => (await held, answer));
    begun.push(answer);
    return answer;
  };
  const client = new Client({ url: server().url, preferGetMethod: false, fetch: late, fetchOptions: { headers: { "X-Auth-Token": "demo-admin" } }, exchanges: exchanges() });
  const seen: string[] = [];
  const query = document(read);
  const follow = client.query(query, { name }).subscribe(({ data }) => void seen.push(data.namespace.description));
  const shows = (description: string) => within((async () => { while (seen.at(-1) !== description) await new Promise((resolve) => setTimeout(resolve, 5)); })(), description);
  await shows("before");

  const readAgain = () => client.reexecuteOperation(client.createRequestOperation("query", createRequest(query, { name }), { requestPolicy: "network-only" }));
  hold = new Promise((resolve) => (release = resolve));
  readAgain();
  await within((async () => { while (begun.length < 2) await new Promise((resolve) => setTimeout(resolve, 5)); })(), "the second read");
  await new Promise((resolve) => setTimeout(resolve, 200)); // the server has read
  await request(server(), UpdateNamespaceDocument, { input: { name, description: "after" } });
  readAgain();
  await new Promise((resolve) => setTimeout(resolve, 200)); // a third answer would be there
  release();
  await shows("after");
  await Promise.all(begun);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(seen.at(-1), "after");
  assert.equal(begun.length, 3);
  follow.unsubscribe();
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
    await client.query({ query: gql(read), variables: { name } });

    const event = within(
      first((next) => client.subscribe({ query: NamespaceChangesDocument, variables: { names: [name] } }).subscribe({ next, error: next })),
      "an event",
    );
    const changing = (async () => {
      for (let i = 0; i < 5; i++) {
        await request(server(), UpdateNamespaceDocument, { input: { name, description: `after ${i}` } });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    assert.match(JSON.stringify(await event), new RegExp(name));
    await changing;
    client.stop();
  });
  assert.deepEqual(said, []);
});
