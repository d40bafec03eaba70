package cli

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/client/operations"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/schema"
)

// allOperations returns the operations of the client with their fragments.
var allOperations = sync.OnceValue(func() *ast.QueryDocument {
	all, err := parser.ParseQuery(&ast.Source{Input: operations.Text()})
	if err != nil {
		panic(err)
	}
	return all
})

// operation is an operation of the client.
type operation struct{ *ast.OperationDefinition }

// operationNamed returns an operation of the client. It panics if there is none.
func operationNamed(name string) operation {
	found := allOperations().Operations.ForName(name)
	if found == nil {
		panic("cli: the client has no operation " + name)
	}
	return operation{found}
}

// spreads matches a fragment spread in a document.
var spreads = regexp.MustCompile(`\.\.\.(\w+)`)

// withFragments appends the fragments that a document uses. It appends each one
// once.
func withFragments(text string, appended map[string]bool) string {
	for _, found := range spreads.FindAllStringSubmatch(text, -1) {
		if name := found[1]; !appended[name] {
			appended[name] = true
			text += "\n" + withFragments(sourceOf(allOperations().Fragments.ForName(name).Position), appended)
		}
	}
	return text
}

// sourceOf returns the definition that begins at a position. It ends with the
// first closing brace at the beginning of a line.
func sourceOf(at *ast.Position) string {
	text := at.Src.Input[at.Start:]
	before, _, _ := strings.Cut(text, "\n}")
	return before + "\n}"
}

// document returns the source of the operation with the fragments that it uses,
// and the given variables that it declares.
func (o operation) document(variables map[string]any) (string, map[string]any) {
	declared := maps.Clone(variables)
	maps.DeleteFunc(declared, func(name string, _ any) bool { return !o.declares(name) })
	return withFragments(sourceOf(o.Position), map[string]bool{}), declared
}

func (o operation) declares(variable string) bool {
	return o.VariableDefinitions.ForName(variable) != nil
}

// path returns the fields from the root of the answer to its subject: the nodes
// of a list, or an object.
func (o operation) path() (path []*ast.Field) {
	set := o.SelectionSet
	for {
		var only *ast.Field
		fields := 0
		for _, selected := range set {
			field, ok := selected.(*ast.Field)
			if ok && (field.Name == "problems" || field.Name == "pageInfo" || field.Name == "retained") {
				continue
			}
			fields, only = fields+1, field
		}
		if fields != 1 || only == nil || len(only.SelectionSet) == 0 {
			return path
		}
		path, set = append(path, only), only.SelectionSet
	}
}

// missingAt is the first missing object on a path: its kind, its name, and the
// name of its parent.
type missingAt struct{ kind, name, parent string }

// within returns the part of an answer's data at the path of the operation, or
// the first missing object on it.
func (o operation) within(data any, variables map[string]any) (any, *missingAt) {
	parent := ""
	for _, field := range o.path() {
		data = memberOf(data, field.Alias)
		name := ""
		for _, argument := range field.Arguments {
			text, ok := variables[argument.Value.Raw].(string)
			if ok && name == "" && !slices.Contains([]string{"after", "orderBy", "distinct"}, argument.Name) {
				name = text
			}
		}
		if data == nil && name == "" && parent != "" {
			return nil, nil // an object without a value here, such as a host, which has no candidates
		}
		if of, ok := data.(map[string]any); (data == nil || ok && len(of) == 0) && o.Operation == ast.Query {
			kind, ok := map[string]string{"node": "audit-event", "resourceProvider": "provider"}[field.Name]
			if !ok {
				kind = kebab(field.Name)
			}
			return nil, &missingAt{kind, name, parent}
		}
		parent = cmp.Or(name, parent)
	}
	return data, nil
}

// fieldAt returns the definition of the field at a path in a variable, such as
// `input.name`; nil for none.
func (o operation) fieldAt(path string) (field *ast.FieldDefinition) {
	names := strings.Split(path, ".")
	variable := o.VariableDefinitions.ForName(names[0])
	if variable == nil {
		return nil
	}
	typ := variable.Type
	for _, name := range names[1:] {
		definition := definitionOf(typ.Name())
		if definition == nil {
			return nil
		}
		if field = definition.Fields.ForName(name); field == nil {
			return nil
		}
		typ = field.Type
	}
	return field
}

// definitions returns the definitions of the schema by their names.
var definitions = sync.OnceValue(func() map[string]*ast.Definition {
	document, err := parser.ParseSchema(&ast.Source{Input: schema.SDL()})
	if err != nil {
		panic(err)
	}
	return lists.ByKey(document.Definitions, func(definition *ast.Definition) string { return definition.Name })
})

// definitionOf returns the definition of a type, nil for a built-in type.
func definitionOf(name string) *ast.Definition { return definitions()[name] }

// kebab returns a name in camel case as the name of a flag.
func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		followsLower := i > 0 && !unicode.IsUpper(rune(name[i-1]))
		isBeforeLower := i > 0 && i+1 < len(name) && unicode.IsLower(rune(name[i+1]))
		if unicode.IsUpper(r) && (followsLower || isBeforeLower) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
