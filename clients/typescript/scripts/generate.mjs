// Writes what caches need of the schema: which types an interface can be, and
// which types have no id.
import { readFileSync, writeFileSync } from "node:fs";
import { buildSchema, isInterfaceType, isObjectType, isUnionType } from "graphql";

const here = (path) => new URL(path, import.meta.url);
const schema = buildSchema(readFileSync(here("../../../schema/merged/schema.graphql"), "utf8"));
const types = Object.values(schema.getTypeMap()).filter((type) => !type.name.startsWith("__"));
const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
const names = (of) => of.map((type) => type.name).sort();

const abstract = types.filter((type) => isInterfaceType(type) || isUnionType(type));
const possibleTypes = Object.fromEntries(abstract.map((type) => [type.name, names(schema.getPossibleTypes(type))]));
const parts = names(types.filter((type) => isObjectType(type) && !roots.includes(type) && !type.getFields().id));

writeFileSync(
  here("../src/generated/cache.ts"),
  `/** The types that an interface can be. */
export const possibleTypes: Record<string, string[]> = ${JSON.stringify(possibleTypes, null, 2)};

/** The types without an id, which are parts of what they are in. */
export const parts: readonly string[] = ${JSON.stringify(parts, null, 2)};
`,
);
