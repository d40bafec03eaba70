package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// TestLawsOfPrices prices random operations of the whole schema, with negative
// numbers and numbers at the limits of their types. A price must not be less
// than the number of selected fields, and no part of it may be negative. A
// larger number, or one more member of a list, of a filter or of a selection,
// must not lower it.
func TestLawsOfPrices(t *testing.T) {
	t.Parallel()
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	laws := priceLaws{t: t, reader: executor.Preparer(document.Limits{}), changed: map[string]int{}}
	for round := range uint64(20) {
		for i, field := range executor.Schema().Query.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			laws.chance = rand.New(rand.NewPCG(round, uint64(i)))
			laws.hold(arguments{laws.chance, executor.Schema(), field.Name}.query(field))
		}
	}
	t.Logf("changes that were compared: %v", laws.changed)
	for _, change := range []string{"number", "list", "object", "field"} {
		if laws.changed[change] < 100 {
			t.Errorf("%d changes of a %s were compared", laws.changed[change], change)
		}
	}
}

// priceLaws compares the prices of operations with the prices of slightly
// smaller ones.
type priceLaws struct {
	t       *testing.T
	reader  *graph.Preparer
	chance  *rand.Rand
	changed map[string]int
}

// hold checks the laws for one document, and for some documents that are
// smaller by one number, member or field.
func (l *priceLaws) hold(text string) {
	l.t.Helper()
	parsed := parsedText(l.t, text)
	for _, number := range integersOf(parsed) {
		number.Raw = []string{"-2147483648", "-1000", "-1", "0", "1", "7", "1000",
			"2147483647", number.Raw}[l.chance.IntN(9)]
	}
	text = formattedText(parsed)
	whole, repeats, ok := l.price(text)
	if !ok {
		return
	}
	for range 12 {
		smaller := parsedText(l.t, text)
		change := l.shrink(smaller)
		if change == "" {
			continue
		}
		// a repeated field is resolved once
		if part, fewer, ok := l.price(formattedText(smaller)); ok && fewer >= repeats {
			if l.changed[change]++; part.Cost > whole.Cost {
				l.t.Errorf("a smaller %s raises the cost from %d to %d: %s\n%s", change, whole.Cost,
					part.Cost, text, formattedText(smaller))
			}
		}
	}
}

// price returns the price of a document and the number of repeated fields. Ok
// is false for an invalid document.
func (l *priceLaws) price(text string) (price document.Price, repeats int, ok bool) {
	prepared := l.reader.Prepare(l.t.Context(), document.Request{Text: text})
	if prepared.Refused != nil {
		return price, 0, false
	}
	price = prepared.Operation.Price
	fields, repeats := fieldsOf(prepared.Operation.Plan().Root)
	if price.Cost < fields || price.Fields < fields || price.Cost > 1<<50 {
		l.t.Errorf("%d fields are priced as %+v: %s", fields, price, text)
	}
	for _, part := range []int64{price.Bytes, int64(price.Statements), price.Read, price.Tests, price.Written} {
		if part < 0 {
			l.t.Errorf("part of a price is negative: %+v: %s", price, text)
		}
	}
	return price, repeats, true
}

// fieldsOf returns the number of selected fields and the number of repeated
// ones. For an interface, it counts the type with the most fields.
func fieldsOf(selected *document.Selection) (fields int64, repeats int) {
	for _, field := range selected.Fields {
		fields++
		if field.Repeats {
			repeats++
		}
		below := slices.Collect(maps.Values(field.Types))
		if field.Below != nil {
			below = append(below, field.Below)
		}
		var most int64
		for _, of := range below {
			f, r := fieldsOf(of)
			most, repeats = max(most, f), repeats+r
		}
		fields += most
	}
	return fields, repeats
}

// shrink makes one random number of a document smaller, or drops a random
// member of a list, of an input object or of a selection. It returns the kind
// of change, or an empty string if there was none.
func (l *priceLaws) shrink(of *ast.QueryDocument) string {
	values := valuesOfDocument(of)
	var value *ast.Value
	if len(values) > 0 {
		value = values[l.chance.IntN(len(values))]
	}
	switch {
	case l.chance.IntN(3) == 0 || value == nil:
		sets := selectionsOf(of)
		set := sets[l.chance.IntN(len(sets))]
		if len(*set) < 2 {
			return ""
		}
		i := l.chance.IntN(len(*set))
		*set = slices.Delete(slices.Clone(*set), i, i+1)
		return "field"
	case value.Kind == ast.IntValue:
		number, err := strconv.ParseInt(value.Raw, 10, 64)
		if err != nil || number <= -1<<31 {
			return ""
		}
		value.Raw = fmt.Sprint(number - 1 - l.chance.Int64N(min(number+1<<31, 2000)))
		return "number"
	case len(value.Children) < 2:
		return ""
	}
	i := l.chance.IntN(len(value.Children))
	if slices.Contains([]string{"first", "scan"}, value.Children[i].Name) { // the default may be larger
		return ""
	}
	value.Children = slices.Delete(value.Children, i, i+1)
	if value.Kind == ast.ListValue {
		return "list"
	}
	return "object"
}

func parsedText(t *testing.T, text string) *ast.QueryDocument {
	t.Helper()
	parsed, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return parsed
}

func formattedText(of *ast.QueryDocument) string {
	var out bytes.Buffer
	formatter.NewFormatter(&out).FormatQueryDocument(of)
	return out.String()
}

// selectionsOf returns the selection sets of a document.
func selectionsOf(of *ast.QueryDocument) []*ast.SelectionSet {
	var sets []*ast.SelectionSet
	var visit func(*ast.SelectionSet)
	visit = func(set *ast.SelectionSet) {
		sets = append(sets, set)
		for _, selection := range *set {
			switch selection := selection.(type) {
			case *ast.Field:
				if len(selection.SelectionSet) > 0 {
					visit(&selection.SelectionSet)
				}
			case *ast.InlineFragment:
				visit(&selection.SelectionSet)
			}
		}
	}
	visit(&of.Operations[0].SelectionSet)
	for _, fragment := range of.Fragments {
		visit(&fragment.SelectionSet)
	}
	return sets
}

// valuesOfDocument returns the values of all arguments, including nested ones.
func valuesOfDocument(of *ast.QueryDocument) []*ast.Value {
	var values []*ast.Value
	var visit func(*ast.Value)
	visit = func(value *ast.Value) {
		values = append(values, value)
		for _, child := range value.Children {
			visit(child.Value)
		}
	}
	for _, set := range selectionsOf(of) {
		for _, selection := range *set {
			if field, ok := selection.(*ast.Field); ok {
				for _, argument := range field.Arguments {
					visit(argument.Value)
				}
			}
		}
	}
	return values
}

// integersOf returns the integers among the values of all arguments.
func integersOf(of *ast.QueryDocument) []*ast.Value {
	return slices.DeleteFunc(valuesOfDocument(of), func(value *ast.Value) bool { return value.Kind != ast.IntValue })
}

// TestANegativePageIsNoDiscount checks that a negative number in a list of
// requests, as a literal or in a variable, lowers neither the price of its
// field nor the price of other fields.
func TestANegativePageIsNoDiscount(t *testing.T) {
	t.Parallel()
	reader := graph.NewExecutor(&graph.Resolver{}, nil).Preparer(document.Limits{})
	priced := func(text string, variables map[string]any) int64 {
		prepared := reader.Prepare(t.Context(), document.Request{Text: text, Variables: variables})
		if prepared.Refused != nil {
			t.Fatal(prepared.Refused)
		}
		return prepared.Operation.Price.Cost
	}
	const others = `resources(first: 1000) { nodes { uuid name metadata { key value } } }`
	alone := priced("{ "+others+" }", nil)
	for _, first := range []string{"-1", "-1000", "-2147483648"} {
		facets := "f: resources { facets(of: [{by: TAG, first: %s}]) { values { value resourceCount } } }"
		for name, got := range map[string]int64{
			"literal": priced("{ "+fmt.Sprintf(facets, first)+" "+others+" }", nil),
			"variable": priced("query($n: Int) { "+fmt.Sprintf(facets, "$n")+" "+others+" }",
				map[string]any{"n": json.Number(first)}),
			"list": priced("query($of: [ResourceFacetInput!]!) { f: resources { facets(of: $of) { values { value } } } "+others+" }",
				map[string]any{"of": []any{map[string]any{"by": "TAG", "first": json.Number(first)}}}),
		} {
			if got <= alone {
				t.Errorf("first: %s as a %s: %d, the others alone cost %d", first, name, got, alone)
			}
		}
	}
}
