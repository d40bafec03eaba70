package graph_test

import (
	"cmp"
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
	"github.com/cadastre-dev/cadastre/graph/document"
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
		if answer := executor.Execute(ctx,
			&graphql.RawParams{Query: `mutation { createNamespace(input: { name: "N" }) { namespace { name } } }`}); len(answer.Errors) > 0 {
			t.Fatal(answer.Errors)
		}
		for query, want := range wrongInputs {
			params := &graphql.RawParams{Query: query}
			if strings.Contains(query, "$i") {
				params.Variables = map[string]any{"i": map[string]any{"namespace": "None",
					"name": "p", "title": "P", "type": "STRING"}}
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

// coordinatesOf returns the coordinates of the errors of a request, separated by
// spaces. A missing one is "-".
func coordinatesOf(t *testing.T, executor *graph.Executor, query string, variables map[string]any) string {
	t.Helper()
	var got []string
	for _, err := range executor.Execute(t.Context(), &graphql.RawParams{Query: query, Variables: variables}).Errors {
		coordinate, _ := err.Extensions["coordinate"].(string)
		field, _ := err.Extensions["field"].(string)
		if field == "" {
			t.Errorf("%s: no field in %s", query, err)
		}
		got = append(got, cmp.Or(coordinate, "-"))
	}
	return strings.Join(got, " ")
}

// TestErrorsOfEveryArgumentNameIt sends each field of the roots without its
// arguments, with an unknown argument, and with variables and literals of the
// wrong type for all arguments.
func TestErrorsOfEveryArgumentNameIt(t *testing.T) {
	t.Parallel()
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	schema := executor.Schema()
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		for _, field := range root.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			of, below := root.Name+"."+field.Name, ""
			if schema.Types[field.Type.Name()].IsCompositeType() {
				below = " { __typename }"
			}
			var required, all, definitions, uses, literals []string
			wrong := map[string]any{}
			for _, argument := range field.Arguments {
				coordinate := of + "(" + argument.Name + ":)"
				if argument.Type.NonNull && argument.DefaultValue == nil {
					required = append(required, coordinate)
				}
				all = append(all, coordinate)
				definitions = append(definitions, "$"+argument.Name+": "+argument.Type.String())
				uses = append(uses, argument.Name+": $"+argument.Name)
				value, literal := any(map[string]any{"zz": true}), "{ zz: true }"
				if schema.Types[argument.Type.Name()].Kind == ast.InputObject {
					value, literal = true, "true"
				}
				wrong[argument.Name] = value
				literals = append(literals, argument.Name+": "+literal)
			}
			kind := strings.ToLower(root.Name) + " X"
			check := func(variables, arguments string, values map[string]any, want []string) {
				query := kind + variables + " { " + field.Name + "(" + arguments + ")" + below + " }"
				want = want[:min(len(want), document.MaxErrors)]
				if got := coordinatesOf(t, executor, query, values); got != strings.Join(want, " ") {
					t.Errorf("%s: got %s, want %s", query, got, strings.Join(want, " "))
				}
			}
			check("", "zz: 1", nil, append([]string{of}, required...))
			if len(all) > 0 {
				check("("+strings.Join(definitions, ", ")+")", strings.Join(uses, ", "), wrong, all)
				check("", strings.Join(literals, ", "), nil, all)
			}
		}
	}
}

// TestVariablesHaveTheCoordinateOfTheirUse sends variables of the wrong type
// that are parts of inputs, are in fragments, or have a default value.
func TestVariablesHaveTheCoordinateOfTheirUse(t *testing.T) {
	t.Parallel()
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	for query, want := range map[string]string{
		`query($v: [String!]) { resources(filter: { types: $v }) { totalCount } }`:                                          "ResourceFilter.types",
		`query($v: String!) { resources(filter: { types: ["a", $v] }) { totalCount } }`:                                     "ResourceFilter.types",
		`query($v: String!) { resources(filter: { where: { any: [{ metadata: { key: $v } }] } }) { totalCount } }`:          "MetadataCondition.key",
		`query($v: Int) { ...A } fragment A on Query { ...B } fragment B on Query { namespaces(first: $v) { __typename } }`: "Query.namespaces(first:)",
		`query($v: Int) { namespaces { nodes { objectConnection(first: $v) { __typename } } } }`:                            "Namespace.objectConnection(first:)",
		`query($v: Int) { a: namespaces(first: $v) { __typename } b: resources(first: $v) { __typename } }`:                 "Query.namespaces(first:)",
		`query($w: Int = "a") { namespaces(first: $w) { totalCount } }`:                                                     "Query.namespaces(first:)",
		`query($w: ResourceFilter = { nam: 3, types: 5 }) { resources(filter: $w) { totalCount } }`:                         "Query.resources(filter:) ResourceFilter.types",
		`query($v: Boolean!) { viewer @include(if: $v) { id } }`:                                                            "-",
	} {
		variables := map[string]any{"v": map[string]any{}}
		if strings.Contains(query, "$w") {
			variables = nil
		}
		if got := coordinatesOf(t, executor, query, variables); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	unknown := map[string]any{"v": map[string]any{"nam": 3, "where": map[string]any{"metadat": 1}}}
	query, want := `query($v: ResourceFilter) { resources(filter: $v) { totalCount } }`,
		"Query.resources(filter:) ResourceFilter.where"
	if got := coordinatesOf(t, executor, query, unknown); got != want {
		t.Errorf("unknown fields have %s, want %s", got, want)
	}
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
