// Package operations holds the operations of the Go client as text.
package operations

import "embed"

// Files are the documents with the operations and their fragments.
//
//go:embed *.graphql
var Files embed.FS
