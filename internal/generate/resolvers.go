package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/99designs/gqlgen/plugin/resolvergen"
)

// resolvers is the plugin that generates the types whose methods are the
// resolvers: one for each type of the schema with resolvers. It lays out the
// methods written by hand with resolvers.gotpl, in one file for each subject. A
// field without arguments that has a loader and no such method gets a method
// that calls the loader.
type resolvers struct{ *resolvergen.Plugin }

// subjectOf matches the end of a schema file's name after its subject:
// `_move.graphql` in schema/placement_move.graphql.
var subjectOf = regexp.MustCompile(`_\w+\.graphql$`)

// loaderOf matches a loader, with its variable and its field.
var loaderOf = regexp.MustCompile(`(?m)^\t(\w+) += .*?"(\w+\.\w+)"`)

// GenerateCode writes the files with the types and their methods.
func (r resolvers) GenerateCode(data *codegen.Data) error {
	for _, source := range data.Config.Sources {
		name := source.Name
		source.Name = subjectOf.ReplaceAllString(name, ".graphql")
		defer func() { source.Name = name }()
	}
	loaders, err := findLoaders(data)
	if err != nil {
		return err
	}
	for field := range loaders {
		field.IsResolver = false
	}
	err = r.Plugin.GenerateCode(data)
	for field := range loaders {
		field.IsResolver = true
	}
	return errors.Join(err, templates.Render(templates.Options{
		PackageName: data.Config.Resolver.Package, GeneratedHeader: true,
		Filename: filepath.Join(data.Config.Resolver.Dir(), "resolvers.generated.go"),
		Packages: data.Config.Packages, Data: data,
		Funcs: map[string]any{"loader": func(field *codegen.Field) string { return loaders[field] }},
		Template: `{{ reserveImport "context" }}{{ range .Objects }}{{ if .HasResolvers }}{{ $name := lcFirst .Name }}
func (r *Resolver) {{ ucFirst .Name }}() {{ .ResolverInterface | ref }} { return &{{ $name }}Resolver{r} }

type {{ $name }}Resolver struct{ *Resolver }
{{ range $field := .Fields }}{{ with loader $field }}
func (r *{{ $name }}Resolver) {{ $field.GoFieldName }}{{ $field.ShortResolverDeclaration }} {
	return {{ . }}.Load(ctx, r.Store, obj)
}
{{ end }}{{ end }}{{ end }}{{ end }}`,
	}))
}

// findLoaders returns the loaders of the fields that need no method by hand.
func findLoaders(data *codegen.Data) (map[*codegen.Field]string, error) {
	var source []byte
	files, err := filepath.Glob(filepath.Join(data.Config.Resolver.Dir(), "*rs.go")) // loaders.go and the resolvers
	for _, file := range files {
		text, unread := os.ReadFile(file)
		source, err = append(source, text...), errors.Join(err, unread)
	}
	variables := map[string]string{}
	for _, match := range loaderOf.FindAllSubmatch(source, -1) {
		variables[string(match[2])] = string(match[1])
	}
	loaders := map[*codegen.Field]string{}
	for _, object := range data.Objects {
		for _, field := range object.Fields {
			loader := variables[object.Name+"."+field.Name]
			method := []byte("(r *" + templates.LcFirst(object.Name) + "Resolver) " + field.GoFieldName + "(")
			if loader != "" && len(field.Args) == 0 && !bytes.Contains(source, method) {
				loaders[field] = loader
			}
		}
	}
	return loaders, err
}
