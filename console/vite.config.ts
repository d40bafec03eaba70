// The assets are committed, so that a machine without node builds the program:
// nothing in them depends on the machine, the time or the folder.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const client = (name: string) => here(`../clients/typescript/src/${name}.ts`);

export default defineConfig({
  base: "/console/",
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^@cadastre\/client$/, replacement: client("index") },
      { find: /^@cadastre\/client\/urql$/, replacement: client("urql") },
    ],
    // The client is compiled with what the console has, from a folder beside it.
    dedupe: ["@urql/core", "@urql/exchange-graphcache", "graphql", "graphql-ws", "wonka"],
  },
  build: {
    outDir: process.env["CADASTRE_CONSOLE_OUT"] ?? here("../web/console"),
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
  },
});
