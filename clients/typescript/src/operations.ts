/** A typed document for every operation of the API, and the types of the schema. */

export * from "./generated/graphql.js";
