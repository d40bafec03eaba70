package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/metadef"
)

// FileBytes is the maximum number of bytes of definition files in one import or
// export.
const FileBytes = metadef.MaxDocument

type fileExport struct{}

// WithFileExport returns a context in which exportNamespaces returns a file of
// up to FileBytes.
func WithFileExport(ctx context.Context) context.Context {
	return context.WithValue(ctx, fileExport{}, true)
}

// IsFileExport reports whether ctx comes from WithFileExport.
func IsFileExport(ctx context.Context) bool { return ctx.Value(fileExport{}) != nil }

// maxExport returns the maximum number of bytes that exportNamespaces returns.
func maxExport(ctx context.Context) int {
	if IsFileExport(ctx) {
		return FileBytes
	}
	return metadef.MaxExport
}
