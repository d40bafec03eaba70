import assert from "node:assert/strict";
import { test } from "node:test";

const stored = new Map<string, string>();
const sessionStorage = { getItem: (name: string) => stored.get(name) ?? null, setItem: (name: string, value: string) => void stored.set(name, value) };
Object.assign(globalThis, { location: { origin: "https://console.test" }, sessionStorage });

test("a renewal without a token that the server reads ends the session", async () => {
  const issuer = "https://issuer.test";
  globalThis.fetch = async (address) => Response.json(String(address).includes("/.well-known/") ? { issuer, token_endpoint: issuer + "/token" } : { access_token: "opaque", token_type: "bearer" });
  const { keepRenewed } = await import("../src/oidc.js");
  stored.set("cadastre.oidc", JSON.stringify({ token: "first", expires: Date.now() + 50, refresh: "refresh", id: "first" }));
  const outcome = await new Promise<string>((done) => {
    const stop = keepRenewed({ issuer, clientId: "console", scope: "openid", audience: "" }, "first", () => (stop(), done("renewed")), () => done("ended"));
  });
  assert.equal(outcome, "ended");
});
