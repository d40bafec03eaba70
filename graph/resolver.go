// Package graph implements the GraphQL API. Resolvers translate arguments, call
// the store and return domain values. Loaders batch nested fields. The package
// maps domain errors to codes. It has no business rules and sends no SQL.
package graph

import "github.com/cadastre-dev/cadastre/store"

// Resolver is the root of all resolvers.
type Resolver struct {
	Store *store.Store
}
