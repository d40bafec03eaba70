// Package schema holds the public language of Cadastre, as text.
package schema

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"sync"
)

//go:embed merged/schema.graphql.gz
var merged []byte

// SDL returns the whole schema as one text without extensions, as `cadastre
// schema` and /schema.graphql give it. `make generate` merges it from the files
// of this folder.
func SDL() string { return unzipped() }

var unzipped = sync.OnceValue(func() string {
	from, err := gzip.NewReader(bytes.NewReader(merged))
	if err != nil {
		panic(err) // the program has no other text
	}
	text, err := io.ReadAll(from)
	if err != nil {
		panic(err)
	}
	return string(text)
})
