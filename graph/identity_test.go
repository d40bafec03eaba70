package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestTypesWithAnIdentityHaveAnID checks that objects with an identity have an
// id. Other objects are parts of their parents.
func TestTypesWithAnIdentityHaveAnID(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	for _, name := range []string{"Inventory", "Allocation", "Trait", "ResourceClass",
		"AppliedNamespace", "CapabilityValue", "Viewer"} {
		if id := schema.Types[name].Fields.ForName("id"); id == nil || id.Type.String() != "ID!" {
			t.Errorf("%s has no id", name)
		}
	}
	for _, of := range schema.Types {
		names := of.Fields.ForName("uuid") != nil || of.Fields.ForName("createdAt") != nil
		if of.Kind == ast.Object && names && of.Fields.ForName("id") == nil && of.Name != "NamespaceMember" {
			t.Errorf("%s has no id", of.Name)
		}
	}
}

// TestAnIDHasOneContent queries everything as several viewers. Objects with the
// same id must have the same values in an answer, and no two types share an id.
func TestAnIDHasOneContent(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		everything := everyQuery(t, executor.Schema())
		everything["found"] = `{ definitions(resourceType: "physical:host", search: "size") { __typename id association { id } } }`
		everything["values"] = `{ resourceTypes { nodes { capabilities { values { nodes { __typename id value resourceCount } } } } } }`
		types := map[string]string{}
		for _, viewer := range []string{"admin", "member", "reader"} {
			for name, query := range everything {
				var data any
				if err := json.Unmarshal(executeWhole(t, access.WithViewer(t.Context(), viewers[viewer]),
					executor, query).Data, &data); err != nil {
					t.Fatal(err)
				}
				contents := map[string]map[string]any{}
				eachObject(data, func(object map[string]any) {
					id, ok := object["id"].(string)
					if ok {
						differs(t, name+" as "+viewer, contents, id, object)
					}
					if of, ok := object["__typename"].(string); ok && types[id] != "" && types[id] != of {
						t.Errorf("%s is the id of %s and %s", id, types[id], of)
					} else if ok {
						types[id] = of
					}
				})
			}
		}
		whole := askAs(t, executor, viewers["admin"], `{ definitions(resourceType: "physical:host") { id } }`)
		found := askAs(t, executor, viewers["admin"],
			`{ definitions(resourceType: "physical:host", search: "inner") { id } }`)
		if ids := idInAnswer.FindStringSubmatch(found); len(ids) != 2 || strings.Contains(whole, ids[1]) {
			t.Errorf("what is found has the id of the whole: %s in %s", found, whole)
		}
	})
}

// differs records the plain values of an object under its id, and fails if a
// value differs from an earlier one.
func differs(t *testing.T, where string, contents map[string]map[string]any, id string, object map[string]any) {
	t.Helper()
	known := contents[id]
	if known == nil {
		known = map[string]any{}
		contents[id] = known
	}
	for field, value := range object {
		switch value.(type) {
		case map[string]any, []any:
			continue
		}
		if before, ok := known[field]; ok && fmt.Sprint(before) != fmt.Sprint(value) {
			t.Errorf("%s: %s of %s is %v and %v", where, field, id, before, value)
		}
		known[field] = value
	}
}

// eachObject calls see with every object in a value.
func eachObject(value any, see func(map[string]any)) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			eachObject(element, see)
		}
	case map[string]any:
		see(value)
		for _, below := range value {
			eachObject(below, see)
		}
	}
}
