import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The client stands in a folder of its own, with packages of its own: they are not bundled twice.
export default defineConfig({ base: "./", plugins: [react()], resolve: { dedupe: ["@urql/core", "@urql/exchange-graphcache", "graphql", "graphql-ws", "wonka"] } });
