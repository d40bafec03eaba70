// Opens the IDE of a demo at argv[2] in the browser argv[3], and of a server
// without anything, which knows the token argv[5], at argv[4]. It runs every query
// of every tab, tries what stands around the editor, and prints as JSON what was
// answered, what was found wrong, and what the browser complained of. With argv[6]
// it keeps pictures in that folder.
"use strict";
const { execFileSync } = require("node:child_process");
const { chromium } = require("playwright-core");

const [, , address, executablePath, bare, token, pictures] = process.argv;
const wrong = [];
const patience = require("./patience.js")(120000); // milliseconds
const holds = (is, what) => is || wrong.push(what);

// Waits until the page says something at an id.
const says = (page, id, text) =>
  page.waitForFunction(([id, text]) => document.getElementById(id).textContent === text, [id, text]).catch(async () => {
    wrong.push(`${id} says ${await page.locator("#" + id).textContent()}, not ${text}`);
  });

const ready = (page) => page.locator(".graphiql-tab").first().waitFor();

// Opens a tab and returns the operations of its document. The editor reads a
// document a moment after it came, and runs nothing before that.
async function open(page, tab) {
  await tab.click();
  const document = await page.locator(".graphiql-query-editor .CodeMirror").evaluate((element) => element.CodeMirror.getValue());
  const operations = document.match(/^(query|subscription) \w+/gm) || [];
  await page.waitForFunction((names) => names.some((name) => name.endsWith(" " + localStorage.getItem("graphiql:operationName"))), operations);
  return operations;
}

// What is sent when a button is pressed.
async function sentBy(page, press) {
  const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/graphql"));
  await press();
  return sent;
}

const isIntrospection = (request) => (request.postData() ?? "").includes("IntrospectionQuery");

// The roles of a demo, one token for all tabs, and the schema fetched anew.
async function tokens(context) {
  const page = await context.newPage();
  await page.goto(address);
  await ready(page);
  await says(page, "who", "you are demo-admin, admin of demo");
  const again = page.waitForRequest(isIntrospection);
  await page.locator("#role").selectOption({ label: "member" });
  await again;
  await says(page, "who", "you are demo-member, member of demo");
  for (const tab of [0, 1]) {
    await open(page, page.locator(".graphiql-tab-button").nth(tab));
    const request = await sentBy(page, () => page.locator(".graphiql-execute-button").click());
    holds(request.headers()["x-auth-token"] === "demo-member", `tab ${tab} is sent as ${request.headers()["x-auth-token"]}`);
  }
  await page.reload();
  await ready(page);
  await says(page, "who", "you are demo-member, member of demo");
  const other = page.waitForRequest(isIntrospection);
  await page.route("**/schema.graphql", (route) => route.fulfill({ status: 200, headers: { ETag: '"another"' } }));
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await other;
  await page.close();
}

// Links and commands that others can use.
async function sharing(context) {
  const page = await context.newPage();
  await page.goto(address + "#" + new URLSearchParams({ query: "query Linked($n: Int) { namespaces(first: $n) { nodes { name } } }", variables: '{"n": 1}' }));
  await ready(page);
  await says(page, "who", "you are demo-admin, admin of demo");
  const editor = page.locator(".graphiql-query-editor .CodeMirror");
  const shown = () => editor.evaluate((element) => element.CodeMirror.getValue());
  await page.waitForFunction(() => document.querySelector(".graphiql-query-editor .CodeMirror")?.CodeMirror.getValue().includes("query Linked"));
  await editor.evaluate((element) => element.CodeMirror.setValue("query It's($n: Int) { a: namespaces(first: $n) { nodes { name } } }".replace("It's", "Its") + " # it's"));
  await page.evaluate(() => {
    window.told = []; // the page removes its messages
    const at = document.getElementById("told");
    new MutationObserver(() => window.told.push(at.textContent)).observe(at, { childList: true });
  });
  const tells = (text) => page.waitForFunction((text) => window.told.includes(text), text);
  await page.locator("#link").click();
  await tells("The link is copied.");
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const link = new URLSearchParams(new URL(await copied()).hash.slice(1));
  holds(link.get("query").includes("query Its") && JSON.parse(link.get("variables")).n === 1, "the link is of " + link);
  await page.locator("#curl").click();
  await tells("The command is copied.");
  const answer = execFileSync("sh", ["-c", await copied()], { encoding: "utf8" });
  holds(JSON.parse(answer).data?.a?.nodes.length === 1, "the command answers " + answer);
  await page.locator(".graphiql-tab-add").click();
  const text = (await shown()) + (await page.locator("body").innerText());
  holds(!/graph.?i.?ql/i.test(text.replaceAll("/graphql", "")), "a text of the editor's own is left: " + text.slice(0, 300));
  await page.close();
}

// What fits on a desk and in a hand, by day and by night.
async function layouts(browser) {
  for (const colorScheme of ["light", "dark"])
    for (const [width, height] of [[1280, 800], [390, 844]]) {
      const page = await browser.newPage({ viewport: { width, height }, colorScheme });
      page.setDefaultTimeout(patience);
      await page.goto(address);
      await ready(page);
      await says(page, "who", "you are demo-admin, admin of demo");
      const name = `${width} ${colorScheme}`;
      const tabs = page.locator(".graphiql-tab-button");
      for (let tab = 0; width > 1000 && tab < (await tabs.count()); tab++) {
        await open(page, tabs.nth(tab));
        const beyond = await page.evaluate(() => {
          const edge = document.querySelector(".graphiql-toolbar").getBoundingClientRect().left;
          const lines = [...document.querySelectorAll(".graphiql-query-editor .CodeMirror-line > span")];
          return lines.filter((line) => line.getBoundingClientRect().right > edge).map((line) => line.textContent);
        });
        holds(beyond.length === 0, `${name}: lines reach below the buttons: ${beyond}`);
      }
      const found = await page.evaluate(() => {
        const box = (of) => document.querySelector(of).getBoundingClientRect();
        return {
          wider: document.documentElement.scrollWidth - innerWidth,
          stacked: box(".graphiql-response").top >= box(".graphiql-editors").bottom - 1,
          editor: box(".graphiql-query-editor").width,
          background: getComputedStyle(document.body).backgroundColor,
        };
      });
      holds(found.wider <= 0 && found.editor > 300 && found.stacked === width < 700, `${name}: ${JSON.stringify(found)}`);
      holds((found.background === "rgb(255, 255, 255)") === (colorScheme === "light"), `${name} is ${found.background}`);
      await open(page, tabs.first());
      await page.locator(".graphiql-execute-button").click();
      await page.locator(".result-window", { hasText: "namespaces" }).waitFor();
      if (pictures) await page.screenshot({ path: `${pictures}/ide-${width}-${colorScheme}.png`, fullPage: true });
      await page.close();
    }
}

// A server that is no demo and holds nothing.
async function empty(context) {
  const page = await context.newPage();
  await page.goto(bare);
  await ready(page);
  await says(page, "who", "paste a token to begin");
  holds(!(await page.locator("#roles").isVisible()), "roles are offered outside of a demo");
  await page.locator("#token").fill("wrong");
  await page.locator("#token").press("Enter");
  await page.locator("#who[data-refused]").waitFor();
  holds(!(await page.locator("#empty").isVisible()), "a stranger is told that nothing is defined");
  await page.locator("#token").fill(token);
  await page.locator("#token").press("Enter");
  await page.locator("#empty").waitFor();
  holds((await page.locator("#empty").innerText()).includes("cadastre metadefs load --builtin"), "an empty server says " + (await page.locator("#empty").innerText()));
  await page.close();
}

async function main() {
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    page.setDefaultTimeout(patience);
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== new URL(address).origin) complaints.push("asked " + request.url());
    });
    await page.goto(address);
    await page.locator(".graphiql-tab").first().waitFor();
    const answers = [];
    const tabs = page.locator(".graphiql-tab-button");
    for (let tab = 0; tab < (await tabs.count()); tab++) {
      const operations = await open(page, tabs.nth(tab));
      for (const [index, operation] of operations.entries()) {
        const answered = page.waitForResponse((response) => (response.request().postData() || "").includes(operation));
        await page.locator(".graphiql-execute-button").click();
        if (operations.length > 1) await page.locator("[role=menuitem]").nth(index).click();
        await answered;
        const shown = page.locator(".result-window .CodeMirror");
        const text = await shown.evaluate(
          (element) =>
            new Promise((resolve) => {
              const look = () => {
                const value = element.CodeMirror.getValue();
                if (value.trimEnd().endsWith("}")) resolve(value);
                else setTimeout(look, 20);
              };
              look();
            }),
        );
        answers.push({ operation, answer: JSON.parse(text) });
        if (operation.startsWith("subscription")) await page.locator(".graphiql-execute-button").click(); // stops it
      }
    }
    await page.locator("button[aria-label='Show Documentation Explorer']").click();
    await page.locator(".graphiql-doc-explorer-content").getByText("Mutation", { exact: true }).waitFor();
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
    context.setDefaultTimeout(patience);
    await sharing(context);
    await tokens(context);
    await empty(context);
    await layouts(browser);
    process.stdout.write(JSON.stringify({ answers, complaints, wrong }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(String(error.stack) + "\n");
  process.exitCode = 1;
});
