package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
)

// step is a field on a path through the schema.
type step struct {
	of, field string
	on        string // the type of the field's value, one of several below an interface
}

func (s step) String() string { return s.of + "." + s.field + " " + s.on }

// path leads down from a field of Query, Mutation or another type.
type path []step

// end returns the type that a path leads to from a type.
func (p path) end(from string) string {
	if len(p) == 0 {
		return from
	}
	return p[len(p)-1].on
}

// typeIn is a type of a schema.
type typeIn struct {
	schema *ast.Schema
	name   string
}

// knownSteps caches the steps from types.
var knownSteps memo[typeIn, []step]

// steps returns all steps from a type to objects. The result is shared and must
// not be changed.
func steps(schema *ast.Schema, of string) []step {
	return knownSteps.of(typeIn{schema, of}, func() []step { return findSteps(schema, of) })
}

func findSteps(schema *ast.Schema, of string) []step {
	var out []step
	for _, field := range schema.Types[of].Fields {
		below := schema.Types[field.Type.Name()]
		if strings.HasPrefix(field.Name, "__") || below.IsLeafType() {
			continue
		}
		types := []*ast.Definition{below}
		if below.IsAbstractType() {
			types = schema.GetPossibleTypes(below)
		}
		for _, concrete := range types {
			out = append(out, step{of, field.Name, concrete.Name})
		}
	}
	return out
}

// simplePaths returns the paths from a type to the wanted types that contain no
// type twice, in the order of the schema. A path through a wanted type
// continues to the others.
func simplePaths(schema *ast.Schema, from string, wanted func(string) bool) []path {
	var out []path
	seen := map[string]bool{}
	var walk func(of string, p path)
	walk = func(of string, p path) {
		if wanted(of) {
			out = append(out, slices.Clone(p))
		}
		seen[of] = true
		for _, next := range steps(schema, of) {
			if !seen[next.on] {
				walk(next.on, append(p, next))
			}
		}
		delete(seen, of)
	}
	walk(from, nil)
	return out
}

// pathsTo returns the simple paths from a type of root fields to a type. For
// every other step that can be on a way there, it adds the shortest path with
// that step. An example is a step to a child of the parent's own type.
func pathsTo(schema *ast.Schema, from, to string) []path {
	out := simplePaths(schema, from, func(of string) bool { return of == to })
	taken := map[step]bool{}
	for _, p := range out {
		for _, s := range p {
			taken[s] = true
		}
	}
	before, after := shortest(schema, from), map[string]map[string]path{}
	for _, of := range typesOf(before) {
		for _, s := range steps(schema, of) {
			if after[s.on] == nil {
				after[s.on] = shortest(schema, s.on)
			}
			if rest, ok := after[s.on][to]; ok && !taken[s] {
				taken[s] = true
				out = append(out, slices.Concat(before[of], path{s}, rest))
			}
		}
	}
	return out
}

// shortest returns the shortest paths from a type to all types below it.
func shortest(schema *ast.Schema, from string) map[string]path {
	found := map[string]path{from: {}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, s := range steps(schema, queue[0]) {
			if _, ok := found[s.on]; !ok {
				found[s.on] = append(slices.Clone(found[queue[0]]), s)
				queue = append(queue, s.on)
			}
		}
	}
	return found
}

// typesOf returns the sorted types at the ends of the paths.
func typesOf(paths map[string]path) []string {
	var out []string
	for of := range paths {
		out = append(out, of)
	}
	slices.Sort(out)
	return out
}

// counters are the names of fields that clients send back with a write, so that
// the write never overwrites unseen changes.
var counters = []string{"generation", "revision"}

// counterOf returns the counter of a type, or "".
func counterOf(of *ast.Definition) string {
	for _, counter := range counters {
		if of.Kind == ast.Object && of.Fields.ForName(counter) != nil {
			return counter
		}
	}
	return ""
}

// countedTypes returns the types with a counter, sorted.
func countedTypes(schema *ast.Schema) []string {
	var out []string
	for name, of := range schema.Types {
		if counterOf(of) != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// expecting returns the mutations that accept a counter, sorted.
func expecting(schema *ast.Schema) []string {
	var out []string
	for _, field := range schema.Mutation.Fields {
		seen := map[string]bool{}
		var has func(of *ast.Definition) bool
		has = func(of *ast.Definition) bool {
			if of.Kind != ast.InputObject || seen[of.Name] {
				return false
			}
			seen[of.Name] = true
			return slices.ContainsFunc(of.Fields, func(member *ast.FieldDefinition) bool {
				return slices.Contains(counters, member.Name) || has(schema.Types[member.Type.Name()])
			})
		}
		if slices.ContainsFunc(field.Arguments, func(a *ast.ArgumentDefinition) bool {
			return has(schema.Types[a.Type.Name()])
		}) {
			out = append(out, field.Name)
		}
	}
	slices.Sort(out)
	return out
}

// schemaOf returns the schema that operations run against.
func schemaOf() *ast.Schema { return graph.NewExecutor(&graph.Resolver{}, nil).Schema() }

// TestPathsTakeEveryStep checks that each step that can lead to a type with a
// counter is on one of the paths.
func TestPathsTakeEveryStep(t *testing.T) {
	t.Parallel()
	schema := schemaOf()
	if types := countedTypes(schema); !slices.Equal(types,
		[]string{"Consumer", "Namespace", "Resource", "ResourceProvider"}) {
		t.Errorf("counters are in %v: give a new one facets", types)
	}
	for _, to := range countedTypes(schema) {
		paths := pathsTo(schema, "Query", to)
		t.Logf("%d paths to %s from Query, %d from Mutation", len(paths), to, len(pathsTo(schema, "Mutation", to)))
		if len(paths) < 50 {
			t.Errorf("%d paths lead to %s: too few", len(paths), to)
		}
		for _, wanted := range []path{
			{{"Query", "resourceProvider", "ResourceProvider"},
				{"ResourceProvider", "allocations", "AllocationConnection"},
				{"AllocationConnection", "nodes", "Allocation"}, {"Allocation", "consumer", "Consumer"}},
			{{"Query", "node", "Resource"}, {"Resource", "parent", "Resource"}},
		} {
			if wanted.end("") == to && !slices.ContainsFunc(paths, func(p path) bool {
				return slices.Equal(p[len(p)-1:], wanted[len(wanted)-1:])
			}) {
				t.Errorf("no path to %s ends as %v", to, wanted)
			}
		}
	}
}
