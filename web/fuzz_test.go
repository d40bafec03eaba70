package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// closedSet has all error codes.
var closedSet = map[string]bool{
	"BAD_USER_INPUT": true, "UNAUTHENTICATED": true, "FORBIDDEN": true, "NOT_FOUND": true, "ALREADY_EXISTS": true,
	"CONCURRENT_UPDATE": true, "IN_USE": true, "PROTECTED": true, "CAPACITY_EXCEEDED": true, "QUOTA_EXCEEDED": true,
	"RATE_LIMITED": true, "QUERY_TOO_COMPLEX": true, "TIMEOUT": true, "UNAVAILABLE": true,
	"BAD_REQUEST": true, "GRAPHQL_PARSE_FAILED": true,
	"GRAPHQL_VALIDATION_FAILED": true, "INTROSPECTION_DISABLED": true,
	"PERSISTED_QUERY_NOT_FOUND": true, "PERSISTED_QUERY_REQUIRED": true,
}

// FuzzRequests sends random bodies, documents, variables and headers to the
// handler. It must not panic, must answer no 5xx status except 503, and must
// use only the codes of the closed set, without INTERNAL.
func FuzzRequests(f *testing.F) {
	s := storetest.Open(f, storetest.SQLite(f))
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	limits := web.DefaultLimits()
	limits.PrincipalPoints, limits.AddressPoints = 0, 0
	handler := web.New(web.Options{
		Executor: graph.NewExecutor(&graph.Resolver{Store: s}, log),
		Authenticate: func(context.Context, http.Header) (access.Viewer, error) {
			return access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}}, nil
		},
		Log: log, Profile: web.Open, Limits: limits,
	})
	for _, document := range []string{
		"{ __typename }",
		"{ namespaces(first: 3) { nodes { name properties { name default enum } tags { name } } pageInfo { endCursor } } }",
		"query($a: String!, $b: Boolean = true) { namespace(name: $a) @include(if: $b) { ...f } } fragment f on Namespace { id name }",
		"query($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Tag { name } } }",
		`mutation { createNamespace(input: {name: "\u0000", properties: [{name: "x", type: INTEGER, default: 1e999}]}) { namespace { id } } }`,
		`mutation($i: CreateNamespaceInput!) { createNamespace(input: $i) { namespace { id } } }`,
		`mutation($d: [String!]!) { importNamespaces(input: {documents: $d}) { reports { namespace outcome errors } } }`,
		`{ namespaces(after: "x", filter: {resourceTypes: []}, orderBy: {field: NAME, direction: DESC}) { edges { cursor node { id } } } }`,
		`{ resources(filter: {nameContains: "a%_", where: {any: [{not: {metadata: {key: "k", exists: true}}}, {capability: {name: "n", gte: "5"}}]}}) { totalCount nodes { name metadata { key } } } }`,
		`query($w: ResourceCondition, $m: String) { resources(filter: {where: $w, matching: $m}) { nodes { id } } }`,
		`query($r: [ResourceAmountInput!]) { allocationCandidates(resources: $r, requiredAll: ["HW_CPU_X86_AVX2"], memberOf: [{anyOf: []}], first: 2) { nodes { allocations { provider { name } } } } }`,
		`mutation($i: CreateResourceInput!) { createResource(input: $i) { resource { id } } }`,
		`mutation { setAllocations(input: {consumers: [{uuid: "x", projectId: "p", userId: "u", allocations: [{provider: "y", resources: [{resourceClass: "VCPU", amount: 0}]}]}]}) { consumers { id } } }`,
		`{ resourceProviders(filter: {resources: [{resourceClass: "VCPU", amount: -1}]}, last: 5) { nodes { inventories { total } } } }`,
		`{ __schema { types { name fields { args { defaultValue } } } } __type(name: "Query") { name } }`,
		"subscription { a }", "{ a @defer }", "\"\"\"", "{ a(b: \"\\ud83d\") }",
	} {
		f.Add(document,
			`{"a":"x","b":null,"ids":["x"],"i":{"name":"n","tags":[{"name":"t"}]},"d":["{\"namespace\":\"x\"}"],"w":{"all":[]},"m":"[\"==\", \"$a\", 1]","r":[{"resourceClass":"VCPU","amount":1}]}`, "application/json", "", true)
		f.Add(document, `null`, "application/json", "application/graphql-response+json", false)
	}
	f.Add("", `{"query": {}}`, "text/plain", "text/html;q=2", true)
	f.Fuzz(func(t *testing.T, document, variables, contentType, accept string, post bool) {
		var request *http.Request
		if post {
			query, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			request = httptest.NewRequest("POST", "/graphql",
				strings.NewReader(`{"query":`+string(query)+`,"variables":`+variables+`}`))
		} else {
			request = httptest.NewRequest("GET",
				"/graphql?"+url.Values{"query": {document}, "variables": {variables}}.Encode(), nil)
		}
		request.Header["Content-Type"] = []string{contentType}
		if accept != "" {
			request.Header["Accept"] = []string{accept}
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code >= 500 {
			t.Errorf("status %d: %s", recorder.Code, recorder.Body)
		}
		var body struct {
			Data   json.RawMessage
			Errors []struct {
				Message    string
				Extensions struct{ Code, RequestID string }
			}
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
			t.Fatalf("the answer is not JSON: %v\n%s", err, recorder.Body)
		}
		if body.Data == nil && body.Errors == nil {
			t.Errorf("neither data nor errors: %s", recorder.Body)
		}
		for _, err := range body.Errors {
			if !closedSet[err.Extensions.Code] || err.Extensions.RequestID == "" || err.Message == "" {
				t.Errorf("an error that should not be: %s", recorder.Body)
			}
		}
	})
}
