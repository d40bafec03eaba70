// Runs every query of the files argv[4...] against the server at argv[2], with the
// token argv[3], through urql with a normalised cache: by the client and with the keys
// that docs/clients.md gives, and the server's own introspection. Each query is then
// answered from the cache alone. It prints as JSON what was warned of, what
// failed, and which queries ran.
import fs from "fs";
import { getIntrospectionQuery, parse } from "graphql";
import { Client, createRequest, fetchExchange, mapExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";

const [, , url, token, ...files] = process.argv;
const page = fs.readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
const shown = /```js\n(\/\/ keysOf [^]*?)```/.exec(page)[1];
const { keysOf, onResult } = await import("data:text/javascript," + encodeURIComponent(shown));

const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...parts) => complaints.push(parts.join(" "));

const headers = { "X-Auth-Token": token, "Content-Type": "application/json" };
const asked = await fetch(url + "/graphql", { method: "POST", headers, body: JSON.stringify({ query: getIntrospectionQuery() }) });
const schema = (await asked.json()).data;
const made = /```js\n(const client = [^]*?)```/.exec(page)[1].replace('url: "/graphql",', 'url: url + "/graphql", preferGetMethod: false, fetchOptions: { headers },');
const used = { Client, cacheExchange, fetchExchange, headers, keysOf, mapExchange, onResult, schema, url };
const client = new Function(...Object.keys(used), made + "return client;")(...Object.values(used));

const ran = [];
for (const file of files) {
  const document = parse(fs.readFileSync(file, "utf8"));
  for (const definition of document.definitions.filter((definition) => definition.operation === "query")) {
    const request = createRequest({ ...document, definitions: [definition] }, {});
    const run = (requestPolicy) => client.executeQuery(request, { requestPolicy });
    const first = await run("network-only").toPromise();
    const again = await run("cache-only").toPromise();
    if (first.error || !first.data) complaints.push(`${definition.name.value}: ${first.error}`);
    if (JSON.stringify(again.data) !== JSON.stringify(first.data)) complaints.push(`${definition.name.value}: the cache answers ${JSON.stringify(again.data)}`);
    ran.push(definition.name.value);
  }
}
process.stdout.write(JSON.stringify({ complaints, ran }));
