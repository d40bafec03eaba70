package graph_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// asOnce sends an operation with an idempotency key.
func asOnce(ctx context.Context, executor *graph.Executor, key, query string,
	variables map[string]any) *graphql.Response {
	return executor.ExecuteOnce(ctx, key, &graphql.RawParams{Query: query, Variables: variables})
}

// onceText returns an answer as JSON.
func onceText(t *testing.T, response *graphql.Response) string {
	t.Helper()
	text, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryMutationIsMadeOnce sends every mutation of the schema with a key and
// repeats it: on another server, if two share the database, and on the same
// one. Each answer must have the same bytes, for any selection, and nothing may
// happen again.
func TestEveryMutationIsMadeOnce(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		servers := []*graph.Executor{executorOf(t, s)}
		if s.Postgres() {
			servers = append(servers, executorOf(t, storetest.Open(t, url)))
		}
		ask := func(viewer, query string) string {
			ctx := access.WithViewer(context.Background(), viewers[viewer])
			return answerText(t, servers[0].Execute(ctx, &graphql.RawParams{Query: query}))
		}
		ask("admin", `mutation { createTrait(input: {name: "CUSTOM_U"}) { __typename } }`)
		known, id := len(events(t, ask)), ""
		schema := servers[0].Schema()
		admin := access.WithViewer(context.Background(), viewers["admin"])
		type request struct{ field, key, query string }
		var asked []request
		for i, m := range auditedMutations {
			of := schema.Types[schema.Mutation.Fields.ForName(m.field).Type.Name()]
			query := "mutation { " + m.field + "(input: {" + strings.ReplaceAll(m.accepted, "$id", id) + "}) { " +
				selection(t, schema, of, 2) + " } }"
			key := fmt.Sprint("key-", i)
			first := onceText(t, asOnce(admin, servers[0], key, query, nil))
			if strings.Contains(first, `"code":`) && m.field != "importNamespaces" {
				t.Errorf("%s: %s", m.field, first)
			}
			if m.field != "importNamespaces" {
				asked = append(asked, request{m.field, key, query})
			}
			after := len(events(t, ask))
			if after == known {
				t.Errorf("%s left no event", m.field)
			}
			for _, again := range append(servers[len(servers)-1:], servers[0]) {
				if got := onceText(t, asOnce(admin, again, key, query, nil)); got != first {
					t.Errorf("%s again: %s\nwas: %s", m.field, got, first)
				}
			}
			if known = len(events(t, ask)); known != after {
				t.Errorf("%s happened again: %d events", m.field, known-after)
			}
			if m.payload != "" {
				if found := idInAnswer.FindStringSubmatch(ask("admin",
					cmp.Or(shownAgain[m.field], `{ viewer { id } }`))); found != nil {
					id = found[1]
				}
			}
		}
		for _, of := range asked { // much that they name is deleted now
			again := onceText(t, asOnce(admin, servers[0], of.key, of.query, nil))
			if strings.Contains(again, `"path":["`+of.field+`"]`) {
				t.Errorf("%s later: %s", of.field, again)
			}
		}
	})
}

// shownAgain are queries for ids that later mutations need.
var shownAgain = map[string]string{"associateResourceType": `{ namespace(name: "N") { resourceTypeAssociations { id } } }`}

// codesOf returns the codes of an answer's errors, with the paths.
func codesOf(response *graphql.Response) string {
	var codes []string
	for _, err := range response.Errors {
		codes = append(codes, strings.TrimSpace(fmt.Sprint(err.Path, " ", err.Extensions["code"])))
	}
	return strings.Join(codes, ", ")
}

// TestKeysOfRequests checks that a key belongs to one viewer and one request,
// that only refused fields run again, that dry runs keep nothing, and that a
// key expires.
func TestKeysOfRequests(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Now()
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Now: func() time.Time { return now }, KeysPerProject: 7})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		executor := executorOf(t, s)
		send := func(viewer, key, query, variables string) string {
			t.Helper()
			var values map[string]any
			if err := json.Unmarshal([]byte(cmp.Or(variables, "{}")), &values); err != nil {
				t.Fatal(err)
			}
			response := asOnce(access.WithViewer(context.Background(), viewers[viewer]), executor, key, query, values)
			return cmp.Or(codesOf(response), "done")
		}
		const create = `mutation($n: String!) { createTrait(input: {name: $n}) { trait { name } } }`
		const two = `mutation { a: createTrait(input: {name: "CUSTOM_A"}) { trait { name } } b: deleteTrait(input: {name: "CUSTOM_B"}) { trait { name } } }`
		for i, of := range []struct{ viewer, key, query, variables, want string }{
			{"admin", "k", create, `{"n": "CUSTOM_X"}`, "done"},
			{"admin", "k", create, `{"n": "CUSTOM_X"}`, "done"},
			{"admin", "k", create, `{"n": "CUSTOM_Y"}`, "BAD_USER_INPUT"},
			{"admin", "k", strings.Replace(create, "{ name }", "{ id }", 1), `{"n": "CUSTOM_X"}`, "BAD_USER_INPUT"},
			{"service", "k", create, `{"n": "CUSTOM_X"}`, "createTrait ALREADY_EXISTS"},
			{"admin", "other", create, `{"n": "CUSTOM_X"}`, "createTrait ALREADY_EXISTS"},
			{"admin", "other", create, `{"n": "CUSTOM_Y"}`, "done"}, // no key was kept
			{"admin", "two", two, "", "b NOT_FOUND"},
			{"admin", "b", create, `{"n": "CUSTOM_B"}`, "done"},
			{"admin", "two", two, "", "done"},
			{"admin", "two", two, "", "done"},
			{"admin", "n", `mutation { createNamespace(input: {name: "N"}) { namespace { name } } }`, "", "done"},
			{"admin", "d",
				`mutation { importNamespaces(input: {documents: ["{\"namespace\": \"D\"}"], dryRun: true}) { reports { outcome } } }`, "", "done"},
			{"admin", "d",
				`mutation { importNamespaces(input: {documents: ["{\"namespace\": \"D\"}"]}) { reports { outcome } } }`,
				"", "done"},
			{"admin", "eighth", create, `{"n": "CUSTOM_E"}`, "createTrait QUOTA_EXCEEDED"},
			{"admin", "k", create, `{"n": "CUSTOM_X"}`, "done"},
		} {
			if got := send(of.viewer, of.key, of.query, of.variables); got != of.want {
				t.Errorf("%d: %s with the key %s as %s: %s, want %s", i, of.query, of.key, of.viewer, got, of.want)
			}
		}
		now = now.Add(2 * time.Minute) // keys are counted again
		if err := s.Execute(t.Context(), s.Pool, "UPDATE idempotency_keys SET created_at = $1",
			time.Now().Add(-24*time.Hour-time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := send("admin", "k", create, `{"n": "CUSTOM_X"}`); got != "createTrait ALREADY_EXISTS" {
			t.Errorf("after a day: %s", got)
		}
		if got := send("admin", "k", create, `{"n": "CUSTOM_Z"}`); got != "done" {
			t.Errorf("after a day, something else: %s", got)
		}
		if err := s.DropKeys(t.Context()); err != nil {
			t.Error(err)
		}
		if left, err := s.Ent.IdempotencyKey.Query().Count(t.Context()); left != 1 || err != nil {
			t.Errorf("%d keys are left, %v", left, err)
		}
	})
}

// TestAKeyIsValidOnAServerWithAWrongClock sends requests again to servers whose
// clocks are wrong by a year, and lets them delete expired keys.
func TestAKeyIsValidOnAServerWithAWrongClock(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	admin := access.WithViewer(context.Background(), viewers["admin"])
	var servers []*graph.Executor
	for _, years := range []int{0, 1, -1, 0} {
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Now: func() time.Time { return time.Now().AddDate(years, 0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers = append(servers, executorOf(t, s))
		for i := range servers {
			if err := s.DropKeys(t.Context()); err != nil {
				t.Fatal(err)
			}
			create := fmt.Sprintf(`mutation { createTrait(input: {name: "CUSTOM_%d"}) { trait { name } } }`, i)
			if got := codesOf(asOnce(admin, servers[len(servers)-1], fmt.Sprint(i), create, nil)); got != "" {
				t.Errorf("the request %d to a server that is %d years ahead: %s", i, years, got)
			}
		}
	}
}

// TestARequestUnderWayIsNotMadeBeside sends a request while the same request
// runs, on the same server and on a second one if there is one.
func TestARequestUnderWayIsNotMadeBeside(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		servers := []*graph.Executor{executorOf(t, s)}
		if s.Postgres() {
			servers = append(servers, executorOf(t, storetest.Open(t, url)))
		}
		admin := access.WithViewer(context.Background(), viewers["admin"])
		for i, other := range servers {
			key, met := fmt.Sprint("key-", i), ""
			query := fmt.Sprintf(`mutation { createTrait(input: {name: "CUSTOM_%d"}) { trait { name } } }`, i)
			ctx := store.EachStatement(admin, func(text string, _ any) {
				if met == "" && strings.HasPrefix(text, "INSERT INTO traits") {
					met = onceText(t, asOnce(admin, other, key, query, nil))
				}
			})
			first := onceText(t, asOnce(ctx, servers[0], key, query, nil))
			if !strings.Contains(met, `"code":"CONCURRENT_UPDATE"`) || !strings.Contains(met, `"retryAfter":1`) ||
				!strings.Contains(met, `"field":"Idempotency-Key"`) {
				t.Errorf("beside it on server %d: %s", i, met)
			}
			if again := onceText(t, asOnce(admin, other, key, query, nil)); strings.Contains(first, "errors") ||
				again != first {
				t.Errorf("on server %d: %s, was %s", i, again, first)
			}
		}
	})
}
