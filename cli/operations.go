package cli

import (
	"cmp"
	"maps"
	"strings"
	"sync"
	"unicode"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/client/operations"
	"github.com/cadastre-dev/cadastre/schema"
)

// allOperations returns the operations of the client with their fragments.
var allOperations = sync.OnceValue(func() *ast.QueryDocument {
	all := &ast.QueryDocument{}
	entries, err := operations.Files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		text, err := operations.Files.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		document, err := parser.ParseQuery(&ast.Source{Name: entry.Name(), Input: string(text)})
		if err != nil {
			panic(err)
		}
		all.Operations = append(all.Operations, document.Operations...)
		all.Fragments = append(all.Fragments, document.Fragments...)
	}
	return all
})

// operation is an operation of the client.
type operation struct{ *ast.OperationDefinition }

// operationNamed returns an operation of the client.
func operationNamed(name string) operation {
	found := allOperations().Operations.ForName(name)
	if found == nil {
		panic("cli: the client has no operation " + name)
	}
	return operation{found}
}

// text returns the operation as a document with the fragments that it uses.
func (o operation) text() string {
	out, seen := sourceOf(o.Position), map[string]bool{}
	var add func(set ast.SelectionSet)
	add = func(set ast.SelectionSet) {
		for _, selected := range set {
			switch of := selected.(type) {
			case *ast.Field:
				add(of.SelectionSet)
			case *ast.InlineFragment:
				add(of.SelectionSet)
			case *ast.FragmentSpread:
				if fragment := allOperations().Fragments.ForName(of.Name); !seen[of.Name] {
					seen[of.Name] = true
					out += "\n" + sourceOf(fragment.Position)
					add(fragment.SelectionSet)
				}
			}
		}
	}
	add(o.SelectionSet)
	return out
}

// sourceOf returns the definition that begins at a position. It ends with the
// first closing brace at the beginning of a line.
func sourceOf(at *ast.Position) string {
	text := at.Src.Input[at.Start:]
	before, _, _ := strings.Cut(text, "\n}")
	return before + "\n}"
}

// request returns the request of the operation, with the variables that it declares.
func (o operation) request(variables map[string]any) *graphql.Request {
	declared := maps.Clone(variables)
	maps.DeleteFunc(declared, func(name string, _ any) bool { return !o.declares(name) })
	return &graphql.Request{Query: o.text(), OpName: o.Name, Variables: declared}
}

// declares reports whether the operation has a variable.
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
			if ok && argument.Name != "after" && argument.Name != "orderBy" && name == "" {
				name = text
			}
		}
		if data == nil && name == "" && parent != "" {
			return nil, nil // an object without a value here, such as a host without candidates of its own
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

// inputs caches the definitions of inputs and enums.
var inputs sync.Map

// definitionOf returns an input or an enum of the schema; nil for a scalar. It
// parses only that definition, because parsing the whole schema takes longer
// than most commands.
func definitionOf(name string) *ast.Definition {
	if found, ok := inputs.Load(name); ok {
		return found.(*ast.Definition)
	}
	var definition *ast.Definition
	for _, keyword := range []string{"\ninput ", "\nenum "} {
		for _, end := range []string{" {\n", " @"} {
			at := strings.Index(schema.SDL(), keyword+name+end)
			if at < 0 {
				continue
			}
			text, _, _ := strings.Cut(schema.SDL()[at:], "\n}")
			document, err := parser.ParseSchema(&ast.Source{Name: name, Input: text + "\n}"})
			if err != nil {
				panic(err)
			}
			definition = document.Definitions[0]
		}
	}
	inputs.Store(name, definition)
	return definition
}

// kebab returns a name in camel case as the name of a flag.
func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
