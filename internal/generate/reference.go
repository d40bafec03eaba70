package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// referenceFolder is the folder of the API reference in Markdown.
const referenceFolder = "docs/reference"

// subjects are the reference pages for types: name, title, and the prefix of
// the schema files with their types.
var subjects = []struct{ page, title, file string }{
	{"definitions", "Types of definitions", "metadef"},
	{"resources", "Types of resources and metadata", "resource"},
	{"capabilities", "Types of capabilities", "capability"},
	{"placement", "Types of placement", "placement"},
	{"changes", "Types of changes and of events", "change"},
	{"audit", "Types of the audit log", "audit"},
	{"common", "Types that all have in common", ""},
}

// writeReference writes the pages of the reference.
func writeReference(sources []*ast.Source) error {
	schema, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(referenceFolder, 0o755); err != nil {
		return err
	}
	for page, text := range reference(schema) {
		if err := os.WriteFile(filepath.Join(referenceFolder, page), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reference returns the pages by the names of their files.
func reference(schema *ast.Schema) map[string]string {
	r := referenceOf{schema, map[string]string{}}
	types := map[string][]*ast.Definition{}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		one := schema.Types[name]
		if one.BuiltIn || one == schema.Query || one == schema.Mutation || one == schema.Subscription {
			continue
		}
		page := pageOf(one)
		r.pages[name] = page
		types[page] = append(types[page], one)
	}
	pages := map[string]string{
		"queries.md":       r.root("Queries", schema.Query),
		"mutations.md":     r.root("Mutations", schema.Mutation),
		"subscriptions.md": r.root("Subscriptions", schema.Subscription),
	}
	var index strings.Builder
	fmt.Fprintf(&index, "# Reference\n\n%s\n", "Made from the schema, which a server has at `/schema.graphql`; `cadastre schema` prints it. A type that ends in `!` is\nnever `null`; [clients](../clients.md#nullable-fields) has what `null` means elsewhere.\n\n- [Queries](queries.md), [mutations](mutations.md) and [subscriptions](subscriptions.md)")
	for _, subject := range subjects {
		fmt.Fprintf(&index, "- [%s](%s.md)\n", subject.title, subject.page)
		pages[subject.page+".md"] = r.types(subject.title, types[subject.page])
	}
	pages["README.md"] = index.String()
	return pages
}

// pageOf returns the name of the page for a type, by the file that declares the
// type.
func pageOf(one *ast.Definition) string {
	file := filepath.Base(one.Position.Src.Name)
	if file == "subscription.graphql" {
		return "changes"
	}
	for _, subject := range subjects {
		if strings.HasPrefix(file, subject.file) {
			return subject.page
		}
	}
	panic("the last subject has every type")
}

// referenceOf writes the reference of a schema.
type referenceOf struct {
	schema *ast.Schema
	pages  map[string]string // by the name of each type
}

// root returns the page of the fields of Query, Mutation or Subscription.
func (r referenceOf) root(title string, of *ast.Definition) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", title)
	fields := slices.Clone(of.Fields)
	slices.SortFunc(fields, func(a, b *ast.FieldDefinition) int { return strings.Compare(a.Name, b.Name) })
	for _, field := range fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\nAnswers %s.\n", field.Name, prose(field.Description), r.link(field.Type))
		deprecated(&out, field.Directives)
		if len(field.Arguments) > 0 {
			out.WriteString("\n| argument | type | |\n|---|---|---|\n")
		}
		for _, argument := range field.Arguments {
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", argument.Name, r.typed(argument.Type, argument.DefaultValue), cell(argument.Description))
		}
	}
	return out.String()
}

// types returns the page of some types.
func (r referenceOf) types(title string, all []*ast.Definition) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", title)
	for _, one := range all {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", one.Name, prose(one.Description))
		switch one.Kind {
		case ast.Enum:
			out.WriteString("\n| value | |\n|---|---|\n")
			for _, value := range one.EnumValues {
				fmt.Fprintf(&out, "| `%s` | %s |\n", value.Name, cell(value.Description))
			}
		case ast.Union:
			fmt.Fprintf(&out, "\nOne of %s.\n", r.links(one.Types))
		case ast.Object, ast.Interface, ast.InputObject:
			r.fields(&out, one)
		}
	}
	return out.String()
}

// fields writes the table of the fields of a type, each followed by its arguments.
func (r referenceOf) fields(out *strings.Builder, one *ast.Definition) {
	if len(one.Interfaces) > 0 {
		fmt.Fprintf(out, "\nImplements %s.\n", r.links(one.Interfaces))
	}
	out.WriteString("\n| field | type | |\n|---|---|---|\n")
	for _, field := range one.Fields {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", field.Name, r.typed(field.Type, field.DefaultValue), cell(field.Description))
		for _, argument := range field.Arguments {
			fmt.Fprintf(out, "| `%s(%s:)` | %s | %s |\n", field.Name, argument.Name, r.typed(argument.Type, argument.DefaultValue), cell(argument.Description))
		}
	}
}

func (r referenceOf) typed(of *ast.Type, ifAbsent *ast.Value) string {
	if ifAbsent == nil {
		return r.link(of)
	}
	return r.link(of) + " = `" + ifAbsent.String() + "`"
}

// link returns a type as in the schema, with a link to its description.
func (r referenceOf) link(of *ast.Type) string {
	name := of.Name()
	page, ok := r.pages[name]
	if !ok { // a built-in scalar
		return "`" + of.String() + "`"
	}
	return "[`" + of.String() + "`](" + page + ".md#" + strings.ToLower(name) + ")"
}

func (r referenceOf) links(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, r.link(ast.NamedType(name, nil)))
	}
	return strings.Join(all, ", ")
}

func deprecated(out *strings.Builder, directives ast.DirectiveList) {
	if of := directives.ForName("deprecated"); of != nil {
		fmt.Fprintf(out, "\n**Deprecated**: %s\n", cell(of.Arguments.ForName("reason").Value.Raw))
	}
}

// prose returns a description as Markdown. It escapes anything that looks like
// an HTML element.
func prose(description string) string {
	parts := strings.Split(description, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "<", "&lt;")
	}
	return strings.Join(parts, "`")
}

// cell returns a description as one cell of a table.
func cell(description string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(prose(description)), " "), "|", `\|`)
}
