import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";

import { CadastreError, type Connection, eventStream, follow, request, type Stream, webSocket } from "../src/node.js";
import { CreateNamespaceDocument, LatestChangeDocument, NamespaceChangesDocument, UpdateNamespaceDocument } from "../src/operations.js";
import { newName, proxy, server, within } from "./helpers.js";

const transports: Record<string, (connection: Connection) => { stream: Stream; close: () => void }> = {
  "event streams": (connection) => ({ stream: eventStream(connection), close: () => {} }),
  "a WebSocket": (connection) => webSocket(connection),
};

for (const [name, transport] of Object.entries(transports)) {
  test(`${name}: no event is missed and none comes twice, however often the connection is cut`, async () => {
    const between = await proxy();
    const { stream, close } = transport(between.connection);
    const stop = new AbortController();
    try {
      const namespace = newName("followed");
      const { changes } = await request(server(), LatestChangeDocument, {});
      await request(server(), CreateNamespaceDocument, { input: { name: namespace } });
      const writes = 30;
      let opened = 0;
      let begin = () => {};
      const begun = new Promise<void>((resolve) => (begin = resolve));
      const writing = (async () => {
        // A first connection that is cut is an error, not a stream to resume.
        await begun;
        for (let i = 1; i <= writes; i++) {
          await request(server(), UpdateNamespaceDocument, { input: { name: namespace, description: `change ${i}` } });
          if (i % 3 === 0) between.cut();
        }
      })();
      const seen: string[] = [];
      const following = (async () => {
        const onLive = (live: boolean) => live && (opened++, begin());
        const options = { signal: stop.signal, onLive };
        for await (const { data } of follow(stream, NamespaceChangesDocument, { names: [namespace], after: changes.latest }, options)) {
          seen.push(data.namespaceChanged.change.what);
          if (seen.length === writes + 1) return;
          if (seen.length % 7 === 0) between.cut();
        }
      })();
      await within(Promise.all([writing, following]), "following");
      assert.deepEqual(seen, ["CREATED", ...Array<string>(writes).fill("UPDATED")]);
      assert.ok(opened > 1, `the stream was opened ${opened} times`);
    } finally {
      stop.abort();
      close();
      between.close();
    }
  });

  test(`${name}: what would be refused again is thrown`, async () => {
    const first = async (connection: Connection, document: string): Promise<CadastreError> => {
      const { stream, close } = transport(connection);
      try {
        await within(follow(stream, document).next(), "a refusal");
      } catch (error) {
        assert.ok(error instanceof CadastreError, String(error));
        return error;
      } finally {
        close();
      }
      return assert.fail("nothing was refused");
    };
    const valid = "subscription { namespaceChanged { cursor } }";
    assert.equal((await first(server("nobody"), valid)).code, "UNAUTHENTICATED");
    assert.equal((await first(server(), "subscription { nothing }")).code, "GRAPHQL_VALIDATION_FAILED");
    assert.equal((await first(server(), 'subscription { namespaceChanged(after: "no cursor") { cursor } }')).code, "BAD_USER_INPUT");
  });

  test(`${name}: a signal ends it while nothing happens`, async () => {
    const { stream, close } = transport(server());
    const stop = new AbortController();
    const events = follow(stream, NamespaceChangesDocument, { names: [newName("quiet")] }, { signal: stop.signal, onLive: (live) => live && stop.abort() });
    assert.equal((await within(events.next(), "the end")).done, true);
    close();
  });

  test(`${name}: a second subscription is live, too`, async () => {
    const { stream, close } = transport(server());
    const stop = new AbortController();
    const { signal } = stop;
    for (const count of ["first", "second"]) {
      const live = new Promise<void>((resolve) => {
        const onLive = (is: boolean) => is && resolve();
        void follow(stream, NamespaceChangesDocument, { names: [newName("quiet")] }, { signal, onLive }).next();
      });
      await within(live, `the ${count} one to be live`);
    }
    stop.abort();
    close();
  });

  test(`${name}: a server that is not reached is an error at first`, async () => {
    const gone = await proxy();
    gone.close();
    const { stream, close } = transport(gone.connection);
    await assert.rejects(within(follow(stream, NamespaceChangesDocument, {}).next(), "an error"));
    close();
  });
}

test("a page in place of an event stream is an error", async () => {
  const page = () => Promise.resolve(new Response("<html>Sign in</html>", { headers: { "Content-Type": "text/html" } }));
  const events = follow(eventStream({ ...server(), fetch: page }), NamespaceChangesDocument, {});
  await assert.rejects(within(events.next(), "an error"), CadastreError);
});

test("a WebSocket that does not open is left when a signal or close ends it", async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { stream, close } = webSocket({ url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/graphql` });
  const stop = new AbortController();
  const aborted = follow(stream, NamespaceChangesDocument, {}, { signal: stop.signal }).next();
  const closed = follow(stream, NamespaceChangesDocument, {}, { patient: true }).next();
  const [socket] = (await once(silent, "connection")) as [Socket];
  stop.abort();
  assert.equal((await within(aborted, "the end of the aborted one")).done, true);
  close();
  await assert.rejects(within(closed, "the end of the closed one"), CadastreError);
  socket.destroy();
  silent.close();
});

test("a closed WebSocket is not opened again", async () => {
  const { stream, close } = webSocket(server());
  const onLive = (live: boolean) => live && close();
  await assert.rejects(within(follow(stream, NamespaceChangesDocument, { names: [newName("quiet")] }, { onLive }).next(), "the end"), CadastreError);
});
