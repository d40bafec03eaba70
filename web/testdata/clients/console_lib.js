// What the programs that open the console of a demo have in common. Their arguments
// are in argv: the address of the console, the browser, another server of the same
// database, or the same one, that changes things beside it, the views of which
// pictures are looked at by axe ("all", or "some" where another database has had
// all), and a folder for pictures, if they are wanted.
"use strict";
const fs = require("node:fs");
const { chromium } = require("playwright-core");
const pressAgain = require("./press.js");

const [, , address, executablePath, other, views, pictures] = process.argv;
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const complaints = [];
const patience = require("./patience.js")(60000); // milliseconds
const holds = (is, what) => is || wrong.push(what);

// Waits for a promise that has no time limit of its own.
function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what} took longer than ${patience} ms`)), patience)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Sends an operation as another client.
async function ask(query, variables, token = "demo-admin") {
  const headers = { "Content-Type": "application/json", "X-Auth-Token": token };
  const asked = fetch(other + "/graphql", { method: "POST", headers, body: JSON.stringify({ query, variables }) });
  const answer = await within(asked.then((response) => response.json()), query);
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
}

// Waits until a value is as it must become.
async function becomes(read, is, what) {
  let got;
  for (const end = Date.now() + patience; Date.now() < end; await new Promise((next) => setTimeout(next, 50))) if (is((got = await read()))) return;
  throw new Error(`${what} is ${JSON.stringify(got)}`);
}

// Asks until the answer is as it must become: the other server learns of a change
// after the console has shown it. Returns that answer.
async function askUntil(is, query, variables) {
  for (const end = Date.now() + patience; ; await new Promise((next) => setTimeout(next, 50))) {
    const data = await ask(query, variables);
    if (is(data)) return data;
    if (Date.now() > end) throw new Error(`the answer to ${query} never became as in ${is}: it is ${JSON.stringify(data)}`);
  }
}

const open = new Set(); // pages, which say where they stand when a program fails

function watch(page) {
  open.add(page);
  page.on("close", () => open.delete(page));
  page.setDefaultTimeout(patience);
  pressAgain(page);
  const evaluate = page.evaluate.bind(page);
  page.evaluate = (script, argument) => within(evaluate(script, argument), String(script));
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

// Chooses a name in a field with choices. They open when a person types, if they have come,
// and close when the page is scrolled: then it is typed again.
async function choose(page, field, name, choice = name) {
  const input = page.getByRole("combobox", { name: field, exact: true });
  const option = page.getByRole("listbox").getByRole("option", { name: choice, exact: true });
  for (const end = Date.now() + patience; ; ) {
    const scroll = input.evaluate((element) => {
      element.scrollIntoView({ block: "center" });
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    });
    await within(scroll, `scrolling to ${field}`);
    await input.fill("");
    await input.fill(name);
    const failed = await option.waitFor({ timeout: patience / 30 }).then(() => option.click({ timeout: patience / 4 })).then(() => undefined, (error) => error);
    if (!failed) return;
    if (Date.now() > end) throw failed;
  }
}

// Adds a key by a form. The choices of its field may hide the button from screen readers.
async function addKey(form, field, key) {
  await form.getByRole("combobox", { name: field }).fill(key);
  await form.getByRole("button", { name: "Add", exact: true, includeHidden: true }).click();
}

// What axe finds on a page as it stands. The browser itself evaluates it, whatever
// the policy of the page is.
async function accessible(page, what) {
  const session = await page.context().newCDPSession(page);
  await within(session.send("Runtime.evaluate", { expression: axe }), `${what}: the script of axe`);
  const run = "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map((node) => node.html.slice(0, 150) + ' ' + node.failureSummary).join('; '))))";
  const { result } = await within(session.send("Runtime.evaluate", { expression: run, awaitPromise: true }), `${what}: axe`);
  for (const violation of JSON.parse(result.value)) wrong.push(`${what}: axe: ${violation}`);
  await session.detach();
}

const fits = async (page, what) => {
  await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, null, { timeout: patience / 20 }).catch(() => {}); // it is drawn again
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(beyond <= 0, `${what} is ${beyond} pixels wider than the screen`);
};

// Each view on a phone, a desk and a wall, by day and by night.
async function layouts(browser, pages) {
  const page = watch(await browser.newPage({ reducedMotion: "reduce" }));
  for (const [name, [path, title, prepare]] of Object.entries(pages)) {
    await page.goto(address + "/console" + path);
    await heading(page, title);
    await isLive(page);
    if (prepare) await prepare(page);
    for (const colorScheme of ["light", "dark"])
      for (const [width, height] of [[390, 844], [1280, 800], [1920, 1080]]) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        const what = `${name} ${width} ${colorScheme}`;
        await fits(page, what);
        if ((width === 390) === (colorScheme === "dark")) await accessible(page, what);
        if (pictures) await page.screenshot({ path: `${pictures}/console-${name}-${width}-${colorScheme}.png`, fullPage: true });
      }
  }
  await page.close();
}

// Where the open pages stand: their addresses, and what they say was refused.
async function stand() {
  const said = [...open].map(async (page) => `${page.url()}: ${JSON.stringify(await page.locator("[role=alert], .note, .error").allTextContents())}`);
  return (await Promise.allSettled(said)).map(({ value, reason }) => value ?? String(reason)).join("\n");
}

// Runs a program in the browser, and prints as JSON what was found wrong and what
// the browser complained of. If it is told to end, it says which step it is in.
function run(program) {
  let step = "";
  process.once("SIGTERM", async () => {
    process.stderr.write(`it ended in the step ${step}\n`);
    await within(stand(), "where the pages stand").then((text) => process.stderr.write(text + "\n"), () => {});
    process.exit(1);
  });
  const main = async () => {
    const browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    try {
      const seconds = {};
      const timed = async (name, run) => {
        step = name;
        const begun = performance.now();
        const result = await run;
        seconds[name] = Math.round((performance.now() - begun) / 100) / 10;
        return result;
      };
      const more = await program(browser, () => browser.newContext({ viewport: { width: 1280, height: 800 } }), timed);
      process.stdout.write(JSON.stringify({ wrong, complaints, ...more, seconds }));
    } catch (error) {
      process.stderr.write((await stand()) + "\n");
      throw error;
    } finally {
      await browser.close();
    }
  };
  main().catch((error) => {
    process.stderr.write(JSON.stringify({ wrong, complaints }) + "\n" + String(error.stack) + "\n");
    process.exitCode = 1;
  });
}

module.exports = { address, views, pictures, wrong, complaints, holds, ask, askUntil, becomes, watch, heading, isLive, choose, addKey, accessible, fits, layouts, run };
