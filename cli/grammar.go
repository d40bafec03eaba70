package cli

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// newGrammar returns the struct that kong turns into a parser of all nouns. It
// has the verbs of the noun built only, because building all verbs takes longer
// than most commands.
func newGrammar(built func(*noun) bool) any {
	var fields []reflect.StructField
	var shared []*param
	add := func(of reflect.Type, tag string) { fields = append(fields, fieldFor(len(fields), of, tag)) }
	for _, of := range table() {
		if of.name[0] == '.' {
			continue
		}
		typ := reflect.TypeFor[struct{}]()
		switch {
		case of.name == "serve":
			typ = reflect.TypeFor[serveCommand]()
		case built(of):
			typ, shared = structOf(of), sets(of.shared)
		}
		add(typ, tagOf("cmd", "", "name", of.name, "group", of.group, "help", of.help))
	}
	add(reflect.TypeFor[kong.VersionFlag](), tagOf("name", "version", "help", "Print the version and the commit."))
	for _, p := range shared {
		add(p.goType(), p.tag(nil))
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// structOf returns the struct of a noun, with a field for each verb.
func structOf(of *noun) reflect.Type {
	var verbs []reflect.StructField
	for i, v := range of.verbs {
		var fields []reflect.StructField
		for j, p := range v.params() {
			fields = append(fields, fieldFor(j, p.goType(), p.tag(v)))
		}
		if v.name == "." {
			return reflect.StructOf(fields)
		}
		tag := tagOf("cmd", "", "name", v.name, "help", v.help, "aliases", v.alias)
		verbs = append(verbs, fieldFor(i, reflect.StructOf(fields), tag))
	}
	return reflect.StructOf(verbs)
}

// sets returns the flags of these sets of shared flags.
func sets(names []string) (flags []*param) {
	for _, name := range names {
		if of := nounNamed(name); of != nil {
			for _, p := range of.flags {
				one := *p
				one.key = p.flag
				flags = append(flags, &one)
			}
		}
	}
	return flags
}

func fieldFor(number int, of reflect.Type, tag string) reflect.StructField {
	return reflect.StructField{Name: "F" + strconv.Itoa(number), Type: of, Tag: reflect.StructTag(tag)}
}

// tagOf returns the tag of a field. It drops names with empty values, except
// names that take no value.
func tagOf(pairs ...string) string {
	var tag []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" || strings.Contains(" cmd arg optional negatable required ", " "+pairs[i]+" ") {
			tag = append(tag, pairs[i]+":"+strconv.Quote(pairs[i+1]))
		}
	}
	return strings.Join(tag, " ")
}

// isList reports whether the parameter takes several values.
func (p *param) isList() bool { return (p.typ.Elem != nil || p.isEach) && !p.isOne }

// isBool reports whether the parameter is a flag without a value.
func (p *param) isBool() bool { return p.typ.Name() == "Boolean" && !p.isList() }

// isReference reports whether the value can be a name or the beginning of a
// uuid.
func (p *param) isReference() bool {
	return p.kind != "" && (p.typ.Name() == "UUID" || p.kind == "aggregate" || p.kind == anyObject)
}

// goType returns the type of the field for kong. Numbers for the server stay
// strings, because an empty value can clear a field; valueOf parses them.
func (p *param) goType() reflect.Type {
	switch {
	case p.isList():
		return reflect.TypeFor[[]string]()
	case p.isBool():
		return reflect.TypeFor[*bool]()
	case p.isOwn && p.typ.Name() == "Int":
		return reflect.TypeFor[int]()
	case p.typ.Name() == "Duration":
		return reflect.TypeFor[time.Duration]()
	}
	return reflect.TypeFor[*string]()
}

// tag returns the tag of the parameter's field.
func (p *param) tag(v *verb) string {
	pairs := []string{"name", p.flag, "default", p.fallback}
	for name, is := range map[string]bool{
		"arg": p.isArgument, "optional": p.isArgument && p.optional,
		"negatable": !p.isOwn && p.isBool() && !p.typ.NonNull,
		"required":  !p.isOwn && !p.isArgument && !p.isBool() && p.isRequired(v),
	} {
		if is {
			pairs = append(pairs, name, "")
		}
	}
	help, placeholder := p.help, p.attributes["placeholder"]
	if !p.isOwn {
		members := p.members()
		pairs = append(pairs, "enum", members)
		help, placeholder = p.describe(v, members), p.placeholder()
	}
	if p.isBool() || p.isArgument {
		placeholder = ""
	}
	if p.isList() {
		pairs = append(pairs, "sep", cmp.Or(p.attributes["sep"], "none"))
	}
	for _, name := range []string{"enum", "env", "group", "max", "min", "required", "short", "type", "xor"} {
		if value, ok := p.attributes[name]; ok {
			pairs = append(pairs, name, value)
		}
	}
	return tagOf(append(pairs, "placeholder", placeholder, "help", help)...)
}
