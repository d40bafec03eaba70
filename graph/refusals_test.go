package graph_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// refusedInputs are further refused inputs. They rely on things made by earlier
// mutations of auditedMutations.
func refusedInputs() map[string][]string {
	many := func(count int, format string) string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ", ")
	}
	return map[string][]string{
		"setMetadata":     {`resource: "` + auditedHost + `", items: [` + many(129, `{key: "k%d", value: "1"}`) + `]`},
		"replaceMetadata": {`resource: "` + auditedHost + `", items: [` + many(129, `{key: "k%d", value: "1"}`) + `]`},
		"setResourceTags": {`resource: "` + auditedHost + `", tags: [` + many(129, `"t%d"`) + `]`},
		"createResource": {
			`type: "physical:host", name: "x", metadata: [` + many(129, `{key: "k%d", value: "1"}`) + `]`,
			`type: "OS::Manila::ShareSnapshot", name: "x"`,
			`type: "OS::Manila::ShareSnapshot", name: "x", parent: "` + noUUID + `"`,
		},
		"createProperty": {
			`namespace: "N", name: "r", title: "R", type: INTEGER, minimum: 3, maximum: 2`,
			`namespace: "N", name: "r", title: "R", type: STRING, enum: [1]`,
			`namespace: "N", object: "none", name: "r", title: "R", type: STRING`,
			`namespace: "N", name: "r", title: "R", type: STRING, default: 4`,
		},
		"deleteResourceType": {`name: "OS::Nova::Flavor"`},
		"updateResourceProvider": {`provider: "` + auditedOne + `", parent: "` + auditedOne + `"`, `provider: "` +
			auditedOne + `", parent: "` + noUUID + `"`, `provider: "` + auditedOne + `", resource: "` + noUUID + `"`},
		"setInventory": {`provider: "` + auditedOne +
			`", inventory: {resourceClass: "VCPU", total: 1, reserved: 2}`, `provider: "` + auditedOne +
			`", inventory: {resourceClass: "VCPU", total: 2147483647, allocationRatio: 1e30}`},
		"reshape": {`inventories: [{provider: "` + noUUID + `", inventories: []}]`,
			`inventories: [{provider: "` + auditedOne + `", generation: 99, inventories: []}]`},
		"setAllocations": {`consumers: [{uuid: "` + claimer +
			`", projectId: "demo", userId: "u", allocations: [{provider: "` + auditedTwo +
			`", resources: [{resourceClass: "VCPU", amount: 1}]}]}]`},
	}
}

// aboutInput are the codes of refusals that concern the input.
var aboutInput = []string{"BAD_USER_INPUT", "NOT_FOUND", "ALREADY_EXISTS", "CONCURRENT_UPDATE", "IN_USE", "PROTECTED",
	"CAPACITY_EXCEEDED", "QUOTA_EXCEEDED"}

// badLiterals are replacement literals of a type. Fields refuse wrong ones
// almost everywhere, and accept most of the others.
type badLiterals struct{ wrong, other []string }

// badLiteralsOf returns replacement literals for a field of the given name and
// type.
func badLiteralsOf(schema *ast.Schema, mutation, name string, of *ast.Type) (all badLiterals) {
	if of.Elem != nil {
		each := badLiteralsOf(schema, mutation, name, of.Elem)
		for _, bad := range each.wrong {
			all.wrong = append(all.wrong, "["+bad+"]")
		}
		for _, bad := range each.other {
			if bad != "null" {
				all.other = append(all.other, "["+bad+"]")
			}
		}
		all.other = append(all.other, "[]")
	} else {
		all = badScalars(schema, mutation, name, of)
	}
	if !of.NonNull {
		all.other = append(all.other, "null")
	}
	return all
}

// badScalars is badLiteralsOf for types that are not lists.
func badScalars(schema *ast.Schema, mutation, name string, of *ast.Type) (all badLiterals) {
	switch definition := schema.Types[of.Name()]; definition.Name {
	case "String":
		all.wrong = []string{`"` + strings.Repeat("x", 5000) + `"`, `"\u0000"`}
		all.other = []string{`""`, `"a/\u0001"`, `"none"`}
		if slices.Contains([]string{"pattern", "title", "description", "operators"}, name) { // these can be long
			all = badLiterals{other: slices.Concat(all.wrong, all.other)}
		}
	case "ID":
		all.wrong = []string{`""`, `"none"`}
	case "UUID":
		all.wrong = []string{`"00000000-0000-0000-0000-000000000000"`}
		all.other = []string{`"` + noUUID + `"`}
		// these take any UUID
		if slices.Contains([]string{"createResourceProvider", "createResourceProviders",
			"setAllocations", "place", "reshape"}, mutation) {
			all = badLiterals{other: slices.Concat(all.wrong, all.other)}
		}
	case "Int", "Int64":
		all.wrong = []string{"-1"}
		all.other = []string{"0", "2147483647", "99"}
		if slices.Contains([]string{"generation", "revision", "amount"}, name) {
			all = badLiterals{wrong: slices.Concat(all.wrong, all.other)}
		}
	case "Float":
		all.other = []string{"-1.0", "0.0", "1e300"}
	case "Boolean":
		all.other = []string{"true", "false"}
	case "JSON":
		all.other = []string{`1`, `"x"`, `[1, 1]`, `{}`}
	default:
		for _, value := range definition.EnumValues {
			all.other = append(all.other, value.Name)
		}
		if definition.Kind == ast.InputObject {
			all.other = append(all.other, minimalValue(schema, of))
		}
	}
	return all
}

// variants varies a value of a type and calls send for each variant. It
// replaces one part at a time with a wrong literal or, if others is set, with
// another literal. It also adds parts and duplicates them.
func (r *refusing) variants(mutation string, others bool, of *ast.Type, value *ast.Value, send func()) {
	each := func(at *ast.Value, name string, of *ast.Type) {
		kept, literals := *at, badLiteralsOf(r.schema, mutation, name, of)
		chosen := literals.wrong
		if others {
			chosen = literals.other
		}
		for _, bad := range chosen {
			*at = ast.Value{Kind: ast.IntValue, Raw: bad} // written unchanged
			send()
		}
		*at = kept
	}
	if of.Elem != nil {
		if len(value.Children) > 0 {
			kept := value.Children
			value.Children = append(slices.Clone(kept), kept[0])
			send()
			value.Children = kept
		}
		for _, child := range value.Children {
			r.variants(mutation, others, of.Elem, child.Value, send)
		}
		return
	}
	definition := r.schema.Types[of.Name()]
	if definition.Kind != ast.InputObject {
		return
	}
	for _, field := range definition.Fields {
		given := value.Children.ForName(field.Name)
		if given == nil {
			kept := value.Children
			given = &ast.Value{}
			value.Children = append(slices.Clone(kept), &ast.ChildValue{Name: field.Name, Value: given})
			each(given, field.Name, field.Type)
			value.Children = kept
			continue
		}
		each(given, field.Name, field.Type)
		r.variants(mutation, others, field.Type, given, send)
	}
}

var pathElement = regexp.MustCompile(`^(?:\.?([A-Za-z]\w*)|\[(\d+)\])`)

// isPathIn reports whether a path leads from the argument `input` of a mutation
// into its type. It ignores parts below JSON or strings.
func isPathIn(schema *ast.Schema, mutation, path string) bool {
	rest, ok := strings.CutPrefix(path, "input")
	of := schema.Mutation.Fields.ForName(mutation).Arguments.ForName("input").Type
	for ok && rest != "" {
		found := pathElement.FindStringSubmatch(rest)
		definition := schema.Types[of.Name()]
		switch {
		case definition.Kind != ast.InputObject && of.Elem == nil:
			return definition.Name == "JSON" || definition.Name == "String"
		case found == nil:
			return false
		case found[2] != "" && of.Elem != nil:
			of = of.Elem
		case found[1] != "" && definition.Fields.ForName(found[1]) != nil && of.Elem == nil:
			of = definition.Fields.ForName(found[1]).Type
		default:
			return false
		}
		rest = rest[len(found[0]):]
	}
	return ok
}

// TestEveryRefusalOfAnInputNamesItsField sends every mutation of the schema
// with parts of its input replaced, added or duplicated. Each refusal that
// concerns the input must name a path in it, and none may be an internal error.
// The inputs that are accepted later show that no refused mutation stored data.
func TestEveryRefusalOfAnInputNamesItsField(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		r := &refusing{t: t, executor: executorOf(t, storetest.Open(t, url)), codes: map[string]int{}}
		r.schema = r.executor.Schema()
		r.ask(`mutation { createTrait(input: {name: "CUSTOM_U"}) { __typename } }`)
		for _, m := range auditedMutations {
			r.vary(m, false)
			for _, input := range append(refusedInputs()[m.field], m.refused) {
				r.refused(m.field, m.query(input))
			}
			answer := answerText(t, r.ask(m.query(m.accepted)))
			if found := idInAnswer.FindStringSubmatch(answer); found != nil {
				r.id = found[1]
			}
			if strings.Contains(answer, `"code":`) && m.field != "importNamespaces" {
				t.Errorf("%s is not accepted afterwards: %s", m.field, answer)
			}
			r.refused(m.field, m.query(m.accepted))
		}
		for _, m := range auditedMutations {
			r.vary(m, true)
		}
		for _, code := range aboutInput {
			if r.codes[code] == 0 {
				t.Errorf("nothing was refused with %s: %v", code, r.codes)
			}
		}
		t.Log(r.codes)
	})
}

// refusing sends mutations and checks their refusals.
type refusing struct {
	t        *testing.T
	executor *graph.Executor
	schema   *ast.Schema
	id       string // the last id in an answer
	codes    map[string]int
}

func (r *refusing) ask(query string) *graphql.Response {
	ctx := access.WithViewer(r.t.Context(), viewers["admin"])
	return r.executor.Execute(ctx, &graphql.RawParams{Query: strings.ReplaceAll(query, "$id", r.id)})
}

// vary sends the variants of an accepted input.
func (r *refusing) vary(m audited, others bool) {
	r.t.Helper()
	document, err := parser.ParseQuery(&ast.Source{Input: m.query(strings.ReplaceAll(m.accepted, "$id", r.id))})
	if err != nil {
		r.t.Fatal(err)
	}
	argument := document.Operations[0].SelectionSet[0].(*ast.Field).Arguments[0]
	of := r.schema.Mutation.Fields.ForName(m.field).Arguments.ForName("input").Type
	r.variants(m.field, others, of, argument.Value, func() {
		r.refused(m.field, "mutation { "+m.field+"(input: "+argument.Value.String()+") { __typename } }")
	})
}

// refused checks the errors of a mutation, if it has any.
func (r *refusing) refused(mutation, query string) {
	r.t.Helper()
	response := r.ask(query)
	for _, err := range response.Errors {
		code := fmt.Sprint(err.Extensions["code"])
		field, _ := err.Extensions["field"].(string)
		r.codes[code]++
		switch {
		case code == "INTERNAL":
			r.t.Errorf("%s: %.300s", err.Message, query)
		case slices.Contains(aboutInput, code) && !isPathIn(r.schema, mutation, field):
			r.t.Errorf("%s %q names the field %q: %.300s", code, err.Message, field, query)
		}
	}
}

// TestEveryRefusalOfAnArgumentNamesIt queries every field with each of its
// arguments replaced. Each refusal that concerns an argument must name its
// path, which begins with an argument of the field.
func TestEveryRefusalOfAnArgumentNamesIt(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		r := &refusing{t: t, executor: executorOf(t, openFixture(t, url)), codes: map[string]int{}}
		r.schema = r.executor.Schema()
		if answer := answerText(t,
			r.ask(`{ resources { facets(of: []) { hasMore } metadataFacets(keys: []) { key } } }`)); strings.Contains(answer, `"code"`) {
			t.Errorf("no facets are asked for: %s", answer)
		}
		eachArgument(r.schema, func(at named, _, name string, _ ast.DirectiveList) {
			literals := badScalars(r.schema, "", name, at.types[len(at.types)-1])
			for _, literal := range append(literals.wrong, literals.other...) {
				query, _ := at.queryOf(t, r.schema, literal)
				for _, err := range r.ask(query).Errors {
					code := fmt.Sprint(err.Extensions["code"])
					field, _ := err.Extensions["field"].(string)
					r.codes[code]++
					argument, _, _ := strings.Cut(strings.ReplaceAll(field, "[", "."), ".")
					switch {
					case code == "INTERNAL" || code == "GRAPHQL_PARSE_FAILED":
						t.Errorf("%s %s: %.300s", code, err.Message, query)
					case slices.Contains(aboutInput, code) && at.field.Arguments.ForName(argument) == nil:
						t.Errorf("%v: %s %q names %q: %.300s", at, code, err.Message, field, query)
					}
				}
			}
		})
		t.Log(r.codes)
	})
}
