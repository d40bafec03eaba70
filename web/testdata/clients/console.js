// Opens the console of a demo at argv[2] in the browser argv[3] and does with it what
// people do, while another server of the same database, or the same one, at argv[4]
// changes things beside it. argv[5] are the views of which pictures are looked at by
// axe: "all", or "some" where another database has had all. It prints as JSON what
// was found wrong and what the browser complained of. With argv[6] it keeps pictures
// in that folder.
"use strict";
const fs = require("node:fs");
const { chromium } = require("playwright-core");

const [, , address, executablePath, other, views, pictures] = process.argv;
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const complaints = [];
const patience = 60000; // milliseconds, for a busy machine
const holds = (is, what) => is || wrong.push(what);

// Sends an operation as another client.
async function ask(query, variables, token = "demo-admin") {
  const headers = { "Content-Type": "application/json", "X-Auth-Token": token };
  const response = await fetch(other + "/graphql", { method: "POST", headers, body: JSON.stringify({ query, variables }) });
  const answer = await response.json();
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
}

function watch(page) {
  page.setDefaultTimeout(patience);
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (/^(http|ws)/.test(protocol) && host !== new URL(address).host) complaints.push("asked " + request.url());
  });
  return page;
}

const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();

// Whether the page follows what happens: from then on, changes appear by themselves.
const isLive = (page) => page.locator(".live[data-live=true]").waitFor();

// What axe finds on a page as it stands. The browser itself evaluates it, whatever
// the policy of the page is.
async function accessible(page, what) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const run = "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 150) + ' ' + node.failureSummary).join('; '))))";
  const { result } = await session.send("Runtime.evaluate", { expression: run, awaitPromise: true });
  for (const violation of JSON.parse(result.value)) wrong.push(`${what}: axe: ${violation}`);
  await session.detach();
}

const fits = async (page, what) => {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(beyond <= 0, `${what} is ${beyond} pixels wider than the screen`);
};

// A namespace from its first word to its end, with properties that resources use.
async function definitions(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console");
  await heading(page, "Definitions");
  holds(page.url().endsWith("/console/definitions"), "the console begins at " + page.url());
  await page.getByRole("searchbox").fill("watchdog");
  await page.getByRole("link", { name: "Watchdog device" }).waitFor();
  await page.waitForURL(/search=watchdog/);
  await page.getByRole("status").filter({ hasText: "1 namespace" }).waitFor();
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Resource type").selectOption("physical:host");
  await page.waitForURL(/type=physical/);
  await page.getByRole("link", { name: "Host inventory" }).waitFor();
  await page.reload();
  holds((await page.getByLabel("Resource type").inputValue()) === "physical:host", "the address does not keep the filter");

  await page.getByRole("link", { name: "New namespace" }).click();
  await heading(page, "New namespace");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("A namespace needs a name.").waitFor();
  await page.getByLabel("Name *", { exact: true }).fill("Test::Licences");
  await page.getByLabel("Display name").fill("Licences");
  await page.getByLabel("Description").fill("Who may use what, and how often.");
  await page.getByRole("combobox", { name: "Resource type 1" }).fill("OS::Nova::Flav");
  await page.getByRole("option", { name: "OS::Nova::Flavor" }).click();
  await page.getByLabel("Prefix 1").fill("licence:");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await heading(page, "Licences");

  await page.getByRole("link", { name: "New property" }).click();
  await page.getByLabel("Name *", { exact: true }).fill("seats");
  await page.getByLabel("Title *", { exact: true }).fill("Seats");
  await page.getByLabel("Type", { exact: true }).selectOption("INTEGER");
  await page.getByLabel("Least", { exact: true }).fill("10");
  await page.getByLabel("Greatest", { exact: true }).fill("5");
  await page.getByText("This is less than the least.").waitFor();
  await page.getByLabel("Greatest", { exact: true }).fill("500");
  if (views === "all") await accessible(page, "the form of a property");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await heading(page, "Seats");

  // Somebody uses it, and the page says so by itself; then a change would break that.
  await isLive(page);
  const flavors = (await ask('{ resources(filter: {types: ["OS::Nova::Flavor"]}, first: 2) { nodes { uuid name } } }')).resources.nodes;
  const set = "mutation($r: UUID!, $v: String!) { setMetadata(input: {resource: $r, items: [{key: \"licence:seats\", value: $v}]}) { resource { uuid } } }";
  await ask(set, { r: flavors[0].uuid, v: "40" });
  await page.getByRole("link", { name: "1 resource", exact: true }).waitFor();
  await ask(set, { r: flavors[1].uuid, v: "12" });
  await page.getByRole("link", { name: "2 resources", exact: true }).waitFor();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Least", { exact: true }).fill("20");
  await page.getByText("1 resource would break").waitFor();
  await page.getByText("12 is less than").or(page.getByText(flavors[1].name)).first().waitFor();
  await page.getByLabel("Least", { exact: true }).fill("11");
  await page.getByText("Nothing would break").waitFor();
  if (views === "all") await accessible(page, "a dry run");

  // Somebody changes it at the same time: nothing is lost unseen.
  await ask('mutation { updateProperty(input: {namespace: "Test::Licences", name: "seats", title: "Seats of a licence"}) { namespace { name } } }');
  await heading(page, "Seats of a licence");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Somebody else changed this meanwhile").waitFor();
  await page.getByRole("button", { name: "Go on with my changes" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("11 to 500").first().waitFor();
  const stored = (await ask('{ namespace(name: "Test::Licences") { property(name: "seats") { title minimum maximum } } }')).namespace.property;
  holds(stored.minimum === 11 && stored.maximum === 500 && stored.title === "Seats of a licence", "stored is " + JSON.stringify(stored));

  await page.getByRole("link", { name: "Licences" }).click();
  await heading(page, "Licences");
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Display name").fill("Software licences");
  await page.getByRole("button", { name: "Save" }).click();
  await heading(page, "Software licences");
  await page.getByRole("button", { name: "Delete" }).click();
  if (views === "all") await accessible(page, "a question");
  await page.keyboard.press("Escape");
  await page.getByRole("alertdialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the namespace" }).click();
  await heading(page, "Definitions");
  holds((await ask('{ namespace(name: "Test::Licences") { name } }')).namespace === null, "the namespace is still there");
  await page.goBack();
  await page.getByText("There is no such namespace").waitFor();
  const clear = "mutation($r: UUID!) { deleteMetadata(input: {resource: $r, keys: [\"licence:seats\"]}) { resource { uuid } } }";
  for (const { uuid } of flavors) await ask(clear, { r: uuid });
  await page.close();
}

// A resource found by its facets, and its metadata changed, beside others who do.
async function resources(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources");
  await heading(page, "Resources");
  await page.getByRole("group", { name: "Type" }).getByRole("checkbox", { name: /^OS::Nova::Flavor/ }).check();
  await page.waitForURL(/type=OS/);
  await page.getByRole("status").filter({ hasText: "12 resources" }).waitFor();
  await page.getByRole("button", { name: "Name" }).click();
  await page.waitForURL(/sort=-name/);
  await page.locator("tbody tr").first().getByText("r1.secure").waitFor();
  await page.getByRole("searchbox").fill("m1.small");
  await page.getByRole("status").filter({ hasText: /^1 resource$/ }).waitFor();
  await page.getByRole("link", { name: "m1.small" }).click();
  await heading(page, "m1.small");
  await isLive(page);
  const uuid = new URL(page.url()).pathname.split("/").pop();
  const metadata = async () => Object.fromEntries((await ask("query($u: UUID!) { resource(uuid: $u) { metadata { key value } } }", { u: uuid })).resource.metadata.map(({ key, value }) => [key, value]));
  const before = await metadata();

  await page.getByRole("button", { name: "Edit metadata" }).click();
  const policy = page.getByLabel("hw:cpu_policy", { exact: true });
  await policy.selectOption("dedicated");
  await page.getByRole("combobox", { name: "Add a key" }).fill("hw:cpu_sockets");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const sockets = page.getByLabel("hw:cpu_sockets", { exact: true });
  await sockets.fill("none");
  await page.getByText("none is not of type integer").waitFor();
  await sockets.fill("2");
  await page.getByText("none is not of type integer").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete: quota:minIOPS" }).click();
  if (views === "all") await accessible(page, "the editor");
  if (pictures) await page.screenshot({ path: `${pictures}/console-editor-1280-light.png`, fullPage: true });

  // Somebody writes the same key, and another one: the one is asked about, the other stays.
  await ask('mutation($u: UUID!) { setMetadata(input: {resource: $u, items: [{key: "hw:cpu_policy", value: "mixed"}, {key: "beside", value: "me"}]}) { resource { uuid } } }', { u: uuid });
  await page.getByText("was changed meanwhile").waitFor();
  holds(await page.getByRole("button", { name: "Save 3 changes" }).isDisabled(), "a conflict can be saved over");
  await page.getByRole("button", { name: "Keep mine: hw:cpu_policy" }).click();
  await page.getByRole("button", { name: "Save 3 changes" }).click();
  await page.getByRole("button", { name: "Edit metadata" }).waitFor();
  const { "quota:minIOPS": gone, ...kept } = before;
  const want = { ...kept, "hw:cpu_policy": "dedicated", "hw:cpu_sockets": "2", beside: "me" };
  const now = await metadata();
  holds(gone !== undefined && JSON.stringify(Object.entries(now).sort()) === JSON.stringify(Object.entries(want).sort()), `stored is ${JSON.stringify(now)}, not ${JSON.stringify(want)}`);

  // And back.
  await page.getByRole("button", { name: "Edit metadata" }).click();
  await page.getByLabel("hw:cpu_policy", { exact: true }).selectOption("shared");
  for (const key of ["hw:cpu_sockets", "beside"]) await page.getByRole("button", { name: "Delete: " + key }).click();
  await page.getByRole("combobox", { name: "Add a key" }).fill("quota:minIOPS");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByLabel("quota:minIOPS", { exact: true }).fill(gone);
  await page.getByRole("button", { name: "Save 4 changes" }).click();
  await page.getByRole("button", { name: "Edit metadata" }).waitFor();
  holds(JSON.stringify(await metadata()) === JSON.stringify(before), "the metadata are not as they were");

  const host = (await ask('{ resources(filter: {name: "compute-01"}) { nodes { uuid parent { name } } } }')).resources.nodes[0];
  await page.goto(`${address}/console/resources/${host.uuid}`);
  await page.getByRole("link", { name: host.parent.name }).click();
  await heading(page, host.parent.name);
  await page.getByRole("link", { name: "compute-01", exact: true }).click();
  await heading(page, "compute-01");
  await page.close();
}

// What hosts can do, counted as one asks, and who may know of it.
async function capabilities(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/capabilities?type=physical%3Ahost");
  await heading(page, "Capabilities");
  const counted = async (requirements) => (await ask("query($r: [RequirementInput!]) { resources(filter: {types: [\"physical:host\"], requirements: $r}) { totalCount } }", { r: requirements })).resources.totalCount;
  const intel = await counted([{ key: "cpu_info:vendor", requirement: "Intel" }]);
  await page.getByRole("button", { name: "Add a requirement" }).click();
  await page.getByLabel("Capability 1").selectOption("cpu_info:vendor");
  await page.getByLabel("Value 1").fill("Intel");
  await page.getByRole("status").filter({ hasText: new RegExp(`^${intel} resources of 24 can`) }).waitFor();
  holds(intel > 0 && intel < 24, intel + " hosts have processors of Intel");
  await page.getByRole("button", { name: "Add a requirement" }).click();
  await page.getByLabel("Capability 2").selectOption("vcpus");
  await page.getByLabel("Operator 2").selectOption(">=");
  await page.getByLabel("Value 2").fill("1000");
  await page.getByText("this one leaves none").waitFor();
  await page.getByLabel("Value 2").fill("many");
  await page.locator(".need .error").waitFor();
  await page.getByLabel("Value 2").fill("64");
  const both = await counted([{ key: "cpu_info:vendor", requirement: "Intel" }, { key: "vcpus", requirement: ">= 64" }]);
  await page.getByRole("status").filter({ hasText: new RegExp(`^${both} resources? of 24 can`) }).waitFor();
  await page.reload();
  await page.getByRole("status").filter({ hasText: new RegExp(`^${both} resources? of 24 can`) }).waitFor();
  if (views === "all") await accessible(page, "requirements");

  const known = async () => (await ask('{ resourceType(name: "physical:host") { capabilities { name } } }', {}, "demo-reader")).resourceType.capabilities.some(({ name }) => name === "serial_number");
  holds(!(await known()), "a reader knows of serial numbers");
  await page.getByRole("button", { name: "Make public: serial_number" }).click();
  await page.getByRole("button", { name: "Make private: serial_number" }).waitFor();
  holds(await known(), "a reader does not know of what is public");
  await page.getByRole("button", { name: "Make private: serial_number" }).click();
  await page.getByRole("button", { name: "Make public: serial_number" }).waitFor();
  holds(!(await known()), "a reader knows of serial numbers still");
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await page.getByRole("heading", { name: "cpu_info:vendor" }).waitFor();
  holds((await page.getByRole("heading", { name: "serial_number" }).count()) === 0, "a reader is shown a private capability");
  holds((await page.getByRole("button", { name: /^Make / }).count()) === 0, "a reader is offered to switch who knows");
  await page.close();
}

// Who changed what, as it happens, for those who may know.
async function audit(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/audit?kind=NAMESPACE&key=Test%3A%3AAudited");
  await heading(page, "Audit");
  await isLive(page);
  await page.getByText("No event matches").waitFor();
  await ask('mutation { createNamespace(input: {name: "Test::Audited", description: "before"}) { namespace { name } } }');
  await page.getByRole("status").filter({ hasText: "1 event" }).waitFor();
  await ask('mutation { updateNamespace(input: {name: "Test::Audited", description: "afterwards"}) { namespace { name } } }');
  await page.locator("del", { hasText: "before" }).waitFor();
  await page.locator("ins", { hasText: "afterwards" }).waitFor();
  await page.getByRole("button", { name: "updateNamespace" }).click();
  await page.waitForURL(/action=updateNamespace/);
  await page.getByRole("status").filter({ hasText: "1 event" }).waitFor();
  if (views === "all") await accessible(page, "differences");
  await page.getByRole("link", { name: "Test::Audited" }).click();
  await heading(page, "Test::Audited");
  await ask('mutation { deleteNamespace(input: {name: "Test::Audited"}) { namespace { name } } }');
  await page.getByText("There is no such namespace").waitFor();
  await page.goto(address + "/console/audit?kind=RESOURCE");
  await heading(page, "Audit");
  const row = page.locator(".differences > div", { hasText: "metadata licence:seats" }).first();
  holds((await row.locator("del").textContent()) === "12", "the oldest value of an item that was deleted is " + (await row.textContent()));
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("You may not see this").waitFor();
  holds((await page.getByRole("link", { name: "Audit" }).count()) === 0, "a reader is offered the audit log");
  await page.close();
}

// A change by another client is on an open page within a second.
async function live(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/definitions?search=Test%3A%3ALive");
  await heading(page, "Definitions");
  await isLive(page);
  await page.getByText("No namespace matches").waitFor();
  await ask('mutation { createNamespace(input: {name: "Test::Live", displayName: "Live"}) { namespace { name } } }');
  const begun = performance.now();
  await page.getByRole("link", { name: "Live" }).waitFor();
  const took = performance.now() - begun;
  await ask('mutation { deleteNamespace(input: {name: "Test::Live"}) { namespace { name } } }');
  await page.getByText("No namespace matches").waitFor();
  await page.close();
  return took;
}

// Who may do less is shown less; who is unknown signs in; the IDE has the session.
async function sessions(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/definitions/Cadastre%3A%3AWatchdog");
  await heading(page, "Watchdog device");
  await page.getByText("you are demo-admin, admin of demo").waitFor();
  await page.getByRole("link", { name: "New property" }).waitFor();
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await heading(page, "Watchdog device");
  for (const name of ["Edit", "Delete"]) holds((await page.getByRole("button", { name }).count()) === 0, `a reader is offered ${name}`);
  holds((await page.getByRole("link", { name: "New property" }).count()) === 0, "a reader is offered a new property");
  await page.getByRole("link", { name: "Show the query" }).click();
  await page.waitForFunction(() => document.getElementById("who")?.textContent === "you are demo-reader, reader of demo");
  const shown = page.locator(".graphiql-query-editor .CodeMirror");
  await shown.waitFor();
  holds((await shown.evaluate((element) => element.CodeMirror.getValue())).includes("query NamespacePage"), "the IDE does not show the query");
  await page.locator(".graphiql-execute-button").click();
  await page.locator(".result-window", { hasText: "Watchdog device" }).waitFor();
  await page.evaluate(() => sessionStorage.setItem("cadastre.token", "nobody"));
  complaints.length = 0; // the editor of the IDE says things of its own, which its test looks at
  await page.goto(address + "/console/resources");
  await heading(page, "Sign in");
  await page.getByText("This token is not known").waitFor();
  if (views === "all") await accessible(page, "the sign-in");
  await page.getByLabel("Token").fill("demo-member");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("you are demo-member, member of demo").waitFor();
  await heading(page, "Resources");
  // The answer 401 to the wrong token is what was asked for.
  for (let i = complaints.length - 1; i >= 0; i--) if (/status of 401/.test(complaints[i])) complaints.splice(i, 1);
  await page.goto(address + "/console/nowhere");
  await heading(page, "Not found");
  await page.goto(address + "/console/definitions/no%20such");
  await page.getByText("There is no such namespace").waitFor();
  await page.goto(address + "/console/resources?type=no-such-type");
  await page.getByText("The address asks for something that does not exist").waitFor();
  await page.close();
}

// With the keyboard alone, from the address bar to a property.
async function keyboard(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/definitions/Cadastre%3A%3AWatchdog");
  await heading(page, "Watchdog device");
  await page.keyboard.press("Tab");
  holds((await page.evaluate(() => document.activeElement.textContent)) === "Skip to the page", "the first stop is not the way to the page");
  await page.keyboard.press("Enter");
  holds((await page.evaluate(() => document.activeElement.id)) === "main", "the way to the page does not lead there");
  const row = page.locator("tbody th a").first();
  const name = await row.textContent();
  for (let i = 0; i < 40 && !(await row.evaluate((element) => element === document.activeElement)); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await heading(page, name);
  holds((await page.evaluate(() => document.activeElement.id)) === "main", "a new page is not where the focus is");
  await page.close();
}

// Each view on a phone, a desk and a wall, by day and by night.
async function layouts(browser) {
  const image = (await ask('{ resources(filter: {name: "shop-front-end"}) { nodes { uuid } } }')).resources.nodes[0].uuid;
  const pages = {
    definitions: ["/definitions", "Definitions"],
    namespace: ["/definitions/Cadastre%3A%3ADataProtection", "Data protection"],
    property: ["/definitions/Cadastre%3A%3AWatchdog/properties/watchdog_action", "Action"],
    resources: ["/resources?type=OS%3A%3AGlance%3A%3AImage&key=os_distro", "Resources"],
    resource: ["/resources/" + image, "shop-front-end"],
    capabilities: ["/capabilities?type=physical%3Ahost&need=cpu_info%3Avendor%7C%7CIntel&need=vcpus%7C%3E%3D%7C64", "Capabilities"],
    audit: ["/audit", "Audit"],
  };
  const page = watch(await browser.newPage({ reducedMotion: "reduce" }));
  for (const [name, [path, title]] of Object.entries(pages)) {
    await page.goto(address + "/console" + path);
    await heading(page, title);
    await isLive(page);
    for (const colorScheme of ["light", "dark"])
      for (const [width, height] of [[390, 844], [1280, 800], [1920, 1080]]) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        const what = `${name} ${width} ${colorScheme}`;
        await fits(page, what);
        if ((width === 390) === (colorScheme === "dark") && width !== 1920) await accessible(page, what);
        if (pictures) await page.screenshot({ path: `${pictures}/console-${name}-${width}-${colorScheme}.png`, fullPage: true });
      }
  }
  await page.close();
}

async function main() {
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const context = () => browser.newContext({ viewport: { width: 1280, height: 800 } });
    const seconds = {};
    const timed = async (name, run) => {
      const begun = performance.now();
      const result = await run;
      seconds[name] = Math.round((performance.now() - begun) / 100) / 10;
      return result;
    };
    if (views === "all") await timed("layouts", layouts(browser));
    await timed("definitions", definitions(await context()));
    await timed("resources", resources(await context()));
    await timed("capabilities", capabilities(await context()));
    await timed("audit", audit(await context()));
    const took = await timed("live", live(await context()));
    await timed("sessions", sessions(await context()));
    await timed("keyboard", keyboard(await context()));
    process.stdout.write(JSON.stringify({ wrong, complaints, took, seconds }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(JSON.stringify({ wrong, complaints }) + "\n" + String(error.stack) + "\n");
  process.exitCode = 1;
});
