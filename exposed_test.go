package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnExposedServerStandsUpToProbes boots the program in the locked profile and
// sends what scanners of GraphQL servers send.
func TestAnExposedServerStandsUpToProbes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens: [{token: secret, user: rae, project: demo, roles: [reader]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _, _ := boot(t, "--profile", "locked", "--tokens", tokens, "--database", "sqlite://"+filepath.Join(folder, "cadastre.db"))
	query := func(document string) string {
		text, err := json.Marshal(map[string]string{"query": document})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	numbered := func(n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "alias%d:__typename ", i)
		}
		return out.String()
	}
	fragments := "{...f0}"
	for i := range 28 {
		fragments += fmt.Sprintf(" fragment f%d on Query {...f%d ...f%d}", i, i+1, i+1)
	}
	fragments += " fragment f28 on Query {__typename}"
	const typed = "application/json"
	for name, probe := range map[string]struct {
		method, path, kind, body, token string
		status                          int
		has, hasNot                     string
	}{
		"suggestions":                {"POST", "/graphql", typed, query("query cop { __schema { directive } }"), "secret", 200, "GRAPHQL_VALIDATION_FAILED", "Did you mean"},
		"introspection by strangers": {"POST", "/graphql", typed, query("query cop { __schema { types { name } } }"), "", 401, "UNAUTHENTICATED", `"types"`},
		"the IDE":                    {"GET", "/", "", "", "", 404, "", "GraphiQL"},
		"the IDE at /graphql":        {"GET", "/graphql", "", "", "secret", 400, "BAD_REQUEST", "GraphiQL"},
		"queries by GET":             {"GET", "/graphql?query=query+cop+%7B__typename%7D", "", "", "secret", 405, "BAD_REQUEST", `"Query"`},
		"mutations by GET":           {"GET", "/graphql?query=mutation+cop+%7B__typename%7D", "", "", "secret", 405, "BAD_REQUEST", `"Mutation"`},
		"101 aliases":                {"POST", "/graphql", typed, query("query cop {" + numbered(101) + "}"), "secret", 200, "QUERY_TOO_COMPLEX", `"data"`},
		"a batch":                    {"POST", "/graphql", typed, "[" + strings.Repeat(query("query cop { __typename }")+",", 9) + query("{__typename}") + "]", "secret", 400, "BAD_REQUEST", `"data"`},
		"tracing":                    {"POST", "/graphql", typed, query("query cop { __typename }"), "secret", 200, `"Query"`, "tracing"},
		"10 directives":              {"POST", "/graphql", typed, query("query cop { __typename " + strings.Repeat("@aa", 10) + " }"), "secret", 200, "QUERY_TOO_COMPLEX", "@aa"},
		"circular introspection":     {"POST", "/graphql", typed, query("query cop { __schema { types { fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } }"), "secret", 200, "GRAPHQL_VALIDATION_FAILED", `"data"`},
		"a form of another site":     {"POST", "/graphql", "application/x-www-form-urlencoded", "query=query+cop+%7B__typename%7D", "secret", 415, "BAD_REQUEST", `"data"`},
		"an unhandled error":         {"POST", "/graphql", typed, query("qwerty cop { abc }"), "secret", 200, "GRAPHQL_PARSE_FAILED", "exception"},
		"500 duplicate fields":       {"POST", "/graphql", typed, query("query cop {" + strings.Repeat("__typename ", 500) + "}"), "secret", 200, "QUERY_TOO_COMPLEX", `"data"`},
		"fragment doubling":          {"POST", "/graphql", typed, query(fragments), "secret", 200, "QUERY_TOO_COMPLEX", `"data"`},
		"2 MB of brackets":           {"POST", "/graphql", typed, query("{a(b:" + strings.Repeat("[", 2<<20)), "secret", 413, "BAD_REQUEST", "[["},
		"1 MB of brackets":           {"POST", "/graphql", typed, query("{a(b:" + strings.Repeat("[", 1<<20-100)), "secret", 200, "GRAPHQL_PARSE_FAILED", "[["},
		"@defer":                     {"POST", "/graphql", typed, query("{ viewer { ... @defer { userId } } }"), "secret", 200, "GRAPHQL_VALIDATION_FAILED", `"data"`},
		"U+0000":                     {"POST", "/graphql", typed, `{"query":"query($a: String!) { namespace(name: $a) { id } }","variables":{"a":"\u0000"}}`, "secret", 200, "BAD_USER_INPUT", `"data"`},
		"a cursor of SQL":            {"POST", "/graphql", typed, query(`{ namespaces(after: "') OR 1=1 --") { totalCount } }`), "secret", 200, "BAD_USER_INPUT", "SQL"},
	} {
		request, err := http.NewRequest(probe.method, address+probe.path, strings.NewReader(probe.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/json, text/html")
		if probe.kind != "" {
			request.Header.Set("Content-Type", probe.kind)
		}
		if probe.token != "" {
			request.Header.Set("Authorization", "Bearer "+probe.token)
		}
		began := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		answer := string(body)
		if response.StatusCode != probe.status || !strings.Contains(answer, probe.has) || strings.Contains(answer, probe.hasNot) {
			t.Errorf("%s: %d %.300s, want %d with %s and without %s", name, response.StatusCode, answer, probe.status, probe.has, probe.hasNot)
		}
		if took := time.Since(began); took > 5*time.Second || len(answer) > 64<<10 {
			t.Errorf("%s: %d bytes after %v", name, len(answer), took)
		}
	}
}
