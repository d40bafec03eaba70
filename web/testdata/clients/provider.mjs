// An OpenID Connect provider on loopback. It prints its issuer, reads the address of the
// console as a line, and prints "ready". argv[2] is the lifetime of access tokens in
// seconds, argv[3] their audience.
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const [, , seconds, audience] = process.argv;
const server = createServer().listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;
process.stdout.write(issuer + "\n");
const lines = createInterface({ input: process.stdin });
const [address] = await once(lines, "line");

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "console",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: [address + "/console/signed-in"],
      post_logout_redirect_uris: [address + "/console"],
    },
  ],
  clientBasedCORS: (_, origin) => origin === address,
  cookies: { keys: ["a key of a test"] },
  extraTokenClaims: (_, { accountId }) => ({ project: "operations", roles: [{ ada: "admin", bob: "member" }[accountId] ?? "reader"] }),
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: "", audience, accessTokenTTL: Number(seconds), accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
server.on("request", provider.callback());
process.stdout.write("ready\n");
lines.on("close", () => process.exit()); // with the test
