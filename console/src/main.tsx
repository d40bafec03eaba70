import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { useBrowserLocation, useSearch } from "wouter/use-browser-location";

import { SessionProvider } from "./session";
import { Shell } from "./shell";

// wouter decodes a whole address before its parts are decoded: the sign % stays encoded once more.
const escaped = (address: string) => address.replaceAll("%25", "%2525");
const useEscapedLocation: typeof useBrowserLocation = (options) => {
  const [path, go] = useBrowserLocation(options);
  return [escaped(path), go];
};
const useEscapedSearch: typeof useSearch = (options) => escaped(useSearch(options));

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Router base="/console" hook={useEscapedLocation} searchHook={useEscapedSearch}>
        <SessionProvider settings={root.dataset["settings"]}>
          <Shell />
        </SessionProvider>
      </Router>
    </StrictMode>,
  );
