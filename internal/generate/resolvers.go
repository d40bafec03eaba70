package main

import (
	"path/filepath"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
)

// resolverTypes is the plugin that generates the types whose methods are the
// resolvers: one for each type of the schema with resolvers. Their methods are
// in files that resolvers.gotpl lays out.
type resolverTypes struct{}

func (resolverTypes) Name() string { return "resolver types" }

// GenerateCode writes the file with the types.
func (resolverTypes) GenerateCode(data *codegen.Data) error {
	return templates.Render(templates.Options{
		PackageName: data.Config.Resolver.Package, GeneratedHeader: true,
		Filename: filepath.Join(data.Config.Resolver.Dir(), "resolvers.generated.go"),
		Packages: data.Config.Packages, Data: data,
		Template: `{{ range .Objects }}{{ if .HasResolvers }}
func (r *Resolver) {{ ucFirst .Name }}() {{ .ResolverInterface | ref }} { return &{{ lcFirst .Name }}Resolver{r} }

type {{ lcFirst .Name }}Resolver struct{ *Resolver }
{{ end }}{{ end }}`,
	})
}
