// Package schema holds the public language of Cadastre, as text.
package schema

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.graphql
var files embed.FS

// SDL is the whole schema, as `cadastre schema` and /schema.graphql give it.
func SDL() string {
	names, err := fs.Glob(files, "*.graphql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var parts []string
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // embedded with the program
		}
		parts = append(parts, string(text))
	}
	return strings.Join(parts, "\n")
}
