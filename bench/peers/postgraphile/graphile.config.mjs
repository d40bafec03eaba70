// PostGraphile over Cadastre's own tables, as bench starts it.
import { makePgService } from "postgraphile/adaptors/pg";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";

export default {
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.env.DATABASE_URL, schemas: ["public"] })],
  grafserv: { host: "127.0.0.1", port: Number(process.env.PORT), graphqlPath: "/graphql", graphiql: false },
};
