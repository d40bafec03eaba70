import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";

import { SessionProvider } from "./session";
import { Shell } from "./shell";

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Router base="/console">
        <SessionProvider settings={root.dataset["settings"]}>
          <Shell />
        </SessionProvider>
      </Router>
    </StrictMode>,
  );
