// Opens the examples that are built and served at argv[4] (examples/dashboard) and
// argv[5] (examples/relay) in the browser argv[3], with the server of a demo at
// argv[2], and does with them what they are for. It prints as JSON what was found
// wrong and what the browser complained of.
"use strict";
const fs = require("node:fs");
const { chromium } = require("playwright-core");

const [, , server, executablePath, dashboard, relay] = process.argv;
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const complaints = [];
const holds = (is, what) => is || wrong.push(what);

// Sends an operation as another client.
async function ask(query, variables) {
  const headers = { "Content-Type": "application/json", "X-Auth-Token": "demo-admin" };
  const response = await fetch(server + "/graphql", { method: "POST", headers, body: JSON.stringify({ query, variables }) });
  const answer = await response.json();
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
}

// Opens a page, which asks for a token.
async function open(browser, address) {
  const page = await browser.newPage();
  page.setDefaultTimeout(require("./patience.js")(60000));
  require("./press.js")(page);
  page.on("dialog", (dialog) => dialog.accept("demo-admin"));
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${address}?server=${encodeURIComponent(server + "/graphql")}`);
  return page;
}

async function accessible(page, what) {
  await page.addScriptTag({ content: axe });
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], rules: { region: { enabled: false } } }));
  for (const { id, nodes } of found.violations) wrong.push(`${what}: axe: ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
}

async function list(page) {
  const all = (await ask("{ resources { totalCount } }")).resources.totalCount;
  await page.getByRole("heading", { name: `${all} resources` }).waitFor();
  await accessible(page, "the list");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("button", { name: /^OS::Manila::Share \(/ }).click();
  await page.getByLabel("Search").fill("teams");
  await page.getByRole("heading", { name: /^1 resources$/ }).waitFor();
  await page.getByRole("link", { name: "teams", exact: true }).click();
}

async function editor(page) {
  await page.getByRole("heading", { name: "teams" }).waitFor();
  const read = async () => (await ask('{ resources(filter: {types: ["OS::Manila::Share"], name: "teams"}) { nodes { uuid revision metadata { key value } } } }')).resources.nodes[0];
  const before = await read();
  const definitions = (await ask('{ definitions(resourceType: "OS::Manila::Share") { properties { name title type enumMembers { label value { text } } } } }')).definitions;
  const properties = definitions.flatMap((one) => one.properties);
  const valueOf = (resource, key) => resource.metadata.find((item) => item.key === key)?.value;
  const choice = properties.find((one) => one.enumMembers);
  const number = properties.find((one) => one.type === "INTEGER");
  const chosen = choice.enumMembers.map((member) => member.value.text).find((text) => text !== valueOf(before, choice.name));
  await page.getByLabel(choice.title, { exact: true }).selectOption(chosen);
  await page.getByLabel(number.title, { exact: true }).fill("many");
  await page.locator(".wrong").filter({ hasText: /\S/ }).first().waitFor();
  await page.getByLabel(number.title).first().fill("");
  await accessible(page, "the editor");
  // Somebody else is first: the page reads the resource anew and says why nothing was stored.
  await ask('mutation($uuid: UUID!) { setMetadata(input: {resource: $uuid, items: [{key: "dashboard", value: "beside"}]}) { resource { uuid } } }', { uuid: before.uuid });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("dashboard").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("status").filter({ hasText: `Revision ${before.revision + 2}` }).waitFor();
  const after = await read();
  holds(valueOf(after, choice.name) === chosen && valueOf(after, "dashboard") === "beside" && after.metadata.length >= before.metadata.length, "stored is " + JSON.stringify(after));
}

async function capacity(page) {
  const read = async () => (await ask('{ capacity(resourceClasses: ["VCPU"]) { nodes { capacity } } }')).capacity.nodes[0].capacity;
  const before = await read();
  await page.getByRole("link", { name: "Capacity" }).click();
  const row = page.getByRole("row", { name: /^VCPU/ });
  await row.getByText(String(before), { exact: true }).waitFor();
  await accessible(page, "capacity");
  const { createResourceProvider } = await ask('mutation { createResourceProvider(input: {name: "dashboard-host"}) { resourceProvider { uuid generation } } }');
  const { uuid, generation } = createResourceProvider.resourceProvider;
  await ask('mutation($uuid: UUID!, $generation: Int!) { setInventories(input: {provider: $uuid, generation: $generation, inventories: [{resourceClass: "VCPU", total: 7}]}) { resourceProvider { uuid } } }', { uuid, generation });
  await row.getByText(String(before + 7), { exact: true }).waitFor();
}

async function hosts(page) {
  await page.getByRole("heading", { name: "What demo-admin sees" }).waitFor();
  await page.getByRole("listitem").nth(1).waitFor();
  holds((await page.getByRole("listitem").count()) === 2, "the first page has other than two hosts");
  await accessible(page, "hosts");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("listitem").nth(3).waitFor();
  const button = page.getByRole("button", { name: /^Mark / }).last();
  const name = (await button.textContent()).slice("Mark ".length);
  await button.click();
  await page.getByRole("listitem").filter({ hasText: name }).getByText(/seen/).waitFor();
  const { nodes } = (await ask('query($name: String!) { resources(filter: {types: ["physical:host"], name: $name}) { nodes { tags } } }', { name })).resources;
  holds(nodes[0].tags.includes("seen"), "stored are the tags " + nodes[0].tags);
}

async function main() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const page = await open(browser, dashboard);
    await list(page);
    await editor(page);
    await capacity(page);
    await hosts(await open(browser, relay));
  } catch (error) {
    wrong.push(String(error.stack));
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify({ wrong, complaints }));
}

main();
