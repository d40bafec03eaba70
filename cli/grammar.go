package cli

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// noun is the first word of commands: the kind of things they are about, or a
// command itself.
type noun struct {
	name, group, help string
	columns           string // of one of the things, see columnsOf
	verbs             []verb
	command           any // the struct of a noun that is a command
}

// verb is a command of a noun. Its flags and arguments are the variables of its
// operations, and the fields of the inputs among them, with the descriptions of the
// schema.
type verb struct {
	name, help string
	aliases    string
	send       string // operations; the first that has a variable for each flag given is sent
	// flags says, word by word, what differs from one flag per field:
	// `<name>` is an argument, `[name]` an optional one, `<name...>` one for each
	// request, `<name!>` one for a list; `flag=field` names the field; `@kind` says what it
	// names, `:value` its default; `-field` leaves a field out.
	flags   string
	columns string // the noun's when empty, further ones after a &
	rows    string // the member of the answer that is shown
	ask     string // the question before it is sent; flags in braces
	isTable bool   // one thing is shown as a row, not as a line for each column
	extra   any    // a struct of further flags
	run     func(c *call) error
	command any // the struct of a command that is written by hand
}

// shortNames are the flags of fields whose own names are longer or in the plural.
var shortNames = map[string]string{
	"anyTags": "any-tag", "capabilities": "capability", "enumLabels": "enum-label", "groupBy": "by", "newName": "name",
	"newPropertiesTarget": "new-target", "operators": "operator", "projectId": "project", "projectIds": "project",
	"properties": "property", "propertiesTarget": "target", "requiredAll": "required", "requirements": "requirement",
	"resourceClasses": "class", "resourceTypes": "resource-type", "resources": "resource", "tags": "tag",
	"types": "type", "userId": "user", "consumerType": "type",
}

// leftOut are fields that are no flags: other flags set them.
const leftOut = " uuids requiredAny requiredAnySets forbidden deleteKeys userModifiable mode field direction "

// helps are the descriptions of flags that the schema describes for programs.
var helps = map[string]string{
	"aggregate": "The uuids of aggregates, or their beginnings.",
	"ancestor":  "Only below this resource, at any depth.",
	"by-class":  "The resource class whose free amount or used share --sort means.",
	"consumer":  "The uuid of the consumer or its beginning, or the name of its resource.",
	"dry-run":   "Change nothing, and list the metadata that would break.",
	"in-tree":   "Only in the tree of this provider.",
	"items":     "Items as KEY=VALUE.",
	"matching":  "Only where this JSON expression on capabilities holds, as in reservations.",
	"member-of": "Only in one of these aggregates, separated by commas; !A for not in it. " + severalTimes + " All must hold.",
	"of":        "Only in trees whose root is a resource that this ResourceFilter of the schema matches, as JSON or YAML.",
	"parent":    "The uuid or the name of what it is a part of, or the beginning of one.",
	"provider":  "The uuid or the name of the provider, or the beginning of one.",
	"required":  "Only with these traits: A,B for all, in:A,B for any, !A for without. " + severalTimes,
	"resource":  "The uuid or the name of the resource, or the beginning of one.",
	"revision":  "Only if it has this revision.",
	"since":     "Only at this time or later: " + moments, "updated-since": "Only changed at this time or later: " + moments,
	"trait": "The names of traits; none takes all away.",
	"where": "Only where this condition holds: a ResourceCondition of the schema as JSON or YAML, such as " +
		"{metadata: {key: rack, exists: false}}.",
}

const (
	severalTimes = "Can be given several times."
	moments      = "2026-01-31T12:00:00Z, 2026-01-31, or 2h for two hours ago."
)

// namesOnly are the descriptions of variables, which the schema does not describe.
var namesOnly = map[string]string{
	"all": "Private capabilities, too; only administrators see them.", "key": "The key.",
	"by": "What the rows are grouped by.", "class": "The name of the resource class.", "id": "The id, which audit list -c id shows.",
	"keys": "Only these keys.", "name": "The name.", "namespace": "The name of the namespace.", "object": "The name of the object.",
	"prefix": "Only through associations with this prefix; empty is one without.", "project": "Only of the project with this id.",
	"resource-type": "The name of the resource type.", "search": "Only with this string in the name.",
	"target": "Only through associations with this properties target; empty is one without.", "type": "The type.",
	"user": "Only of the user with this id.",
}

// forms are the placeholders of flags by their types.
var forms = map[string]string{
	"Int": "N", "Int64": "N", "Float": "X", "UUID": "UUID", "DateTime": "TIME", "JSON": "VALUE", "KeyValueInput": "KEY=VALUE",
	"ResourceAmountInput": "CLASS=AMOUNT", "TagFilter": "NAME[/]", "RequirementInput": "NAME=REQUIREMENT", "EnumLabelInput": "VALUE=LABEL",
	"AggregateFilter": "AGGREGATES", "String": "TEXT",
}

// newGrammar returns the struct from which kong makes the parser of the command
// line.
func newGrammar(nouns []noun) any {
	var fields []reflect.StructField
	for _, of := range nouns {
		tag := tagOf("cmd", "", "name", of.name, "group", of.group, "help", of.help)
		if of.command != nil {
			fields = append(fields, fieldFor(len(fields), reflect.TypeOf(of.command), tag))
			continue
		}
		var verbs []reflect.StructField
		for _, v := range of.verbs {
			tag := tagOf("cmd", "", "name", v.name, "help", v.help, "aliases", v.aliases)
			verbs = append(verbs, fieldFor(len(verbs), v.structOf(of), tag))
		}
		fields = append(fields, fieldFor(len(fields), reflect.StructOf(verbs), tag))
	}
	fields = append(fields, fieldFor(len(fields), reflect.TypeFor[kong.VersionFlag](), tagOf("name", "version", "help", "Print the version and the commit.")))
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func fieldFor(number int, of reflect.Type, tag string) reflect.StructField {
	return reflect.StructField{Name: "F" + strconv.Itoa(number), Type: of, Tag: reflect.StructTag(strings.TrimSpace(tag))}
}

// tagOf returns the tag of a field. It drops names with empty values, except names
// that take no value.
func tagOf(pairs ...string) string {
	var tag strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" || strings.Contains(" cmd arg optional embed negatable required ", " "+pairs[i]+" ") {
			tag.WriteString(" " + pairs[i] + ":" + strconv.Quote(pairs[i+1]))
		}
	}
	return tag.String()
}

// param is a flag or an argument of a generated command.
type param struct {
	at                   string // its path in the variables of the operation
	typ                  *ast.Type
	description          string
	flag, kind, fallback string
	isArgument, optional bool
	isEach               bool // several values are several requests
	isOne                bool // one value makes a list
}

// structOf returns the struct of a command.
func (v verb) structOf(of noun) reflect.Type {
	if v.command != nil {
		return reflect.TypeOf(v.command)
	}
	fields := []reflect.StructField{fieldFor(0, reflect.TypeFor[common](), tagOf("embed", ""))}
	embed := func(of reflect.Type) {
		fields = append(fields, fieldFor(len(fields), of, tagOf("embed", "")))
	}
	if v.isDeletion() {
		embed(reflect.TypeFor[deletion]())
	}
	if v.extra != nil {
		embed(reflect.TypeOf(v.extra))
	}
	params, paged, sorted := v.params(of)
	if paged && !strings.Contains(v.flags, "-first") {
		embed(reflect.TypeFor[paging]())
	}
	if sorted && !strings.Contains(v.flags, "-orderBy") {
		embed(reflect.TypeFor[sorting]())
	}
	for _, one := range params {
		fields = append(fields, fieldFor(len(fields), one.goType(), one.tag(v)))
	}
	return reflect.StructOf(fields)
}

// isDeletion reports whether the command asks before it is sent.
func (v verb) isDeletion() bool { return v.ask != "" || v.name == "delete" }

// params returns the flags and arguments of a command, and whether it is a list
// with pages and an order.
func (v verb) params(of noun) (params []*param, paged, sorted bool) {
	var all []*param
	for _, name := range strings.Fields(v.send) {
		operation := operationNamed(name)
		for _, variable := range operation.VariableDefinitions {
			definition := definitionOf(variable.Type.Name())
			isInput := definition != nil && definition.Kind == ast.InputObject && variable.Type.Elem == nil
			switch {
			case variable.Variable == "first":
				paged = true
			case variable.Variable == "after" || variable.Variable == "problems" || strings.HasPrefix(variable.Variable, "with"):
			case isInput:
				sorted = sorted || variable.Variable == "orderBy"
				for _, field := range definition.Fields {
					all = append(all, &param{at: variable.Variable + "." + field.Name, typ: field.Type, description: field.Description, kind: kindOf(field, of)})
				}
			default:
				all = append(all, &param{at: variable.Variable, typ: variable.Type, kind: kindOf(&ast.FieldDefinition{Name: variable.Variable, Type: variable.Type}, of)})
			}
		}
	}
	return v.named(all), paged, sorted
}

// named returns parameters by the names that the words of the command give them:
// the arguments first.
func (v verb) named(all []*param) (params []*param) {
	done := map[string]bool{}
	for _, word := range strings.Fields(v.flags) {
		if field, ok := strings.CutPrefix(word, "-"); ok {
			done["-"+field] = true
			continue
		}
		one := v.wordOf(word, all)
		done[one.at] = true
		params = append(params, one)
	}
	for _, one := range all {
		variable, _, _ := strings.Cut(one.at, ".")
		field := one.at[strings.LastIndex(one.at, ".")+1:]
		isLeft := done[one.at] || done["-"+one.at] || done["-"+field] || done["-"+variable]
		if isLeft || strings.Contains(leftOut, " "+field+" ") {
			continue
		}
		done[one.at] = true
		if one.flag = shortNames[field]; one.flag == "" {
			one.flag = kebab(field)
		}
		params = append(params, one)
	}
	return params
}

// wordOf returns the parameter that a word is about.
func (v verb) wordOf(word string, all []*param) *param {
	one := &param{}
	isArgument, optional := strings.ContainsAny(word[:1], "<["), word[0] == '['
	word, fallback, _ := strings.Cut(strings.Trim(word, "<[]>"), ":")
	word, kind, hasKind := strings.Cut(word, "@")
	name, field := word, word
	if i := strings.LastIndex(word, "="); i > 0 {
		name, field = word[:i], word[i+1:]
	}
	name, isEach := strings.CutSuffix(name, "...")
	field, isOne := strings.CutSuffix(strings.TrimSuffix(field, "..."), "!")
	i := slices.IndexFunc(all, func(of *param) bool { return of.at == field || strings.HasSuffix(of.at, "."+field) })
	if i >= 0 {
		*one = *all[i]
	} else if definition := v.fieldAt(field); definition != nil {
		*one = param{at: field, typ: definition.Type, description: definition.Description, kind: kindOf(definition, noun{})}
	} else {
		panic("cli: no operation of " + v.send + " has the field " + field)
	}
	if hasKind {
		one.kind = kind
	}
	one.flag, one.fallback, one.isArgument, one.optional, one.isEach, one.isOne = name, fallback, isArgument, optional, isEach, isOne
	return one
}

// fieldAt returns the field at a path in the variables of the first operation, or
// nil.
func (v verb) fieldAt(path string) *ast.FieldDefinition {
	_, field := operationNamed(strings.Fields(v.send)[0]).typeAt(path)
	return field
}

// kindOf returns the kind of thing that the value of a field names. Completion
// knows these kinds, and resolve knows the kinds with a uuid.
func kindOf(field *ast.FieldDefinition, of noun) string {
	if directive := field.Directives.ForName("nameOf"); directive != nil {
		return kebab(directive.Arguments[0].Value.Raw)
	}
	if field.Type.Name() == "UUID" {
		switch field.Name {
		case "parent", "ancestor":
			return of.name
		case "inTree":
			return "provider"
		case "resource", "provider", "consumer":
			return field.Name
		}
		return ""
	}
	switch field.Name {
	case "namespace", "resourceType", "resourceClass":
		return kebab(field.Name)
	case "traits":
		return "trait"
	}
	return ""
}

// isClearable reports whether an empty value makes a field null.
func (p *param) isClearable(v verb) bool {
	return !p.typ.NonNull && strings.HasPrefix(v.send, "Update") && strings.HasPrefix(p.at, "input.") &&
		!strings.Contains(p.description, "cannot be") && !strings.HasSuffix(p.at, ".revision") && !strings.HasSuffix(p.at, ".visibility")
}

// isList reports whether the parameter takes several values.
func (p *param) isList() bool { return (p.typ.Elem != nil || p.isEach) && !p.isOne }

// goType returns the type of the field that kong reads the parameter into: numbers
// are read by kong where they cannot be cleared.
func (p *param) goType() reflect.Type {
	switch {
	case p.isList():
		return reflect.TypeFor[[]string]()
	case p.typ.Name() == "Boolean":
		return reflect.TypeFor[*bool]()
	}
	return reflect.TypeFor[*string]()
}

// tag returns the tag of the parameter's field.
func (p *param) tag(v verb) string {
	pairs := []string{"name", p.flag, "at", p.at, "default", p.fallback}
	isBool := p.typ.Name() == "Boolean" && !p.isList()
	switch {
	case p.isArgument && p.optional:
		pairs = append(pairs, "arg", "", "optional", "")
	case p.isArgument:
		pairs = append(pairs, "arg", "")
	case p.isRequired(v) && !isBool:
		pairs = append(pairs, "required", "")
	}
	if p.isList() {
		pairs = append(pairs, "sep", "none")
	}
	if isBool && !p.typ.NonNull {
		pairs = append(pairs, "negatable", "")
	}
	reference := "of"
	if p.typ.Name() == "UUID" || p.kind == "aggregate" {
		reference = "ref"
	}
	members := p.members()
	pairs = append(pairs, reference, p.kind, "enum", members)
	if !isBool && !p.isArgument {
		pairs = append(pairs, "placeholder", p.placeholder())
	}
	return tagOf(append(pairs, "help", p.help(v, members))...)
}

// isRequired reports whether the command needs the flag.
func (p *param) isRequired(v verb) bool {
	return p.typ.NonNull && strings.Count(p.at, ".") < 2 && !strings.Contains(v.send, " ") && p.fallback == "" && !p.hasDefault(v)
}

// members returns the members of an enum as the command line has them, or an empty
// string for another type.
func (p *param) members() string {
	definition := definitionOf(p.typ.Name())
	if definition == nil || definition.Kind != ast.Enum || p.kind != "" {
		return ""
	}
	return strings.Join(lists.Map(definition.EnumValues, func(of *ast.EnumValueDefinition) string {
		return strings.ReplaceAll(strings.ToLower(of.Name), "_", "-")
	}), ",")
}

// hasDefault reports whether the schema has a default for the field.
func (p *param) hasDefault(v verb) bool {
	field := v.fieldAt(p.at)
	return field != nil && field.DefaultValue != nil
}

// placeholder returns the word for a value in the help.
func (p *param) placeholder() string {
	of := definitionOf(p.typ.Name())
	switch form := forms[p.typ.Name()]; {
	case p.typ.Name() == "UUID" && p.kind != "":
		return strings.ToUpper(p.kind)
	case p.kind != "" && form == "TEXT":
		return "NAME"
	case strings.HasSuffix(p.at, "Id") || strings.HasSuffix(p.at, "Ids") || strings.HasSuffix(p.at, "owner"):
		return "ID"
	case p.flag == "required":
		return "TRAITS"
	case form != "":
		return form
	case of != nil && of.Kind == ast.InputObject:
		return "JSON"
	}
	return ""
}

// help returns the description of the parameter.
func (p *param) help(v verb, members string) string {
	text, ok := helps[p.flag]
	if !ok || p.typ.Name() == "String" && p.flag == "parent" {
		text = p.described()
	}
	if text == "" {
		panic("cli: " + v.send + " does not describe --" + p.flag)
	}
	if members != "" {
		text += " One of " + strings.ReplaceAll(members, ",", ", ") + "."
	}
	if p.isList() && !p.isArgument && !strings.Contains(text, severalTimes) {
		text += " " + severalTimes
	}
	if p.isClearable(v) && p.typ.Name() != "Boolean" {
		text += " Empty clears it."
	}
	return text
}

// described returns the first sentence of the description in the schema, without
// what concerns programs alone.
func (p *param) described() string {
	text, _, _ := strings.Cut(strings.Join(strings.Fields(p.description), " "), ". ")
	if before, after, ok := strings.Cut(text, "; "); ok && strings.Contains(after, "`") {
		text = before
	}
	if text = strings.TrimSuffix(strings.ReplaceAll(text, "`", ""), "."); text == "" {
		return namesOnly[p.flag]
	}
	if strings.HasPrefix(p.at, "filter.") {
		text = "Only " + strings.ToLower(text[:1]) + text[1:]
	}
	return text + "."
}
