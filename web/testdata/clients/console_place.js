// Places consumers of a flavor on the console: a preview, a claim, holds that are
// confirmed, released and ended, and refusals. The API says which answers are right.
// console_lib.js says which arguments it takes.
"use strict";
const { address, views, pictures, complaints, holds, ask, askUntil, becomes, watch, heading, isLive, choose, accessible, layouts, run } = require("./console_lib.js");
const patience = require("./patience.js");
const hold = patience(600); // seconds

// Two hosts with two units and one of a class that no other host has, and a flavor that
// asks for one unit.
async function rooms() {
  await ask('mutation { createResourceClass(input: {name: "CUSTOM_PLACE"}) { resourceClass { name } } }');
  const create = "mutation($i: CreateResourceProviderInput!) { createResourceProvider(input: $i) { resourceProvider { uuid } } }";
  const hosts = new Map();
  for (const [name, total] of [["place-a", 2], ["place-b", 1]]) hosts.set(name, (await ask(create, { i: { name, inventories: [{ resourceClass: "CUSTOM_PLACE", total }] } })).createResourceProvider.resourceProvider.uuid);
  await ask('mutation { createResource(input: {type: "OS::Nova::Flavor", name: "place.unit", visibility: PUBLIC, metadata: [{key: "resources:CUSTOM_PLACE", value: "1"}]}) { resource { uuid } } }');
  return hosts;
}

const consumersQuery = "query($p: UUID!) { consumers(filter: {provider: $p}, first: 100) { nodes { uuid projectId userId type expiresAt allocations { resourceClass used provider { name } } } } }";
const consumerQuery = "query($u: UUID!) { consumer(uuid: $u) { uuid expiresAt } }";

// The consumers of the hosts, by uuid.
async function consumersOf(hosts) {
  const lists = await Promise.all([...hosts.values()].map((p) => ask(consumersQuery, { p })));
  return lists.flatMap(({ consumers }) => consumers.nodes).sort((a, b) => (a.uuid < b.uuid ? -1 : 1));
}

const form = (page) => page.getByRole("form", { name: "Place consumers" });
const said = (page, text) => page.getByRole("region", { name: "Place", exact: true }).getByRole("status").filter({ hasText: text }).waitFor();
const table = (page, name) => page.getByRole("table", { name });
const row = (page, uuid) => table(page, "Placed consumers").locator("tr", { has: page.locator(`th[title="${uuid}"]`) });
const tile = (page, text) => page.getByRole("option", { name: text }).waitFor({ state: "attached" });

// The uuids and the cells of a table of consumers.
const rowsOf = (page, name) => table(page, name).locator("tbody tr").evaluateAll((rows) => rows.map((row) => ({ uuid: row.querySelector("th").title, host: row.children[1].querySelector("button")?.textContent, place: row.children[1].textContent, outcome: row.children[2].textContent })));

// The length of the dashes at the lower edge of the first tile, in pixels.
const dashes = (page) =>
  page.locator("canvas").evaluate((canvas) => {
    const copy = new OffscreenCanvas(150, 1).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, -85); // of a large tile, 92 pixels high
    const { data } = copy.getImageData(0, 0, 150, 1);
    let dark = 0;
    for (let at = 8; at < 140; at++) if (data[4 * at] === 0x10 && data[4 * at + 1] === 0x16 && data[4 * at + 2] === 0x1c) dark++;
    return dark;
  });

async function open(context) {
  const page = watch(await context.newPage());
  await page.goto(`${address}/console/placement?search=place-&class=CUSTOM_PLACE`);
  await heading(page, "Placement");
  await isLive(page);
  await page.locator('canvas[data-trees="2"]').waitFor();
  await choose(page, "From a flavor", "place.unit");
  return page;
}

// A preview stores nothing, and belongs to what is in the form.
async function previews(page, hosts) {
  await page.getByText("2 candidates", { exact: true }).waitFor();
  await tile(page, /^place-a: CUSTOM_PLACE 0% used, 0 of 2, a candidate$/);
  const fill = (label, text) => form(page).getByLabel(label, { exact: true }).fill(text);
  holds((await form(page).getByLabel("Project").inputValue()) === "demo" && (await form(page).getByLabel("User").inputValue()) === "demo-admin", "the form is not of the viewer's project and user");
  for (const wrong of ["0", "101", "x"]) {
    await fill("Consumers", wrong);
    await form(page).getByText("A whole number from 1 to 100.").waitFor();
    holds(await form(page).getByRole("button", { name: "Preview" }).isDisabled(), `${wrong} consumers can be previewed`);
  }
  await fill("Consumers", "3");
  await fill("Hold for seconds", "86401");
  await form(page).getByText("A whole number from 1 to 86,400.").waitFor();
  await fill("Hold for seconds", String(hold));
  await form(page).getByLabel("Strategy").selectOption("SPREAD");
  await fill("Project", "");
  await form(page).getByRole("button", { name: "Preview" }).click();
  await form(page).locator(".field", { hasText: "Project" }).locator(".error").waitFor();
  await fill("Project", "demo");
  await form(page).getByRole("button", { name: "Preview" }).click();
  await said(page, "3 of 3 consumers would be placed.");
  holds((await consumersOf(hosts)).length === 0, "a preview has placed consumers");
  const rows = await rowsOf(page, "Preview");
  holds(rows.length === 3 && rows.every(({ place, outcome }) => place.includes("1 CUSTOM_PLACE") && outcome === "fits"), `the preview is ${JSON.stringify(rows)}`);
  await tile(page, /^place-a: CUSTOM_PLACE 0% used, 0 of 2, chosen$/);
  if (views === "all") await accessible(page, "a preview");
  await fill("Consumers", "2");
  await table(page, "Preview").waitFor({ state: "detached" });
  holds(await form(page).getByRole("button", { name: "Place 2 consumers" }).isDisabled(), "what was not previewed can be placed");
  await tile(page, /0 of 2, a candidate$/);
  await fill("Consumers", "3");
  return rows;
}

// A double click and a lost answer place once, with a hold, as the preview said.
async function places(page, hosts, rows) {
  await said(page, "3 of 3 consumers would be placed.");
  const keys = [];
  await page.route("**/graphql", async (route) => {
    if (!/mutation PlacementPlace\b/.test(route.request().postData() ?? "")) return route.continue();
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length > 1) return route.continue();
    await route.fetch({ timeout: patience(60000) });
    await route.abort(); // it is stored, and the answer is lost
  });
  const begun = Date.now();
  await form(page).getByRole("button", { name: "Place 3 consumers" }).dblclick();
  await said(page, "3 of 3 consumers placed.");
  await page.unroute("**/graphql");
  for (let at = complaints.length - 1; at >= 0; at--) if (/ERR_FAILED/.test(complaints[at])) complaints.splice(at, 1); // the lost answer
  holds(keys.length === 2 && keys[0] !== undefined && keys[0] === keys[1], `the keys of a double click and a lost answer are ${keys}`);
  const stored = await consumersOf(hosts);
  const placed = await rowsOf(page, "Placed consumers");
  const pairs = (list) => JSON.stringify(list.map(({ uuid, host, allocations }) => [uuid, host ?? allocations[0].provider.name]).sort());
  holds(pairs(stored) === pairs(placed) && pairs(placed) === pairs(rows), `stored is ${pairs(stored)}, shown ${pairs(placed)}, previewed ${pairs(rows)}`);
  for (const { projectId, userId, type, expiresAt, allocations } of stored) holds(projectId === "demo" && userId === "demo-admin" && type === "INSTANCE" && expiresAt !== null && allocations.length === 1 && allocations[0].used === 1, `stored is ${JSON.stringify({ projectId, userId, type, expiresAt, allocations })}`);
  const isHeld = ({ outcome }) => {
    const [, minutes, seconds] = /^held, (\d+):(\d\d) left/.exec(outcome) ?? [];
    const left = 60 * minutes + Number(seconds);
    return left <= hold && left >= hold - (Date.now() - begun) / 1000 - 2;
  };
  holds(placed.every(isHeld), `held are ${JSON.stringify(placed)}`);
  return placed;
}

// Held amounts are told apart from used ones on the picture, in its legend and in the
// panel, while holds are confirmed here and by another client.
async function confirms(page, placed) {
  await page.getByRole("listitem").filter({ hasText: "held part of the use" }).waitFor();
  await tile(page, /^place-a: CUSTOM_PLACE 100% used, 2 of 2, 2 held, chosen$/);
  await becomes(() => dashes(page), (dark) => dark > 50, "the length of the dashes of two held units");
  if (pictures) await page.screenshot({ path: `${pictures}/console-place.png`, fullPage: true });
  const [first, second] = placed.filter(({ host }) => host === "place-a");
  await row(page, first.uuid).getByRole("button", { name: `Confirm ${first.uuid.slice(0, 8)}` }).click();
  await row(page, first.uuid).getByText("confirmed").waitFor();
  holds((await ask(consumerQuery, { u: first.uuid })).consumer.expiresAt === null, "what is shown as confirmed is held");
  await tile(page, /^place-a: CUSTOM_PLACE 100% used, 2 of 2, 1 held, chosen$/);
  await becomes(() => dashes(page), (dark) => dark > 20 && dark < 45, "the length of the dashes of one held unit of two");
  await table(page, "Placed consumers").getByRole("button", { name: "place-a" }).first().click();
  const panel = page.getByRole("region", { name: "The selected provider" });
  await panel.getByText("2 of 2, 1 held").waitFor();
  if (views === "all") await accessible(page, "placed consumers");
  await panel.getByRole("button", { name: "Close" }).click();
  await ask("mutation($u: UUID!) { confirmAllocations(input: {consumers: [$u]}) { consumers { uuid } } }", { u: second.uuid });
  await row(page, second.uuid).getByText("confirmed").waitFor(); // by itself
  await tile(page, /^place-a: CUSTOM_PLACE 100% used, 2 of 2, chosen$/);
  await becomes(() => dashes(page), (dark) => dark === 0, "the length of the dashes without holds");
}

// A released consumer makes room for one more, and the next is refused with the reason.
async function refuses(page, hosts, placed) {
  const { uuid } = placed.find(({ host }) => host === "place-b");
  await row(page, uuid).getByRole("button", { name: `Release ${uuid.slice(0, 8)}` }).click();
  await row(page, uuid).getByText("released", { exact: true }).waitFor();
  holds((await ask(consumerQuery, { u: uuid })).consumer === null, "what is shown as released has allocations");
  await form(page).getByLabel("Consumers", { exact: true }).fill("2");
  await form(page).getByLabel("Hold for seconds").fill("");
  await form(page).getByRole("button", { name: "Preview" }).click();
  await said(page, "0 of 2 consumers would be placed, 1 refused.");
  await table(page, "Preview").getByText("not placed, because others are refused").waitFor();
  await form(page).getByLabel("All or none").uncheck();
  await form(page).getByRole("button", { name: "Preview" }).click();
  await said(page, "1 of 2 consumers would be placed, 1 refused.");
  await form(page).getByRole("list", { name: "What each condition leaves" }).getByText("can give 1 CUSTOM_PLACE now").waitFor();
  if (views === "all") await accessible(page, "a refusal");
  await form(page).getByRole("button", { name: "Place 2 consumers" }).click();
  await said(page, "1 of 2 consumers placed, 1 refused.");
  const rows = await rowsOf(page, "Placed consumers");
  const [one, other] = rows;
  holds(rows.length === 5 && /^placed/.test(one.outcome) && one.host === "place-b" && /^refused/.test(other.outcome), `placed are ${JSON.stringify(rows)}`);
  const refusal = (await ask("query($u: UUID!) { lastRefusal(consumer: $u) { errors { code message } explain { steps { constraint } } } }", { u: other.uuid })).lastRefusal;
  holds(refusal?.errors[0].code === "CAPACITY_EXCEEDED" && other.outcome.includes(refusal.errors[0].message), `the refusal is ${JSON.stringify(refusal)}, shown as ${other.outcome}`);
  const uuids = (await consumersOf(hosts)).map(({ uuid }) => uuid);
  holds(uuids.length === 3 && uuids.includes(one.uuid) && !uuids.includes(other.uuid), `stored are ${uuids}`);
  await ask("mutation($c: UUID!) { deleteAllocations(input: {consumer: $c}) { consumer { uuid } } }", { c: one.uuid });
  await row(page, one.uuid).getByText("released", { exact: true }).waitFor(); // by itself
}

// A hold ends by itself, and the page says so.
async function ends(page) {
  await form(page).getByLabel("Consumers", { exact: true }).fill("1");
  await form(page).getByLabel("Hold for seconds").fill("2");
  await form(page).getByRole("button", { name: "Preview" }).click();
  await said(page, "1 of 1 consumer would be placed.");
  await form(page).getByRole("button", { name: "Place 1 consumer" }).click();
  await said(page, "1 of 1 consumer placed.");
  const [{ uuid }] = await rowsOf(page, "Placed consumers");
  await row(page, uuid).getByText("released", { exact: true }).waitFor();
  holds((await ask(consumerQuery, { u: uuid })).consumer === null, "a hold that ended has allocations");
}

// A reader has no form and does not see what is held, an administrator sees it.
async function reads(page, hosts) {
  const input = { request: { resources: [{ resourceClass: "CUSTOM_PLACE", amount: 1 }] }, consumers: [{ uuid: crypto.randomUUID(), projectId: "demo", userId: "else" }], holdFor: hold };
  await ask("mutation($i: PlaceInput!) { place(input: $i) { results { errors { message } } } }", { i: input });
  await page.goto(`${address}/console/placement?search=place-b&class=CUSTOM_PLACE`);
  await tile(page, /^place-b: CUSTOM_PLACE 100% used, 1 of 1, 1 held$/);
  await page.getByText("held part of the use").waitFor();
  await choose(page, "From a flavor", "place.unit");
  await form(page).waitFor();
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await page.getByRole("region", { name: "What fits?" }).getByRole("list", { name: "What each condition leaves" }).waitFor();
  await tile(page, /^place-b: CUSTOM_PLACE 100% used, 1 of 1$/);
  holds((await page.getByText("held part of the use").count()) === 0, "a reader is told what is held");
  holds((await form(page).count()) === 0 && (await page.getByRole("button", { name: /^Preview|^Place/ }).count()) === 0, "a reader is offered to place");
}

run(async (browser, context, timed) => {
  if (views === "all") {
    const request = encodeURIComponent(JSON.stringify({ groups: [{ resources: [{ resourceClass: "VCPU", amount: "8" }] }] }));
    const previewed = async (page) => {
      await form(page).getByLabel("Consumers", { exact: true }).fill("3");
      await form(page).getByRole("button", { name: "Preview" }).click();
      await table(page, "Preview").waitFor();
    };
    await timed("layouts", layouts(browser, { preview: [`/placement?search=compute-0&request=${request}`, "Placement", previewed] }));
  }
  const hosts = await rooms();
  await askUntil(({ resourceProviders }) => resourceProviders.nodes.length === 2, '{ resourceProviders(filter: {search: "place-"}) { nodes { uuid } } }');
  const page = await open(await context());
  const rows = await timed("previews", previews(page, hosts));
  const placed = await timed("places", places(page, hosts, rows));
  await timed("confirms", confirms(page, placed));
  await timed("refuses", refuses(page, hosts, placed));
  await timed("ends", ends(page));
  await timed("reads", reads(page, hosts));
  await page.close();
});
