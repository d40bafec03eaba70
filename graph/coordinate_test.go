package graph_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// wrongInputs are operations with an invalid input, and the coordinates of
// their errors in order. An empty one is of an error without an input.
var wrongInputs = map[string]string{
	`mutation { createNamespace(input: { name: "" }) { namespace { name } } }`:                                                     "CreateNamespaceInput.name",
	`mutation { a: createTrait(input: { name: "x" }) { trait { name } } b: createTrait(input: { name: "y" }) { trait { name } } }`: "CreateTraitInput.name CreateTraitInput.name",
	`mutation($i: CreatePropertyInput!) { createProperty(input: $i) { namespace { name } } }`:                                      "CreatePropertyInput.namespace",
	`{ namespaces(first: -1) { totalCount } }`:                                                                                     "Query.namespaces(first:)",
	`{ namespaces(after: "bad") { totalCount } }`:                                                                                  "Query.namespaces(after:)",
	`{ resources(filter: { types: ["OS::None"] }) { totalCount } }`:                                                                "ResourceFilter.types",
	`{ resources(filter: { where: { all: [{ metadata: { key: "" } }] } }) { totalCount } }`:                                        "MetadataCondition.key ResourceCondition.metadata",
	`{ allocationCandidates(resources: [{ resourceClass: "NONE", amount: 0 }]) { totalCount } }`:                                   "ResourceAmountInput.resourceClass ResourceAmountInput.amount",
	`{ namespaces { nodes { objectConnection(first: 5000) { totalCount } } } }`:                                                    "Namespace.objectConnection(first:)",
	`{ node(id: "bad") { id } }`: "Query.node(id:)",
	`{ resources(first: "a", filter: { types: 5, nam: 3 }) { totalCount } }`:                                                         "Query.resources(first:) Query.resources(filter:) ResourceFilter.types",
	`mutation { disassociateResourceType(input: { association: { namespace: "None", resourceType: "x" } }) { namespace { name } } }`: "ResourceTypeAssociationName.namespace",
	`mutation { importNamespaces(input: { documents: ["{}"], mode: SKIP }) { reports { errors } } }`:                                 "",
	`mutation { deleteNamespace(input: { name: "None" }) { namespace { name } } }`:                                                   "DeleteNamespaceInput.name",
	`{ metadataKeys(resourceType: "None") { totalCount } }`:                                                                          "Query.metadataKeys(resourceType:)",
}

// TestErrorsNameSchemaCoordinates sends wrong inputs. Each error has the
// coordinate of an input that the schema has.
func TestErrorsNameSchemaCoordinates(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFor(t, url, new(txtar.Archive))
		executor := executorOf(t, s)
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		if answer := executor.Execute(ctx, &graphql.RawParams{Query: `mutation { createNamespace(input: { name: "N" }) { namespace { name } } }`}); len(answer.Errors) > 0 {
			t.Fatal(answer.Errors)
		}
		for query, want := range wrongInputs {
			params := &graphql.RawParams{Query: query}
			if strings.Contains(query, "$i") {
				params.Variables = map[string]any{"i": map[string]any{"namespace": "None", "name": "p", "title": "P", "type": "STRING"}}
			}
			answer, got := executor.Execute(ctx, params), []string{}
			for _, err := range answer.Errors {
				coordinate, _ := err.Extensions["coordinate"].(string)
				got = append(got, coordinate)
				if coordinate != "" && !inSchema(executor.Schema(), coordinate) {
					t.Errorf("%s: the schema has no %s", query, coordinate)
				}
			}
			if strings.Join(got, " ") != want {
				text, _ := json.Marshal(answer.Errors)
				t.Errorf("%s: got %q, want %q: %s", query, got, want, text)
			}
		}
	})
}

// TestCoordinatesOfGoldensAreInTheSchema checks the coordinates in all answers
// of goldens.
func TestCoordinatesOfGoldensAreInTheSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	schema, found := graph.NewExecutor(&graph.Resolver{}, nil).Schema(), map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`"coordinate": "(.*)"`).FindAllStringSubmatch(string(text), -1) {
			if found[match[1]] = true; !inSchema(schema, match[1]) {
				t.Errorf("%s: the schema has no %s", file, match[1])
			}
		}
	}
	if len(found) < 50 {
		t.Errorf("the goldens have only %d coordinates", len(found))
	}
}

// inSchema reports whether a schema has the input of a coordinate.
func inSchema(schema *ast.Schema, coordinate string) bool {
	typeName, rest, _ := strings.Cut(coordinate, ".")
	fieldName, argument, isArgument := strings.Cut(strings.TrimSuffix(rest, ":)"), "(")
	of := schema.Types[typeName]
	if of == nil || of.Fields.ForName(fieldName) == nil {
		return false
	}
	if isArgument {
		return strings.HasSuffix(coordinate, ":)") && of.Fields.ForName(fieldName).Arguments.ForName(argument) != nil
	}
	return of.Kind == ast.InputObject
}
