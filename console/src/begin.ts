// What comes first, and is small: it asks for what the page begins with while the
// rest of the script is still on its way.
import "./style.css";
import "./forms.css";

import { api, begin, rolesOf, tokenOf } from "./opening";
import { begin as beginCloud } from "./placement/reading";
import { areaOf, scripts } from "./scripts";

const token = tokenOf(rolesOf(document.getElementById("root")?.dataset["settings"] ?? "{}"));
const area = areaOf(location.pathname);
if (token) {
  begin(token);
  if (area === "placement") beginCloud({ url: api, token });
}
void import("./main");
void scripts[area]();
