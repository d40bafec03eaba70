// Package operations holds the operations of the Go client as text.
package operations

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.graphql live/*.graphql
var files embed.FS

// Text returns all operations with their fragments as one document.
func Text() string {
	var all strings.Builder
	for _, pattern := range []string{"*.graphql", "live/*.graphql"} {
		names, _ := fs.Glob(files, pattern) // the pattern is valid
		for _, name := range names {
			text, err := files.ReadFile(name)
			if err != nil {
				panic(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}
