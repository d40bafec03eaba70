package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// closedCodes has all error codes.
const closedCodes = ` BAD_USER_INPUT UNAUTHENTICATED FORBIDDEN NOT_FOUND ALREADY_EXISTS CONCURRENT_UPDATE IN_USE PROTECTED
	CAPACITY_EXCEEDED QUOTA_EXCEEDED RATE_LIMITED QUERY_TOO_COMPLEX TIMEOUT UNAVAILABLE BAD_REQUEST GRAPHQL_PARSE_FAILED
	GRAPHQL_VALIDATION_FAILED INTROSPECTION_DISABLED PERSISTED_QUERY_NOT_FOUND PERSISTED_QUERY_REQUIRED `

// exposed is the built program in the locked profile, in its own process.
type exposed struct {
	*serving
	t *testing.T
}

// expose starts the program in the locked profile, behind a proxy on loopback.
func expose(t *testing.T, program, database string, args ...string) *exposed {
	t.Helper()
	tokens := tokenFile(t, "{token: admin-secret, user: ada, project: operations, roles: [admin]}",
		"{token: reader-secret, user: rae, project: demo, roles: [reader]}",
		"{token: spender-secret, user: sue, project: demo, roles: [reader]}")
	server, _ := spawn(t, program,
		append([]string{"--profile", "locked", "--tokens", tokens, "--database", database,
			"--trusted-proxy", "127.0.0.0/8"}, args...)...)
	return &exposed{serving: server, t: t}
}

// probe is a request of a scanner or an attacker, with the expected answer.
type probe struct {
	name string
	// document and variables are sent by POST as the reader, unless other
	// fields change that.
	document  string
	variables any
	method    string
	path      string
	body      string   // replaces document and variables
	headers   []string // names and values; an empty value removes a header
	status    int      // 0 is 200
	codes     string   // of all errors; "" is none
	has       string
	hasNot    string
}

// answered is the answer to a probe.
type answered struct {
	status int
	header http.Header
	body   string
	codes  string
	took   time.Duration
}

// request returns the HTTP request of a probe.
func (e *exposed) request(p probe) *http.Request {
	e.t.Helper()
	if p.document != "" {
		text, err := json.Marshal(map[string]any{"query": p.document, "variables": p.variables})
		if err != nil {
			e.t.Fatal(err)
		}
		p.body = string(text)
	}
	request, err := http.NewRequest(cmp.Or(p.method, http.MethodPost),
		e.address+cmp.Or(p.path, "/graphql"), strings.NewReader(p.body))
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "reader-secret")
	if p.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(p.headers); i += 2 {
		request.Header.Del(p.headers[i])
		if p.headers[i+1] != "" {
			request.Header.Set(p.headers[i], p.headers[i+1])
		}
	}
	return request
}

// send sends a probe on a new connection.
func (e *exposed) send(p probe) answered {
	e.t.Helper()
	request, began := e.request(p), time.Now()
	response, err := (&http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: patience.Of(e.t, time.Minute)}).
		RoundTrip(request)
	if err != nil {
		e.t.Fatalf("%s: %v", p.name, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatalf("%s: %v", p.name, err)
	}
	return answered{response.StatusCode, response.Header, string(body), codesIn(body), time.Since(began)}
}

func codesIn(body []byte) string {
	var answer struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	_ = json.Unmarshal(body, &answer) // a body that is not JSON has no codes
	var codes []string
	for _, err := range answer.Errors {
		codes = append(codes, err.Extensions.Code)
	}
	return strings.Join(codes, " ")
}

// hold sends a probe and checks the answer's status and codes, the rules for
// every answer, and that the process still runs.
func (e *exposed) hold(p probe) {
	e.t.Helper()
	got, want := e.send(p), cmp.Or(p.status, http.StatusOK)
	if got.status != want || got.codes != p.codes && p.codes != "-" || !strings.Contains(got.body, p.has) ||
		p.hasNot != "" && strings.Contains(got.body, p.hasNot) {
		e.t.Errorf("%s: %d %q, want %d %q with %q and without %q: %.400s", p.name, got.status, got.codes,
			want, p.codes, p.has, p.hasNot, got.body)
	}
	e.holdAny(p, got)
	e.alive(p.name)
}

// holdAny checks the rules for every answer: it is fast, has at most 64 KiB and
// 20 errors, known codes, safe headers and no internal details.
func (e *exposed) holdAny(p probe, got answered) {
	e.t.Helper()
	codes := strings.Fields(got.codes)
	for _, code := range codes {
		if !slices.Contains(strings.Fields(closedCodes), code) {
			e.t.Errorf("%s: the code %s: %.400s", p.name, code, got.body)
		}
	}
	if got.took > patience.Of(e.t, 5*time.Second) || len(got.body) > 64<<10 || len(codes) > 20 {
		e.t.Errorf("%s: %d bytes with %d errors after %v", p.name, len(got.body), len(codes), got.took)
	}
	for _, inside := range []string{"Did you mean", "sqlite", "pq:", "SQLSTATE", "goroutine", ".go:", "/tmp/",
		"cadastre/", "panic", "exception", "tracing"} {
		if strings.Contains(got.body, inside) {
			e.t.Errorf("%s discloses %q: %.400s", p.name, inside, got.body)
		}
	}
	if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Set-Cookie") != "" ||
		(p.path == "" || p.path == "/graphql") && got.header.Get("Cache-Control") != "no-store" {
		e.t.Errorf("%s: headers %v", p.name, got.header)
	}
}

// alive fails the test if the process has ended.
func (e *exposed) alive(after string) {
	e.t.Helper()
	select {
	case <-e.ended:
		e.t.Fatalf("after %s the process has ended: %v\n%s", after, e.err, e.stderr)
	default:
	}
}

// TestAnExposedServer starts the built program in the locked profile, as users
// do.
func TestAnExposedServer(t *testing.T) {
	t.Parallel()
	program := built(t)
	for name, test := range map[string]func(t *testing.T, program string){
		"stands up to probes":          standsUpToProbes,
		"discloses nothing hidden":     disclosesNothingHidden,
		"reaches nothing by itself":    reachesNothingByItself,
		"holds back who asks too much": holdsBackWhoAsksTooMuch,
		"ends what takes too long":     endsWhatTakesTooLong,
		"waits for nobody":             waitsForNobody,
		"takes trusted documents only": takesTrustedDocumentsOnly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

// standsUpToProbes sends the probes of GraphQL scanners and lists of known
// attacks. web/hostile_test.go counts the work of hostile documents, and
// docs/measured/attacks.md has times.
func standsUpToProbes(t *testing.T, program string) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		e := expose(t, program, database, configured(t, unlimited)) // a slow machine spends more points on each probe
		for _, p := range scannerProbes() {
			e.hold(p)
		}
		for _, p := range documentProbes() {
			e.hold(p)
		}
		for _, p := range requestProbes() {
			e.hold(p)
		}
		e.hold(probe{name: "afterwards", document: "{ __typename }", has: `"Query"`})
		e.holdsNoSecretInItsLog()
	})
}

// holdsNoSecretInItsLog searches the log for content of the probes.
func (e *exposed) holdsNoSecretInItsLog() {
	e.t.Helper()
	log := e.stderr.String()
	for _, secret := range []string{"reader-secret", "guessed-secret", "variable-secret",
		"literal-secret", strings.Repeat("O", 200)} {
		if strings.Contains(log, secret) {
			e.t.Errorf("the log holds %.40s", secret)
		}
	}
	if !strings.Contains(log, "operation=OOO") {
		e.t.Error("the log lacks the names of operations")
	}
}

// scannerProbes are the tests of graphql-cop, one by one.
func scannerProbes() []probe {
	batch := strings.Repeat(`{"query":"query cop { __typename }"},`, 10)
	html := []string{"Accept", "text/html"}
	return []probe{
		{name: "field_suggestions", document: "query cop { __schema { directive } }",
			codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "field_suggestions of fields", document: "{ viewe { userId } }", codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "field_suggestions of arguments", document: "{ namespaces(firs: 1) { totalCount } }",
			codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "field_suggestions of types", document: "query($a: Strin) { __typename }",
			codes: "GRAPHQL_VALIDATION_FAILED GRAPHQL_VALIDATION_FAILED"},
		{name: "field_suggestions of enum values", document: "{ namespaces(orderBy: {field: NAM}) { totalCount } }",
			codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "field_suggestions of input fields",
			document: "{ namespaces(filter: {visibilit: PUBLIC}) { totalCount } }", codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "introspection", document: "query cop { __schema { types { name } } }",
			headers: []string{"X-Auth-Token", ""}, status: 401,
			codes: "INTROSPECTION_DISABLED UNAUTHENTICATED", hasNot: "Namespace"},
		{name: "introspection by __type", document: `{ __type(name: "Query") { name } }`,
			headers: []string{"X-Auth-Token", "guessed-secret"}, status: 401,
			codes: "INTROSPECTION_DISABLED UNAUTHENTICATED"},
		{name: "introspection with a token", document: "{ __schema { queryType { name } } }", has: `"Query"`},
		{name: "detect_graphiql", method: "GET", headers: html, status: 406, codes: "BAD_REQUEST", hasNot: "GraphiQL"},
		{name: "detect_graphiql at /", method: "GET", path: "/", headers: html, status: 404, hasNot: "GraphiQL"},
		{name: "detect_graphiql at /ide", method: "GET", path: "/ide", headers: html, status: 404, hasNot: "GraphiQL"},
		{name: "detect_graphiql at /graphiql", method: "GET", path: "/graphiql",
			headers: html, status: 404, hasNot: "GraphiQL"},
		{name: "get_method_support", method: "GET", path: "/graphql?query=query+cop+%7B__typename%7D", status: 405,
			codes: "BAD_REQUEST", hasNot: `"Query"`},
		{name: "alias_overloading", document: "query cop {" + numbered(101, "alias%d:__typename ") + "}",
			codes: "QUERY_TOO_COMPLEX"},
		{name: "batch_query", body: "[" + strings.TrimSuffix(batch, ",") + "]", status: 400,
			codes: "BAD_REQUEST", hasNot: `"data"`},
		{name: "trace_mode", document: "query cop { __typename }", has: `"Query"`, hasNot: "tracing"},
		{name: "directive_overloading", document: "query cop { __typename " + strings.Repeat("@aa", 10) + " }",
			codes: "QUERY_TOO_COMPLEX", hasNot: "@aa"},
		{name: "circular_query_introspection",
			document: "query cop { __schema { types { fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } }", codes: "GRAPHQL_VALIDATION_FAILED"},
		{name: "get_based_mutation", method: "GET", path: "/graphql?query=mutation+cop+%7B__typename%7D", status: 405,
			codes: "BAD_REQUEST", hasNot: `"Mutation"`},
		{name: "post_based_csrf", body: "query=query+cop+%7B__typename%7D",
			headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, codes: "BAD_REQUEST"},
		{name: "unhandled_error", document: "qwerty cop { abc }", codes: "GRAPHQL_PARSE_FAILED"},
		{name: "field_duplication", document: "query cop {" + strings.Repeat("__typename ", 500) + "}",
			codes: "QUERY_TOO_COMPLEX"},
	}
}

func numbered(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// doublingFragments returns fragments that each spread the next fragment twice.
func doublingFragments(n int, twice string) string {
	var out strings.Builder
	out.WriteString("{ namespaces { nodes { ...f0 } } } ")
	for i := range n {
		fmt.Fprintf(&out, "fragment f%d on Namespace { %s } ", i,
			strings.ReplaceAll(twice, "NEXT", fmt.Sprintf("...f%d", i+1)))
	}
	fmt.Fprintf(&out, "fragment f%d on Namespace { name }", n)
	return out.String()
}

// documentProbes are hostile documents and variables.
func documentProbes() []probe {
	repeat := strings.Repeat
	deep := func(levels int, last string) string { // levels in addition to the levels of last
		return repeat("{ parent ", levels) + last + repeat(" }", levels)
	}
	const tag = `namespace(name: "none") { tag(name: "none") `
	page := func(arguments string) string { return "{ namespaces" + arguments + " { nodes { id } } }" }
	not := func(levels int) any {
		var condition any = map[string]any{"metadata": map[string]any{"key": "a", "exists": true}}
		for range levels {
			condition = map[string]any{"not": condition}
		}
		return map[string]any{"w": condition}
	}
	any51 := make([]any, 51)
	for i := range any51 {
		any51[i] = map[string]any{"metadata": map[string]any{"key": "a", "exists": true}}
	}
	const uuid = "77777777-7777-4777-8777-777777777777"
	const where = "query($w: ResourceCondition!) { resources(filter: {where: $w}) { totalCount } }"
	const parse, invalid, tooComplex, input = "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
		"QUERY_TOO_COMPLEX", "BAD_USER_INPUT"
	return []probe{
		{name: "15 levels", document: "{ " + tag + deep(12, "{ id }") + " } }", has: `"namespace":null`},
		{name: "16 levels", document: "{ " + tag + deep(13, "{ id }") + " } }", codes: tooComplex},
		{name: "16 levels by inline fragments",
			document: "{ ... { " + tag + deep(12, "{ ... { parent { id } } }") + " } } }", codes: tooComplex},
		{name: "16 levels by named fragments", document: "{ " + tag + deep(12, "{ ...f }") +
			" } } fragment f on Tag { parent { id } }", codes: tooComplex},
		{name: "cyclic fragments", document: "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }",
			codes: invalid, hasNot: `"data"`},
		{name: "fragment doubling", document: doublingFragments(28, "NEXT NEXT"), codes: tooComplex},
		{name: "aliased doubling",
			document: doublingFragments(60,
				"a: resourceTypeAssociations { namespace { NEXT } } b: resourceTypeAssociations { namespace { NEXT } }"), codes: tooComplex},
		{name: "2 MB of [", document: "{ a(b: " + repeat("[", 2<<20), status: 413, codes: "BAD_REQUEST"},
		{name: "1 MB of [", document: "{ a(b: " + repeat("[", 1<<20-100), codes: parse},
		{name: "300 KB of {a:", document: "{ a(b: " + repeat("{a:", 100000), codes: parse},
		{name: "500,000 selections", document: repeat("{a", 500000), codes: parse},
		{name: "10,000 duplicate fields", document: "{" + repeat("__typename ", 10000) + "}", codes: parse},
		{name: "10,000 aliases", document: "{ viewer {" + numbered(10000, "a%d: userId ") + "} }", codes: parse},
		{name: "100,000 directives", document: "{ __typename " + repeat("@aa", 100000) + " }", codes: parse},
		{name: "a list of 100,000 in a variable", document: "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
			variables: map[string]any{"ids": make([]int, 100000)}, codes: input},
		{name: "a text of 1 MB", document: `{ namespace(name: "` + repeat("x", 1000000) + `") { id } }`,
			has: `"namespace":null`},
		{name: "100,000 variables that are not used",
			document: "query(" + numbered(60000, "$a%d:Int") + ") { __typename }", codes: parse},
		{name: "cost of 16 · 16 · 2^30 · 2^30",
			document: "{ resources(first: 16) { nodes { children(first: 16) { nodes { children(first: 1073741824) { nodes { children(first: 1073741824) { nodes { id } } } } } } } } }", codes: tooComplex, has: "it costs"},
		{name: "first above the maximum", document: page("(first: 1001)"), codes: input},
		{name: "first below nothing", document: page("(first: -1)"), codes: input},
		{name: "first and last", document: page("(first: 1, last: 1)"), codes: input},
		{name: "first left out costs the usual page", document: page(""), has: `"requested":1624`},
		{name: "101 ids of nodes", document: "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
			variables: map[string]any{"ids": strings.Split(repeat("x,", 100)+"x", ",")}, codes: input},
		{name: "5,001 uuids in a filter",
			document:  "query($u: [UUID!]) { resources(filter: {uuids: $u}) { totalCount } }",
			variables: map[string]any{"u": strings.Split(repeat("x,", 5000)+"x", ",")}, codes: input},
		{name: "251 uuids in a filter",
			document:  "query($u: [UUID!]) { resources(filter: {uuids: $u}) { totalCount } }",
			variables: map[string]any{"u": strings.Split(repeat(uuid+",", 250)+uuid, ",")}, codes: input},
		{name: "250 uuids in a filter",
			document:  "query($u: [UUID!]) { resources(filter: {uuids: $u}) { totalCount } }",
			variables: map[string]any{"u": strings.Split(repeat(uuid+",", 249)+uuid, ",")}, has: `"totalCount":0`},
		{name: "conditions 5 deep", document: where, variables: not(5), has: `"totalCount":0`},
		{name: "conditions 6 deep", document: where, variables: not(6), codes: input},
		{name: "51 conditions", document: where, variables: map[string]any{"w": map[string]any{"any": any51}},
			codes: input},
		{name: "SQL in a key of metadata",
			document: `{ resources(filter: {metadata: [{key: "a'->>'x') OR 1=1 --", value: "b"}]}) { totalCount } }`,
			has:      `"totalCount":0`},
		{name: "SQL in a condition",
			document: `{ resources(filter: {where: {metadata: {key: "a') OR ('1'='1", equals: "') OR 1=1 --"}}}) { totalCount } }`, has: `"totalCount":0`},
		{name: "SQL in the order",
			document: `{ namespaces(orderBy: {field: "name; DROP TABLE namespaces"}) { totalCount } }`, codes: invalid},
		{name: "SQL in the order, by a variable",
			document:  "query($o: NamespaceOrder) { namespaces(orderBy: $o) { totalCount } }",
			variables: map[string]any{"o": map[string]any{"field": "1) --", "direction": "ASC"}}, codes: invalid},
		{name: "SQL in a cursor", document: `{ namespaces(after: "') OR 1=1 --") { totalCount } }`, codes: input},
		{name: "a cursor of msgpack", document: `{ namespaces(after: "3wAAAAHf////////////") { totalCount } }`,
			codes: input},
		{name: "an id of nothing", document: `{ node(id: "!!!") { id } }`, codes: input},
		{name: "an id of a wrong type", document: "query($a: ID!) { node(id: $a) { id } }",
			variables: map[string]any{"a": true}, codes: invalid},
		{name: "an id of msgpack", document: `{ node(id: "3wAAAAHf////////////") { id } }`, codes: input},
		{name: "an id that goes on and on", document: `{ node(id: "` + repeat("A", 100000) + `") { id } }`,
			codes: input},
		{name: "@defer", document: "{ viewer { ... @defer { userId } } }", codes: invalid},
		{name: "@stream", document: "{ viewer { roles @stream } }", codes: invalid},
		{name: "@skip with a variable that is missing", document: "query($a: Boolean!) { __typename @skip(if: $a) }",
			codes: invalid},
		{name: "@include with null", document: "query($a: Boolean = true) { __typename @include(if: $a) }",
			variables: map[string]any{"a": nil}, codes: invalid},
		{name: "@oneOf with two", document: where,
			variables: map[string]any{"w": map[string]any{"all": []any{}, "any": []any{}}}, codes: invalid},
		{name: "@oneOf with none", document: where, variables: map[string]any{"w": map[string]any{}}, codes: invalid},
		{name: "a subscription", document: "subscription { __typename }", codes: invalid},
		{name: "U+0000 in a variable", document: "query($a: String!) { namespace(name: $a) { id } }",
			variables: map[string]any{"a": "\x00variable-secret"}, codes: input},
		{name: "U+0000 in a literal", document: `{ namespace(name: "\u0000literal-secret") { id } }`, codes: input},
		{name: "a pattern that takes long elsewhere",
			document: `{ validateMetadata(resourceType: "physical:host", values: [{key: "^(a+)+$", value: "` +
				repeat("a", 1000) + `!"}]) { valid } }`, has: `"valid"`},
		{name: "a long name of an operation", document: "query " + repeat("O", 250) + " { __typename }",
			has: `"Query"`},
		{name: "an odd name of an operation", document: "query O\n{ __typename }", has: `"Query"`},
	}
}

// requestProbes are requests that are wrong as HTTP, or want something that
// does not exist.
func requestProbes() []probe {
	const query, badRequest = `{"query":"{ __typename }"}`, "BAD_REQUEST"
	return []probe{
		{name: "a body of more than 1 MiB", body: `{"query":"` + strings.Repeat(" ", 1<<20) + `"}`, status: 413,
			codes: badRequest},
		{name: "a gzip bomb", body: "\x1f\x8b" + strings.Repeat("\x00", 1000),
			headers: []string{"Content-Encoding", "gzip"}, status: 415, codes: badRequest},
		{name: "JSON that goes on", body: query + query, status: 400, codes: badRequest},
		{name: "a member twice", body: `{"query":"{ __typename }","query":"{ viewer { userId } }"}`, status: 400,
			codes: badRequest},
		{name: "a variable twice", body: `{"query":"{ __typename }","variables":{"a":1,"a":2}}`, status: 400,
			codes: badRequest},
		{name: "a body that is echoed", body: `{"query": echoed`, status: 400, codes: badRequest, hasNot: "echoed"},
		{name: "msgpack", body: "\x81\xa5query\xaf{ __typename }",
			headers: []string{"Content-Type", "application/msgpack"}, status: 415, codes: badRequest},
		{name: "text/plain", body: query, headers: []string{"Content-Type", "text/plain"}, status: 415,
			codes: badRequest},
		{name: "an upload", body: "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + query +
			"\r\n--x--\r\n", headers: []string{"Content-Type",
			"multipart/form-data; boundary=x"}, status: 415, codes: badRequest},
		{name: "a page of another site", body: query,
			headers: []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.org"}, status: 403,
			codes: "FORBIDDEN"},
		{name: "a page of another origin", body: query,
			headers: []string{"Origin", "https://evil.example.org"}, status: 403, codes: "FORBIDDEN"},
		{name: "a preflight of another origin", method: "OPTIONS",
			headers: []string{"Origin", "https://evil.example.org", "Access-Control-Request-Method", "POST"},
			status:  403, codes: "FORBIDDEN"},
		{name: "WebSocket of the old subprotocol", method: "GET",
			headers: []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
				"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol", "graphql-ws"}, status: 400,
			codes: badRequest},
		{name: "WebSocket of another origin", method: "GET",
			headers: []string{"Connection", "Upgrade", "Upgrade", "websocket", "Origin", "https://evil.example.org",
				"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, status: 403, codes: "FORBIDDEN"},
		{name: "events of the server", body: query, headers: []string{"Accept", "text/event-stream"},
			has: "event: next\ndata: {\"data\":{\"__typename\":\"Query\"}"},
		{name: "events of the server, by GET", method: "GET", path: "/graphql?query=%7B__typename%7D",
			headers: []string{"Accept", "text/event-stream"}, status: 405, codes: badRequest},
		{name: "a subscription without a stream", body: `{"query":"subscription { capacityChanged { cursor } }"}`,
			status: 406, codes: badRequest},
		{name: "events without a token", body: query,
			headers: []string{"Accept", "text/event-stream", "X-Auth-Token", ""},
			status:  401, codes: "UNAUTHENTICATED"},
		{name: "answers in parts", body: query, headers: []string{"Accept", "multipart/mixed"}, status: 406,
			codes: badRequest},
		{name: "PUT", method: "PUT", body: query, status: 405, codes: badRequest},
		{name: "no token", body: query, headers: []string{"X-Auth-Token", ""}, status: 401, codes: "UNAUTHENTICATED"},
		{name: "a guessed token", body: query, headers: []string{"X-Auth-Token", "guessed-secret"},
			status: 401, codes: "UNAUTHENTICATED"},
		{name: "two tokens", body: query, headers: []string{"Authorization", "Bearer admin-secret"},
			status: 401, codes: "UNAUTHENTICATED"},
		{name: "a hash that is not that of the text", body: `{"query":"{ __typename }","documentId":"` +
			strings.Repeat("0", 64) + `"}`, status: 400, codes: badRequest},
		{name: "an unknown hash", method: "GET", path: "/graphql?" +
			url.Values{"documentId": {strings.Repeat("0", 64)}}.Encode(), codes: "PERSISTED_QUERY_NOT_FOUND"},
		{name: "an address elsewhere", method: "GET", path: "/..%2f..%2fetc/passwd", status: 404},
	}
}
