// Opens the pages of resources, providers and consumers, and the overview, and does with
// them what operators do. console_lib.js says which arguments it takes.
"use strict";
const { address, views, holds, ask, askUntil, watch, heading, isLive, choose, addKey, accessible, fits: fitsScreen, layouts, run } = require("./console_lib.js");

const part = (page, name) => page.getByRole("region", { name: new RegExp(`^${name}`) });

// A host with 8 devices and 200 consumers.
async function host() {
  const create = 'mutation { createResource(input: {type: "physical:host", name: "hub-host", capabilities: [{key: "hub_secret", value: "x"}], metadata: [{key: "rack_unit", value: "999"}]}) { resource { uuid } } }';
  const { uuid } = (await ask(create)).createResource.resource;
  const inventory = (resourceClass, total) => ({ resourceClass, total });
  const root = { name: "hub-host", resource: uuid, inventories: [inventory("VCPU", 400), inventory("MEMORY_MB", 400000)], traits: ["HW_CPU_X86_VMX"] };
  const devices = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => ({ name: `hub-host:gpu${number}`, parentName: "hub-host", inventories: [inventory("VGPU", 64)] }));
  const made = (await ask("mutation($i: CreateResourceProvidersInput!) { createResourceProviders(input: $i) { results { resourceProvider { uuid } } } }", { i: { items: [root, ...devices] } })).createResourceProviders.results.map(({ resourceProvider }) => resourceProvider);
  const consumers = Array.from({ length: 200 }, (_, at) => ({
    uuid: `aaaaaaaa-0000-4000-8000-${String(at).padStart(12, "0")}`,
    projectId: "demo",
    userId: "hub",
    type: "INSTANCE",
    allocations: [
      { provider: made[0].uuid, resources: [{ resourceClass: "VCPU", amount: 1 }, { resourceClass: "MEMORY_MB", amount: 1024 }] },
      { provider: made[1 + (at % 8)].uuid, resources: [{ resourceClass: "VGPU", amount: 1 }] },
    ],
  }));
  await ask("mutation($i: SetAllocationsInput!) { setAllocations(input: $i) { consumers { uuid } } }", { i: { consumers } });
  return { uuid, provider: made[0].uuid, device: made[1].uuid };
}

// The page of a large host comes from one request, and each part leads on.
async function hub(context) {
  const { uuid, provider, device } = await host();
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources?search=hub-host");
  await isLive(page);
  let sent = 0;
  page.on("request", (request) => (sent += request.url().endsWith("/graphql") && request.method() === "POST" ? 1 : 0));
  const link = page.getByRole("link", { name: "hub-host", exact: true });
  await link.waitFor();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 500))); // scripts are loaded beforehand, as by a person who reads
  sent = 0;
  const begun = performance.now();
  await link.click();
  await part(page, "Events").waitFor();
  const opened = performance.now() - begun;
  const consumers = part(page, "Consumers").getByRole("row");
  holds((await consumers.count()) === 201, `there are ${await consumers.count()} rows of consumers`);
  const boxes = part(page, "Provider").getByRole("listitem").filter({ hasText: /^hub-host/ });
  holds((await boxes.count()) >= 9, `the tree has ${await boxes.count()} providers`);
  holds(sent === 1, `the page of a host took ${sent} requests`);
  holds(!process.env.CADASTRE_TEST_FIGURES || opened < 300, `the page of a host was complete ${opened} ms after the click`); // on an idle machine
  await part(page, "Problems").getByText("rack_unit").waitFor();
  await part(page, "Metadata").getByRole("link", { name: "Host inventory" }).waitFor();
  await part(page, "Capabilities").getByText("hub_secret").waitFor();
  await part(page, "Traits").getByRole("link", { name: "HW_CPU_X86_VMX" }).waitFor();
  if (views === "all") await accessible(page, "a host");

  // Each part has an address, which the keyboard, the browser's back and a reload keep.
  const inSight = (name) => page.waitForFunction((name) => [...document.querySelectorAll("section h2")].some((title) => title.textContent.startsWith(name) && title.getBoundingClientRect().top >= 0 && title.getBoundingClientRect().top < innerHeight), name);
  const way = page.getByRole("navigation", { name: "On this page" }).getByRole("link", { name: /^Traits/ });
  await way.press("Enter");
  await page.waitForURL(/#traits$/);
  await inSight("Traits");
  await page.reload();
  await part(page, "Traits").waitFor();
  await inSight("Traits");
  await page.goBack();
  await page.waitForURL((url) => url.hash === "");

  // To a device, its consumers, and back; a change by another is on the page.
  await part(page, "Provider").getByRole("link", { name: "hub-host:gpu1", exact: true }).first().click();
  await heading(page, "hub-host:gpu1");
  await part(page, "Inventories").getByText("25 of 64").waitFor();
  if (views === "all") await accessible(page, "a device");
  await isLive(page);
  const gone = "aaaaaaaa-0000-4000-8000-000000000000";
  await part(page, "Consumers").getByRole("link", { name: gone }).click();
  await heading(page, "Consumer");
  await part(page, "Allocations").getByRole("link", { name: "hub-host:gpu1" }).waitFor();
  if (views === "all") await accessible(page, "a consumer");
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Release" }).click();
  await heading(page, "Not found");
  await page.getByRole("heading", { name: "There is no consumer here" }).waitFor();
  await page.goBack();
  await heading(page, "hub-host:gpu1");
  await part(page, "Inventories").getByText("24 of 64").waitFor();
  await ask("mutation($c: UUID!) { deleteAllocations(input: {consumer: $c}) { consumer { uuid } } }", { c: "aaaaaaaa-0000-4000-8000-000000000008" });
  await part(page, "Inventories").getByText("23 of 64").waitFor();

  // A reader sees no private capability, no event and no action.
  await page.goto(`${address}/console/resources/${uuid}`);
  await heading(page, "hub-host");
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await part(page, "Inventories").waitFor();
  for (const name of ["Events", "Consumers of others"]) holds((await part(page, name).count()) === 0, `a reader sees ${name}`);
  holds((await page.getByRole("button", { name: /Edit|Delete/ }).count()) === 0, "a reader is offered a form");
  await page.getByLabel("Role").selectOption({ label: "admin" });
  await page.getByText("you are demo-admin, admin of demo").waitFor();
  await page.goto(`${address}/console/providers/${provider.replace(/^./, (first) => (first === "0" ? "1" : "0"))}`);
  await page.getByRole("heading", { name: "There is no provider here" }).waitFor();
  await page.getByRole("link", { name: "All providers" }).click();
  await heading(page, "Placement");
  await page.close();
  return { opened, device };
}

// Where flavors fit, why one fits nowhere, and where an instance is.
async function fits(context) {
  const page = watch(await context.newPage());
  const of = async (name) => (await ask("query($n: String!) { resources(filter: {name: $n}) { nodes { uuid } } }", { n: name })).resources.nodes[0].uuid;
  await page.goto(`${address}/console/resources/${await of("g1.large")}`);
  await part(page, "Candidates").getByText(/^\d+ candidates/).waitFor();
  holds((await page.getByRole("button", { name: "Create a provider" }).count()) === 0, "a flavor is offered a provider");
  await part(page, "Candidates").getByRole("link", { name: "Show them on the picture" }).click();
  await page.waitForURL(/placement\?request=/);
  await page.locator(".results[data-current=true] .results-count", { hasText: /candidate/ }).waitFor();
  await page.goBack();
  await heading(page, "g1.large");

  const make = (name, metadata) => ask("mutation($i: CreateResourceInput!) { createResource(input: $i) { resource { uuid } } }", { i: { type: "OS::Nova::Flavor", name, metadata } });
  const huge = (await make("hub-huge", [{ key: "vcpus", value: "100000" }, { key: "ram", value: "1" }])).createResource.resource.uuid;
  await page.goto(`${address}/console/resources/${huge}`);
  await part(page, "Candidates").getByText("No candidate").waitFor();
  await part(page, "Candidates").getByRole("heading", { name: "Nearest" }).waitFor();
  if (views === "all") await accessible(page, "a flavor that fits nowhere");
  const broken = (await make("hub-broken", [{ key: "vcpus", value: "many" }])).createResource.resource.uuid;
  await page.goto(`${address}/console/resources/${broken}`);
  await part(page, "Candidates").getByText("vcpus").first().waitFor();
  await part(page, "Metadata").waitFor();

  await page.goto(`${address}/console/resources/${await of("wiki")}`);
  await part(page, "Allocations").getByRole("link", { name: "compute-01", exact: true }).click();
  await heading(page, "compute-01");
  await page.close();
}

// How full the cloud is and what changed, at once.
async function overview(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console");
  await heading(page, "Overview");
  await isLive(page);
  const row = page.getByRole("row", { name: /^CUSTOM_OVERVIEW/ });
  holds((await row.count()) === 0, "a class is there before it is made");
  await ask('mutation { createResourceClass(input: {name: "CUSTOM_OVERVIEW"}) { resourceClass { name } } }');
  await ask('mutation { createResourceProvider(input: {name: "overview-root", inventories: [{resourceClass: "CUSTOM_OVERVIEW", total: 10, reserved: 2}]}) { resourceProvider { uuid } } }');
  await row.filter({ hasText: /0%\s*0\s*8\s*2/ }).waitFor();
  await page.getByRole("heading", { name: "Keys without a definition" }).waitFor();
  if (views === "all") await accessible(page, "the overview");
  await row.getByRole("link").click();
  await page.waitForURL(/class=CUSTOM_OVERVIEW/);

  // The picture in groups: one leads to its trees.
  await page.getByLabel("Group by").selectOption("aggregate");
  await page.waitForURL(/group=aggregate/);
  const groups = page.getByRole("listbox", { name: /groups of providers/ });
  await groups.press("Enter");
  await page.waitForURL(/aggregate=/);
  await page.getByRole("listbox", { name: /trees? of providers/ }).waitFor();
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByLabel("Group by").selectOption({ label: "By cpu_info:vendor" });
  await page.getByRole("listbox", { name: /groups of providers/ }).waitFor();
  await page.close();
}

// Edits are not lost by a link, back or a reload; a form has an address.
async function unsaved(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources?search=wiki");
  await page.getByRole("link", { name: "wiki", exact: true }).click();
  await heading(page, "wiki");
  await page.getByRole("button", { name: "Edit metadata" }).click();
  await page.waitForURL(/edit=metadata/);
  await page.reload();
  await page.getByLabel("flavor", { exact: true }).fill("m9.huge");
  const asked = page.getByRole("alertdialog");
  const stays = async (leave) => {
    await leave();
    await asked.getByRole("heading", { name: "Leave without saving?" }).waitFor();
    await asked.getByRole("button", { name: "Cancel" }).click();
    await asked.waitFor({ state: "detached" });
    holds((await page.getByLabel("flavor", { exact: true }).inputValue()) === "m9.huge", "an edit was lost");
  };
  await stays(() => page.getByRole("link", { name: "Placement", exact: true }).click());
  await stays(() => page.evaluate(() => history.back()));
  const [dialog] = await Promise.all([page.waitForEvent("dialog"), page.evaluate(() => void setTimeout(() => location.reload(), 0))]);
  await dialog.dismiss();
  await page.getByRole("link", { name: "Placement", exact: true }).click();
  if (views === "all") await accessible(page, "the question");
  await asked.getByRole("button", { name: "Leave" }).click();
  await heading(page, "Placement");
  await page.goBack();
  await heading(page, "wiki");
  await page.getByLabel("flavor", { exact: true }).waitFor(); // the address opens the form again, with what is stored
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Edit metadata" }).waitFor();

  // Who may not create sees no form.
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  for (const path of ["/new-resource", "/new-namespace", "/import", "/definitions/Cadastre%3A%3AWatchdog/new-property"]) {
    await page.goto(address + "/console" + path);
    await page.getByRole("heading", { name: /^You may not/ }).waitFor();
    holds((await page.locator("main form").count()) === 0, `a reader sees the form of ${path}`);
  }
  await page.close();
}

// Columns that people choose, in the address and in the files.
async function columns(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources?type=physical%3Ahost&search=compute-0");
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("checkbox", { name: "Tags" }).uncheck();
  const add = "Add a metadata key or a capability";
  await choose(page, add, "rack_unit", "rack_unit (metadata)");
  await page.getByRole("listbox").waitFor({ state: "detached" });
  await page.getByRole("columnheader", { name: "rack_unit" }).waitFor();
  await choose(page, add, "cpu_info:vendor", "cpu_info:vendor (capability)");
  await page.getByRole("columnheader", { name: "cpu_info:vendor" }).waitFor();
  await page.reload();
  await page.getByRole("columnheader", { name: "cpu_info:vendor" }).waitFor();
  await page.getByRole("cell", { name: "Intel" }).first().waitFor();
  if (views === "all") await accessible(page, "chosen columns");
  const saved = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Download the rows as ${name}` }).click()]);
    return require("node:fs").readFileSync(await file.path(), "utf8");
  };
  const rows = await page.locator("tbody tr").count();
  const csv = (await saved("CSV")).trimEnd().split("\r\n");
  holds(csv.length === rows + 1 && csv[0] === "Name,Type,Project,Metadata,Changed,rack_unit,cpu_info:vendor", `the file has ${csv.length} lines for ${rows} rows, and begins with ${csv[0]}`);
  const json = JSON.parse(await saved("JSON"));
  holds(json.length === rows && json.every(({ name, metadata, capabilities }) => name.startsWith("compute-0") && metadata.rack_unit && capabilities["cpu_info:vendor"]), "the JSON file is not the rows");
  await page.close();
}

// An operator creates a resource's provider and edits its inventories; a reader may not.
async function providers(context) {
  const host = async (name) => (await ask("mutation($n: String!) { createResource(input: {type: \"physical:host\", name: $n, visibility: PUBLIC}) { resource { uuid } } }", { n: name })).createResource.resource.uuid;
  const [uuid, bare] = [await host("hub-new"), await host("hub-bare")];
  const page = watch(await context.newPage());
  const asked = page.getByRole("alertdialog");
  const row = (form, name) => form.getByRole("group", { name, exact: true });
  const add = async (form, resourceClass, amounts) => {
    await form.getByRole("button", { name: "Add an inventory" }).click();
    const fresh = row(form, "New inventory");
    for (const [label, amount] of Object.entries(amounts)) await fresh.getByLabel(label, { exact: true }).fill(amount);
    await fresh.getByLabel("Resource class").selectOption(resourceClass);
  };
  await page.goto(`${address}/console/resources/${uuid}`);
  await isLive(page);
  await page.getByRole("button", { name: "Create a provider" }).click();
  await page.waitForURL(/edit=provider/);
  const create = page.getByRole("form", { name: "Create a provider" });
  const name = create.getByLabel(/^Name/);
  holds((await name.inputValue()) === "hub-new", `a provider has the name ${await name.inputValue()} first`);
  await add(create, "VCPU", { Total: "0", "Allocation ratio": "4" });
  await page.getByRole("link", { name: "Placement", exact: true }).click();
  await asked.getByRole("button", { name: "Cancel" }).click();
  await add(create, "VGPU", { Total: "1" });
  await create.getByRole("button", { name: "Remove VGPU" }).click();
  await add(create, "MEMORY_MB", { Total: "262144", Reserved: "1.5" });
  await row(create, "MEMORY_MB").getByText("Enter a whole number.").waitFor();
  await row(create, "MEMORY_MB").getByLabel("Reserved").fill("2048");
  await choose(page, "Parent", "compute-01");
  await create.getByRole("button", { name: "Create" }).click();
  await row(create, "VCPU").getByText("must be between 1 and 2147483647").waitFor();
  if (views === "all") await accessible(page, "the form of a provider");
  await page.setViewportSize({ width: 390, height: 844 });
  await fitsScreen(page, "the form of a provider on a phone");
  await page.setViewportSize({ width: 1280, height: 800 });
  await row(create, "VCPU").getByLabel("Total").fill("64");
  await create.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/\/providers\//);
  await heading(page, "hub-new");
  const { provider } = (await askUntil(({ resource }) => resource.provider, "query($u: UUID!) { resource(uuid: $u) { provider { uuid parent { name } inventories { resourceClass total reserved allocationRatio } } } }", { u: uuid })).resource;
  const want = [{ resourceClass: "MEMORY_MB", total: 262144, reserved: 2048, allocationRatio: 1 }, { resourceClass: "VCPU", total: 64, reserved: 0, allocationRatio: 4 }];
  holds(provider.parent?.name === "compute-01" && JSON.stringify(provider.inventories) === JSON.stringify(want), `stored is ${JSON.stringify(provider)}`);
  await part(page, "Inventories").getByText(/\b0 of 256(?!,)/).waitFor();

  // One total changes. What the form does not show stays, and what another adds. A change by another is asked about.
  const put = (inventory) => ask("mutation($i: SetInventoryInput!) { setInventory(input: $i) { resourceProvider { uuid } } }", { i: { provider: provider.uuid, inventory } });
  const set = (total) => put({ resourceClass: "VCPU", total, minUnit: 2, maxUnit: 32, stepSize: 2, allocationRatio: 4 });
  await set(65);
  await part(page, "Inventories").getByText(/\b0 of 260(?!,)/).waitFor();
  await page.getByRole("button", { name: "Edit inventories" }).click();
  const edit = page.getByRole("form", { name: "Edit the inventories of hub-new" });
  const total = row(edit, "VCPU").getByLabel("Total");
  await total.fill("0");
  await edit.getByRole("button", { name: "Save" }).click();
  await row(edit, "VCPU").getByText("must be between 1 and 2147483647").waitFor();
  if (views === "all") await accessible(page, "the form of inventories");
  await set(66);
  await put({ resourceClass: "DISK_GB", total: 9 });
  await total.fill("128");
  await edit.getByRole("button", { name: "Save" }).click();
  await edit.getByRole("button", { name: "Continue with my changes" }).click();
  await edit.getByRole("button", { name: "Save" }).click();
  await edit.waitFor({ state: "detached" });
  await part(page, "Inventories").getByText(/\b0 of 512(?!,)/).waitFor();
  const { inventory, disk } = (await askUntil(({ resourceProvider }) => resourceProvider.inventory.total === 128, 'query($u: UUID!) { resourceProvider(uuid: $u) { inventory(resourceClass: "VCPU") { total minUnit maxUnit stepSize } disk: inventory(resourceClass: "DISK_GB") { total } } }', { u: provider.uuid })).resourceProvider;
  holds(disk?.total === 9, "the form has removed what another has added");
  holds(JSON.stringify(inventory) === JSON.stringify({ total: 128, minUnit: 2, maxUnit: 32, stepSize: 2 }), `the inventory became ${JSON.stringify(inventory)}`);

  // All are removed, and the part still offers the form.
  await page.getByRole("button", { name: "Edit inventories" }).click();
  for (const resourceClass of ["DISK_GB", "MEMORY_MB", "VCPU"]) await edit.getByRole("button", { name: `Remove ${resourceClass}` }).click();
  await edit.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Add inventories" }).waitFor();
  await page.getByText("There are no inventories yet.").waitFor();

  // A reader is offered no form, not even by an address.
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  for (const [path, title] of [[`/providers/${provider.uuid}?edit=inventories`, "hub-new"], [`/resources/${bare}?edit=provider`, "hub-bare"]]) {
    await page.goto(address + "/console" + path);
    await heading(page, title);
    holds((await page.locator("main form").count()) + (await page.getByRole("button", { name: /inventories|Create a provider/ }).count()) === 0, `a reader is offered a form at ${path}`);
  }
  await page.close();
}

// An administrator writes capabilities, and who else changes them is asked about. A service
// writes values only, and a reader nothing.
async function capabilities(context) {
  const uuid = (await ask('mutation { createResource(input: {type: "physical:host", name: "hub-capable", visibility: PUBLIC, capabilities: [{key: "hub_kept", value: "1"}, {key: "hub_shared", value: "2"}, {key: "hub_gone", value: "3"}]}) { resource { uuid } } }')).createResource.resource.uuid;
  const set = (key, value) => ask("mutation($i: SetCapabilitiesInput!) { setCapabilities(input: $i) { resource { uuid } } }", { i: { resource: uuid, capabilities: [{ key, value }] } });
  const stored = async (want) => {
    const read = "query($u: UUID!) { resource(uuid: $u) { capabilities(includePrivate: true) { name value private } } }";
    const textOf = ({ resource }) => resource.capabilities.map(({ name, value, private: hidden }) => `${name}=${value}${hidden ? "" : " public"}`).join();
    await askUntil((data) => textOf(data) === want, read, { u: uuid });
  };
  const page = watch(await context.newPage());
  const form = page.getByRole("form", { name: "Edit capabilities" });
  const field = (name) => form.getByLabel(name, { exact: true });
  const press = (name) => form.getByRole("button", { name, exact: true }).click();
  const add = async (name, value) => {
    await addKey(form, "Add a capability", name);
    await field(name).fill(value);
  };
  await page.goto(`${address}/console/resources/${uuid}`);
  await isLive(page);
  await page.getByRole("button", { name: "Edit capabilities" }).click();
  await page.waitForURL(/edit=capabilities/);
  await page.reload();
  await isLive(page);
  await field("hub_kept").fill("mine");
  await page.getByRole("link", { name: "Placement", exact: true }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
  await press("Delete: hub_gone");
  await add("hub_new", '["a", "b"]');
  await form.getByRole("checkbox", { name: "private: hub_shared" }).uncheck();
  await form.getByText("Private or public applies to every physical:host").waitFor();
  if (views === "all") await accessible(page, "the form of capabilities");
  await page.setViewportSize({ width: 390, height: 844 });
  await fitsScreen(page, "the form of capabilities on a phone");
  await page.setViewportSize({ width: 1280, height: 800 });

  // Somebody else is first with one key, then between the last answer and the form.
  await set("hub_kept", "theirs");
  await form.getByRole("button", { name: "Keep mine: hub_kept" }).waitFor();
  holds(await form.getByRole("button", { name: /^Save 4 changes/ }).isDisabled(), "a value of somebody else can be written over");
  await press("Keep mine: hub_kept");
  let late = true;
  await page.route("**/graphql", async (route) => {
    if (late && route.request().postData()?.includes("mutation SaveCapabilities")) {
      late = false;
      await set("hub_beside", "0");
    }
    await route.continue();
  });
  await press("Save 4 changes");
  await form.getByText("Your changes still apply: save again.").waitFor();
  await press("Save 4 changes");
  await form.waitFor({ state: "detached" });
  await part(page, "Capabilities").getByRole("row", { name: /hub_new private/ }).waitFor();
  await stored('hub_beside=0,hub_kept=mine,hub_new=["a", "b"],hub_shared=2 public');

  // What the server refuses is said at the name.
  await page.getByRole("button", { name: "Edit capabilities" }).click();
  const long = "n".repeat(256);
  await add(long, "x");
  await press("Save 1 change");
  await form.getByRole("listitem").filter({ hasText: long }).locator(".error").waitFor();
  await field("hub_kept").fill("x".repeat(4097));
  await form.getByText("A value has 4096 characters at most.").waitFor();
  holds(await form.getByRole("button", { name: /^Save/ }).isDisabled(), "a value that is too long can be sent");
  await press("Cancel");

  // A service writes values, and a reader is offered no form, not even by an address.
  const as = async (token) => {
    await page.evaluate((token) => sessionStorage.setItem("cadastre.token", token), token);
    await page.goto(`${address}/console/resources/${uuid}?edit=capabilities`);
    await heading(page, "hub-capable");
  };
  await as("demo-service");
  await field("hub_kept").fill("service");
  holds((await form.getByRole("checkbox").count()) === 0, "a service is offered to make capabilities public");
  await press("Save 1 change");
  await form.waitFor({ state: "detached" });
  await stored('hub_beside=0,hub_kept=service,hub_new=["a", "b"],hub_shared=2 public');
  await as("demo-reader");
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  holds((await page.locator("main form").count()) + (await page.getByRole("button", { name: "Edit capabilities" }).count()) === 0, "a reader is offered the form of capabilities");
  await page.close();
}

// A day of an operator by the console alone, as docs/howto/operate.md tells it.
async function day(context) {
  const page = watch(await context.newPage());
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  const create = async (type, name, parent) => {
    await page.goto(address + "/console/resources");
    await page.getByRole("link", { name: "New resource" }).click();
    const form = page.getByRole("form", { name: "New resource" });
    await form.getByLabel("Type", { exact: true }).selectOption(type);
    await form.getByLabel("Name *", { exact: true }).fill(name);
    if (parent) await choose(page, "Parent", parent, new RegExp(`^${parent}`));
    await form.getByRole("button", { name: "Create" }).click();
    await heading(page, name);
  };
  await create("physical:rack", "day-rack");
  await create("physical:host", "day-host", "day-rack");
  const host = page.url();
  await press("Edit capabilities");
  for (const [name, value] of [["vcpus", "640"], ["gpu", "NVIDIA A2"]]) {
    await addKey(page, "Add a capability", name);
    await page.getByLabel(name, { exact: true }).fill(value);
  }
  await press("Save 2 changes");
  await part(page, "Capabilities").getByRole("row", { name: "vcpus 640" }).waitFor();
  await press("Create a provider");
  await press("Add an inventory");
  const fresh = page.getByRole("group", { name: "New inventory", exact: true });
  await fresh.getByLabel("Total", { exact: true }).fill("64");
  await fresh.getByLabel("Resource class").selectOption("VCPU");
  await press("Create");
  await page.waitForURL(/\/providers\//);
  await part(page, "Inventories").getByText(/\b0 of 64/).waitFor();

  // Find it by what it can.
  await page.goto(`${address}/console/capabilities?type=physical%3Ahost`);
  await press("Add a requirement");
  await page.getByLabel("Capability 1").selectOption("vcpus");
  await page.getByLabel("Operator 1").selectOption(">=");
  await page.getByLabel("Value 1").fill("640");
  await page.getByText("1 resource of").waitFor();
  await page.getByRole("link", { name: "day-host", exact: true }).click();

  // Change it.
  const lifecycle = async (value) => {
    await press("Edit metadata");
    const form = page.getByRole("form", { name: "Edit metadata" });
    await form.getByRole("combobox", { name: "Add a key" }).waitFor();
    if ((await form.getByLabel("lifecycle", { exact: true }).count()) === 0) await addKey(form, "Add a key", "lifecycle");
    await form.getByLabel("lifecycle", { exact: true }).selectOption(value);
    await form.getByRole("button", { name: /^Save 1 change/ }).click();
    await form.waitFor({ state: "detached" });
  };
  await heading(page, "day-host");
  await lifecycle("production");

  // Claim, and see who did what.
  await page.getByRole("link", { name: "Placement", exact: true }).click();
  await heading(page, "Placement");
  await press("Add an amount");
  await page.getByLabel("Class 1", { exact: true }).selectOption("VCPU");
  await page.getByLabel("Amount 1", { exact: true }).fill("4");
  await page.getByText("More conditions", { exact: true }).click();
  await choose(page, "In the tree", "day-host");
  await page.locator(".results[data-current=true] .results-count", { hasText: /^1 candidate/ }).waitFor();
  await press("Next candidate");
  await press("Claim this candidate");
  const consumer = await page.getByLabel("Consumer", { exact: true }).inputValue();
  await press("Claim");
  await page.getByText("Claimed for " + consumer).waitFor();
  const follower = watch(await context.newPage());
  await follower.goto(host);
  await isLive(follower);
  await part(follower, "Consumers").getByRole("link", { name: consumer }).waitFor();

  // Undo: the claim by the button, the metadata by the value that the event has.
  await press("Release it");
  await part(follower, "Inventories").getByText(/\b0 of 64/).waitFor();
  await page.goto(host);
  await lifecycle("staging");
  await page.goto(address + "/console/audit");
  await page.getByRole("listitem").filter({ hasText: "lifecycle" }).first().getByText("production").waitFor();
  await page.goto(host);
  await lifecycle("production");
  await part(follower, "Metadata").getByRole("cell", { name: "production" }).waitFor();
  await Promise.all([page.close(), follower.close()]);
}

run(async (browser, context, timed) => {
  const { opened } = await timed("hub", hub(await context()));
  await timed("fits", fits(await context()));
  await timed("overview", overview(await context()));
  await timed("unsaved", unsaved(await context()));
  await timed("columns", columns(await context()));
  await timed("providers", providers(await context()));
  await timed("capabilities", capabilities(await context()));
  await timed("day", day(await context()));
  if (views === "all") {
    const of = async (name) => (await ask("query($n: String!) { resources(filter: {name: $n}) { nodes { uuid provider { uuid } } } }", { n: name })).resources.nodes[0];
    const [gpus, instance, flavor] = [await of("compute-13"), await of("wiki"), await of("g1.large")];
    await timed(
      "layouts",
      layouts(browser, {
        host: ["/resources/" + gpus.uuid, "compute-13"],
        provider: ["/providers/" + gpus.provider.uuid, "compute-13"],
        consumer: ["/consumers/" + instance.uuid, "wiki"],
        flavor: ["/resources/" + flavor.uuid, "g1.large"],
        overview: ["", "Overview"],
        groups: ["/placement?group=aggregate", "Placement", (page) => page.locator("canvas[data-trees]").waitFor()],
      }),
    );
  }
  return { took: opened };
});
