// Signs in at a console in production. argv[2] is the address of the console, argv[3] the
// browser, argv[4] the way: "refresh" and "frame" sign in at the OpenID Connect issuer
// argv[5], and renew by a refresh token or in a frame; "keystone" sends the form with user,
// password and project from argv[5] on. It prints as JSON what was found wrong.
"use strict";
const fs = require("node:fs");
const { chromium } = require("playwright-core");
const pressAgain = require("./press.js");

const [, , address, executablePath, way, ...given] = process.argv;
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const patience = require("./patience.js")(60000); // milliseconds
const holds = (is, what) => is || wrong.push(what);

function watch(page) {
  page.setDefaultTimeout(patience);
  pressAgain(page);
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => /Content Security Policy/.test(message.text()) && wrong.push(message.text()));
  page.on("response", async (response) => {
    if (response.url().startsWith(address) && (await response.headerValue("set-cookie").catch(() => null))) wrong.push(`${response.url()} sets a cookie`);
  });
  return page;
}

const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
const stored = (page, name) => page.evaluate((name) => sessionStorage.getItem(name), name);
const claimsOf = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString());

// A page on a phone, a desk and a wall, by day and by night.
async function looks(page, name) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  for (const colorScheme of ["light", "dark"])
    for (const width of [390, 1280, 1920]) {
      const what = `${name}-${way}-${width}-${colorScheme}`;
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth, null, { timeout: patience / 20 }).catch(() => {}); // it is drawn again
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      holds(beyond <= 0, `${what} is ${beyond} pixels wider than the screen`);
      if (process.env.CADASTRE_TEST_PICTURES) await page.screenshot({ path: `${process.env.CADASTRE_TEST_PICTURES}/${what}.png` });
      if ((width === 390) !== (colorScheme === "dark")) continue; // each size and colour once
      const { result } = await session.send("Runtime.evaluate", { expression: "axe.run(document).then((found) => JSON.stringify(found.violations.map(({ id, nodes }) => id + ': ' + nodes[0].html)))", awaitPromise: true });
      for (const violation of JSON.parse(result.value)) wrong.push(`${what}: axe: ${violation}`);
    }
  await session.detach();
}

// The pages of a user, each from one query. Only who may is offered a form.
async function tours(page, role, { host, flavor }) {
  let sent = 0;
  page.on("response", (response) => (sent += /query ResourcePage/.test(response.request().postData() ?? "") && ![429, 503].includes(response.status()) ? 1 : 0));
  for (const [name, path, title] of [
    ["overview", "", "Overview"],
    ["resources", "/resources", "Resources"],
    ["host", "/resources/" + host, "late"],
    ["flavor", "/resources/" + flavor, "wrong"],
    ["provider", "/providers/" + host, "late"],
    ["placement", "/placement", "Placement"],
    ["definitions", "/definitions", "Definitions"],
  ]) {
    sent = 0;
    await page.goto(address + "/console" + path);
    await heading(page, title);
    if (path.startsWith("/resources/")) {
      await page.getByRole("region", { name: name === "host" ? "Inventories" : "Candidates" }).waitFor();
      holds(sent === 1, `the page of a ${name} took ${role} ${sent} requests`);
    }
    const forms = await page.getByRole("button", { name: /^(Edit|Delete)/ }).count();
    holds(role !== "reader" || forms === 0, `${role} is offered ${forms} forms at ${path}`);
    await looks(page, `${role}-${name}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function atIssuer(page, button, user) {
  await button.click();
  await page.waitForURL(given[0] + "/**");
  await page.getByPlaceholder("Enter any login").fill(user);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

async function openID(context) {
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources?sort=name");
  await heading(page, "Sign in");
  await looks(page, "sign-in");
  const button = page.getByRole("button", { name: "Sign in at " + new URL(given[0]).host });
  await atIssuer(page, button, "ada");
  await page.getByText("you are ada, admin of operations").waitFor();
  await heading(page, "Resources");
  holds(page.url() === address + "/console/resources?sort=name", "after the sign-in the page is " + page.url());
  holds(JSON.parse(await stored(page, "cadastre.oidc")).refresh !== undefined === (way === "refresh"), "the issuer gave a refresh token, or none");

  const first = await stored(page, "cadastre.token");
  await page.reload();
  await page.getByText("you are ada, admin of operations").waitFor();
  await page.locator(".live[data-live=true]").waitFor();
  await page.getByRole("searchbox").fill("la");
  await page.evaluate(() => (window.same = true));
  await page.waitForFunction((first) => sessionStorage.getItem("cadastre.token") !== first, first);
  const { exp } = claimsOf(first);
  holds(claimsOf(await stored(page, "cadastre.token")).iat < exp, "the token was renewed after its end");
  await page.waitForTimeout(Math.max(0, exp * 1000 - Date.now()) + 1000);
  const [host, flavor] = [crypto.randomUUID(), crypto.randomUUID()];
  const body = JSON.stringify({
    query: `mutation {
      host: createResource(input: {uuid: "${host}", name: "late", type: "physical:host", visibility: PUBLIC, capabilities: [{key: "gpu", value: "A2"}]}) { resource { uuid } }
      provider: createResourceProvider(input: {uuid: "${host}", name: "late", resource: "${host}", inventories: [{resourceClass: "VCPU", total: 8}]}) { resourceProvider { uuid } }
      flavor: createResource(input: {uuid: "${flavor}", name: "wrong", type: "OS::Nova::Flavor", visibility: PUBLIC, metadata: [{key: "resources:VCPU", value: "many"}]}) { resource { uuid } }
    }`,
  });
  const made = await fetch(address + "/graphql", { method: "POST", headers: { "Content-Type": "application/json", "X-Auth-Token": await stored(page, "cadastre.token") }, body });
  const answer = await made.text();
  holds(made.status === 200 && !answer.includes("errors"), `a resource is created with ${made.status}: ${answer}`);
  await page.getByRole("link", { name: "late", exact: true }).waitFor(); // by itself
  holds((await page.getByRole("searchbox").inputValue()) === "la" && (await page.evaluate(() => window.same)), "the renewal begins the page again");

  const other = watch(await context.newPage());
  await other.route((url) => url.href.startsWith(given[0] + "/auth"), (route) => route.fulfill({ status: 204 })); // the page stays
  await other.goto(address + "/console");
  await Promise.all([other.waitForResponse((response) => response.status() === 204), other.getByRole("button", { name: "Sign in at " + new URL(given[0]).host }).click()]);
  await other.goto(`${address}/console/signed-in?code=stolen&state=wrong&iss=${encodeURIComponent(given[0])}`);
  await other.getByRole("alert").filter({ hasText: "You are not signed in" }).waitFor();
  holds(!(await stored(other, "cadastre.token")) && !(await stored(other, "cadastre.oidc")), "an answer with another state gives a token");
  holds(other.url() === address + "/console", "after the refusal the page is " + other.url());
  await other.close();
  await page.goto(`${address}/console/signed-in?code=stolen&state=wrong&iss=${encodeURIComponent(given[0])}`);
  await page.getByText("you are ada, admin of operations").waitFor(); // a forged answer ends no session

  for (const [user, role] of [["ada", "admin"], ["bob", "member"], ["eve", "reader"]]) {
    if (user !== "ada") await atIssuer(page, button, user); // the issuer's session has ended, too
    await page.getByText(`you are ${user}, ${role} of operations`).waitFor();
    await tours(page, role, { host, flavor });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Yes, sign me out" }).click();
    await heading(page, "Sign in");
    holds(!(await stored(page, "cadastre.token")) && !(await stored(page, "cadastre.oidc")), "the tab keeps tokens after the sign-out");
  }
  await page.close();
}

// Sends the form until the cloud has answered. A slow cloud "cannot be reached".
async function submit(page, answer) {
  const late = page.getByRole("alert").filter({ hasText: "cannot be reached" });
  do {
    await page.getByRole("button", { name: "Sign in at the cloud" }).click();
    await answer.or(late).first().waitFor();
  } while (!(await answer.isVisible()));
}

async function keystone(context) {
  const [user, password, project] = given;
  const page = watch(await context.newPage());
  await page.goto(address + "/console/resources");
  await heading(page, "Sign in");
  await looks(page, "sign-in");
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill("wrong");
  await page.getByLabel("Project").fill(project);
  await submit(page, page.getByRole("alert").filter({ hasText: "is wrong" }));
  await page.getByLabel("Password").fill(password);
  await submit(page, page.getByRole("heading", { name: "Resources", level: 1 }));
  await page.reload();
  await heading(page, "Resources");
  const token = await stored(page, "cadastre.token");
  await page.getByRole("button", { name: "Sign out" }).click();
  await heading(page, "Sign in");
  await page.getByRole("button", { name: "Paste a token instead" }).click();
  await page.getByRole("textbox", { name: "Token" }).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await heading(page, "Resources");
  await page.close();
}

async function main() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  try {
    await (way === "keystone" ? keystone : openID)(await browser.newContext());
    process.stdout.write(JSON.stringify(wrong));
  } catch (error) {
    for (const page of browser.contexts().flatMap((context) => context.pages())) process.stderr.write(`${page.url()}: ${await page.locator("body").innerText()}\n`);
    throw error;
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(JSON.stringify(wrong) + "\n" + String(error.stack) + "\n");
  process.exitCode = 1;
});
