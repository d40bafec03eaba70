package graph_test

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
)

// TestEveryFieldHasAPermission finds fields of Query or Mutation that are
// missing in the table of permissions.
func TestEveryFieldHasAPermission(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	for _, field := range append(schema.Query.Fields, schema.Mutation.Fields...) {
		if _, ok := access.PermissionOf(field.Name); !ok && !strings.HasPrefix(field.Name, "__") {
			t.Errorf("%s has no permission: add a row to access/policy.go", field.Name)
		}
	}
}
