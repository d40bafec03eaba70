// The first script: it requests the initial data of the page while the rest of the console
// loads.
import "./style.css";
import "./forms.css";

import { begin, connectionOf, isCallback, settingsOf, tokenOf } from "./opening";
import { begin as beginCloud } from "./placement/reading";
import { unreachable, whenReachable } from "./reachable";
import { areaOf, scripts } from "./scripts";

function start() {
  const root = document.getElementById("root");
  const token = isCallback() ? "" : tokenOf(settingsOf(root?.dataset["settings"]).roles);
  const area = areaOf(location.pathname);
  if (token) {
    begin(token);
    if (area === "placement" || area === "whatIf") beginCloud(connectionOf(token));
  }
  import("./main").catch(() => {
    if (root) root.textContent = unreachable;
    whenReachable(() => location.reload());
  });
  scripts[area]().catch(() => {}); // the page shows the error
}

if (parent === self) start();
else parent.postMessage(location.href, location.origin); // the page that renews its session in a frame
