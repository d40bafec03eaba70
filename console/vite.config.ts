// The assets are committed, so that the program can be built without node:
// they do not depend on the machine, the time or the folder.
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { formatDocument, stringifyDocument } from "@urql/core";
import react from "@vitejs/plugin-react";
import { gzipSync } from "fflate";
import { type DocumentNode, print } from "graphql";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const client = (name: string) => here(`../clients/typescript/src/${name}.ts`);

/**
 * Inlines the document of each operation at its use. They are generated as one
 * module, and every page would load all of them. It also lists the strings that are sent,
 * by their SHA-256: the server trusts these.
 */
function documents(): Plugin {
  let generated: ReadonlyMap<string, string>;
  return {
    name: "documents",
    buildStart() {
      const made = readFileSync(here("src/generated/graphql.ts"), "utf8").matchAll(/^export const (\w+) = (\{.*\}) as unknown as DocumentNode</gm);
      generated = new Map([...made].map(([, name = "", document = ""]) => [name, document]));
    },
    transform: {
      filter: { id: /\/console\/src\/(?!generated\/).*\.tsx?$/ },
      handler: (code) =>
        code.replace(/\bgraphql\(`\s*(\w+) (\w+)[^`]*`\)/g, (call: string, kind: string, name: string) => {
          const document = generated.get(name + (kind === "fragment" ? "FragmentDoc" : "Document"));
          if (!document) throw new Error(`there is no document of ${call}`);
          return `(${document})`;
        }),
    },
    generateBundle() {
      const operations = [...generated].filter(([name]) => name.endsWith("Document")).map(([, document]) => JSON.parse(document) as DocumentNode);
      const texts = operations.flatMap((document) => [print(document), stringifyDocument(formatDocument(document))]);
      const byHash = texts.map((text) => [createHash("sha256").update(text).digest("hex"), text] as const).sort(([one], [other]) => (one < other ? -1 : 1));
      this.emitFile({ type: "asset", fileName: "documents.json", source: JSON.stringify(Object.fromEntries(byHash)) });
    },
  };
}

/** Makes the browser load the script of the page together with the first script. */
const preload: Plugin = {
  name: "preload",
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle = {} }) {
      const main = Object.values(bundle).find((chunk) => chunk.type === "chunk" && chunk.name === "main");
      if (main?.type !== "chunk") throw new Error("there is no chunk of src/main.tsx");
      const files = [main.fileName, ...main.imports].filter((file) => bundle[file]?.type === "chunk" && !bundle[file].isEntry);
      return files.map((file) => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `/console/${file}` }, injectTo: "head" }));
    },
  },
};

/** Compresses all but the page, as the program has it. The packer of node depends on the processor. */
const compressed: Plugin = {
  name: "compressed",
  writeBundle({ dir = "" }, bundle) {
    for (const name of Object.keys(bundle).filter((name) => name !== "index.html")) {
      const path = join(dir, name);
      writeFileSync(path + ".gz", gzipSync(readFileSync(path), { level: 9, mtime: 0 }));
      rmSync(path);
    }
  },
};

export default defineConfig({
  base: "/console/",
  plugins: [documents(), react(), preload, compressed],
  resolve: {
    alias: [
      { find: /^@cadastre\/client$/, replacement: client("index") },
      { find: /^@cadastre\/client\/urql$/, replacement: client("urql") },
    ],
    // The client is in another folder, and is compiled with the packages of the console.
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
