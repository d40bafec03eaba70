// The first script: it requests the initial data of the page while the rest of the console
// loads.
import "./style.css";
import "./forms.css";

import { api, begin, rolesOf, tokenOf } from "./opening";
import { begin as beginCloud } from "./placement/reading";
import { unreachable, whenReachable } from "./reachable";
import { areaOf, scripts } from "./scripts";

const token = tokenOf(rolesOf(document.getElementById("root")?.dataset["settings"] ?? "{}"));
const area = areaOf(location.pathname);
if (token) {
  begin(token);
  if (area === "placement") beginCloud({ url: api, token });
}
import("./main").catch(() => {
  const root = document.getElementById("root");
  if (root) root.textContent = unreachable;
  whenReachable(() => location.reload());
});
scripts[area]().catch(() => {}); // the page says so
