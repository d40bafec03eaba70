// Opens a view of the console at argv[2] in the browser argv[3], with the token
// argv[4]. It prints a line once the view is live, and another one once it has a link
// with the name argv[6]; argv[5] is the path of the view.
"use strict";
const { chromium } = require("playwright-core");

const [, , address, executablePath, token, path, name] = process.argv;

async function main() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(require("./patience.js")(60000));
    await page.addInitScript((token) => sessionStorage.setItem("cadastre.token", token), token);
    await page.goto(address + path);
    await page.locator(".live[data-live=true]").waitFor();
    process.stdout.write("live\n");
    await page.getByRole("link", { name, exact: true }).waitFor();
    process.stdout.write("seen\n");
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  process.stderr.write(String(error.stack) + "\n");
  process.exitCode = 1;
});
