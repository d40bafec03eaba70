// Command commands writes the reference of the command line into docs/cli.md.
// It is a separate program because it contains the schema that it was built
// with, so the schema must be merged first. Run it in the project's folder.
package main

import (
	"log"
	"os"
	"strings"

	"github.com/cadastre-dev/cadastre/cli"
)

const (
	page = "docs/cli.md"
	mark = "<!-- What follows is made by: make generate -->\n"
)

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(page)
	if err != nil {
		log.Fatal(err)
	}
	written, _, ok := strings.Cut(string(text), mark)
	if !ok {
		log.Fatalf("%s has no line %s", page, mark)
	}
	if err := os.WriteFile(page, []byte(written+mark+referenceOf(cli.Commands())), 0o644); err != nil {
		log.Fatal(err)
	}
}
