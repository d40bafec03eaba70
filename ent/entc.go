//go:build ignore

// Entc generates the data model. The client has no migrations: these need
// atlas, which the server does not link. Tests plan migrations with package
// migrate.
package main

import (
	"log"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	storage, err := gen.NewStorage("sql")
	if err != nil {
		log.Fatal(err)
	}
	features := []gen.Feature{gen.FeatureLock, gen.FeatureModifier, gen.FeatureExecQuery}
	graph, err := entc.LoadGraph("./schema", &gen.Config{Storage: storage, Features: features})
	if err != nil {
		log.Fatal(err)
	}
	for _, with := range []gen.SchemaMode{gen.Migrate, 0} {
		storage.SchemaMode = gen.Unique | gen.Indexes | gen.Cascade | with
		if err := graph.Gen(); err != nil {
			log.Fatal(err)
		}
	}
}
