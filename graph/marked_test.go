package graph_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// isMarked reports whether a field is marked @semanticNonNull.
func isMarked(field *ast.FieldDefinition) bool {
	return field.Directives.ForName("semanticNonNull") != nil
}

// checkMarked finds @semanticNonNull fields that are null in an answer without
// an error at or below them.
func checkMarked(t *testing.T, schema *ast.Schema, query string, response *graphql.Response) {
	t.Helper()
	document, errs := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
	var data map[string]any
	if err := json.Unmarshal(response.Data, &data); err != nil || len(errs) > 0 {
		t.Fatalf("%v, %v in %.2000s", err, errs, response.Data)
	}
	failed := map[string]bool{}
	for _, err := range response.Errors {
		for end := range err.Path {
			failed[err.Path[:end+1].String()] = true
		}
	}
	for _, path := range markedNulls(document.Operations[0].SelectionSet, data, nil) {
		if !failed[path] {
			t.Errorf("%s is null without an error: %.500v", path, response.Errors)
		}
	}
}

// markedNulls returns the paths of marked fields that are null in a value.
func markedNulls(of ast.SelectionSet, value any, path ast.Path) (found []string) {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			found = append(found, markedNulls(of, element, append(slices.Clone(path), ast.PathIndex(i)))...)
		}
	case map[string]any:
		for _, one := range of {
			switch one := one.(type) {
			case *ast.Field:
				at := append(slices.Clone(path), ast.PathName(one.Alias))
				below, asked := value[one.Alias]
				if asked && below == nil && isMarked(one.Definition) {
					found = append(found, at.String())
				}
				found = append(found, markedNulls(one.SelectionSet, below, at)...)
			case *ast.InlineFragment:
				if isOf(value, one.TypeCondition, one.ObjectDefinition) {
					found = append(found, markedNulls(one.SelectionSet, value, path)...)
				}
			case *ast.FragmentSpread:
				if isOf(value, one.Definition.TypeCondition, one.ObjectDefinition) {
					found = append(found, markedNulls(one.Definition.SelectionSet, value, path)...)
				}
			}
		}
	}
	return found
}

// isOf reports whether an object is known to have the type of a fragment. Below
// an interface, __typename must say so.
func isOf(object map[string]any, condition string, parent *ast.Definition) bool {
	return parent.Kind == ast.Object || object["__typename"] == condition
}

// keptWith are fields with objects of another domain that are stored with their
// parents. They cannot fail alone.
var keptWith = []string{"Capability.resourceType", "Resource.type", "ResourceChange.change", "NamespaceChange.change",
	"ResourceProviderChange.change", "ConsumerChange.change"}

// anythingGoes are fields that accept any value of their arguments.
var anythingGoes = []string{"Resource.metadata"}

// nullSays are pages for which null is a valid answer: there is no request.
var nullSays = []string{"Resource.allocationCandidates"}

// TestFieldsBelowTheRootFailAlone compares the fields below Query and Mutation
// with testdata/marked_fields.txt, and checks a rule. Pages, data of another
// domain, and fields with an argument that can be refused may fail alone, so
// they are nullable. Their null is a valid answer, or the field is marked. The
// viewer's permissions on an object are not data of another domain.
func TestFieldsBelowTheRootFailAlone(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	var got []string
	for _, of := range schema.Types {
		if of.Kind != ast.Object && of.Kind != ast.Interface || of.BuiltIn || of == schema.Query ||
			of == schema.Mutation || strings.HasSuffix(of.Name, "Payload") {
			continue
		}
		for _, field := range of.Fields {
			if isMarked(field) {
				got = append(got, of.Name+"."+field.Name+": "+field.Type.String())
			}
			checkAlone(t, of, field, schema.Types[field.Type.Name()])
		}
	}
	slices.Sort(got)
	golden, err := os.ReadFile("testdata/marked_fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Split(strings.TrimSpace(string(golden)), "\n"); !slices.Equal(got, want) {
		t.Errorf("testdata/marked_fields.txt differs: the schema has\n%s", strings.Join(got, "\n"))
	}
}

// domainOf returns the domain of the source file with a definition.
func domainOf(position *ast.Position) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(position.Src.Name), ".graphql"), "_")
	return name
}

// checkAlone checks the rule for a field of a type.
func checkAlone(t *testing.T, of *ast.Definition, field *ast.FieldDefinition, below *ast.Definition) {
	t.Helper()
	name, own, from := of.Name+"."+field.Name, domainOf(of.Position), domainOf(field.Position)
	isPage := strings.HasSuffix(below.Name, "Connection")
	isOwn := from == own || from == "permission" // permission fields query the type's own domain
	isElsewhere := !isOwn || !below.IsLeafType() && !slices.Contains([]string{own, "common"}, domainOf(below.Position))
	if (isPage || isElsewhere || isRefusable(name, field)) && field.Type.NonNull && !slices.Contains(keptWith, name) {
		t.Errorf("%s cannot fail alone: its type is %s", name, field.Type)
	}
	if isPage && !isMarked(field) && !slices.Contains(nullSays, name) || isMarked(field) && field.Type.NonNull {
		t.Errorf("%s is of the type %s, and marked: %v", name, field.Type, isMarked(field))
	}
}

// isRefusable reports whether an argument of a field can have a value that the
// field refuses.
func isRefusable(name string, field *ast.FieldDefinition) bool {
	return !slices.Contains(anythingGoes, name) &&
		slices.ContainsFunc(field.Arguments, func(argument *ast.ArgumentDefinition) bool {
			return argument.Type.Elem != nil || !slices.Contains([]string{"Boolean", "Operation"}, argument.Type.Name())
		})
}

// TestWhatFailsBelowTheRootFailsAlone makes fields below the root fail. Each
// must be null with its own error, and the other fields must have their values.
func TestWhatFailsBelowTheRootFailsAlone(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		for _, of := range []struct{ query, data, errors string }{
			{`{ namespace(name: "Open") { name properties(resourceType: "nope") { name } objects(resourceType: "nope") { name } resourceTypeAssociations(filter: {resourceTypes: ["nope"]}) { id } } }`,
				`{"namespace":{"name":"Open","properties":null,"objects":null,"resourceTypeAssociations":null}}`,
				"namespace.objects BAD_USER_INPUT, namespace.properties BAD_USER_INPUT, namespace.resourceTypeAssociations BAD_USER_INPUT"},
			{`{ metadataProblems { complete counts(first: 2000) { key } } }`,
				`{"metadataProblems":{"complete":true,"counts":null}}`, "metadataProblems.counts BAD_USER_INPUT"},
			{`{ resource(uuid: "11111111-1111-4111-8111-111111111111") { name children(after: "bad") { totalCount } } }`,
				`{"resource":{"name":"host","children":null}}`, "resource.children BAD_USER_INPUT"},
			{`{ resourceType(name: "physical:host") { name resources(filter: {matching: "["}) { totalCount } namespaces(first: -1) { totalCount } associations(first: 2000) { totalCount } } }`,
				`{"resourceType":{"name":"physical:host","resources":null,"namespaces":null,"associations":null}}`,
				"resourceType.associations BAD_USER_INPUT, resourceType.namespaces BAD_USER_INPUT, resourceType.resources BAD_USER_INPUT"},
			{`{ namespaces(first: 2) { nodes { name tagConnection(after: "bad") { totalCount } } } }`,
				`{"namespaces":{"nodes":[{"name":"Open","tagConnection":null}]}}`,
				"namespaces.nodes[0].tagConnection BAD_USER_INPUT"},
			{`{ resourceProviders { nodes { name allocations(first: 1, last: 1) { totalCount } } } }`,
				`{"resourceProviders":{"nodes":[{"name":"linked","allocations":null},{"name":"root","allocations":null}]}}`,
				"resourceProviders.nodes[0].allocations BAD_USER_INPUT, resourceProviders.nodes[1].allocations BAD_USER_INPUT"},
			{`{ resources { totalCount metadataFacets(keys: ["size", "size"]) { key } } }`,
				`{"resources":{"totalCount":1,"metadataFacets":null}}`, "resources.metadataFacets BAD_USER_INPUT"},
		} {
			ctx := access.WithViewer(t.Context(), viewers["member"])
			response := executor.Execute(ctx, &graphql.RawParams{Query: of.query})
			checkMarked(t, executor.Schema(), of.query, response)
			if data, errs := string(response.Data), strings.Join(errorsOf(response), ", "); data != of.data ||
				errs != of.errors {
				t.Errorf("%s\ngot  %s with the errors %q\nwant %s with %q", of.query, data, errs, of.data, of.errors)
			}
		}
	})
}

// TestEachFieldThatFailedHasAnError makes fields of many elements fail. Each
// must have an error. With more errors than writer.MaxFailed, the root field
// must be null with its first errors.
func TestEachFieldThatFailedHasAnError(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, storetest.Open(t, url))
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		query := func(aliases int) string {
			var fields strings.Builder
			for i := range aliases {
				fmt.Fprintf(&fields, "a%d: children(after: \"bad\") { totalCount } ", i)
			}
			return `{ resourceProviders(first: 1000) { nodes { name ` + fields.String() + `} } viewer { userId } }`
		}
		const providers = 50
		for i := range providers {
			executor.Execute(ctx,
				&graphql.RawParams{Query: fmt.Sprintf(`mutation { createResourceProvider(input: {name: "p%d"}) { resourceProvider { id } } }`, i)})
		}
		within := writer.MaxFailed / providers
		response := executor.Execute(ctx, &graphql.RawParams{Query: query(within)})
		checkMarked(t, executor.Schema(), query(within), response)
		if len(response.Errors) != within*providers || strings.Count(string(response.Data), `"name":"p`) != providers {
			t.Errorf("%d errors, want %d: %.500s", len(response.Errors), within*providers, response.Data)
		}
		response = executor.Execute(ctx, &graphql.RawParams{Query: query(within + 1)})
		checkMarked(t, executor.Schema(), query(within+1), response)
		if len(response.Errors) != 20 ||
			!strings.HasPrefix(string(response.Data), `{"resourceProviders":null,"viewer":{`) {
			t.Errorf("%d errors, want 20: %.500s", len(response.Errors), response.Data)
		}
	})
}
