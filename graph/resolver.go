// Package graph implements the GraphQL API. Resolvers translate arguments, call
// one method of the store and return nouns. Loaders batch nested fields. The
// package maps domain errors to codes. It decides no business fact and sends no
// SQL.
package graph

import "github.com/cadastre-dev/cadastre/store"

// Resolver is the root of all resolvers.
type Resolver struct {
	Store *store.Store
}
