package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// example matches a query of README with the answer below it.
var example = regexp.MustCompile("(?s)curl -sG \\S+ -H 'Authorization: Bearer (\\S+)' --data-urlencode 'query=(.*?)'\n```\n\n```json\n(.*?)```")

// TestReadmeShowsRealAnswers sends every query of README to a new demo and
// compares the answers.
func TestReadmeShowsRealAnswers(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(readme), -1)
	if len(examples) < 3 {
		t.Fatalf("README shows %d queries with answers, want 3 at least", len(examples))
	}
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t))
	for _, shown := range examples {
		token, query, want := shown[1], shown[2], shown[3]
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			server.address+"/graphql?query="+url.QueryEscape(query), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		_, answer := fetch(t, request)
		var got, wanted any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatalf("the answer shown to %s is no JSON: %v", query, err)
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil || !reflect.DeepEqual(got, wanted) {
			t.Errorf("README shows another answer to%s\ngot  %s\nwant %s", query, answer, want)
		}
	}
}

// TestReadmeShowsRealCommands runs the commands of README in order against a
// new demo, and compares their output.
func TestReadmeShowsRealCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t))
	shown := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for _, example := range strings.Split(block[1], "$ ./cadastre ")[1:] {
			command, want, _ := strings.Cut(example, "\n")
			var out bytes.Buffer
			if err := run(t.Context(), append(wordsOf(command), "--server", server.address), &out, &out); err != nil {
				fmt.Fprintln(&out, "cadastre:", err)
			}
			if got := strings.ReplaceAll(out.String(), server.address, "http://127.0.0.1:8080"); got != want {
				t.Errorf("README shows another answer to %s\ngot\n%s\nwant\n%s", command, got, want)
			}
			shown++
		}
	}
	if shown < 5 {
		t.Fatalf("README shows %d commands with answers, want 5 at least", shown)
	}
}

// wordsOf returns the words of a line. Some may be in quotation marks.
func wordsOf(line string) (words []string) {
	for _, match := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, match[1]+match[2])
	}
	return words
}

// TestDocumentsKnowEveryFlag finds flags and other settings of `cadastre serve`
// that no document explains.
func TestDocumentsKnowEveryFlag(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	if err := run(t.Context(), []string{"serve", "--help"}, &help, io.Discard); err != nil {
		t.Fatal(err)
	}
	var documents strings.Builder
	for _, file := range []string{"docs/operations.md", "docs/limits.md", "docs/authentication.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents.Write(text)
	}
	flags := regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(help.String(), -1)
	if len(flags) < 10 {
		t.Fatalf("the help shows %d flags only:\n%s", len(flags), help.String())
	}
	for _, flag := range flags {
		if !strings.Contains(documents.String(), flag[1]) && flag[1] != "--help" {
			t.Errorf("neither docs/operations.md nor docs/limits.md nor docs/authentication.md explains %s", flag[1])
		}
	}
	for key := range settings(t) {
		limit, ok := strings.CutPrefix(key, "limits.")
		flag, named := "--"+strings.Replace(key, ".", "-", 1), "`"+key+"`"
		if ok {
			named = "| `" + limit + "` |"
		}
		if !strings.Contains(documents.String(), named) && !strings.Contains(documents.String(), flag) {
			t.Errorf("neither docs/operations.md nor docs/limits.md nor docs/authentication.md explains %s", key)
		}
	}
}
