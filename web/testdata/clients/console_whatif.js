// Asks what if on the console, applies plans, and reads the fits and the history of the
// overview. The API says which numbers are right. console_lib.js says which arguments it
// takes.
"use strict";
const { address, views, pictures, complaints, holds, ask, askUntil, watch, heading, isLive, choose, accessible, layouts, run } = require("./console_lib.js");
const patience = require("./patience.js")(60000);

const number = (of) => new Intl.NumberFormat("en").format(of);
const fit = ({ atLeast, atMost }) => (atLeast === atMost ? number(atLeast) : `${number(atLeast)} to ${number(atMost)}`);
const region = (page, title) => page.locator("section.section", { has: page.getByRole("heading", { level: 2, name: new RegExp(`^${title}`) }) });

// Waits until a page shows something, read as a text.
async function becomes(read, want, what) {
  let got;
  for (const end = Date.now() + patience; Date.now() < end; await new Promise((next) => setTimeout(next, 100))) {
    got = await read();
    if (got === want) return;
  }
  throw new Error(`${what} is\n${got}\nnot\n${want}`);
}

const rows = (page, label) => async () => JSON.stringify(await page.getByRole("table", { name: label }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim()))).catch(() => []));

// The flavors that are counted, with their requests as arguments.
async function flavorsOf(token) {
  const { nodes } = (await ask('{ resources(filter: {types: ["OS::Nova::Flavor"]}, orderBy: {field: NAME}, first: 50) { nodes { uuid name } } }', {}, token)).resources;
  const amounts = "resources { resourceClass amount } requiredAll requiredAnySets { anyOf } forbidden";
  const requests = await Promise.all(nodes.map(({ uuid }) => ask(`query($u: UUID!) { placementRequest(resource: $u) { ${amounts} groups { suffix ${amounts} } groupPolicy sameSubtree { suffixes } hosts { requirements { key requirement } } problems { message } } }`, { u: uuid }, token)));
  return nodes.flatMap(({ uuid, name }, at) => {
    const { problems, hosts, ...request } = requests[at].placementRequest;
    return problems.length === 0 ? [{ uuid, name, request: { ...request, ...(hosts && { hosts }) } }] : [];
  });
}

const modelOf = async (root) => (await ask("query($t: UUID!) { resourceProviders(filter: {inTree: $t}, first: 1000) { nodes { uuid parent { uuid } inventories { resourceClass total reserved minUnit maxUnit stepSize allocationRatio } traits aggregates } } }", { t: root })).resourceProviders.nodes;

const planOf = async (out, token) =>
  out.length === 0 ? { moves: [], unplaced: [], unplacedCount: 0, waves: 0 } : (await ask("query($p: [UUID!]!) { drainPlan(providers: $p) { waves unplacedCount moves { consumer { uuid resource { name } } to { provider { uuid name } resources { resourceClass amount } } } unplaced { consumer { uuid resource { name } } } } }", { p: out }, token)).drainPlan;

// What the API answers for changes. Copies have other names and uuids than on the page.
async function answersOf({ out, off, add }, flavors, token) {
  const plan = await planOf(out, token);
  const changes = [];
  for (const [root, copies] of add) {
    const model = await modelOf(root);
    for (let copy = 0; copy < copies; copy++) {
      const uuids = new Map(model.map(({ uuid }) => [uuid, crypto.randomUUID()]));
      const left = [...model];
      while (left.length > 0) {
        const at = left.findIndex(({ parent }) => !parent || !left.some(({ uuid }) => uuid === parent.uuid));
        const [{ uuid, parent, ...rest }] = left.splice(at, 1);
        changes.push({ addProvider: { name: uuids.get(uuid), uuid: uuids.get(uuid), ...(parent && { parent: uuids.get(parent.uuid) }), ...rest } });
      }
    }
  }
  for (const uuid of out) changes.push({ removeProvider: uuid });
  for (const { to } of plan.moves) changes.push({ place: to.map(({ provider, resources }) => ({ provider: provider.uuid, resources })) });
  for (const uuid of off) changes.push({ disableProvider: uuid });
  const fields = "capacity(first: 250) { nodes { resourceClass capacity free } } capacityFor(requests: $r) { atLeast atMost } survives { totalCount unsurvivedCount }";
  const { whatIf, ...now } = await ask(`query($c: [WhatIfChangeInput!]!, $r: [PlacementRequestInput!]!) { ${fields} whatIf(changes: $c) { ${fields} } }`, { c: changes, r: flavors.map(({ request }) => request) }, token);
  return { plan, now, then: whatIf };
}

// The tables of the page for these answers.
function tablesOf({ now, then }, flavors) {
  const names = [...new Set([...now.capacity.nodes, ...then.capacity.nodes].map(({ resourceClass }) => resourceClass))].sort();
  const of = (sums, name) => sums.capacity.nodes.find(({ resourceClass }) => resourceClass === name) ?? { capacity: 0, free: 0 };
  const capacity = names.map((name) => [name, number(of(now, name).capacity), number(of(then, name).capacity), number(of(now, name).free), number(of(then, name).free)]);
  const fits = flavors.map(({ name }, at) => [name + (now.capacityFor[at].atLeast > 0 && then.capacityFor[at].atLeast === 0 ? " no longer fits" : ""), fit(now.capacityFor[at]), fit(then.capacityFor[at])]);
  return { capacity: JSON.stringify(capacity), fits: fits.map((row) => JSON.stringify(row)).sort().join("\n"), failures: `Now ${number(now.survives.unsurvivedCount)} of ${number(now.survives.totalCount)}, then ${number(then.survives.unsurvivedCount)} of ${number(then.survives.totalCount)}.` };
}

async function shows(page, answers, flavors, what) {
  const want = tablesOf(answers, flavors);
  await becomes(rows(page, "Capacity before and after"), want.capacity, `${what}: the capacity`);
  const fits = rows(page, "How many more fit, before and after");
  await becomes(async () => JSON.parse(await fits()).map((row) => JSON.stringify(row)).sort().join("\n"), want.fits, `${what}: the fits`);
  await becomes(() => region(page, "Failures").getByRole("status").textContent(), want.failures, `${what}: the failures`);
  if (answers.plan.moves.length === 0) return;
  const moves = answers.plan.moves.map(({ consumer, to }) => [consumer.resource?.name ?? consumer.uuid, ...to.map(({ provider }) => provider.name)].join());
  await becomes(async () => JSON.stringify(await page.locator(".moves li").evaluateAll((moves) => moves.map((move) => [...move.querySelectorAll("a")].map(({ textContent }) => textContent).join()))), JSON.stringify(moves), `${what}: the moves`);
}

// Random changes, by the keyboard on the picture and by name. The numbers are those of the
// API after each, and nothing is written.
async function random(context) {
  const seed = Number(process.env.CADASTRE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  const draw = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const page = watch(await context.newPage());
  const mutations = [];
  page.on("request", (request) => /"query":"\s*mutation/.test(request.postData() ?? "") && mutations.push(request.postData()));
  await page.goto(address + "/console/placement");
  await page.getByRole("link", { name: "What if", exact: true }).click();
  await heading(page, "What if");
  await page.getByText("No changes yet").waitFor();
  const [flavors, { latest }] = [await flavorsOf(), (await ask("{ changes(first: 0) { latest } }")).changes];
  const trees = (await ask("{ resourceProviders(filter: {roots: true}, first: 1000) { nodes { uuid name } } }")).resourceProviders.nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
  const model = { out: [], off: [], add: [] };
  const toggle = (name, uuid) => {
    const had = model[name].includes(uuid);
    for (const list of ["out", "off"]) model[list] = model[list].filter((other) => other !== uuid);
    if (!had) model[name].push(uuid);
  };
  const picture = page.getByRole("listbox", { name: /^Picture of/ });
  const steps = [
    async ({ uuid, name }, kind = draw(2) === 0 ? "out" : "off") => {
      await page.getByLabel("Tiles", { exact: true }).selectOption(kind === "out" ? "" : kind);
      await picture.press("Home");
      for (let at = 0; at < trees.findIndex((tree) => tree.uuid === uuid); at++) await picture.press("ArrowRight");
      await picture.press("Enter");
      const was = model[kind].includes(uuid);
      toggle(kind, uuid);
      await page.getByRole("option", { name: new RegExp(`^${name}: .*${was ? "[^d]$" : kind === "out" ? ", taken out$" : ", disabled$"}`) }).waitFor({ state: "attached" });
    },
    async ({ uuid, name }) => {
      if (model.out.includes(uuid)) return;
      await choose(page, "Take out", name);
      toggle("out", uuid);
    },
    async ({ uuid, name }) => {
      if (model.add.some(([of]) => of === uuid)) return;
      await choose(page, "Add copies of", name);
      const copies = 1 + draw(4);
      await page.getByLabel(`Copies of ${name}`, { exact: true }).fill("0");
      await page.getByText("A whole number from 1 to 1,000.").waitFor();
      await page.getByLabel(`Copies of ${name}`, { exact: true }).fill(String(copies));
      model.add.push([uuid, copies]);
    },
    async () => {
      const uuid = model.out[draw(model.out.length)];
      if (!uuid) return;
      await page.getByRole("button", { name: `Remove ${trees.find((tree) => tree.uuid === uuid).name} from Take out` }).click();
      toggle("out", uuid);
    },
  ];
  for (let round = 0; round < (views === "all" ? 4 : 2); round++) {
    for (let step = 0; step < 2; step++) await steps[draw(steps.length)](trees[draw(trees.length)]);
    if (model.out.length + model.off.length + model.add.length === 0) await steps[0](trees[0], "out");
    await shows(page, await answersOf(model, flavors), flavors, `seed ${seed}, ${JSON.stringify(model)}`);
  }
  const want = await answersOf(model, flavors);
  await page.reload();
  await shows(page, want, flavors, `seed ${seed}, after a reload`);
  if (views === "all") await accessible(page, "a what-if");

  // Back undoes the last change.
  const before = page.url();
  await choose(page, "Take out", trees.find(({ uuid }) => !model.out.includes(uuid)).name);
  await page.waitForURL((url) => url.href !== before);
  await page.goBack();
  await page.waitForURL(before);
  await shows(page, want, flavors, `seed ${seed}, after back`);
  holds(mutations.length === 0, `a what-if sent ${mutations}`);
  const { latest: after } = (await ask("{ changes(first: 0) { latest } }")).changes;
  holds(latest === after, "a what-if changed something");
  await page.close();
}

// What no longer fits comes first, consumers without a place are listed, and addresses
// that cannot be asked say so.
async function states(context) {
  const page = watch(await context.newPage());
  const flavors = await flavorsOf();
  const { nodes } = (await ask('{ resourceProviders(filter: {hasClass: "VGPU"}, first: 1000) { nodes { root { uuid } } } }')).resourceProviders;
  const out = [...new Set(nodes.map(({ root }) => root.uuid))].sort();
  await page.goto(`${address}/console/placement?at=${out[0]}`);
  await page.getByRole("link", { name: "What if it is taken out?" }).click();
  await page.waitForURL(new RegExp(`out=${out[0]}`));
  await page.goto(`${address}/console/placement/what-if?${new URLSearchParams(out.map((uuid) => ["out", uuid]))}`);
  await page.getByRole("table", { name: "How many more fit, before and after" }).locator("tbody tr").first().getByText("no longer fits").waitFor();
  const answers = await answersOf({ out, off: [], add: [] }, flavors);
  await shows(page, answers, flavors, "without the hosts with accelerators");
  holds(answers.plan.unplacedCount > 0, "every consumer of an accelerator finds a place");
  await page.getByText(`${answers.plan.unplacedCount} consumer`).first().waitFor();
  const listed = await page.getByRole("list", { name: "Without a place" }).getByRole("link").allTextContents();
  holds(JSON.stringify(listed) === JSON.stringify(answers.plan.unplaced.map(({ consumer }) => consumer.resource?.name ?? consumer.uuid)), `without a place are ${listed}`);
  await page.getByText("Why the first has no place").click();
  await page.getByRole("list", { name: "What each condition leaves" }).waitFor();
  if (views === "all") await accessible(page, "consumers without a place");
  if (pictures) {
    await page.setViewportSize({ width: 1280, height: 1400 });
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${pictures}/console-what-if.png` });
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  await page.getByLabel("What fails").selectOption("AGGREGATE");
  await page.waitForURL(/by=AGGREGATE/);
  const byRack = (await ask("{ survives(by: AGGREGATE) { totalCount unsurvivedCount } }")).survives;
  await region(page, "Failures").getByText(`Now ${byRack.unsurvivedCount} of ${byRack.totalCount}, then`).waitFor();

  await page.goto(`${address}/console/placement/what-if?out=00000000-0000-4000-8000-000000000000`);
  await page.getByText("The address names hosts that do not exist").waitFor();
  const taken = (await ask('mutation { createResourceProvider(input: {name: "what-if 1: compute-05"}) { resourceProvider { uuid } } }')).createResourceProvider.resourceProvider.uuid;
  const { uuid } = (await ask('{ resourceProvider(name: "compute-05") { uuid } }')).resourceProvider;
  await page.goto(`${address}/console/placement/what-if?add=${uuid}%7C2`);
  await region(page, "Capacity").getByText("what-if 1: compute-05").waitFor();
  await ask("mutation($u: UUID!) { deleteResourceProvider(input: {provider: $u}) { resourceProvider { uuid } } }", { u: taken });
  await page.close();
}

// Two hosts of a class that no other host has, and consumers on the first.
async function pair(name, consumers) {
  const resourceClass = "CUSTOM_" + name.toUpperCase();
  await ask("mutation($n: String!) { createResourceClass(input: {name: $n}) { resourceClass { name } } }", { n: resourceClass });
  const create = "mutation($i: CreateResourceProviderInput!) { createResourceProvider(input: $i) { resourceProvider { uuid } } }";
  const [from, to] = await Promise.all(["from", "to"].map(async (side) => (await ask(create, { i: { name: `${name}-${side}`, inventories: [{ resourceClass, total: 100 }] } })).createResourceProvider.resourceProvider.uuid));
  const uuids = Array.from({ length: consumers }, () => crypto.randomUUID());
  const claim = (uuid, provider, generation, amount = 1) => ({ uuid, projectId: "demo", userId: "what-if", generation, allocations: [{ provider, resources: [{ resourceClass, amount }] }] });
  const set = (claims) => ask("mutation($i: SetAllocationsInput!) { setAllocations(input: $i) { consumers { uuid } } }", { i: { consumers: claims } });
  await set(uuids.map((uuid) => claim(uuid, from, null)));
  const used = async () => {
    const of = async (uuid) => (await ask("query($u: UUID!, $c: String!) { resourceProvider(uuid: $u) { inventory(resourceClass: $c) { used } } }", { u: uuid, c: resourceClass })).resourceProvider.inventory.used;
    return JSON.stringify([await of(from), await of(to)]);
  };
  return { from, to, uuids, claim, set, used };
}

// Waits for every answer of the page: an answer that comes moves the buttons below it.
const answered = (page) => becomes(() => page.locator(".what-if .skeleton, .what-if [data-current=false]").count(), 0, "the number of missing answers");

const applied = (page, text) => page.locator(".apply").getByText(text).waitFor();

// A plan is applied, stopped and continued. A lost answer makes no move twice, and the host
// is empty in the end.
async function applies(context) {
  const { from, uuids, used } = await pair("whatif_apply", 25);
  const page = watch(await context.newPage());
  await page.goto(`${address}/console/placement/what-if?out=${from}`);
  await isLive(page);
  await page.getByText("25 moves in 25 waves. Every consumer finds a place.").waitFor();
  await answered(page);
  let [sent, hold] = [0, () => {}];
  await page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes("mutation ApplyPlan")) return route.continue();
    if (++sent === 1) {
      await route.fetch({ timeout: patience });
      return route.abort(); // the moves are made, and the answer is lost
    }
    if (sent === 2) await new Promise((done) => (hold = done));
    await route.continue();
  });
  await page.getByRole("button", { name: "Apply the plan" }).click();
  const asked = page.getByRole("alertdialog");
  if (views === "all") await accessible(page, "the question of a plan");
  await asked.getByRole("button", { name: "Make 25 moves" }).click();
  await page.getByText("moving").first().waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  for (const end = Date.now() + patience; sent < 2 && Date.now() < end; ) await page.waitForTimeout(50);
  hold();
  await applied(page, "10 of 25 moves made, stopped: 15 left.");
  await becomes(used, "[15,10]", "the use of the hosts after a stop");
  await region(page, "Where consumers go").getByText("whatif_apply-from: CUSTOM_WHATIF_APPLY 15% used, 15 of 100").waitFor(); // by itself
  if (views === "all") await accessible(page, "a plan that is stopped");
  await page.getByRole("button", { name: "Continue" }).click();
  await applied(page, "25 of 25 moves made.");
  await becomes(used, "[0,25]", "the use of the hosts after the plan");
  await page.getByText("whatif_apply-from: nothing is used").waitFor();
  await page.getByText("The cloud has changed since these answers.").waitFor();
  await page.getByRole("button", { name: "Ask again" }).click();
  await page.getByText("The hosts have no consumers to move.").waitFor();
  for (const uuid of uuids) {
    const { generation } = (await ask("query($u: UUID!) { consumer(uuid: $u) { generation } }", { u: uuid })).consumer;
    holds(generation === 2, `a consumer was moved ${generation - 1} times`);
  }
  for (let i = complaints.length - 1; i >= 0; i--) if (/ERR_FAILED/.test(complaints[i])) complaints.splice(i, 1); // the lost answer
  await page.close();
}

// A plan whose world moved away is told before and while it is applied, at each move.
async function moved(context) {
  const { from, uuids, claim, set, used } = await pair("whatif_moved", 5);
  const page = watch(await context.newPage());
  await page.goto(`${address}/console/placement/what-if?out=${from}`);
  await isLive(page);
  await page.getByText("5 moves in 5 waves.").waitFor();
  const uses = (amount) => page.getByLabel("The hosts now").getByText(`used, ${amount} of`).waitFor();
  await set([claim(uuids[0], from, 1, 2)]);
  await uses(6);
  await ask("mutation($c: UUID!) { deleteAllocations(input: {consumer: $c}) { consumer { uuid } } }", { c: uuids[1] });
  await page.getByText("The cloud has changed since these answers.").waitFor();
  await uses(5);
  await answered(page);
  await page.getByRole("button", { name: "Apply the plan" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Make 5 moves" }).click();
  await applied(page, "3 of 5 moves made, 2 refused.");
  await applied(page, "2 moves were refused, because the world has changed since the plan.");
  for (const [at, uuid] of uuids.entries()) {
    const move = page.locator(".moves li", { hasText: uuid });
    await move.getByText(at < 2 ? "refused" : "moved", { exact: true }).waitFor();
    if (at < 2) await move.locator(".error", { hasText: at === 0 ? "generation" : "allocations" }).waitFor();
  }
  await becomes(used, "[2,3]", "the use of the hosts after a plan of an older world");
  if (views === "all") await accessible(page, "moves that were refused");
  await page.getByRole("button", { name: "Make a new plan" }).click();
  await page.getByText("1 move in 1 wave. Every consumer finds a place.").waitFor();
  await answered(page);
  await page.getByRole("button", { name: "Apply the plan" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Make 1 move" }).click();
  await applied(page, "1 of 1 move made.");
  await becomes(used, "[0,5]", "the use of the hosts after the new plan");

  // A reader sees the answers of the API for a reader, and no button.
  const { from: other, uuids: hidden, set: setAgain, claim: again } = await pair("whatif_reader", 2);
  await setAgain([{ ...again(hidden[1], other, 1), projectId: "elsewhere" }]);
  await page.goto(`${address}/console/placement/what-if?out=${other}`);
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await page.getByText("Only consumers that you see are moved.").waitFor();
  const flavors = await flavorsOf("demo-reader");
  const answers = await answersOf({ out: [other], off: [], add: [] }, flavors, "demo-reader");
  holds(answers.plan.moves.length === 1, `a reader sees ${answers.plan.moves.length} moves`);
  await shows(page, answers, flavors, "for a reader");
  holds((await page.getByRole("button", { name: /^Apply|^Continue/ }).count()) === 0, "a reader is offered to apply a plan");
  await page.close();
}

// The overview has the scarcest flavors and the history, as the API has them.
async function overview(context) {
  const page = watch(await context.newPage());
  const sent = [];
  page.on("request", (request) => request.postData()?.includes("query OverviewHistory") && sent.push(request.postData()));
  await page.setViewportSize({ width: 1280, height: 300 }); // the plot is below
  await page.goto(address + "/console");
  await heading(page, "Overview");
  const flavors = await flavorsOf();
  const { capacityFor } = await ask("query($r: [PlacementRequestInput!]!) { capacityFor(requests: $r) { atLeast atMost } }", { r: flavors.map(({ request }) => request) });
  const counted = flavors.map(({ name }, at) => ({ name, ...capacityFor[at] })).sort((a, b) => a.atLeast - b.atLeast || a.atMost - b.atMost || (a.name < b.name ? -1 : 1));
  const list = page.getByRole("list", { name: "How many more of each flavor fit" });
  await list.waitFor();
  const shown = await list.getByRole("listitem").allTextContents();
  const want = counted.slice(0, 8).map((of) => of.name + (of.atMost === 0 ? "none" : fit(of)));
  holds(JSON.stringify(shown) === JSON.stringify(want), `the flavors are ${shown}, not ${want}`);
  holds(sent.length === 0, "the history is asked for before it is seen");

  const plot = region(page, "Capacity over time");
  await plot.scrollIntoViewIfNeeded();
  const table = async (period, bucket, since) => {
    await plot.getByLabel("Period").selectOption(period);
    await plot.getByRole("img", { name: /^VCPU used, and capacity/ }).waitFor();
    await plot.getByText("As a table").click();
    const { nodes } = (await ask("query($b: CapacityBucketSize!, $s: DateTime!) { capacityHistory(bucket: $b, filter: {resourceClasses: [\"VCPU\"], since: $s}, last: 1000) { nodes { used { mean max } capacity { mean } } } }", { b: bucket, s: new Date(Date.now() - since * 86400000).toISOString() })).capacityHistory;
    const want = nodes.reverse().map(({ used, capacity }) => [used.mean, used.max, capacity.mean].map((of) => number(Math.round(of))).join());
    await becomes(async () => (await plot.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td")].map(({ textContent }) => textContent).join()))).join("\n"), want.join("\n"), `the history of ${bucket}`);
    return want.length;
  };
  holds((await table("", "FIVE_MINUTES", 1)) > 30, "the day has too few samples");
  if (views === "all") await accessible(page, "the history");
  await table("week", "HOUR", 7);
  await page.waitForURL(/history=week/);
  holds((await table("year", "DAY", 365)) > 29, "the year has too few samples");
  holds(sent.length === 3, `the history was asked for ${sent.length} times`);
  await ask('mutation { createResourceClass(input: {name: "CUSTOM_YOUNG"}) { resourceClass { name } } }');
  await page.goto(address + "/console?class=CUSTOM_YOUNG");
  await plot.scrollIntoViewIfNeeded();
  await page.getByText("There is no history of CUSTOM_YOUNG in this period.").waitFor();
  await page.close();
}

// A flavor may ask for a capability that a reader does not see: the overview counts it,
// and a what-if, which is asked by the reader, leaves it out.
async function hidden(context) {
  const capability = "cpu_info:arch";
  const show = (hidden) => ask("mutation($i: SetCapabilityVisibilityInput!) { setCapabilityVisibility(input: $i) { capability { name } } }", { i: { resourceType: "physical:host", name: capability, private: hidden } });
  await show(true);
  const page = watch(await context.newPage());
  await page.addInitScript(() => sessionStorage.setItem("cadastre.token", "demo-reader"));
  await page.goto(address + "/console");
  const { fits } = (await ask('{ resources(filter: {name: "a1.large"}) { nodes { fits { atMost } } } }')).resources.nodes[0];
  await page.getByRole("list", { name: "How many more of each flavor fit" }).getByRole("listitem").filter({ hasText: `a1.large${fits.atMost}` }).waitFor();
  const { uuid } = (await ask('{ resourceProvider(name: "compute-02") { uuid } }')).resourceProvider;
  await page.goto(`${address}/console/placement/what-if?out=${uuid}`);
  await page.getByText(/you may not see the capabilities that they ask for: .*a1\.large/).waitFor();
  const rows = page.getByRole("table", { name: "How many more fit, before and after" }).getByRole("row");
  await rows.filter({ hasText: "m1.small" }).waitFor();
  holds((await rows.filter({ hasText: "a1.large" }).count()) === 0, "a what-if counts a flavor whose request was refused");
  await page.close();
  await show(false);
}

run(async (browser, context, timed) => {
  if (views === "all") {
    const { uuid } = (await ask('{ resourceProvider(name: "compute-16") { uuid } }')).resourceProvider;
    const { uuid: other } = (await ask('{ resourceProvider(name: "compute-02") { uuid } }')).resourceProvider;
    const seen = (page) => page.getByText(/^\d+ moves? in/).waitFor();
    await timed(
      "layouts",
      layouts(browser, {
        "what-if": [`/placement/what-if?out=${uuid}&out=${other}&add=${other}%7C3`, "What if", seen],
        "what-if-empty": ["/placement/what-if", "What if", (page) => page.locator("canvas[data-trees]").waitFor()],
        "overview-history": ["", "Overview", (page) => page.getByRole("img", { name: /^VCPU used/ }).waitFor()],
      }),
    );
  }
  await timed("random", random(await context()));
  await timed("states", states(await context()));
  await timed("overview", overview(await context()));
  await timed("hidden", hidden(await context()));
  await timed("applies", applies(await context()));
  await timed("moved", moved(await context()));
});
