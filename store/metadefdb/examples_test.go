package metadefdb_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

var update = flag.Bool("update", false, "rewrite the answers to the examples")

const examples = "../../metadef/testdata/examples.txtar"

// TestExamplesOfTheSpecifications imports every example in the specifications.
// The file has all outcomes, warnings, errors and stored documents. `go test
// ./store -run TestExamples -update` rewrites it.
func TestExamplesOfTheSpecifications(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	documents, wanted := exampleDocuments(archive)
	if *update {
		s := storetest.Open(t, storetest.SQLite(t))
		for i, file := range archive.Files {
			if name, isAnswer := strings.CutSuffix(file.Name, ".answer"); isAnswer {
				wanted[name] = importExample(t, s, documents[name])
				archive.Files[i].Data = []byte(wanted[name])
			}
		}
		if err := os.WriteFile(examples, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, document := range documents {
			if got := importExample(t, s, document); got != wanted[name] {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, wanted[name])
			}
		}
	})
}

// exampleDocuments returns the documents to import and the expected answers.
func exampleDocuments(archive *txtar.Archive) (documents, answers map[string]string) {
	documents, answers = map[string]string{}, map[string]string{}
	for _, file := range archive.Files {
		if name, ok := strings.CutSuffix(file.Name, ".json"); ok {
			documents[name] = string(file.Data)
		} else if name, ok := strings.CutSuffix(file.Name, ".answer"); ok {
			answers[name] = string(file.Data)
		}
	}
	return documents, answers
}

// importExample imports a document, returns the report and the export, and
// unloads the document.
func importExample(t *testing.T, s *store.Store, document string) string {
	t.Helper()
	request := metadef.ImportRequest{Documents: []string{document}, Mode: metadef.Skip}
	reports, err := s.ImportNamespaces(storetest.AsAdmin(), request)
	if err != nil {
		t.Fatal(err)
	}
	report := reports[0]
	answer := fmt.Sprintln(report.Outcome)
	for _, problem := range report.Errors {
		answer += "error: " + problem + "\n"
	}
	for _, warning := range report.Warnings {
		answer += "warning: " + warning + "\n"
	}
	if report.Outcome == metadef.ImportFailed {
		return answer
	}
	exported, err := s.ExportNamespaces(storetest.AsAdmin(), []string{report.Namespace}, nil, false, metadef.MaxExport)
	if err != nil {
		t.Fatal(err)
	}
	load(t, s, metadef.ImportUnchanged, request)
	load(t, s, metadef.ImportUnchanged, metadef.ImportRequest{Documents: exported})
	if _, err := s.UnloadNamespaces(storetest.AsAdmin(),
		metadef.UnloadRequest{All: true, IncludeProtected: true}); err != nil {
		t.Fatal(err)
	}
	return answer + exported[0]
}

// TestDocumentationListsTheExamples checks that the documentation lists each
// example with its outcome.
func TestDocumentationListsTheExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/development/specifications.md")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	_, answers := exampleDocuments(archive)
	for name, answer := range answers {
		example, wrapped, _ := strings.Cut(name, " (")
		at := strings.Index(string(page), "| "+example+" |")
		if at < 0 {
			t.Errorf("the page does not list the example %q", example)
			continue
		}
		row, _, _ := strings.Cut(string(page)[at:], "\n")
		cells := strings.Split(row, "|")
		cell := cells[2]
		if wrapped != "" {
			cell = cells[3]
		}
		first, _, _ := strings.Cut(answer, "\n")
		said := map[string]string{"FAILED": "refused", "CREATED": "imported"}[first]
		if !strings.Contains(cell, said) {
			t.Errorf("the page says of %s: %q, and it is %s", name, cell, said)
		}
		if _, problem, refused := strings.Cut(answer, "\nerror: "); refused {
			if path, _, _ := strings.Cut(problem, ": "); !strings.Contains(cell, "`"+path+"`") {
				t.Errorf("the page says of %s: %q, and does not name %s", name, cell, path)
			}
		}
	}
}
