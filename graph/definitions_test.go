package graph_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// dialogStatements is the number of statements in the golden dialog of
// definitions_import.txtar, with two namespaces. It is the same for the 21 real
// files that apply.
const dialogStatements = 1

func TestDialogOfTheRealFilesTakesTheSameStatements(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("CADASTRE_TEST_DEFINITIONS")
	if folder == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CADASTRE_TEST_DEFINITIONS must name the folder of definition files")
		}
		t.Skip("CADASTRE_TEST_DEFINITIONS is not set")
	}
	if !filepath.IsAbs(folder) { // relative to the repository, not to the package
		folder = filepath.Join("..", folder)
	}
	request := metadef.ImportRequest{Mode: metadef.Skip}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no definition files in %s: %v", folder, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		request.Documents = append(request.Documents, string(text))
	}
	archive, err := txtar.ParseFile("testdata/definitions_import.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var query string
	for _, file := range archive.Files {
		if file.Name == "dialog.graphql" {
			query = string(file.Data)
		}
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		if _, err := s.ImportNamespaces(ctx, request); err != nil {
			t.Fatal(err)
		}
		ctx, statements := store.CountStatements(access.WithViewer(t.Context(), viewers["member"]))
		response := executorOf(t, s).Execute(ctx, &graphql.RawParams{Query: query})
		if len(response.Errors) > 0 || len(response.Data) < 50_000 {
			t.Errorf("%d bytes of data, errors %v", len(response.Data), response.Errors)
		}
		if got := statements(); got != dialogStatements {
			t.Errorf("%d statements, want %d", got, dialogStatements)
		}
	})
}
