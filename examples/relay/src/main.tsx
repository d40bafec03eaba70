import { StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { RelayEnvironmentProvider } from "react-relay";
import { Environment, type FetchFunction, Network } from "relay-runtime";

import { Failed } from "./Failed";
import { Hosts } from "./Hosts";

const url = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:8080/graphql";
const token = (sessionStorage["token"] ??= prompt("The token to ask with; of a demo, demo-member") ?? "") as string;

const send: FetchFunction = async ({ text, operationKind }, variables) => {
  const headers: Record<string, string> = { "Content-Type": "application/json", Accept: "application/json", "X-Auth-Token": token };
  if (operationKind === "mutation") headers["Idempotency-Key"] = crypto.randomUUID();
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: text, variables }) })).json();
};
const environment = new Environment({ network: Network.create(send) });

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <RelayEnvironmentProvider environment={environment}>
      <Failed>
        <Suspense fallback="Loading">
          <Hosts />
        </Suspense>
      </Failed>
    </RelayEnvironmentProvider>
  </StrictMode>,
);
