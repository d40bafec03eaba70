/** Shared by tests: a server with the demo cloud, and a proxy that cuts connections. */

import assert from "node:assert/strict";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";

import type { Connection } from "../src/index.js";

/** The server at CADASTRE_SERVER with the demo cloud: `cadastre serve --demo`. */
export function server(token = "demo-admin"): Connection {
  const address = process.env["CADASTRE_SERVER"];
  assert.ok(address, "CADASTRE_SERVER names no server: start one by `cadastre serve --demo`");
  return { url: address + "/graphql", token };
}

/** A proxy before the server, whose connections can be cut. */
export interface Proxy {
  readonly connection: Connection;
  readonly cut: () => void;
  readonly close: () => void;
}

export async function proxy(token = "demo-admin"): Promise<Proxy> {
  const { hostname, port } = new URL(server().url);
  const open = new Set<Socket>();
  const listener = createServer((socket) => {
    const target = connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, target],
      [target, socket],
    ] as const) {
      open.add(from);
      from.on("error", () => to.destroy()).on("close", () => (open.delete(from), to.destroy()));
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const cut = () => open.forEach((socket) => socket.destroy());
  return {
    connection: { url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/graphql`, token },
    cut,
    close: () => (listener.close(), cut()),
  };
}

const limit = 20_000 * Number(process.env["CADASTRE_TEST_PATIENCE"] || 1);

/** Waits until something holds; fails if that takes longer than a test may wait. */
export async function until(is: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + limit; !is(); await new Promise((resolve) => setTimeout(resolve, 5))) if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
}

/** Fails if a promise takes longer than a test may wait. */
export async function within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(`${what} took longer than ${limit} ms`)), limit)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits for the first event of a subscription, then ends the subscription. */
export function first(subscribe: (next: (event: unknown) => void) => { unsubscribe: () => void }): Promise<unknown> {
  return new Promise((resolve) => {
    const subscribed = subscribe((event) => {
      subscribed.unsubscribe();
      resolve(event);
    });
  });
}

let numbers = 0;

/** A name that no other test has. */
export const newName = (what: string): string => `${what}-${process.pid}-${Date.now()}-${numbers++}`;
