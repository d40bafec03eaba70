package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// leftOut are fields without a separate flag: other flags set them.
const leftOut = " uuids requiredAny requiredAnySets forbidden deleteKeys userModifiable mode field direction "

const severalTimes = "Repeatable."

// words returns the table of commands.txt with this name, such as .names.
func words(table string) map[string]string { return nounNamed(table).words }

// params returns the flags and arguments of a command: first the parameters of
// its operations, then the command's own parameters, then the shared ones.
func (v *verb) params() []*param {
	var all []*param
	shared := slices.Clone(v.shared)
	if v.isDeletion() {
		shared = append(shared, ".deletion")
	}
	for _, name := range v.send {
		for _, variable := range operationNamed(name).VariableDefinitions {
			if set := sharedSets[variable.Variable]; set != "" && !slices.Contains(v.words, "-"+variable.Variable) {
				shared = append(shared, set)
			}
			all = append(all, v.paramsOf(variable)...)
		}
	}
	params := v.named(all)
	for _, p := range v.own {
		one := *p
		params = append(params, &one)
	}
	slices.Sort(shared)
	params = append(params, sets(slices.Compact(shared))...)
	arguments := map[string]bool{}
	for _, p := range params {
		if p.key = p.flag; p.isArgument {
			arguments[p.flag] = true
		} else if arguments[p.flag] {
			p.key = "--" + p.flag
		}
		p.describeFor(v)
	}
	return params
}

// sharedSets are the names of sets of shared flags, by the variable they set.
var sharedSets = map[string]string{"first": ".page", "orderBy": ".order"}

// paramsOf returns the parameters of a variable: for an input, one for each
// field; none for a variable that the program sets.
func (v *verb) paramsOf(of *ast.VariableDefinition) (params []*param) {
	at := of.Variable
	if slices.Contains([]string{"first", "after", "problems"}, at) || strings.HasPrefix(at, "with") {
		return nil
	}
	definition := definitionOf(of.Type.Name())
	if definition == nil || definition.Kind != ast.InputObject || of.Type.Elem != nil {
		return []*param{v.paramOf(at, &ast.FieldDefinition{Name: at, Type: of.Type})}
	}
	for _, field := range definition.Fields {
		params = append(params, v.paramOf(at+"."+field.Name, field))
	}
	return params
}

func (v *verb) paramOf(at string, field *ast.FieldDefinition) *param {
	return &param{at: at, typ: field.Type, description: field.Description, kind: kindOf(field, v.of)}
}

// isDeletion reports whether the command asks before it sends the operation.
func (v *verb) isDeletion() bool { return v.ask != "" || v.name == "delete" && v.send != nil }

// named returns the parameters for the words of the command, then the others. A
// word -NAME omits a field or a variable.
func (v *verb) named(all []*param) (params []*param) {
	done := map[string]bool{}
	for _, word := range v.words {
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
		if one.flag = words(".names")[field]; one.flag == "" {
			one.flag = kebab(field)
		}
		params = append(params, one)
	}
	return params
}

// wordOf returns the parameter for a word: `<name>` is an argument, `[name]` an
// optional one, `<name...>` one with a request for each value. `flag=field`
// names the field, and `flag=field!` a list that gets one value. `@kind` is the
// kind of object that the value names, and `:value` the default.
func (v *verb) wordOf(word string, all []*param) *param {
	isArgument, optional := strings.ContainsAny(word[:1], "<["), word[0] == '['
	word, fallback, _ := strings.Cut(strings.Trim(word, "<[]>"), ":")
	word, kind, hasKind := strings.Cut(word, "@")
	name, field := word, word
	if i := strings.LastIndex(word, "="); i > 0 {
		name, field = word[:i], word[i+1:]
	}
	name, isEach := strings.CutSuffix(name, "...")
	field, isOne := strings.CutSuffix(strings.TrimSuffix(field, "..."), "!")
	one := &param{}
	i := slices.IndexFunc(all, func(of *param) bool { return of.at == field || strings.HasSuffix(of.at, "."+field) })
	if i >= 0 {
		*one = *all[i]
	} else if definition := operationNamed(v.send[0]).fieldAt(field); definition != nil {
		one = v.paramOf(field, definition)
	} else {
		panic("cli: no operation of " + v.path() + " has the field " + field)
	}
	if hasKind {
		one.kind = kind
	}
	one.flag, one.fallback, one.isArgument, one.optional = name, fallback, isArgument, optional
	one.isEach, one.isOne = isEach, isOne
	return one
}

// kindOf returns the kind of object that the value of a field names.
func kindOf(field *ast.FieldDefinition, of *noun) string {
	if directive := field.Directives.ForName("nameOf"); directive != nil {
		return kebab(directive.Arguments[0].Value.Raw)
	}
	isUUID := field.Type.Name() == "UUID"
	switch {
	case isUUID && (field.Name == "parent" || field.Name == "ancestor"):
		return of.name
	case isUUID && field.Name == "inTree":
		return "provider"
	case isUUID && slices.Contains([]string{"resource", "provider", "consumer"}, field.Name):
		return field.Name
	case !isUUID && slices.Contains([]string{"namespace", "resourceType", "resourceClass"}, field.Name):
		return kebab(field.Name)
	case field.Name == "traits":
		return "trait"
	}
	return ""
}

// isClearable reports whether an empty value makes a field null.
func (p *param) isClearable(v *verb) bool {
	return !p.typ.NonNull && strings.HasPrefix(p.at, "input.") && strings.HasPrefix(v.send[0], "Update") &&
		!strings.Contains(p.description, "cannot be") && !strings.HasSuffix(p.at, ".revision") &&
		!strings.HasSuffix(p.at, ".visibility")
}

// isRequired reports whether the command needs the flag.
func (p *param) isRequired(v *verb) bool {
	field := operationNamed(v.send[0]).fieldAt(p.at)
	return p.typ.NonNull && strings.Count(p.at, ".") < 2 && len(v.send) == 1 && p.fallback == "" &&
		(field == nil || field.DefaultValue == nil)
}

// members returns the members of an enum in the form of the command line, or an
// empty string for another type.
func (p *param) members() string {
	definition := definitionOf(p.typ.Name())
	if definition == nil || definition.Kind != ast.Enum || p.kind != "" {
		return ""
	}
	return strings.Join(lists.Map(definition.EnumValues, func(of *ast.EnumValueDefinition) string {
		return strings.ReplaceAll(strings.ToLower(of.Name), "_", "-")
	}), ",")
}

// placeholder returns the word for a value in the help.
func (p *param) placeholder() string {
	of, form := definitionOf(p.typ.Name()), words(".forms")[p.typ.Name()]
	switch {
	case p.typ.Name() == "UUID" && p.kind != "":
		return strings.ToUpper(p.kind)
	case p.kind != "" && form == "TEXT":
		return "NAME"
	case strings.HasSuffix(p.at, "Id") || strings.HasSuffix(p.at, "Ids") || strings.HasSuffix(p.at, "owner"):
		return "ID"
	case form == "" && of != nil && of.Kind == ast.InputObject:
		return "JSON"
	}
	return form
}

// describe returns the description of a parameter of an operation.
func (p *param) describe(v *verb, members string) string {
	text := cmp.Or(words(".helps")[p.at], words(".helps")[p.flag])
	if text == "" || p.typ.Name() == "String" && p.flag == "parent" {
		text = p.described()
	}
	if p.isOne && p.kind != "" { // the schema describes a list
		text = "The name of the " + strings.ReplaceAll(p.kind, "-", " ") + "."
	}
	if text == "" {
		panic("cli: " + v.path() + " does not describe --" + p.flag)
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

// described returns the first sentence of the description in the schema,
// without parts that only concern programs.
func (p *param) described() string {
	text, _, _ := strings.Cut(strings.Join(strings.Fields(p.description), " "), ". ")
	if before, after, ok := strings.Cut(text, "; "); ok && strings.Contains(after, "`") {
		text = before
	}
	if text = strings.TrimSuffix(strings.ReplaceAll(text, "`", ""), "."); text == "" {
		return words(".variables")[p.flag]
	}
	if strings.HasPrefix(p.at, "filter.") {
		text = "Only " + strings.ToLower(text[:1]) + text[1:]
	}
	return text + "."
}

// label returns the parameter in the form of the command line.
func (p *param) label() string {
	if p.isArgument {
		return "<" + p.flag + ">"
	}
	return "--" + p.flag
}
