package web_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/web"
)

const (
	jsonMedia     = "application/json"
	responseMedia = "application/graphql-response+json"
)

func TestRequestsHaveTheStatusOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	get := func(parameters ...string) string {
		values := url.Values{}
		for i := 0; i+1 < len(parameters); i += 2 {
			values.Add(parameters[i], parameters[i+1])
		}
		return "/graphql?" + values.Encode()
	}
	const good = `{"query":"{ __typename }"}`
	for name, test := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		code               string
		has                string // in the body
	}{
		"a query": {"POST", "/graphql", good, nil, 200, "",
			`{"data":{"__typename":"Query"},"extensions":{"cost":{"maximum":2000000,"requested":1}}}`},
		"unknown members": {"POST", "/graphql", `{"query":"{ __typename }","more":1}`, nil, 200, "", ""},
		"nulls": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":null,"operationName":null,"extensions":null}`, nil, 200, "", ""},
		"GET": {"GET", get("query", "{ __typename }"), "", nil, 200, "", ""},
		"GET with variables": {"GET", get("query", "query($a: String!) { namespace(name: $a) { name } }",
			"variables", `{"a":"x"}`), "", nil, 200, "", `"namespace":null`},
		"GET with broken variables": {"GET", get("query", "{ __typename }", "variables", `{"a":`), "", nil, 400,
			"BAD_REQUEST", ""},
		"GET with two queries": {"GET", get("query", "{ __typename }", "query", "{ viewer { userId } }"), "",
			nil, 400, "BAD_REQUEST", ""},
		"GET without query":        {"GET", "/graphql", "", nil, 400, "BAD_REQUEST", ""},
		"GET with a broken escape": {"GET", "/graphql?query=%zz", "", nil, 400, "BAD_REQUEST", ""},
		"GET with invalid UTF-8": {"GET", "/graphql?query=%7B__typename%7D%ff",
			"", nil, 400, "BAD_USER_INPUT", ""},
		"GET of a mutation": {"GET", get("query", "mutation { __typename }"), "", nil, 405, "BAD_REQUEST",
			""},
		"PUT":    {"PUT", "/graphql", good, nil, 405, "BAD_REQUEST", ""},
		"DELETE": {"DELETE", "/graphql", "", nil, 405, "BAD_REQUEST", ""},
		"no content type": {"POST", "/graphql", good,
			[]string{"Content-Type", ""}, 415, "BAD_REQUEST", ""},
		"text/plain": {"POST", "/graphql", good,
			[]string{"Content-Type", "text/plain"}, 415, "BAD_REQUEST", ""},
		"a form": {"POST", "/graphql", "query=%7B__typename%7D",
			[]string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "BAD_REQUEST", ""},
		"multipart": {"POST", "/graphql", "--x--",
			[]string{"Content-Type", "multipart/form-data; boundary=x"}, 415, "BAD_REQUEST", ""},
		"application/graphql": {"POST", "/graphql", "{ __typename }",
			[]string{"Content-Type", "application/graphql"}, 415, "BAD_REQUEST", ""},
		"utf-8": {"POST", "/graphql", good,
			[]string{"Content-Type", "application/json; charset=UTF-8"}, 200, "", ""},
		"utf-16": {"POST", "/graphql", good,
			[]string{"Content-Type", "application/json; charset=utf-16"}, 415, "BAD_REQUEST", ""},
		"a compressed body": {"POST", "/graphql", good,
			[]string{"Content-Encoding", "gzip"}, 415, "BAD_REQUEST", ""},
		"html": {"POST", "/graphql", good,
			[]string{"Accept", "text/html"}, 406, "BAD_REQUEST", ""},
		"html by GET": {"GET", get("query", "{ __typename }"), "",
			[]string{"Accept", "text/html,application/xhtml+xml"}, 406, "BAD_REQUEST", ""},
		"refused by quality": {"POST", "/graphql", good,
			[]string{"Accept", "application/json;q=0, text/html"}, 406, "BAD_REQUEST", ""},
		"a list of requests": {"POST", "/graphql",
			"[" + good + "," + good + "]", nil, 400, "BAD_REQUEST", ""},
		"an empty body": {"POST", "/graphql", "", nil, 400, "BAD_REQUEST", ""},
		"half a body":   {"POST", "/graphql", `{"query":`, nil, 400, "BAD_REQUEST", ""},
		"two bodies":    {"POST", "/graphql", good + good, nil, 400, "BAD_REQUEST", ""},
		"a text":        {"POST", "/graphql", `"{ __typename }"`, nil, 400, "BAD_REQUEST", ""},
		"two queries": {"POST", "/graphql",
			`{"query":"{ __typename }","query":"{ viewer { userId } }"}`, nil, 400, "BAD_REQUEST", ""},
		"two values of a variable": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a":1,"a":2}}`, nil, 400, "BAD_REQUEST", ""},
		"two deep in a variable": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a":[{"b":{"c":1,"\u0063":2}}]}}`, nil, 400, "BAD_REQUEST", ""},
		"two in an extension": {"POST", "/graphql",
			`{"query":"{ __typename }","extensions":{"a":{"b":1,"b":1}}}`, nil, 400, "BAD_REQUEST", ""},
		"two in a parameter": {"GET", get("query", "{ __typename }", "variables", `{"a":1,"a":2}`), "", nil,
			400, "BAD_REQUEST", ""},
		"the same in two objects": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a":[{"b":1},{"b":2}],"b":{"a":{"a":1}}}}`, nil, 200, "", ""},
		"colons in texts": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a:":":\\\":","b":"\\","c":[":"]}}`, nil, 200, "", ""},
		"two in a literal": {"POST", "/graphql",
			`{"query":"{ namespaces(filter: {owner: \"a\", owner: \"b\"}) { totalCount } }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"no query":          {"POST", "/graphql", `{"variables":{}}`, nil, 400, "BAD_REQUEST", ""},
		"an empty query":    {"POST", "/graphql", `{"query":""}`, nil, 400, "BAD_REQUEST", ""},
		"a number as query": {"POST", "/graphql", `{"query":1}`, nil, 400, "BAD_REQUEST", ""},
		"a body too large": {"POST", "/graphql",
			`{"query":"` + strings.Repeat(" ", 1<<20) + `"}`, nil, 413, "BAD_REQUEST", ""},
		"not a document": {"POST", "/graphql", `{"query":"qwerty cop{abc}"}`,
			nil, 200, "GRAPHQL_PARSE_FAILED", ""},
		"the same, by the new type": {"POST", "/graphql", `{"query":"qwerty cop{abc}"}`,
			[]string{"Accept", responseMedia}, 400, "GRAPHQL_PARSE_FAILED", ""},
		"fragments only": {"POST", "/graphql", `{"query":"fragment F on Query { __typename }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"an unknown field": {"POST", "/graphql", `{"query":"{ nothing }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"an unknown operation": {"POST", "/graphql", `{"query":"query A { __typename }","operationName":"B"}`,
			nil, 200, "GRAPHQL_VALIDATION_FAILED", ""},
		"one of several operations": {"POST", "/graphql",
			`{"query":"query A { __typename } query B { __typename }"}`, nil, 200, "GRAPHQL_VALIDATION_FAILED", ""},
		"a subscription": {"POST", "/graphql", `{"query":"subscription { __typename }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"@defer": {"POST", "/graphql", `{"query":"{ viewer { ... @defer { userId } } }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"@stream": {"POST", "/graphql", `{"query":"{ viewer { roles @stream } }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"a missing variable": {"POST", "/graphql",
			`{"query":"query($a: String!) { namespace(name: $a) { name } }"}`, []string{"Accept", responseMedia}, 400,
			"GRAPHQL_VALIDATION_FAILED", `"field":"a"`},
		"a number for a text": {"POST", "/graphql",
			`{"query":"query($a: String!) { namespace(name: $a) { name } }","variables":{"a":5}}`, nil, 200,
			"GRAPHQL_VALIDATION_FAILED", `"field":"a"`},
		"@skip with a missing one": {"POST", "/graphql",
			`{"query":"query($a: Boolean!) { viewer @skip(if: $a) { userId } }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"@skip with a nullable one": {"POST", "/graphql",
			`{"query":"query($a: Boolean) { viewer @skip(if: $a) { userId } }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"@skip with null by default": {"POST", "/graphql",
			`{"query":"query($a: Boolean = true) { viewer @skip(if: $a) { userId } }","variables":{"a":null}}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
		"U+0000 in a variable": {"POST", "/graphql",
			`{"query":"query($a: String!) { namespace(name: $a) { name } }","variables":{"a":"x\u0000"}}`, nil,
			200, "BAD_USER_INPUT", `"field":"a"`},
		"U+0000 deep in a variable": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a":[{"b":"x\u0000"}]}}`, []string{"Accept", responseMedia}, 400,
			"BAD_USER_INPUT", `"field":"a[0].b"`},
		"U+0000 in a literal": {"POST", "/graphql",
			`{"query":"{ namespaces(filter: {resourceTypes: [\"a\\u0000\"]}) { totalCount } }"}`, nil, 200,
			"BAD_USER_INPUT", `"field":"filter.resourceTypes[0]"`},
		"U+0000 itself": {"POST", "/graphql", `{"query":"{ __typename }\u0000"}`,
			nil, 200, "GRAPHQL_PARSE_FAILED", ""},
		"invalid UTF-8": {"POST", "/graphql",
			"{\"query\":\"{ __typename }\",\"variables\":{\"a\":\"\xff\"}}", nil, 400, "BAD_USER_INPUT", ""},
		"half a surrogate pair": {"POST", "/graphql",
			`{"query":"{ __typename }","variables":{"a":"\ud83d"}}`, nil, 400, "BAD_USER_INPUT", ""},
		"half of one, in a literal": {"POST", "/graphql",
			`{"query":"{ namespace(name: \"\\ud83d\") { name } }"}`, nil, 400, "BAD_USER_INPUT", ""},
		"a whole one": {"POST", "/graphql",
			`{"query":"query($a: String!) { namespace(name: $a) { name } }","variables":{"a":"\ud83d\ude00"}}`, nil,
			200, "", ""},
		"a list too long": {"POST", "/graphql", `{"query":"{ __typename }","variables":{"a":[` +
			strings.Repeat("1,", 5000) + `1]}}`, nil, 200, "BAD_USER_INPUT", `"field":"a"`},
		"variables nested too deeply": {"POST", "/graphql", `{"query":"{ __typename }","variables":{"a":` +
			strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, nil, 200, "BAD_USER_INPUT", ""},
		"a path that is not there": {"GET", "/nothing", "", nil, 404, "", "404"},
		"live":                     {"GET", "/livez", "", nil, 200, "", "ok"},
		"ready":                    {"GET", "/readyz", "", nil, 200, "", "ready"},
		"the schema":               {"GET", "/schema.graphql", "", nil, 200, "", "type Query {"},
		"a mark in the schema": {"GET", "/schema.graphql", "", nil, 200, "",
			"\n  viewer: Viewer @semanticNonNull\n"},
		"the metrics":           {"GET", "/metrics", "", nil, 200, "", `cadastre_build_info{version="test"} 1`},
		"the page, in the open": {"GET", "/", "", nil, 200, "", "<title>Cadastre</title>"},
		"POST to the page":      {"POST", "/", "", nil, 405, "", ""},
		"a resolver's refusal": {"POST", "/graphql",
			`{"query":"{ namespaces(first: 1001) { totalCount } }"}`, nil, 200, "BAD_USER_INPUT", ""},
		"first and last": {"POST", "/graphql",
			`{"query":"{ namespaces(first: 1, last: 1) { totalCount } }"}`, nil, 200, "BAD_USER_INPUT", ""},
		"a negative page": {"POST", "/graphql",
			`{"query":"{ namespaces(first: -1) { totalCount } }"}`, nil, 200, "BAD_USER_INPUT", ""},
		"a mangled cursor": {"POST", "/graphql",
			`{"query":"{ namespaces(after: \"x' OR 1=1 --\") { totalCount } }"}`, nil, 200, "BAD_USER_INPUT", ""},
		"tracing is not there": {"POST", "/graphql", good, nil, 200, "", `"extensions":{"cost"`},
		"a code by an unknown boolean": {"POST", "/graphql", `{"query":"{ __typename @skip(if: \"yes\") }"}`, nil,
			200, "GRAPHQL_VALIDATION_FAILED", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.send(test.method, test.path, test.body, test.headers...)
			if got.status != test.status {
				t.Errorf("status %d, want %d: %.300s", got.status, test.status, got.body)
			}
			if !strings.Contains(got.body, test.has) {
				t.Errorf("got %.300s, want %s in it", got.body, test.has)
			}
			if strings.HasPrefix(test.path, "/graphql") {
				if code := got.code(); code != test.code {
					t.Errorf("code %q, want %q: %.300s", code, test.code, got.body)
				}
				if got.header.Get("Cache-Control") != "no-store" {
					t.Errorf("Cache-Control %q", got.header.Get("Cache-Control"))
				}
				if test.status == 405 && got.header.Get("Allow") == "" {
					t.Error("no Allow")
				}
				if test.code != "" && test.status != 200 && strings.Contains(got.body, `"data"`) {
					t.Errorf("a refused request has data: %s", got.body)
				}
			}
			if got.header.Get("X-Request-Id") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", got.header)
			}
		})
	}
}

func TestTheAnswerHasTheMediaTypeThatIsAcceptedMost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for accept, want := range map[string]string{
		"":                                     jsonMedia,
		"*/*":                                  jsonMedia,
		"application/*":                        jsonMedia,
		jsonMedia:                              jsonMedia,
		responseMedia:                          responseMedia,
		responseMedia + ", " + jsonMedia:       responseMedia,
		jsonMedia + ", " + responseMedia:       jsonMedia,
		responseMedia + ";q=0.5, " + jsonMedia: jsonMedia,
		jsonMedia + ";q=0.5, " + responseMedia + ";q=.9": responseMedia,
		"text/html, */*;q=0.1":                           jsonMedia,
		responseMedia + "; charset=utf-8, */*;q=0.1":     responseMedia,
		jsonMedia + ";q=0, */*":                          responseMedia,
	} {
		header := accept
		if header == "" {
			header = " "
		}
		got := s.query("{ __typename }", "Accept", header)
		if got.status != 200 || got.header.Get("Content-Type") != want+"; charset=utf-8" {
			t.Errorf("Accept %q: %d %q, want %q", accept, got.status, got.header.Get("Content-Type"), want)
		}
	}
}

func TestRequestsWithoutAKnownTokenAreUnauthenticated(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, headers := range map[string][]string{
		"none":          {"X-Auth-Token", ""},
		"unknown":       {"X-Auth-Token", "guessed"},
		"two different": {"Authorization", "Bearer reader-token"},
	} {
		for _, media := range []string{jsonMedia, responseMedia} {
			got := s.query("{ viewer { userId } }", append([]string{"Accept", media}, headers...)...)
			if got.status != 401 || got.code() != "UNAUTHENTICATED" || got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: %d %s %v", name, got.status, got.body, got.header)
			}
		}
	}
	if got := s.query("{ viewer { userId } }", "X-Auth-Token", "", "Authorization",
		"Bearer reader-token"); !strings.Contains(got.body, `"rae"`) {
		t.Errorf("a bearer: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/", "/livez", "/readyz", "/schema.graphql"} {
		if got := s.send("GET", path, "", "X-Auth-Token", ""); got.status != 200 {
			t.Errorf("%s needs a token: %d", path, got.status)
		}
	}
}

func TestTheLogHoldsNoTokenAndNoVariable(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body, err := json.Marshal(map[string]any{
		"query":     `query Look($a: String!) { namespace(name: $a) { name } other: namespace(name: "hidden-literal") { name } }`,
		"variables": map[string]any{"a": "hidden-variable"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.send("POST", "/graphql", string(body), "X-Request-Id",
		"my-id.1"); got.header.Get("X-Request-Id") != "my-id.1" || got.status != 200 {
		t.Errorf("got %v %s", got.header, got.body)
	}
	s.query("{ viewer { userId } }", "X-Auth-Token", "guessed-token")
	s.send("GET", "/graphql?query=%7Bhidden-in-url%7D", "")
	if got := s.query("{ x }", "X-Request-Id", "bad id\twith\"odd characters"); got.header.Get("X-Request-Id") == "" ||
		strings.Contains(got.header.Get("X-Request-Id"), " ") {
		t.Errorf("request id %q", got.header.Get("X-Request-Id"))
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	log := s.log.String()
	for _, secret := range []string{"admin-token", "guessed-token", "hidden-variable",
		"hidden-literal", "hidden-in-url"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
	for _, wanted := range []string{`"requestId":"my-id.1"`, `"operation":"Look"`, `"user":"ada"`,
		`"status":401`, `"code":"UNAUTHENTICATED"`} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log lacks %s:\n%s", wanted, log)
		}
	}
}

func TestTheLockedProfileServesNoPageAndNoAdHocGET(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Profile = web.Locked })
	if got := s.send("GET", "/", ""); got.status != 404 {
		t.Errorf("the page is there: %d", got.status)
	}
	if got := s.send("GET", "/graphql?query=%7B__typename%7D", ""); got.status != 405 ||
		got.header.Get("Allow") != "POST" {
		t.Errorf("an ad-hoc query by GET: %d %s", got.status, got.body)
	}
}

// TestTheLockedProfileRequiresATokenForTheSchema also checks that the answer to
// introspection without a valid token reveals nothing else.
func TestTheLockedProfileRequiresATokenForTheSchema(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Profile = web.Locked })
	for document, codes := range map[string]string{
		"{ __schema { queryType { name } } }":                             "INTROSPECTION_DISABLED UNAUTHENTICATED",
		`{ __type(name: "Query") { name } }`:                              "INTROSPECTION_DISABLED UNAUTHENTICATED",
		"{ ...f } fragment f on Query { a: __schema { types { name } } }": "INTROSPECTION_DISABLED UNAUTHENTICATED",
		"{ __typename }":        "UNAUTHENTICATED",
		"{ viewer { userId } }": "UNAUTHENTICATED",
		"not a document":        "UNAUTHENTICATED",
		// the server does not read long bodies without a token
		"{ __schema { queryType { name } } } #" + strings.Repeat(" ", 1<<15): "UNAUTHENTICATED",
	} {
		for _, token := range []string{"", "guessed"} {
			got := s.query(document, "X-Auth-Token", token)
			if got.status != 401 || strings.Join(got.codes(), " ") != codes || strings.Contains(got.body, "Query") {
				t.Errorf("%.80s with the token %q: %d %s", document, token, got.status, got.body)
			}
		}
	}
	if got := s.send("GET", "/graphql?query=%7B__schema%7BqueryType%7Bname%7D%7D%7D", "", "X-Auth-Token",
		""); got.status != 401 || got.code() != "INTROSPECTION_DISABLED" {
		t.Errorf("introspection by GET, without a token: %d %s", got.status, got.body)
	}
	if got := s.query("{ __schema { queryType { name } } }"); got.status != 200 || got.code() != "" {
		t.Errorf("introspection with a token: %d %s", got.status, got.body)
	}
}

func TestTheLockedProfileHasNoHints(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Profile = web.Locked })
	for _, document := range []string{
		"{ __schema{directive} }", "{ viewe { userId } }", "{ viewer }", "{ namespaces(firs: 1) { totalCount } }",
		"query($a: Strin) { __typename }", "{ ... on Namespac { id } }",
		"{ namespaces(orderBy: {field: NAM}) { totalCount } }",
		"{ namespaces(filter: {visibilit: PUBLIC}) { totalCount } }",
		`{ namespaces(orderBy: {field: "NAME"}) { totalCount } }`,
		"{ __typename @ski(if: true) }", "{ __typename @skip(i: true) }",
	} {
		got := s.query(document)
		if got.code() != "GRAPHQL_VALIDATION_FAILED" || strings.Contains(got.body, "Did you mean") {
			t.Errorf("%s: %s", document, got.body)
		}
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.AllowedOrigins = []string{"https://dash.example.org"} })
	if got := s.query("{ __typename }", "Sec-Fetch-Site", "cross-site"); got.status != 403 ||
		got.code() != "FORBIDDEN" {
		t.Errorf("cross-site: %d %s", got.status, got.body)
	}
	if got := s.query("{ __typename }", "Origin", "https://evil.example.org"); got.status != 403 ||
		got.header.Get("Cache-Control") != "no-store" || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %d %s", got.status, got.body)
	}
	if metrics := s.send("GET", "/metrics", "").body; !strings.Contains(metrics,
		`cadastre_graphql_errors_total{code="FORBIDDEN"} `) {
		t.Error("the refusal is not counted")
	}
	got := s.send("OPTIONS", "/graphql", "", "Origin", "https://evil.example.org",
		"Access-Control-Request-Method", "POST", "X-Auth-Token", "")
	if got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != "" ||
		!strings.Contains(got.body,
			"requests from https://evil.example.org are refused: it is not in --allowed-origins") {
		t.Errorf("a preflight: %d %v %s", got.status, got.header, got.body)
	}
	if got := s.query("{ __typename }", "Origin", "https://evil.example.org"); !strings.Contains(got.body,
		"--allowed-origins") {
		t.Errorf("the refusal does not name the flag: %s", got.body)
	}
}

// TestAnyPortOfThisMachine allows the pages of this machine, on any port.
func TestAnyPortOfThisMachine(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.AllowedOrigins = []string{"http://localhost:*", "http://[::1]:*", "https://dash.example.org"}
	})
	for origin, allowed := range map[string]bool{
		"http://localhost:5173": true, "http://localhost:65535": true, "http://localhost": true,
		"http://[::1]:3000": true, "https://dash.example.org": true,
		"https://localhost:5173": false, "http://localhost:5173.evil.example.org": false,
		"http://localhost.evil.example.org:80": false, "http://localhost:": false,
		"http://localhost:*": false, "http://localhost:99999": false, "http://localhost:-1": false,
		"http://127.0.0.1:5173": false, "https://dash.example.org:8443": false, "null": false,
	} {
		want := map[bool]int{true: 200, false: 403}[allowed]
		if got := s.query("{ __typename }", "Origin", origin, "Sec-Fetch-Site", "cross-site"); got.status != want ||
			allowed != (got.header.Get("Access-Control-Allow-Origin") == origin) {
			t.Errorf("%s: %d %v", origin, got.status, got.header)
		}
	}
	got := s.send("OPTIONS", "/graphql", "", "Origin", "http://localhost:5173",
		"Access-Control-Request-Method", "POST", "X-Auth-Token", "")
	for _, header := range []string{"traceparent", "tracestate", "baggage", "sentry-trace", "b3",
		"apollographql-client-name", "apollographql-client-version", "X-Request-Id"} {
		if got.status != 204 || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), header) {
			t.Errorf("the preflight does not allow %s: %d %v", header, got.status, got.header)
		}
	}
	for origin, want := range map[string]bool{"http://localhost:*": true,
		"https://127.0.0.1:*": true, "http://[::1]:*": true,
		"http://dash.example.org:*": false, "http://localhost:80:*": false, "localhost:*": false,
		"http://localhost:*/": false, "http://10.0.0.1:*": false} {
		if (web.CheckOrigin(origin) == nil) != want {
			t.Errorf("%s: %v", origin, web.CheckOrigin(origin))
		}
	}
}

// TestTheTimeOfARequestHasAUnit parses the log as programs do.
func TestTheTimeOfARequestHasAUnit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.query("{ __typename }")
	var took time.Duration
	for line := range strings.Lines(s.log.String()) {
		var entry struct{ Msg, Took string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%v in %s", err, line)
		}
		if entry.Msg == "request" {
			took, _ = time.ParseDuration(entry.Took)
		}
	}
	if took <= 0 || took > patience.Of(t, time.Minute) {
		t.Errorf("the request took %v:\n%s", took, s.log)
	}
}

func TestPagesOfAllowedOriginsAreAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.AllowedOrigins = []string{"https://dash.example.org"} })
	if got := s.query("{ __typename }", "Sec-Fetch-Site", "same-origin"); got.status != 200 {
		t.Errorf("same-origin: %d %s", got.status, got.body)
	}
	got := s.query("{ __typename }", "Origin", "https://dash.example.org", "Sec-Fetch-Site", "cross-site")
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "https://dash.example.org" {
		t.Errorf("the allowed origin: %d %v", got.status, got.header)
	}
	got = s.send("OPTIONS", "/graphql", "", "Origin", "https://dash.example.org",
		"Access-Control-Request-Method", "POST", "X-Auth-Token", "")
	if got.status != 204 || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "X-Auth-Token") {
		t.Errorf("the preflight: %d %v", got.status, got.header)
	}
	for _, origin := range []string{"dash.example.org", "https://dash.example.org/", "*", "null", "ftp://x",
		"https://Dash.example.org", "https://dash.example.org:443", "http://localhost:80"} {
		if web.CheckOrigin(origin) == nil {
			t.Errorf("%s is taken for an origin", origin)
		}
	}
}

// TestLongAnswersAreCompressed requests answers in each encoding, shorter and
// longer than the minimum for compression. Decoded, they are the same.
func TestLongAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	read := map[string]func(io.Reader) (io.Reader, error){
		"":     func(body io.Reader) (io.Reader, error) { return body, nil },
		"gzip": func(body io.Reader) (io.Reader, error) { return gzip.NewReader(body) },
		"zstd": func(body io.Reader) (io.Reader, error) { return zstd.NewReader(body) },
	}
	// long returns a query with an answer of about length bytes.
	long := func(length int) string { return "{ " + strings.Repeat("a", length) + ": __typename }" }
	for accept, want := range map[string]string{"gzip": "gzip", "zstd": "zstd",
		"gzip, deflate, br, zstd": "zstd", "br": "", "identity": "",
		"zstd;q=0, gzip": "gzip", "gzip;q=0": ""} {
		for _, document := range []string{"{ __schema { types { name fields { name description } } } }",
			long(1200), long(800), "{ __typename }"} {
			plain := s.query(document, "Accept-Encoding", "identity")
			got, encoding := s.query(document, "Accept-Encoding", accept,
				"Accept", "application/json, text/event-stream"), want // as urql does
			if len(plain.body) < 1024 {
				encoding = ""
			}
			if got.header.Get("Content-Encoding") != encoding || got.header.Get("Vary") == "" {
				t.Errorf("%d bytes for %q: %v, want %q", len(plain.body), accept, got.header, encoding)
				continue
			}
			body, err := read[encoding](strings.NewReader(got.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil ||
				withoutID.ReplaceAllString(string(text), "") != withoutID.ReplaceAllString(plain.body, "") {
				t.Errorf("%q gets other bytes than all: %v", accept, err)
			}
			if len(plain.body) > 4096 && encoding != "" && len(got.body) > len(plain.body)/2 {
				t.Errorf("%d of %d bytes", len(got.body), len(plain.body))
			}
		}
	}
}

// withoutID matches the request ids in answers.
var withoutID = regexp.MustCompile(`"requestId":"[^"]*"`)
