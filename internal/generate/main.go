// Command generate writes the enum of operations into the schema and merges the
// schema into one file. From this file it generates the Go client and gqlgen's
// code. A plugin adds the functions that write an answer field by field. With
// the argument reference it writes the pages of the API for the site instead of
// the code. Run it in the project's folder.
package main

import (
	"log"
	"os"
	"slices"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	log.SetFlags(0)
	if err := writeOperations(); err != nil {
		log.Fatalf("write the enum of operations: %v", err)
	}
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		log.Fatalf("read gqlgen.yml: %v", err)
	}
	if slices.Contains(os.Args, "reference") {
		if err := writeReference(published(cfg.Sources)); err != nil {
			log.Fatalf("write the reference: %v", err)
		}
		return
	}
	if err := removeWriters(cfg); err != nil {
		log.Fatalf("remove what was generated before: %v", err)
	}
	if err := writeMerged(published(cfg.Sources)); err != nil {
		log.Fatalf("merge the schema: %v", err)
	}
	if err := writeClient(); err != nil {
		log.Fatalf("generate the client: %v", err)
	}
	if err := api.Generate(cfg, api.AddPlugin(writers{})); err != nil {
		log.Fatalf("generate: %v", err)
	}
}
