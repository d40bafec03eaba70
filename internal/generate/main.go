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
	"github.com/99designs/gqlgen/plugin/resolvergen"
)

func main() {
	log.SetFlags(0)
	check("write the enum of operations", writeOperations())
	cfg, err := config.LoadConfigFromDefaultLocations()
	check("read gqlgen.yml", err)
	sources := published(cfg.Sources)
	if slices.Contains(os.Args, "reference") {
		check("write the reference", writeReference(sources))
		return
	}
	check("remove what was generated before", removeWriters(cfg))
	check("merge the schema", writeMerged(sources))
	check("generate the client", writeClient())
	check("generate", api.Generate(cfg, api.AddPlugin(writers{}), api.ReplacePlugin(resolvers{&resolvergen.Plugin{}})))
}

// check ends the program if a step has failed.
func check(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}
