// Package graph is the GraphQL face of Cadastre: resolvers that translate in,
// call one method of the store and return nouns; the loaders that batch nested
// fields; and the one mapping from domain errors to codes. It decides no
// business fact and sends no SQL.
package graph

import "github.com/cadastre-dev/cadastre/store"

// Resolver is the root of all resolvers.
type Resolver struct {
	Store *store.Store
}
