// Opens the picture of a large cloud at argv[2] in the browser argv[3], scrolls through
// it, and prints as JSON how long it took until all of argv[4] trees were drawn, the
// longest task of the page while it was scrolled, as the browser's own trace has it, and
// what bounds both whatever the machine: tiles painted in a frame, elements of the page,
// requests.
"use strict";
const { chromium } = require("playwright-core");

const [, , address, executablePath, trees, pictures] = process.argv;

/** The longest task of the page's main thread in a trace, in milliseconds, and in those of the processor, which other work on the machine does not lengthen. */
function longest(trace) {
  const { traceEvents } = JSON.parse(trace.toString());
  const main = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(({ name, ph, pid, tid }) => ph === "X" && /RunTask$/.test(name) && main.has(`${pid} ${tid}`));
  return { tasks: tasks.length, longest: Math.max(0, ...tasks.map(({ dur }) => dur / 1000)), processor: Math.max(0, ...tasks.map(({ tdur }) => (tdur ?? 0) / 1000)) };
}

/** Opens the page of the only resource from the table of resources, and returns how soon and with how many requests it is complete. */
async function openHub(page, requests) {
  await page.goto(address + "/console/resources");
  const link = page.getByRole("link", { name: "host-00001" });
  await link.waitFor();
  await page.waitForLoadState("networkidle");
  const before = requests();
  const shown = await link.evaluate(async (element) => {
    const begun = performance.now();
    element.click();
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    while (!document.querySelector("#consumers tbody tr")) await frame();
    await frame();
    return performance.now() - begun;
  });
  if (pictures) await page.screenshot({ path: `${pictures}/console-wide-hub.png`, fullPage: true });
  const number = async (part) => Number(await page.locator(`#${part} h2 .dim`).textContent());
  const devices = (await page.locator("#provider").getByText("host-00001:gpu").allTextContents()).length;
  return { shown, requests: requests() - before, devices, consumers: await number("consumers") };
}

// Opens the console while its first script cannot be loaded, and then can.
async function recovers(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(require("./patience.js")(120000));
  await page.route("**/assets/index-*.js", (route) => route.abort());
  await page.goto(address + "/console", { waitUntil: "commit" });
  await page.getByText("The server cannot be reached.").waitFor();
  await page.unroute("**/assets/index-*.js");
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.close();
}

async function main() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(require("./patience.js")(120000));
    const complaints = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    let requests = 0;
    page.on("request", (request) => (requests += request.url().endsWith("/graphql") ? 1 : 0));
    const begun = performance.now();
    await page.goto(address + "/console/placement?group=none", { waitUntil: "commit" });
    await page.locator(`canvas[data-trees="${trees}"]`).waitFor();
    const drawn = performance.now() - begun;
    const of = {};
    for (const size of ["small", "medium", "large"]) {
      await page.getByLabel("Show as").selectOption(size);
      const box = page.getByRole("listbox");
      await box.hover();
      await page.waitForTimeout(300);
      await browser.startTracing(page, { categories: ["disabled-by-default-devtools.timeline", "devtools.timeline", "toplevel"] });
      const seen = await box.evaluate(async (element) => {
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        let tiles = 0;
        const from = element.scrollTop;
        for (let step = 1; step <= 60; step++) {
          element.scrollTop = Math.min(element.scrollHeight, from + step * 240);
          await frame();
          tiles = Math.max(tiles, Number(element.querySelector("canvas").dataset.tiles));
        }
        return { tiles, scrolled: element.scrollTop - from };
      });
      of[size] = { ...seen, ...longest(await browser.stopTracing()) };
      if (pictures) await page.screenshot({ path: `${pictures}/console-wide-${size}.png` });
    }
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    const read = requests;
    await page.goto(address + "/console/placement", { waitUntil: "commit" }); // begins grouped
    await page.locator('canvas[data-trees="250"]').waitFor();
    if (pictures) await page.screenshot({ path: `${pictures}/console-wide-groups.png` });
    const hub = await openHub(page, () => requests);
    requests = read;
    await recovers(browser);
    process.stdout.write(JSON.stringify({ complaints, drawn, requests, elements, of, hub }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(String(error.stack) + "\n");
  process.exitCode = 1;
});
