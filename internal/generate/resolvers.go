package main

import (
	"path/filepath"
	"regexp"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/99designs/gqlgen/plugin/resolvergen"
)

// resolvers is the plugin that generates the types whose methods are the
// resolvers: one for each type of the schema with resolvers. It lays out their
// methods with resolvers.gotpl, in one file for each subject.
type resolvers struct{ *resolvergen.Plugin }

// subjectOf matches the end of a schema file's name after its subject:
// `_move.graphql` in schema/placement_move.graphql.
var subjectOf = regexp.MustCompile(`_\w+\.graphql$`)

// GenerateCode writes the files with the types and their methods.
func (r resolvers) GenerateCode(data *codegen.Data) error {
	for _, source := range data.Config.Sources {
		name := source.Name
		source.Name = subjectOf.ReplaceAllString(name, ".graphql")
		defer func() { source.Name = name }()
	}
	if err := r.Plugin.GenerateCode(data); err != nil {
		return err
	}
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
