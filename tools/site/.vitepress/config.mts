// The site that `make docs` builds of docs/, in build/site. A link to a page or a
// heading that is not there fails the build.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const repository = "https://github.com/cadastre-dev/cadastre/blob/main/";

// slugify returns the name by which links find a heading, as those who read the pages
// in the repository have it.
const slugify = (heading: string) => heading.toLowerCase().replace(/[^a-z0-9 _-]/g, "").replaceAll(" ", "-");

// Pages are Markdown alone: what looks like HTML is text, and comments are left out.
const withoutComments = (source: string) => source.replace(/<!--[\s\S]*?-->\n?/g, "");

const page = (text: string, link: string) => ({ text, link });

export default defineConfig({
  title: "Cadastre",
  description: "One GraphQL API for metadata definitions, resources, capabilities and placement.",
  srcDir: "../../docs",
  outDir: "../../build/site",
  cacheDir: "../../build/vitepress",
  rewrites: { "README.md": "index.md", ":folder/README.md": ":folder/index.md" },
  lastUpdated: false,
  ignoreDeadLinks: "localhostLinks",
  // The pages stand where no packages are found.
  vite: {
    resolve: {
      alias: [
        { find: /^vue$/, replacement: fileURLToPath(new URL("../node_modules/vue/dist/vue.runtime.esm-bundler.js", import.meta.url)) },
        { find: /^vue\/server-renderer$/, replacement: fileURLToPath(new URL("../node_modules/vue/server-renderer/index.mjs", import.meta.url)) },
      ],
    },
  },
  markdown: {
    html: false,
    anchor: { slugify },
    toc: { slugify },
    config(md) {
      for (const method of ["render", "renderAsync"] as const) {
        const as = (md as any)[method]?.bind(md);
        if (as) (md as any)[method] = (source: string, env: unknown) => as(withoutComments(source), env);
      }
      // What is beside docs/ is read in the repository.
      const open = md.renderer.rules.link_open ?? ((tokens, i, options, _, self) => self.renderToken(tokens, i, options));
      md.renderer.rules.link_open = (tokens, i, options, env, self) => {
        const target = tokens[i].attrGet("href") ?? "";
        const from = new URL(env.relativePath ?? "", "file:///docs/");
        if (!/^[a-z]+:|^[#/]/.test(target)) {
          const { pathname } = new URL(target, from);
          if (!pathname.startsWith("/docs/")) tokens[i].attrSet("href", repository + pathname.slice(1));
        }
        return open(tokens, i, options, env, self);
      };
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [page("Tutorial", "/tutorial"), page("Reference", "/reference/"), page("Command line", "/cli"), page("Operations", "/operations")],
    sidebar: [
      { text: "Learn", items: [page("All documents", "/"), page("Tutorial", "/tutorial"), page("Concepts", "/concepts"), page("Console", "/console")] },
      {
        text: "Do one thing",
        items: [
          page("Offer valid choices", "/howto/offer-choices"),
          page("Validate", "/howto/validate"),
          page("Discover", "/howto/discover"),
          page("Place", "/howto/place"),
          page("Follow changes", "/howto/follow"),
          page("Move from the four services", "/howto/move"),
          page("Write a client", "/howto/write-a-client"),
        ],
      },
      {
        text: "Understand one part",
        items: ["definitions", "resources", "operators", "drift", "placement", "changes", "live", "audit"].map((name) => page(name[0].toUpperCase() + name.slice(1), "/" + name)),
      },
      {
        text: "Look up",
        items: [
          {
            ...page("Reference of the API", "/reference/"),
            collapsed: true,
            items: ["queries", "mutations", "subscriptions", "definitions", "resources", "capabilities", "placement", "changes", "audit", "common"].map((name) =>
              page(name[0].toUpperCase() + name.slice(1), "/reference/" + name),
            ),
          },
          page("Command line", "/cli"),
          page("Errors", "/errors"),
          page("Permissions", "/permissions"),
          page("Clients", "/clients"),
        ],
      },
      {
        text: "Run a server",
        items: [page("Operations", "/operations"), page("Containers", "/containers"), page("Authentication", "/authentication"), page("Limits", "/limits"), page("Metrics of the cloud", "/metrics"), page("Performance", "/performance"), page("Scale", "/scale"), page("Robustness", "/robustness")],
      },
      { text: "Change Cadastre", items: [page("Work on it", "/development/"), page("Specifications", "/development/specifications")] },
    ],
  },
});
