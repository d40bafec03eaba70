// Opens the console of a demo and does with it what people do. console_lib.js says
// which arguments it takes.
"use strict";
const { address, views, pictures, complaints, holds, ask, becomes, watch, heading, isLive, choose, addKey, accessible, layouts, run } = require("./console_lib.js");

// A namespace from its first word to its end, with properties that resources use.
async function definitions(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console");
  await heading(page, "Overview");
  await page.getByRole("link", { name: "Definitions", exact: true }).click();
  await heading(page, "Definitions");
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
  await choose(page, "Resource type 1", "OS::Nova::Flavor");
  await page.getByLabel("Prefix 1").fill("licence:");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await heading(page, "Licences");

  await page.getByRole("link", { name: "New property" }).click();
  await page.getByLabel("Name *", { exact: true }).fill("seats");
  await page.getByLabel("Title *", { exact: true }).fill("Seats");
  await page.getByLabel("Type", { exact: true }).selectOption("INTEGER");
  await page.getByLabel("Minimum", { exact: true }).fill("10");
  await page.getByLabel("Maximum", { exact: true }).fill("5");
  await page.getByText("This is less than the minimum.").waitFor();
  await page.getByLabel("Maximum", { exact: true }).fill("500");
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
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByLabel("Minimum", { exact: true }).fill("20");
  await page.getByText("1 resource would break").waitFor();
  await page.getByText("12 is less than").or(page.getByText(flavors[1].name)).first().waitFor();
  await page.getByLabel("Minimum", { exact: true }).fill("11");
  await page.getByText("Nothing would break").waitFor();
  if (views === "all") await accessible(page, "a dry run");

  // Somebody changes it at the same time: nothing is lost unseen.
  await ask('mutation { updateProperty(input: {namespace: "Test::Licences", name: "seats", title: "Seats of a licence"}) { namespace { name } } }');
  await heading(page, "Seats of a licence");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Somebody else changed this").waitFor();
  await page.getByRole("button", { name: "Continue with my changes" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("11 to 500").first().waitFor();
  const stored = (await ask('{ namespace(name: "Test::Licences") { property(name: "seats") { title minimum maximum } } }')).namespace.property;
  holds(stored.minimum === 11 && stored.maximum === 500 && stored.title === "Seats of a licence", "stored is " + JSON.stringify(stored));

  await page.getByRole("link", { name: "Licences" }).click();
  await heading(page, "Licences");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByLabel("Display name").fill("Software licences");
  await page.getByRole("button", { name: "Save" }).click();
  await heading(page, "Software licences");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  const question = page.getByRole("alertdialog");
  await question.waitFor();
  if (views === "all") await accessible(page, "a question");
  await question.press("Escape");
  await question.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Delete the namespace" }).click();
  await heading(page, "Definitions");
  holds((await ask('{ namespace(name: "Test::Licences") { name } }')).namespace === null, "the namespace is still there");
  await page.goBack();
  await page.getByText("There is no namespace here").waitFor();
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
  const policy = page.getByRole("combobox", { name: "hw:cpu_policy", exact: true }); // once the definitions are there
  await policy.selectOption("dedicated");
  await addKey(page, "Add a key", "hw:cpu_sockets");
  const sockets = page.getByLabel("hw:cpu_sockets", { exact: true });
  await sockets.fill("none");
  await page.getByText("none is not of type integer").waitFor();
  await sockets.fill("2");
  await page.getByText("none is not of type integer").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete: quota:minIOPS" }).click();
  if (views === "all") await accessible(page, "the editor");
  if (pictures) {
    await page.setViewportSize({ width: 1280, height: 1200 }); // all of it, with its buttons below
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${pictures}/console-editor-1280-light.png` });
    await page.setViewportSize({ width: 1280, height: 800 });
  }

  // Somebody writes the same key, and another one: the one is asked about, the other stays.
  await ask('mutation($u: UUID!) { setMetadata(input: {resource: $u, items: [{key: "hw:cpu_policy", value: "mixed"}, {key: "beside", value: "me"}]}) { resource { uuid } } }', { u: uuid });
  await page.getByText("was changed by somebody else").waitFor();
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
  await page.getByRole("combobox", { name: "hw:cpu_policy", exact: true }).selectOption("shared");
  for (const key of ["hw:cpu_sockets", "beside"]) await page.getByRole("button", { name: "Delete: " + key }).click();
  await addKey(page, "Add a key", "quota:minIOPS");
  await page.getByLabel("quota:minIOPS", { exact: true }).fill(gone);
  await page.getByRole("button", { name: "Save 4 changes" }).click();
  await page.getByRole("button", { name: "Edit metadata" }).waitFor();
  holds(JSON.stringify(await metadata()) === JSON.stringify(before), "the metadata are not as they were");

  const host = (await ask('{ resources(filter: {name: "compute-01"}) { nodes { uuid parent { name } } } }')).resources.nodes[0];
  await page.goto(`${address}/console/resources/${host.uuid}`);
  await page.getByRole("link", { name: host.parent.name }).first().click();
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
  await page.getByRole("status").filter({ hasText: new RegExp(`^${intel} resources of 24 meet the requirements`) }).waitFor();
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
  await page.getByRole("status").filter({ hasText: new RegExp(`^${both} resources? of 24 meets? the requirements`) }).waitFor();
  await page.reload();
  await page.getByRole("status").filter({ hasText: new RegExp(`^${both} resources? of 24 meets? the requirements`) }).waitFor();
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
  await page.getByLabel("Action").selectOption({ label: "changed namespace" });
  await page.waitForURL(/action=updateNamespace/);
  await page.getByRole("status").filter({ hasText: "1 event" }).waitFor();
  if (views === "all") await accessible(page, "differences");
  await page.getByRole("link", { name: "Test::Audited" }).click();
  await heading(page, "Test::Audited");
  await ask('mutation { deleteNamespace(input: {name: "Test::Audited"}) { namespace { name } } }');
  await page.getByText("There is no namespace here").waitFor();
  await page.goto(address + "/console/audit?kind=RESOURCE");
  await heading(page, "Audit");
  const row = page.locator(".differences > div", { hasText: "metadata licence:seats" }).first();
  holds((await row.locator("del").textContent()) === "12", "the oldest value of an item that was deleted is " + (await row.textContent()));
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("You may not see this").waitFor();
  holds((await page.getByRole("link", { name: "Audit" }).count()) === 0, "a reader is offered the audit log");
  await page.close();
}

const rootsWith = async (filter) => {
  const roots = new Set();
  for (const { root } of (await ask("query($f: ResourceProviderFilter) { resourceProviders(filter: $f, first: 1000) { nodes { root { uuid } } } }", { f: filter })).resourceProviders.nodes) roots.add(root.uuid);
  return roots.size;
};

// The picture of the cloud: what it shows, by filters, keyboard, pointer and as a table.
async function picture(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/placement");
  await heading(page, "Placement");
  const all = await rootsWith({});
  const counted = (text) => page.getByRole("status").filter({ hasText: text }).waitFor();
  const drawn = (trees) => page.locator(`canvas[data-trees="${trees}"]`).waitFor();
  await counted(`${all} trees of`);
  await drawn(all);
  const colours = () => page.locator("canvas").evaluate((canvas) => {
    const seen = new Set();
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
    return seen.size;
  });
  await becomes(colours, (number) => number > 5, "the number of colours of the picture"); // it is empty before it is painted again

  const trait = "CUSTOM_GPU_NVIDIA_A100";
  await choose(page, "Trait", trait);
  await page.waitForURL(new RegExp("trait=" + trait));
  const graphics = await rootsWith({ requiredAll: [trait] });
  holds(graphics > 0 && graphics < all, `${graphics} of ${all} trees have ${trait}`);
  await counted(`${graphics} trees of ${all}`);
  await drawn(graphics);
  // A trait of a device and an aggregate of its host: a tree has both, no provider does.
  await page.getByLabel("Aggregate", { exact: true }).selectOption("accelerated");
  await page.waitForURL(/aggregate=/);
  await counted(`${graphics} trees of ${all}`);
  await page.getByRole("button", { name: "Clear all" }).click();
  await counted(`${all} trees of`);
  await page.getByLabel("Capability", { exact: true }).selectOption("cpu_info:vendor");
  await page.getByLabel("Value of the capability").fill("Intel");
  const intel = await rootsWith({ resource: { requirements: [{ key: "cpu_info:vendor", requirement: "Intel" }] } });
  holds(intel > 0 && intel < all, `${intel} of ${all} trees are of Intel`);
  await counted(`${intel} trees of ${all}`);
  await page.reload();
  await counted(`${intel} trees of ${all}`);
  await page.goto(address + "/console/placement?trait=CUSTOM_NONE_SUCH");
  await page.getByText("The address names something that does not exist").waitFor();
  await page.goto(address + "/console/placement?search=no+such+thing");
  await page.getByText("No tree matches").waitFor();

  await page.goto(address + "/console/placement?search=compute-13&class=VGPU");
  await drawn(1);
  const tiles = page.getByRole("listbox", { name: "Picture of 1 tree of providers" });
  await page.getByRole("option", { name: /^compute-13: VGPU \d+% used, \d+ of 16/ }).waitFor({ state: "attached" });
  await tiles.press("Enter");
  const chosen = page.getByRole("region", { name: "The selected provider" });
  await chosen.getByRole("heading", { name: "compute-13", exact: true }).waitFor();
  await chosen.getByRole("button", { name: "compute-13:numa0", exact: true }).click();
  await chosen.getByRole("heading", { name: "compute-13:numa0", exact: true }).waitFor();
  if (views === "all") await accessible(page, "a provider");
  await chosen.getByRole("button", { name: "Close" }).click();
  await chosen.waitFor({ state: "detached" });
  await page.getByRole("listbox").click({ position: { x: 60, y: 8 } });
  await chosen.getByRole("heading", { name: "compute-13", exact: true }).waitFor();
  holds(new URL(page.url()).searchParams.get("at") !== null, "the address does not have the chosen provider");

  await page.getByLabel("Show as").selectOption("table");
  await page.getByRole("row", { name: /compute-13:gpu0/ }).waitFor();
  if (views === "all") await accessible(page, "the table of providers");
  await page.goto(address + "/console/placement");
  await drawn(all);
  const sums = (await ask("{ capacity(first: 1000) { nodes { resourceClass capacity used providers } } }")).capacity.nodes;
  const bars = page.getByRole("list", { name: "Capacity by class" }).getByRole("listitem");
  await bars.first().waitFor();
  holds((await bars.count()) === sums.length, `there are bars of ${await bars.count()} classes, not ${sums.length}`);
  const number = (of) => new Intl.NumberFormat("en").format(of);
  for (const { resourceClass, capacity, used, providers } of sums) await bars.filter({ hasText: resourceClass }).filter({ hasText: `${number(used)} of ${number(capacity)} on ${providers} provider` }).waitFor();
  await page.getByRole("button", { name: "Colour by VGPU" }).click();
  await page.waitForURL(/class=VGPU/);
  await page.close();
}

// A request drawn on the picture, as a flavor has it or built by hand; who cannot
// serve it and why; a candidate made a claim and released, beside others who claim.
async function candidates(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/placement");
  await heading(page, "Placement");
  await isLive(page);
  const ways = async (flavor) => (await ask("query($f: ResourceFilter) { resources(filter: $f, first: 1) { nodes { allocationCandidates(first: 0) { totalCount } } } }", { f: { types: ["OS::Nova::Flavor"], name: flavor } })).resources.nodes[0].allocationCandidates.totalCount;
  const counted = (text) => page.locator(".results[data-current=true] .results-count", { hasText: text }).waitFor();
  await choose(page, "From a flavor", "g1.large");
  const large = await ways("g1.large");
  holds(large > 0, "no host can serve g1.large");
  await counted(`${large} candidate`);
  await page.waitForURL(/request=/);
  await page.reload();
  await counted(`${large} candidate`);
  await isLive(page); // the page no longer moves
  await page.getByRole("button", { name: "Reset" }).click();
  await page.waitForURL((url) => !url.searchParams.has("request"));

  await page.getByRole("button", { name: "Add an amount", exact: true }).click();
  await page.getByLabel("Class 1", { exact: true }).selectOption("VCPU");
  await page.getByLabel("Amount 1", { exact: true }).fill("1x");
  await page.getByText("A whole number from 1 on.").waitFor();
  await page.getByLabel("Amount 1", { exact: true }).fill("2");
  await page.getByRole("button", { name: "Add a group" }).click();
  await page.getByRole("button", { name: "Add an amount of group _1" }).click();
  await page.getByLabel("Class 1 of group _1").selectOption("VGPU");
  const request = { resources: [{ resourceClass: "VCPU", amount: 2 }], groups: [{ suffix: "_1", resources: [{ resourceClass: "VGPU", amount: 1 }] }] };
  const counting = "query($resources: [ResourceAmountInput!], $groups: [RequestGroupInput!]) { allocationCandidates(resources: $resources, groups: $groups, first: 1000) { totalCount nodes { allocations { provider { root { uuid name } } } } } }";
  const all = (await ask(counting, request)).allocationCandidates;
  await counted(`${all.totalCount} candidate`);
  await choose(page, "With every trait of group _1", "CUSTOM_GPU_NVIDIA_A100");
  request.groups[0].requiredAll = ["CUSTOM_GPU_NVIDIA_A100"];
  const some = (await ask(counting, request)).allocationCandidates;
  holds(some.totalCount > 0 && some.totalCount < all.totalCount, `${some.totalCount} of ${all.totalCount} candidates have the trait`);
  await counted(`${some.totalCount} candidate`);
  if (views === "all") await accessible(page, "a request");

  // Why one host cannot serve it and another one can.
  const providers = (await ask('{ resourceProviders(filter: {search: "compute-0", roots: true}) { nodes { uuid name } } }')).resourceProviders.nodes;
  const at = async (uuid) => {
    const to = new URL(page.url());
    to.searchParams.set("at", uuid);
    await page.goto(to.href);
  };
  await at(providers[0].uuid);
  await page.getByText(`${providers[0].name} cannot serve the request: 1 VGPU short`).waitFor();
  await page.getByText("has VGPU (group 1)").waitFor();
  const able = some.nodes[0].allocations[0].provider.root;
  await at(able.uuid);
  await page.getByText(`${able.name} can serve the request`).waitFor();

  // A claim, and back.
  const uses = async (uuid) => (await ask("query($u: UUID!) { consumer(uuid: $u) { generation allocations { resourceClass used provider { name } } mappings { suffix } } }", { u: uuid })).consumer;
  await page.getByRole("button", { name: "Next candidate" }).click();
  await page.waitForURL(/candidate=1/);
  const takes = await page.getByRole("list", { name: "Allocations of the candidate" }).textContent();
  await page.getByRole("list", { name: "Allocations of the candidate" }).getByRole("button").first().click();
  await page.getByRole("button", { name: "Claim this candidate" }).click();
  const uuid = await page.getByLabel("Consumer", { exact: true }).inputValue();
  if (views === "all") await accessible(page, "a claim");
  await page.getByRole("button", { name: "Claim", exact: true }).click();
  await page.getByText("Claimed for " + uuid).waitFor();
  const claimed = await uses(uuid);
  holds(claimed?.allocations.length === 2 && claimed.mappings.length === 2 && claimed.allocations.every(({ provider, resourceClass, used }) => takes.includes(provider.name) && takes.includes(`${used} ${resourceClass}`)), `claimed is ${JSON.stringify(claimed)}, not ${takes}`);
  await page.getByRole("button", { name: "Release " + uuid }).waitFor(); // of the provider that is looked at, by itself
  await page.getByRole("button", { name: "Release it" }).click();
  await page.getByRole("button", { name: "Claim this candidate" }).waitFor();
  holds((await uses(uuid)) === null, "what was claimed is not released");

  // A consumer that others write at the same time: nothing of theirs is lost unseen.
  const other = "11111111-2222-4333-8444-555555555555";
  const write = (generation) => ask("mutation($i: SetAllocationsInput!) { setAllocations(input: $i) { consumers { uuid } } }", { i: { consumers: [{ uuid: other, projectId: "demo", userId: "else", generation, allocations: [{ provider: some.nodes[0].allocations[0].provider.root.uuid, resources: [{ resourceClass: "DISK_GB", amount: 1 }] }] }] } });
  await write(null);
  await page.getByRole("button", { name: "Claim this candidate" }).click();
  await page.getByLabel("Consumer", { exact: true }).fill(other);
  await page.getByRole("button", { name: "Claim", exact: true }).click();
  await page.getByText("This consumer of demo uses 1 DISK_GB").waitFor();
  await write(1);
  await page.getByRole("button", { name: "Replace its allocations" }).click();
  await page.getByText("Somebody else changed the allocations of this consumer").waitFor();
  holds((await uses(other)).generation === 2, "a conflict was written over");
  await page.getByRole("button", { name: "Reload the consumer" }).click();
  await page.getByRole("button", { name: "Replace its allocations" }).click();
  await page.getByText("Claimed for " + other).waitFor();
  holds((await uses(other)).generation === 3, "the claim is not the newest");
  await page.getByRole("button", { name: "Release it" }).click();
  await page.getByRole("button", { name: "Claim this candidate" }).waitFor();
  holds((await uses(other)) === null, "the consumer still uses something");

  // Too much for anyone, and what a reader may do.
  await page.getByLabel("Amount 1 of group _1", { exact: true }).fill("1000");
  await counted("No candidate");
  await page.getByRole("list", { name: "What each condition leaves" }).getByText("can give 1,000 VGPU now").waitFor();
  await page.getByRole("heading", { name: "Nearest" }).waitFor();
  if (views === "all") await accessible(page, "no candidate");
  await page.getByLabel("Amount 1 of group _1", { exact: true }).fill("1");
  await counted(`${some.totalCount} candidate`);
  await page.getByLabel("Role").selectOption({ label: "reader" });
  await page.getByText("you are demo-reader, reader of demo").waitFor();
  await counted(`${some.totalCount} candidate`);
  await page.getByRole("button", { name: "Next candidate" }).click();
  await page.getByRole("list", { name: "Allocations of the candidate" }).waitFor();
  for (const name of [/^Claim/, /^Release/]) holds((await page.getByRole("button", { name }).count()) === 0, `a reader is offered ${name}`);
  await page.close();
}

// What another client claims is on an open picture within a second.
async function livePicture(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/placement?search=archive-storage&class=DISK_GB");
  await page.locator('canvas[data-trees="1"]').waitFor();
  await isLive(page);
  const says = (text) => page.getByRole("option", { name: text }).waitFor({ state: "attached" });
  await says(/^archive-storage: DISK_GB 0% used, 0 of/);
  const { uuid } = (await ask('{ resourceProvider(name: "archive-storage") { uuid } }')).resourceProvider;
  const consumer = "aaaaaaaa-2222-4333-8444-555555555555";
  await ask("mutation($i: SetAllocationsInput!) { setAllocations(input: $i) { consumers { uuid } } }", { i: { consumers: [{ uuid: consumer, projectId: "demo", userId: "else", allocations: [{ provider: uuid, resources: [{ resourceClass: "DISK_GB", amount: 16000 }] }] }] } });
  const begun = performance.now();
  await says(/^archive-storage: DISK_GB 1% used, 16,000 of/);
  const took = performance.now() - begun;

  // A change that could not be read is read once the server can be reached.
  let lost = 0;
  await page.route("**/graphql", (route) => (lost++, route.abort()));
  await ask("mutation($c: UUID!) { deleteAllocations(input: {consumer: $c}) { consumer { uuid } } }", { c: consumer });
  await becomes(() => lost, (lost) => lost > 1, "the number of lost requests");
  await page.unroute("**/graphql");
  await says(/^archive-storage: DISK_GB 0% used, 0 of/);
  for (let at = complaints.length - 1; at >= 0; at--) if (/ERR_FAILED/.test(complaints[at])) complaints.splice(at, 1); // the lost answers
  await page.close();
  return took;
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
  const query = page.getByRole("link", { name: "Show the query" });
  if (views === "all") {
    await query.click();
    await page.waitForFunction(() => document.getElementById("who")?.textContent === "you are demo-reader, reader of demo");
    const shown = page.locator(".graphiql-query-editor .CodeMirror");
    await shown.waitFor();
    holds((await shown.evaluate((element) => element.CodeMirror.getValue())).includes("query NamespacePage"), "the IDE does not show the query");
    await page.locator(".graphiql-execute-button").click();
    await page.locator(".result-window", { hasText: "Watchdog device" }).waitFor();
  } else holds((await query.count()) === 0, "the console of a server without the IDE offers it");
  await page.evaluate(() => sessionStorage.setItem("cadastre.token", "nobody"));
  await page.goto("about:blank");
  complaints.length = 0; // the editor of the IDE says things of its own, which its test looks at
  await page.goto(address + "/console/resources");
  await heading(page, "Sign in");
  await page.getByText("This token is not known").waitFor();
  if (views === "all") await accessible(page, "the sign-in");
  await page.getByRole("textbox", { name: "Token" }).fill("\u201cdemo-member\u201d");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is not known").waitFor();
  await page.getByRole("textbox", { name: "Token" }).fill("demo-member");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("you are demo-member, member of demo").waitFor();
  await heading(page, "Resources");
  // The answer 401 to the wrong token is what was asked for.
  for (let i = complaints.length - 1; i >= 0; i--) if (/status of 401/.test(complaints[i])) complaints.splice(i, 1);
  await page.goto(address + "/console/nowhere");
  await heading(page, "Not found");
  await page.goto(address + "/console/definitions/no%20such");
  await page.getByText("There is no namespace here").waitFor();
  await page.goto(address + "/console/resources?type=no-such-type");
  await page.getByText("The address names something that does not exist").waitFor();
  await page.close();
}

// A socket that the server refuses is told, not waited for.
async function refused(context) {
  const page = watch(await context.newPage());
  let opened = 0;
  await page.routeWebSocket(/\/graphql$/, (socket) => (opened++, socket.close({ code: 4403, reason: "Forbidden" })));
  await page.goto(address + "/console/placement?search=compute-01");
  await heading(page, "Placement");
  await page.getByRole("status").filter({ hasText: "not live: refused" }).waitFor();
  await page.getByRole("img", { name: /^Not live: the token is not known, has expired or was revoked/ }).waitFor();
  await page.locator('canvas[data-trees="1"]').waitFor();
  if (views === "all") await accessible(page, "a page that is not live");
  await page.waitForTimeout(1500);
  holds(opened <= 3, `sockets for streams of three kinds that were refused were opened ${opened} times`);
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

// Every view.
async function pages() {
  const image = (await ask('{ resources(filter: {name: "shop-front-end"}) { nodes { uuid } } }')).resources.nodes[0].uuid;
  const host = (await ask('{ resourceProvider(name: "compute-05") { uuid } }')).resourceProvider;
  const request = { groups: [{ resources: [{ resourceClass: "VCPU", amount: "8" }] }, { suffix: "_1", resources: [{ resourceClass: "VGPU", amount: "1" }] }] };
  const drawn = (page) => page.locator("canvas[data-trees]").waitFor();
  const explained = async (page) => {
    await drawn(page);
    await page.getByText("compute-05 cannot serve the request").waitFor();
  };
  return {
    definitions: ["/definitions", "Definitions"],
    namespace: ["/definitions/Cadastre%3A%3ADataProtection", "Data protection"],
    property: ["/definitions/Cadastre%3A%3AWatchdog/properties/watchdog_action", "Action"],
    resources: ["/resources?type=OS%3A%3AGlance%3A%3AImage&key=os_distro", "Resources"],
    resource: ["/resources/" + image, "shop-front-end"],
    capabilities: ["/capabilities?type=physical%3Ahost&need=cpu_info%3Avendor%7C%7CIntel&need=vcpus%7C%3E%3D%7C64", "Capabilities"],
    placement: ["/placement", "Placement", drawn],
    candidates: [`/placement?class=VCPU&candidate=2&at=${host.uuid}&request=${encodeURIComponent(JSON.stringify(request))}`, "Placement", explained],
    audit: ["/audit", "Audit"],
  };
}

run(async (browser, context, timed) => {
  const { audit: log, ...content } = await pages();
  if (views === "all") await timed("layouts", layouts(browser, content));
  await timed("definitions", definitions(await context()));
  await timed("resources", resources(await context()));
  await timed("capabilities", capabilities(await context()));
  await timed("audit", audit(await context()));
  if (views === "all") await timed("layouts of the log", layouts(browser, { audit: log })); // it has events by now
  await timed("picture", picture(await context()));
  await timed("candidates", candidates(await context()));
  const took = Math.max(await timed("live", live(await context())), await timed("livePicture", livePicture(await context())));
  await timed("sessions", sessions(await context()));
  await timed("refused", refused(await context()));
  await timed("keyboard", keyboard(await context()));
  return { took };
});
