package main

import (
	"errors"
	"fmt"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/vektah/gqlparser/v2/ast"
)

// semanticNonNull is the directive of fields that are null only together with
// an error.
const semanticNonNull = "semanticNonNull"

const module = "github.com/cadastre-dev/cadastre/"

// writers is the plugin that generates the functions that write field values.
type writers struct{}

func (writers) Name() string { return "writers" }

func fileOf(cfg *config.Config) string {
	return filepath.Join(cfg.Exec.DirName, "writers.generated.go")
}

// removeWriters removes the previous generated file, because it may not compile
// with the current types.
func removeWriters(cfg *config.Config) error {
	if err := os.Remove(fileOf(cfg)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// GenerateCode writes the file with the functions.
func (writers) GenerateCode(data *codegen.Data) error {
	g := &generator{data: data, named: map[string]bool{}}
	return templates.Render(templates.Options{
		PackageName: data.Config.Exec.Package, Filename: fileOf(data.Config), GeneratedHeader: true,
		Packages: data.Config.Packages, Template: "{{ writers }}",
		Funcs: map[string]any{"writers": g.file},
	})
}

// generator makes the text of the functions: one for each object and interface,
// and one for each field type that needs more than a single call.
type generator struct {
	data  *codegen.Data
	out   strings.Builder
	named map[string]bool // the functions for field types that are made or pending
	// pending are the types whose functions are not made yet.
	pending []*config.TypeReference
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(&g.out, format+"\n", args...) }

func ref(t types.Type) string { return templates.CurrentImports.LookupType(t) }

func (g *generator) file() (string, error) {
	for _, imported := range []string{"context", "github.com/99designs/gqlgen/graphql",
		"github.com/vektah/gqlparser/v2/ast", module + "graph/document", module + "graph/writer"} {
		if _, err := templates.CurrentImports.Reserve(imported); err != nil {
			return "", err
		}
	}
	g.line(`
// Writers writes answers, calling resolvers where a field has one.
type Writers struct { ec *executionContext }

// NewWriters returns the writers of answers that call the resolvers of a
// configuration and describe its schema.
func NewWriters(config Config) Writers {
	schema := &executableSchema{SchemaData: config.Schema, Resolvers: config.Resolvers}
	return Writers{newExecutionContext(&graphql.OperationContext{}, schema, nil)}
}

// Schema returns the schema of the generated code. An executable schema would
// link the executor of gqlgen, about 5 MB, into the program.
func Schema() *ast.Schema { return parsedSchema }

// Write writes the answer to a plan, and reports whether it has any data.
func (w Writers) Write(ctx context.Context, to *writer.Writer, plan *document.Plan, mutation bool) bool {
	d := &direct{to, w.ec}
	if mutation {
		return d.objectMutation(ctx, plan.Root)
	}
	return d.objectQuery(ctx, plan.Root)
}

// Subscribe begins the one field of a subscription. It returns what receives its
// events, and nil where the field fails.
func (w Writers) Subscribe(ctx context.Context, to *writer.Writer, plan *document.Plan) writer.Events {
	d := &direct{to, w.ec}
	var events writer.Events
	d.objectSubscription(ctx, plan.Root, func(f *document.Field) bool {
		var ok bool
		events, ok = d.eventsOf(f)
		return ok
	})
	return events
}

// WriteEvent writes the answer of a subscription to one of its events, and reports
// whether it has any data.
func (w Writers) WriteEvent(ctx context.Context, to *writer.Writer, plan *document.Plan, event any) bool {
	d := &direct{to, w.ec}
	return d.objectSubscription(ctx, plan.Root, func(f *document.Field) bool { return d.fieldSubscription(f, event) })
}

// direct writes one answer.
type direct struct {
	*writer.Writer
	ec *executionContext
}`)
	for _, object := range g.data.Objects {
		if object.Stream {
			g.stream(object)
		} else if object.Root {
			g.root(object)
		} else {
			g.object(object)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.data.Interfaces)) {
		g.abstract(g.data.Interfaces[name])
	}
	for len(g.pending) > 0 {
		next := g.pending[0]
		g.pending = g.pending[1:]
		g.value(next)
	}
	return g.out.String(), nil
}

// object makes the function that writes an object.
func (g *generator) object(object *codegen.Object) {
	g.line("\nfunc (d *direct) object%s(s *document.Selection, obj %s) bool {", object.Name, ref(object.Reference()))
	g.line("start, ok := d.Mark(), true")
	g.line("for _, f := range s.Fields {\nd.Key(f)\nswitch f.Number {")
	g.line("case document.TypeName:\nd.Raw(`%q`)", object.Name)
	g.cases(object)
	g.line("}\n}")
	g.end()
}

// root makes the functions that write the fields of Query or Mutation.
func (g *generator) root(object *codegen.Object) {
	g.line("\nfunc (d *direct) object%s(ctx context.Context, s *document.Selection) bool {", object.Name)
	g.line("start, ok := d.Mark(), true")
	g.line("for _, f := range s.Fields {\nd.Key(f)\nif f.Number == document.TypeName {\nd.Raw(`%q`)\ncontinue\n}",
		object.Name)
	g.line("ok = d.Root(ctx, f, d.field%s) && ok\n}", object.Name)
	g.end()
	g.line("\nfunc (d *direct) field%s(f *document.Field) bool {\nok := true\nswitch f.Number {", object.Name)
	g.cases(object)
	g.line("}\nreturn ok\n}")
}

// stream makes the functions that begin the fields of Subscription, and write
// their events.
func (g *generator) stream(object *codegen.Object) {
	g.line("\nfunc (d *direct) object%s(ctx context.Context, s *document.Selection, write func(*document.Field) bool) bool {", object.Name)
	g.line("start, ok := d.Mark(), true")
	g.line("for _, f := range s.Fields {\nd.Key(f)\nok = d.Root(ctx, f, write) && ok\n}")
	g.end()
	g.line("\nfunc (d *direct) eventsOf(f *document.Field) (writer.Events, bool) {\nswitch f.Number {")
	for number, field := range object.Fields {
		g.line("case %d: // %s", number, field.Name)
		g.line("args := d.Bind(f, d.ec.%s)", field.ArgsFunc())
		g.line("if args == nil {\nreturn nil, d.Absent(f)\n}")
		g.line("events, err := %s(%s)", targetOf(object, field), g.arguments(field))
		g.line("if err != nil {\nd.Fail(f, err)\nreturn nil, d.Absent(f)\n}")
		g.line("return writer.EventsOf(events), d.Null()")
	}
	g.line("}\nreturn nil, false\n}")
	g.line("\nfunc (d *direct) field%s(f *document.Field, event any) bool {\nswitch f.Number {", object.Name)
	for number, field := range object.Fields {
		g.line("case %d: // %s", number, field.Name)
		g.line("if v, ok := event.(%s); ok {\nreturn %s\n}", ref(field.TypeReference.GO),
			g.written(field.TypeReference, "v"))
	}
	g.line("}\nreturn d.Absent(f)\n}")
}

func (g *generator) end() {
	g.line("if !ok {\nreturn d.Drop(start)\n}")
	g.line("if len(s.Fields) == 0 {\nd.Byte('{')\n}\nd.Byte('}')\nreturn true\n}")
}

// targetOf returns the Go expression for the resolver, the method or the struct
// field that a field's value comes from.
func targetOf(object *codegen.Object, field *codegen.Field) string {
	switch {
	case field.IsResolver:
		return fmt.Sprintf("d.ec.Resolvers.%s().%s", strings.ToUpper(object.Name[:1])+object.Name[1:],
			field.GoFieldName)
	case field.GoReceiverName == "ec":
		return "d.ec." + field.GoFieldName
	}
	return "obj." + field.GoFieldName
}

// cases makes the cases of a switch over the numbers of an object's fields.
func (g *generator) cases(object *codegen.Object) {
	number := -1
	for _, field := range object.Fields {
		if introspection := map[string]string{"__schema": "Schema", "__type": "Type"}[field.Name]; introspection != "" {
			g.line("case document.%s:", introspection)
		} else {
			number++
			g.line("case %d: // %s", number, field.Name)
		}
		if len(field.Args) > 0 {
			g.line("args := d.Arguments(f)\nif args == nil {\nargs = d.Bind(f, d.ec.%s)\n}", field.ArgsFunc())
			g.line("if args == nil {\nok = d.Absent(f) && ok\nbreak\n}")
		}
		target := targetOf(object, field)
		call := fmt.Sprintf("%s(%s)", target, g.arguments(field))
		marked := !object.Root && field.FieldDefinition.Directives.ForName(semanticNonNull) != nil
		if marked {
			g.line("from, failed := d.Mark(), len(d.Errors)")
		}
		switch {
		case field.HasHaser || field.VOkFunc || field.IsMap() || field.HasDirectives():
			panic("a field of a kind that is not written: " + object.Name + "." + field.Name)
		case field.IsVariable() && !field.IsResolver:
			g.line("ok = %s && ok", g.written(field.TypeReference, target))
		case !field.IsResolver && field.NoErr:
			g.line("v := %s\nok = %s && ok", call, g.written(field.TypeReference, "v"))
		default:
			g.line("v, known, err := writer.Kept[%s](d.Writer, f)", ref(field.TypeReference.GO))
			g.line("if !known {\nv, err = %s\nif f.Repeated {\nd.Keep(f, v, err)\n}\n}", call)
			g.line("if err != nil {\nd.Fail(f, err)\nok = d.Absent(f) && ok\nbreak\n}")
			g.line("ok = %s && ok", g.written(field.TypeReference, "v"))
		}
		if marked {
			g.line("d.NotNullSince(f, from, failed)")
		}
	}
}

func (g *generator) arguments(field *codegen.Field) string {
	var out []string
	if field.IsResolver || field.MethodHasContext {
		out = append(out, "d.Context(f)")
	}
	if field.IsResolver && !field.Object.Root {
		out = append(out, "obj")
	}
	for _, argument := range field.Args {
		out = append(out, fmt.Sprintf("args[%q].(%s)", argument.Name, ref(argument.TypeReference.GO)))
	}
	return strings.Join(out, ", ")
}

// abstract makes the function that writes an object of an interface.
func (g *generator) abstract(of *codegen.Interface) {
	g.line("\nfunc (d *direct) object%s(f *document.Field, v %s) bool {\nswitch obj := v.(type) {", of.Name,
		ref(of.Type))
	for _, implementor := range of.Implementors {
		if !implementor.CanBeNil() {
			continue // every object is a pointer
		}
		g.line("case %s:\nif obj != nil {\nreturn d.object%s(f.Types[%q], obj)\n}",
			ref(implementor.Type), implementor.Name, implementor.Name)
	}
	g.line("}\nreturn false\n}")
}

// isObject reports whether a type is an object type, or a list of one.
func isObject(r *config.TypeReference) bool { return r.Definition.Kind == ast.Object }

// isStruct reports whether values of a type are objects that are not pointers.
// They are passed by address.
func isStruct(r *config.TypeReference) bool {
	return isObject(r) && !r.IsSlice() && !r.IsNilable()
}

// written returns the expression that writes an addressable value, and reports
// whether it did. If the expression calls a function that is not made yet,
// written adds the type to pending.
func (g *generator) written(r *config.TypeReference, value string) string {
	if !r.IsSlice() && !r.IsNilable() && !isObject(r) && r.Definition.Kind != ast.Interface {
		return g.leaf(r, value)
	}
	name := strings.Replace(r.MarshalFunc(), "marshal", "write", 1)
	if !g.named[name] {
		g.named[name] = true
		g.pending = append(g.pending, r)
	}
	if isStruct(r) {
		value = "&" + value
	}
	return fmt.Sprintf("d.%s(f, %s)", name, value)
}

// value makes the function that writes values of a field type.
func (g *generator) value(r *config.TypeReference) {
	name := strings.Replace(r.MarshalFunc(), "marshal", "write", 1)
	typ := ref(r.GO)
	if isStruct(r) {
		typ = "*" + typ
	}
	g.line("\nfunc (d *direct) %s(f *document.Field, v %s) bool {", name, typ)
	switch {
	case r.IsSlice():
		g.list(r)
	case isObject(r):
		g.ifNil(r)
		g.orNull(r, fmt.Sprintf("d.object%s(f.Below, v)", r.Definition.Name))
	case r.Definition.Kind == ast.Interface:
		g.ifNil(r)
		g.orNull(r, fmt.Sprintf("d.object%s(f, v)", r.Definition.Name))
	case r.IsPtr():
		g.ifNil(r)
		g.line("return %s", g.leaf(r.Elem(), "*v"))
	default:
		g.ifNil(r)
		g.line("return %s", g.leaf(r, "v"))
	}
	g.line("}")
}

func (g *generator) ifNil(r *config.TypeReference) {
	if isStruct(r) {
		return
	}
	if r.GQL.NonNull {
		g.line("if v == nil {\nreturn d.FailNull(f)\n}")
	} else {
		g.line("if v == nil {\nreturn d.Null()\n}")
	}
}

func (g *generator) orNull(r *config.TypeReference, written string) {
	if r.GQL.NonNull {
		g.line("return %s", written)
	} else {
		g.line("return %s || d.Null()", written)
	}
}

func (g *generator) list(r *config.TypeReference) {
	if !r.GQL.NonNull {
		g.line("if v == nil {\nreturn d.Null()\n}")
	}
	hasPaths := !r.IsScalar()
	g.line("start, ok := d.Mark(), true\nd.Byte('[')")
	if hasPaths {
		g.line("d.Enter()")
	}
	g.line("for i := range v {")
	if hasPaths {
		g.line("d.At(i)")
	} else {
		g.line("d.Element(i)")
	}
	g.line("ok = %s && ok\n}", g.written(r.Elem(), "v[i]"))
	if hasPaths {
		g.line("d.Leave()")
	}
	if r.GQL.NonNull {
		g.line("if !ok {\nreturn d.Drop(start)\n}")
	} else {
		g.line("if !ok {\nd.Drop(start)\nreturn d.Null()\n}")
	}
	g.line("d.Byte(']')\nreturn true")
}

// leaf returns the expression that writes a non-nil value of a scalar or an
// enum.
func (g *generator) leaf(r *config.TypeReference, value string) string {
	if r.IsMarshaler {
		if strings.HasSuffix(r.GO.String(), "/text.JSON") {
			return fmt.Sprintf("d.JSON(%s)", value)
		}
		panic("a scalar that is not written: " + r.GO.String())
	}
	if r.HasEnumValues() {
		return fmt.Sprintf("d.String(%s[%s])", r.EnumMarshalVar(false), value)
	}
	switch r.Marshaler.Name() {
	case "MarshalString", "MarshalID", "MarshalUUID":
		return "d.String(" + as("string", r, value) + ")"
	case "MarshalBoolean":
		return "d.Boolean(" + as("bool", r, value) + ")"
	case "MarshalInt", "MarshalInt32", "MarshalInt64", "MarshalLongInt":
		return "d.Integer(" + as("int64", r, value) + ")"
	case "MarshalFloatContext":
		return "d.Float(f, " + as("float64", r, value) + ")"
	case "MarshalDateTime":
		return "d.Time(" + value + ")"
	}
	panic("a scalar that is not written: " + r.Marshaler.FullName())
}

func as(basic string, r *config.TypeReference, value string) string {
	if r.GO.String() == basic {
		return value
	}
	return basic + "(" + value + ")"
}
