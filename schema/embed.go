// Package schema holds the public language of Cadastre, as text.
package schema

import _ "embed"

//go:embed merged/schema.graphql
var merged string

// SDL returns the whole schema as one text without extensions, as `cadastre
// schema` and /schema.graphql give it. `make generate` merges it from the files
// of this folder.
func SDL() string { return merged }
