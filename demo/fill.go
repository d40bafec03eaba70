package demo

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/store"
)

// Fill writes the demo cloud and the product's own definitions into an empty
// store, in one transaction; a store that holds anything stays as it is.
func Fill(ctx context.Context, s *store.Store) error {
	world := Build()
	world.Definitions = defaults.Definitions()
	return s.FillEmpty(access.WithViewer(ctx, Viewers()[AdminToken]), world)
}
