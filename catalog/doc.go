// Package catalog holds the nouns and the pure rules of definitions, resources,
// metadata and capabilities, and who may do what with them. It knows the
// standard library only: no database, no HTTP, no GraphQL server, no clock.
package catalog
