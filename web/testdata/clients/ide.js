// Opens the IDE at argv[2] in the browser argv[3], runs every query of every tab
// and prints as JSON what was answered and what the browser complained of. With
// argv[4] it keeps a picture there.
"use strict";
const { chromium } = require("playwright-core");

const [, , address, executablePath, picture] = process.argv;

async function main() {
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    page.setDefaultTimeout(120000);
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
      await tabs.nth(tab).click();
      const document = await page.locator(".graphiql-query-editor .CodeMirror").evaluate((element) => element.CodeMirror.getValue());
      const operations = document.match(/^query \w+/gm) || [];
      // The editor reads a document a moment after it came.
      await page.waitForFunction((names) => names.includes("query " + localStorage.getItem("graphiql:operationName")), operations);
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
      }
    }
    await page.locator("button[aria-label='Show Documentation Explorer']").click();
    await page.locator(".graphiql-doc-explorer-content").getByText("Mutation", { exact: true }).waitFor();
    if (picture) await page.screenshot({ path: picture });
    process.stdout.write(JSON.stringify({ answers, complaints }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(String(error.stack) + "\n");
  process.exitCode = 1;
});
