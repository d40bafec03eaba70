// Makes Playwright press again after a page has moved a button away. Playwright checks the
// element below the mouse when the mouse goes down. If an answer moves the page before the
// mouse goes up, the press is lost. module.exports gets any page, and mends the locators of
// all. It is not for pages that act when the mouse goes down.
"use strict";

/** Notes in a page whether the last press ended on another element than it began. */
function note() {
  if (window.isPressLost === undefined) {
    let pressed;
    addEventListener("pointerdown", ({ target }) => (pressed = target.closest?.("a, button, input, label, select, summary, [role]") ?? target), true);
    addEventListener("pointerup", ({ target }) => (window.isPressLost = !pressed?.contains(target)), true);
  }
  window.isPressLost = false;
}

let isMended = false;
module.exports = (page) => {
  if (isMended) return;
  isMended = true;
  const locators = Object.getPrototypeOf(page.locator("html"));
  for (const name of ["click", "check", "uncheck"]) {
    const press = locators[name];
    locators[name] = async function (options) {
      for (let tries = 1; ; tries++) {
        await this.page().evaluate(note).catch(() => {}); // a page that is being left
        const failed = await press.call(this, options).then(() => undefined, (error) => error);
        const isLost = await this.page().evaluate(() => window.isPressLost).catch(() => false);
        if (isLost && tries < 10) continue;
        if (failed) throw failed;
        return;
      }
    };
  }
};
