package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestDriftShowsRealAnswers sends every operation of docs/drift.md to a new
// demo, in their order, and compares the answers.
func TestDriftShowsRealAnswers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/drift.md")
	if err != nil {
		t.Fatal(err)
	}
	server, _ := boot(t, "--demo", "--database", storetest.SQLite(t))
	shown := regexp.MustCompile("(?s)```graphql\n(.*?)```\n\n```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, example := range shown {
		body, err := json.Marshal(map[string]string{"query": example[1]})
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.address+"/graphql", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer demo-admin")
		request.Header.Set("Content-Type", "application/json")
		_, text := fetch(t, request)
		var got struct{ Data any }
		var want any
		if err := json.Unmarshal([]byte(example[2]), &want); err != nil {
			t.Fatalf("the answer shown to %s is no JSON: %v", example[1], err)
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got.Data, want) {
			t.Errorf("docs/drift.md shows another answer to %s\ngot  %s\nwant %s", example[1], text, example[2])
		}
	}
	if len(shown) < 2 {
		t.Errorf("docs/drift.md shows %d operations with answers", len(shown))
	}
}
