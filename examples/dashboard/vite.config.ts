import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The client is in another folder with its own packages. Packages of both are bundled once.
export default defineConfig({ base: "./", plugins: [react()], resolve: { dedupe: ["@urql/core", "@urql/exchange-graphcache", "graphql", "graphql-ws", "wonka"] } });
