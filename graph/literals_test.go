package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// enumInText matches the strings that a literal has without quotes.
var enumInText = regexp.MustCompile(`"(PUBLISHED|SIZE)"`)

// hint matches the suggestions that only literals get.
var hint = regexp.MustCompile(`; did you mean (the enum value )?"\w+".*\?`)

// keyInText matches the names of the members of an object.
var keyInText = regexp.MustCompile(`"(\w+)":`)

// TestLiteralsAreRefusedAsVariablesAre sends wrong values as literals and as
// variables named like the arguments. Both must get the same errors for the
// same fields. A literal also gets its location.
func TestLiteralsAreRefusedAsVariablesAre(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		executor := executorOf(t, s)
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		ask := func(query string, variables map[string]any) (told []string, placed bool) {
			for _, err := range executor.Execute(ctx, &graphql.RawParams{Query: query, Variables: variables}).Errors {
				told = append(told, fmt.Sprint(err.Extensions["code"], " ", err.Extensions["field"], " ",
					hint.ReplaceAllString(err.Message, "")))
				placed = len(err.Locations) == 1 && err.Locations[0].Column > 10
			}
			slices.Sort(told)
			return told, placed
		}
		for _, c := range []struct{ field, argument, of, value, wrong string }{
			{"resource(uuid: $)", "uuid", "UUID!", `"x"`, "uuid"},
			{"resource(uuid: $)", "uuid", "UUID!", `7`, "uuid"},
			{"resource(uuid: $)", "uuid", "UUID!", `null`, "uuid"},
			{"resources(first: $)", "first", "Int", `"x"`, "first"},
			{"resources(first: $)", "first", "Int", `12345678901234567890`, "first"},
			{"resources(filter: $)", "filter", "ResourceFilter",
				`{"parent": "x", "name": 7, "visibility": "PUBLISHED"}`, "filter.parent"},
			{"resources(filter: $)", "filter", "ResourceFilter",
				`{"nome": "x", "metadata": [{"key": "a", "value": "b"}, {"value": true}]}`, "filter.metadata[1].key"},
			{"resources(filter: $)", "filter", "ResourceFilter",
				`{"updatedSince": "yesterday", "uuids": ["x", null, 3]}`, "filter.uuids[1]"},
			{"resources(filter: $)", "filter", "ResourceFilter",
				`{"where": {"metadata": {"key": "a"}, "capability": {"name": "b"}}}`, "filter.where"},
			{"resources(filter: $)", "filter", "ResourceFilter", `"x"`, "filter"},
			{"resources(orderBy: $)", "orderBy", "ResourceOrder", `{"field": "SIZE"}`, "orderBy.field"},
			{"allocationCandidates(resources: $)", "resources", "[ResourceAmountInput!]",
				`[{"resourceClass": "VCPU", "amount": "x"}, {"amount": 1}]`, "resources[1].resourceClass"},
		} {
			var value any
			numbers := json.NewDecoder(bytes.NewReader([]byte(c.value)))
			numbers.UseNumber()
			if err := numbers.Decode(&value); err != nil {
				t.Fatal(err)
			}
			put := func(value string) string {
				return string(bytes.ReplaceAll([]byte(c.field+" { __typename }"), []byte("$"), []byte(value)))
			}
			asVariable, _ := ask(fmt.Sprintf("query($%s: %s) { %s }", c.argument, c.of, put("$"+c.argument)),
				map[string]any{c.argument: value})
			asLiteral, placed := ask("query {         "+
				put(enumInText.ReplaceAllString(keyInText.ReplaceAllString(c.value, "$1:"), "$1"))+" }", nil)
			if !slices.Equal(asLiteral, asVariable) || !slices.ContainsFunc(asLiteral, func(told string) bool {
				return bytes.Contains([]byte(told), []byte(" "+c.wrong+" "+c.wrong+": "))
			}) || !placed {
				t.Errorf("%s %s: as a literal\n%q, placed %v\nas a variable\n%q", c.field,
					c.value, asLiteral, placed, asVariable)
			}
		}
	})
}
