// Package graph implements the GraphQL API: resolvers that translate arguments,
// call one method of the store and return nouns; the loaders that batch nested
// fields; and the mapping from domain errors to codes. It decides no business
// fact and sends no SQL.
package graph

import "github.com/cadastre-dev/cadastre/store"

// Resolver is the root of all resolvers.
type Resolver struct {
	Store *store.Store
}
