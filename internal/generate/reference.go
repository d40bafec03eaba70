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
	r := referenceOf{schema, map[string]string{}, map[row]bool{}}
	types := map[string][]*ast.Definition{}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		one := schema.Types[name]
		if one.BuiltIn || one == schema.Query || one == schema.Mutation || one == schema.Subscription {
			continue
		}
		if place := r.elsewhere(one); place != "" {
			r.places[name] = place
			continue
		}
		page := pageOf(one)
		r.places[name] = page + ".md#" + strings.ToLower(name)
		types[page] = append(types[page], one)
	}
	r.findCommon()
	pages := map[string]string{
		"queries.md":       r.root("Queries", schema.Query),
		"mutations.md":     r.root("Mutations", schema.Mutation),
		"subscriptions.md": r.root("Subscriptions", schema.Subscription),
	}
	var index strings.Builder
	fmt.Fprintf(&index, "# Reference\n\n%s\n",
		"Made from the schema, which a server has at `/schema.graphql`; `cadastre schema` prints it. A type that ends in `!` is\nnever `null`; [clients](../clients.md#nullable-fields) has what `null` means elsewhere.\n\n- [Queries](queries.md), [mutations](mutations.md) and [subscriptions](subscriptions.md)")
	for _, subject := range subjects {
		fmt.Fprintf(&index, "- [%s](%s.md)\n", subject.title, subject.page)
		pages[subject.page+".md"] = r.types(subject.title, types[subject.page])
	}
	index.WriteString("\n" + pagesOfLists)
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
	places map[string]string // page and heading by the name of each type
	common map[row]bool      // rows of more than three mutations, written once
}

// row is a row of a table: a field or an argument.
type row struct{ name, of, description string }

func (r referenceOf) row(prefix, name string, of *ast.Type, ifAbsent *ast.Value, description string) row {
	return row{prefix + name, r.typed(of, ifAbsent), cell(description)}
}

// pagesOfLists is the section of the index on types and arguments of pages,
// which are the same for all lists.
const pagesOfLists = "## Pages\n\nA list with many members is read page by page. Such a field takes four arguments:\n\n" +
	"| argument | type | |\n|---|---|---|\n" +
	"| `first` | `Int` | Maximum number of rows from the front, 0 to 1000 (default 50). |\n" +
	"| `after` | `String` | Only rows after this cursor. |\n" +
	"| `last` | `Int` | Maximum number of rows from the end, 0 to 1000. Mutually exclusive with `first`. |\n" +
	"| `before` | `String` | Only rows before this cursor. |\n\n" +
	"Its type ends in `Connection`:\n\n" +
	"| field | |\n|---|---|\n" +
	"| `nodes` | The members of the page. |\n" +
	"| `edges` | The members, each as `node` with its `cursor`, which stays valid when the member is deleted. |\n" +
	"| `pageInfo` | The position of the page in the list, a [`PageInfo!`](common.md#pageinfo). |\n" +
	"| `totalCount` | Number of members in the whole list, an `Int!`. Counted only when selected. |\n"

// paging are the arguments of pages as pagesOfLists describes them.
var paging = []string{"first", "after", "last", "before"}

// elsewhere returns the page and heading that describe a type without a
// separate heading, or "" for any other type. The heading of a mutation
// describes its input and payload, and the index describes ordinary connections
// and edges.
func (r referenceOf) elsewhere(one *ast.Definition) string {
	for _, field := range r.schema.Mutation.Fields {
		if one.Name == inputOf(field) || one.Name == field.Type.Name() {
			return "mutations.md#" + strings.ToLower(field.Name)
		}
	}
	var fields []string
	for _, field := range one.Fields {
		fields = append(fields, field.Name)
	}
	ordinary := strings.HasSuffix(one.Name, "Connection") &&
		slices.Equal(fields, []string{"nodes", "edges", "pageInfo", "totalCount"}) ||
		strings.HasSuffix(one.Name, "Edge") && slices.Equal(fields, []string{"cursor", "node"})
	if ordinary && !strings.Contains(one.Description, ",") {
		return "README.md#pages"
	}
	return ""
}

// inputOf returns the name of the type of a mutation's argument input.
func inputOf(mutation *ast.FieldDefinition) string {
	return mutation.Arguments.ForName("input").Type.Name()
}

// root returns the page of the fields of Query, Mutation or Subscription.
func (r referenceOf) root(title string, of *ast.Definition) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", title)
	if of == r.schema.Mutation {
		out.WriteString("\n## Common arguments and answers\n\n| | type | |\n|---|---|---|\n")
		for _, one := range slices.SortedFunc(maps.Keys(r.common), func(a, b row) int {
			return strings.Compare(a.name+a.description, b.name+b.description)
		}) {
			one.write(&out)
		}
	}
	fields := slices.Clone(of.Fields)
	slices.SortFunc(fields, func(a, b *ast.FieldDefinition) int { return strings.Compare(a.Name, b.Name) })
	for _, field := range fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", field.Name, prose(field.Description))
		if of == r.schema.Mutation {
			r.mutation(&out, field)
			continue
		}
		fmt.Fprintf(&out, "\nAnswers %s.\n", r.link(field.Type))
		deprecated(&out, field.Directives)
		if len(field.Arguments) > 0 {
			out.WriteString("\n| argument | type | |\n|---|---|---|\n")
		}
		r.arguments(&out, field, "%s")
	}
	return out.String()
}

func (r row) write(out *strings.Builder) {
	fmt.Fprintf(out, "| `%s` | %s | %s |\n", r.name, r.of, r.description)
}

// rowsOf returns the rows of a mutation: its arguments, and its answer.
func (r referenceOf) rowsOf(mutation *ast.FieldDefinition) (arguments, answer []row) {
	for _, one := range r.schema.Types[inputOf(mutation)].Fields {
		arguments = append(arguments, r.row("input.", one.Name, one.Type, one.DefaultValue, one.Description))
	}
	for _, one := range mutation.Arguments {
		if one.Name != "input" {
			arguments = append(arguments, r.row("", one.Name, one.Type, one.DefaultValue, one.Description))
		}
	}
	for _, one := range r.schema.Types[mutation.Type.Name()].Fields {
		if len(one.Arguments) == 0 {
			answer = append(answer, r.row("", one.Name, one.Type, nil, one.Description))
		}
	}
	return arguments, answer
}

// findCommon finds the rows that more than three mutations have.
func (r referenceOf) findCommon() {
	uses := map[row]int{}
	for _, field := range r.schema.Mutation.Fields {
		arguments, answer := r.rowsOf(field)
		for _, one := range slices.Concat(arguments, answer) {
			if uses[one]++; uses[one] > 3 {
				r.common[one] = true
			}
		}
	}
}

// mutation writes the arguments of a mutation and its answer. It omits the
// first sentence of the input's description, which repeats the heading. The
// other sentences are rules.
func (r referenceOf) mutation(out *strings.Builder, field *ast.FieldDefinition) {
	input := r.schema.Types[inputOf(field)]
	deprecated(out, field.Directives)
	fmt.Fprintf(out, "\nTakes `%s`.", input.Name)
	if _, rules, some := strings.Cut(input.Description, ". "); some {
		out.WriteString(" " + cell(rules))
	}
	out.WriteString("\n\n| argument | type | |\n|---|---|---|\n")
	arguments, answer := r.rowsOf(field)
	part := r.schema.Types[strings.TrimPrefix(input.Name, "Create")]
	var ofPart []string
	for _, one := range r.writeRest(out, arguments) {
		if part != nil && part != input {
			name := strings.TrimPrefix(one.name, "input.")
			if same := part.Fields.ForName(name); same != nil &&
				r.row("input.", name, same.Type, same.DefaultValue, same.Description) == one {
				ofPart = append(ofPart, one.name)
				continue
			}
		}
		one.write(out)
	}
	if ofPart != nil {
		fmt.Fprintf(out, "| `%s` | | As of %s. |\n", strings.Join(ofPart, "`, `"),
			r.link(ast.NamedType(part.Name, nil)))
	}
	payload := r.schema.Types[field.Type.Name()]
	fmt.Fprintf(out, "\nAnswers `%s`.\n\n| field | type | |\n|---|---|---|\n", payload.Name)
	for _, one := range r.writeRest(out, answer) {
		one.write(out)
	}
	for _, one := range payload.Fields {
		if len(one.Arguments) > 0 {
			r.row("", one.Name, one.Type, nil, one.Description).write(out)
			r.arguments(out, one, one.Name+"(%s:)")
		}
	}
}

// writeRest writes one row for the common rows among some, and returns the
// others.
func (r referenceOf) writeRest(out *strings.Builder, rows []row) (rest []row) {
	var common []string
	for _, one := range rows {
		if r.common[one] {
			common = append(common, one.name)
		} else {
			rest = append(rest, one)
		}
	}
	if common != nil {
		fmt.Fprintf(out, "| `%s` | | [Common](#common-arguments-and-answers). |\n", strings.Join(common, "`, `"))
	}
	return rest
}

// arguments writes rows for the arguments of a field. The format has %s for the
// name. The arguments of pages are one row, and so are the arguments that a
// subscription to an answer has in common with its query.
func (r referenceOf) arguments(out *strings.Builder, field *ast.FieldDefinition, format string) {
	common, rest := inCommon(field.Arguments, r.schema.Query.Fields.ForName("namespaces").Arguments, paging)
	place := "Of a [page](README.md#pages)."
	if of := r.schema.Query.Fields.ForName(strings.TrimSuffix(field.Name, "Changed")); common == nil && of != nil &&
		of != field {
		common, rest = inCommon(field.Arguments, of.Arguments, nil)
		place = "As of [" + of.Name + "](queries.md#" + strings.ToLower(of.Name) + ")."
	}
	if common != nil {
		fmt.Fprintf(out, "| `"+format+"` | | %s |\n", strings.Join(common, ", "), place)
	}
	for _, one := range rest {
		fmt.Fprintf(out, "| `"+format+"` | %s | %s |\n", one.Name,
			r.typed(one.Type, one.DefaultValue), cell(one.Description))
	}
}

// inCommon returns the names of the arguments that others describe with the
// same type and words, and the remaining arguments. It returns no names unless
// all needed names, and at least two, are in common.
func inCommon(arguments, others ast.ArgumentDefinitionList,
	needed []string) (common []string, rest ast.ArgumentDefinitionList) {
	for _, one := range arguments {
		other := others.ForName(one.Name)
		wanted := needed == nil || slices.Contains(needed, one.Name)
		if wanted && other != nil && other.Description == one.Description && other.Type.String() == one.Type.String() {
			common = append(common, one.Name)
		} else {
			rest = append(rest, one)
		}
	}
	if len(common) < max(2, len(needed)) {
		return nil, arguments
	}
	return common, rest
}

// types returns the page of some types.
func (r referenceOf) types(title string, all []*ast.Definition) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", title)
	for _, one := range all {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", one.Name, prose(one.Description))
		switch one.Kind {
		case ast.Enum:
			if one.Name == "Operation" {
				out.WriteString("\nThe name of a field in capitals: `createTrait` is `CREATE_TRAIT`.\n")
				continue
			}
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
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", field.Name,
			r.typed(field.Type, field.DefaultValue), cell(field.Description))
		r.arguments(out, field, field.Name+"(%s:)")
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
	place, ok := r.places[name]
	if !ok { // a built-in scalar
		return "`" + of.String() + "`"
	}
	return "[`" + of.String() + "`](" + place + ")"
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
