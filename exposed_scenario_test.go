package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// data sends a valid document with a token and decodes the data of the answer.
func (e *exposed) data(token, document string, into any) {
	e.t.Helper()
	got := e.send(probe{name: document, document: document, headers: []string{"X-Auth-Token", token}})
	answer := struct{ Data any }{into}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.codes != "" {
		e.t.Fatalf("%s: %v in %d %s", document, err, got.status, got.body)
	}
}

// disclosesNothingHidden asks for objects of another project by every kind of
// path, and for objects that never existed. The answers may differ only in the
// names from the request.
func disclosesNothingHidden(t *testing.T, program string) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		e := expose(t, program, database, configured(t, unlimited))
		const hidden, missing = "eeeeeeee-0000-4000-8000-000000000001", "eeeeeeee-0000-4000-8000-000000000002"
		var made struct {
			N struct{ Namespace struct{ ID string } }
			G struct{ Namespace struct{ ID string } }
			R struct{ Resource struct{ ID string } }
		}
		e.data("admin-secret", `mutation {
			n: createNamespace(input: {name: "hidden", visibility: PRIVATE, properties: [{name: "hiddenproperty", title: "t", type: STRING}], tags: [{name: "hiddentag"}],
				resourceTypeAssociations: [{resourceType: "physical:host"}]}) { namespace { id } }
			g: createNamespace(input: {name: "gone", visibility: PRIVATE}) { namespace { id } }
			r: createResource(input: {type: "physical:host", name: "hiddenhost", uuid: "`+hidden+`", metadata: [{key: "hiddenkey", value: "hiddenvalue"}], tags: ["hiddentag"]}) { resource { id } }
			like: createNamespace(input: {name: "a%b_c", visibility: PUBLIC}) { __typename }
			other: createNamespace(input: {name: "axbyc", visibility: PUBLIC}) { __typename } }`, &made)
		e.data("admin-secret", `mutation { deleteNamespace(input: {name: "gone"}) { __typename } }`, new(any))
		for name, of := range map[string]struct{ document, hidden, missing string }{
			"look-up":         {`{ namespace(name: "$") { id } }`, "hidden", "gone"},
			"look-up by uuid": {`{ resource(uuid: "$") { id } }`, hidden, missing},
			"node":            {`{ node(id: "$") { id __typename } }`, made.N.Namespace.ID, made.G.Namespace.ID},
			"nodes":           {`{ nodes(ids: ["$"]) { id } }`, made.N.Namespace.ID, made.G.Namespace.ID},
			"list and count": {`{ namespaces(filter: {search: "$"}) { totalCount nodes { name } } }`, "hidden",
				"gone"},
			"filter by a tag": {`{ namespaces(filter: {tag: "$"}) { totalCount } resources(filter: {tags: [{name: "$"}]}) { totalCount } }`, "hiddentag", "nothing"},
			"filter by a key": {`{ namespaces(filter: {definesKey: "$"}) { totalCount } }`, "hiddenproperty",
				"nothing"},
			"filter of metadata": {`{ resources(filter: {metadata: [{key: "$", value: "hiddenvalue"}]}) { totalCount metadataFacets(keys: ["$"]) { values { value } } } }`, "hiddenkey", "nothing"},
			"condition":          {`{ resources(filter: {where: {metadata: {key: "$", exists: true}}}) { totalCount } }`, "hiddenkey", "nothing"},
			"sum of the parts":   {`{ explainResources(filter: {metadata: [{key: "$", value: "hiddenvalue"}]}) { considered clauses { passing remaining } } }`, "hiddenkey", "nothing"},
			"keys in use": {`{ metadataKeys(search: "$") { totalCount nodes { key } } }`, "hiddenkey",
				"nothing"},
			"tags":   {`{ tags(search: "$") { totalCount } }`, "hiddentag", "nothing"},
			"nested": {`{ resourceType(name: "physical:host") { namespaces(filter: {search: "$"}) { totalCount } resources { totalCount } } }`, "hidden", "gone"},
			"definitions": {`{ definitions(resourceType: "physical:host", search: "$") { namespace { name } } }`,
				"hiddenproperty", "nothing"},
			"suggestion":       {`{ validateMetadata(resourceType: "physical:host", values: [{key: "$", value: "v"}]) { valid items { suggestion isCustom } } }`, "hiddenpropertx", "nothing"},
			"export":           {`{ exportNamespaces(names: ["$"]) }`, "hidden", "gone"},
			"mutation":         {`mutation { updateNamespace(input: {name: "$", description: "d"}) { namespace { id } } }`, "hidden", "gone"},
			"mutation by role": {`mutation { setMetadata(input: {resource: "$", items: [{key: "a", value: "b"}]}) { resource { id } } }`, hidden, missing},
		} {
			ask := func(of, name string) (string, int) {
				got := e.send(probe{name: name, document: strings.ReplaceAll(of, "$", name)})
				body := strings.ReplaceAll(got.body, name, "$")
				if at := strings.Index(body, `"requestId":"`); at > 0 {
					body = body[:at] + body[at+13+26:]
				}
				return body, got.status
			}
			first, firstStatus := ask(of.document, of.hidden)
			second, secondStatus := ask(of.document, of.missing)
			if first != second || firstStatus != secondStatus || strings.Contains(first, "hidden") {
				t.Errorf("%s discloses:\n%s\n%s", name, first, second)
			}
		}
		for search, want := range map[string]int{"%": 1, "_": 1, "b_c": 1, "byc": 1, `\\`: 0, "a": 2} {
			var found struct{ Namespaces struct{ TotalCount int } }
			if e.data("reader-secret", `{ namespaces(filter: {search: "`+search+`"}) { totalCount } }`,
				&found); found.Namespaces.TotalCount != want {
				t.Errorf("searching for %s finds %d, want %d", search, found.Namespaces.TotalCount, want)
			}
		}
	})
}

// reachesNothingByItself stores definitions and values that contain an address,
// and validates against them. The address gets no request.
func reachesNothingByItself(t *testing.T, program string) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(elsewhere.Close)
	e := expose(t, program, storetest.SQLite(t))
	at := elsewhere.URL
	document, err := json.Marshal(map[string]any{
		"namespace": "reach", "visibility": "public", "$schema": at + "/schema",
		"resource_type_associations": []any{map[string]any{"name": "physical:host"}},
		"properties": map[string]any{"p": map[string]any{"title": "t", "type": "string", "$ref": at + "/ref", "$id": at,
			"$dynamicRef": at + "#x", "format": "uri", "default": at}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.data("admin-secret",
		fmt.Sprintf(`mutation { importNamespaces(input: {documents: [%q]}) { reports { outcome errors } } }`, document),
		new(any))
	e.data("admin-secret", `{ validateMetadata(resourceType: "physical:host", values: [{key: "p", value: "`+at+
		`"}]) { valid } namespaces { nodes { properties { jsonSchema } } } exportNamespaces }`, new(any))
	if n := visits.Load(); n != 0 {
		t.Errorf("%d visits", n)
	}
}

// holdsBackWhoAsksTooMuch spends the points of a viewer, and guesses tokens
// from one address. The server still serves other viewers and addresses.
func holdsBackWhoAsksTooMuch(t *testing.T, program string) {
	// 30 guesses a second: even a slow machine sends more
	e := expose(t, program, storetest.SQLite(t), configured(t, "limits: {address-points: 1500}"))
	dear := probe{name: "the dearest",
		document: "{ resources(first: 70) { nodes { children(first: 1000) { nodes { id uuid name } } } } }",
		headers:  []string{"X-Auth-Token", "spender-secret"}}
	for range 4 {
		if got := e.send(dear); got.codes == "RATE_LIMITED" {
			if got.status != 429 || got.header.Get("Retry-After") == "" ||
				!strings.Contains(got.body, `"retryAfter":`) {
				t.Errorf("held back: %d %s %v", got.status, got.body, got.header)
			}
			dear.codes = got.codes
			break
		} else if got.codes != "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if dear.codes != "RATE_LIMITED" {
		t.Error("the spender was not held back")
	}
	e.hold(probe{name: "another viewer", document: "{ __typename }", has: `"Query"`})

	guess := probe{name: "a guess", document: "{ __typename }",
		headers: []string{"X-Auth-Token", "guess", "X-Forwarded-For", "192.0.2.1"}}
	held := false
	for range 600 {
		if got := e.send(guess); got.status == 429 {
			held = true
			break
		}
	}
	if !held {
		t.Error("600 guesses at once were heard")
	}
	e.hold(probe{name: "another address", document: "{ __typename }",
		headers: []string{"X-Forwarded-For", "192.0.2.2"}, has: `"Query"`})
}

// endsWhatTakesTooLong holds the write lock of the database. Operations end
// when their time is over or their client leaves. Operations beyond a share get
// a time to try again, and the server still serves others.
func endsWhatTakesTooLong(t *testing.T, program string) {
	database, limit := storetest.SQLite(t), patience.Of(t, 3*time.Second)
	e := expose(t, program, database, configured(t, "limits: {concurrent: 4, operation-time: "+limit.String()+"}"))
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(database, "sqlite://")+
		"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	e.endsWritesWithTheirTime(limit)
	e.endsWritesWithTheirClient(limit)
	e.hold(probe{name: "afterwards", document: "{ __typename }", has: `"Query"`})
}

// endsWritesWithTheirTime sends as many writes as one viewer may run, and
// queries of the same viewer and another one.
func (e *exposed) endsWritesWithTheirTime(limit time.Duration) {
	write := probe{name: "a write", document: `mutation { createTrait(input: {name: "CUSTOM_A"}) { __typename } }`,
		headers: []string{"X-Auth-Token", "admin-secret"}}
	began, ended := time.Now(), make(chan answered, 2)
	for range 2 {
		go func() {
			var got answered
			defer func() { ended <- got }()
			got = e.send(write)
		}()
	}
	var busy answered
	for busy.status != 429 && time.Since(began) < limit { // until both writes run
		busy = e.send(probe{name: "beyond the share", document: "{ __typename }", headers: write.headers})
	}
	if busy.codes != "RATE_LIMITED" || busy.header.Get("Retry-After") == "" {
		e.t.Errorf("beyond the share: %d %s", busy.status, busy.body)
	}
	e.hold(probe{name: "another viewer", document: "{ __typename }", has: `"Query"`})
	for range 2 {
		if got := <-ended; got.codes != "TIMEOUT" || got.took > 3*limit {
			e.t.Errorf("a write that waits: %d %s after %v", got.status, got.body, got.took)
		}
	}
}

// endsWritesWithTheirClient sends a third write and disconnects long before its
// time is over.
func (e *exposed) endsWritesWithTheirClient(limit time.Duration) {
	ctx, cancel := context.WithCancel(e.t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address+"/graphql",
		strings.NewReader(`{"query":"mutation Leaver { createTrait(input: {name: \"CUSTOM_B\"}) { __typename } }"}`))
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Auth-Token": {"admin-secret"}}
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(request)
		gone <- err
	}()
	for began := time.Now(); !strings.Contains(e.metrics(), `cadastre_graphql_operations_total{kind="mutation"} 3`) &&
		time.Since(began) < limit; {
		time.Sleep(time.Millisecond)
	}
	left := time.Now()
	cancel()
	if <-gone == nil {
		e.t.Error("the client that left has an answer")
	}
	for !strings.Contains(e.stderr.String(), "operation=Leaver code=TIMEOUT") {
		if time.Since(left) > limit*2/3 {
			e.t.Fatalf("the operation outlives its client\n%s", e.stderr)
		}
		time.Sleep(time.Millisecond)
	}
}

func (e *exposed) metrics() string {
	return e.send(probe{name: "the measurements", method: http.MethodGet, path: "/metrics",
		headers: []string{"X-Auth-Token", "admin-secret"}}).body
}

// waitsForNobody sends half a request and waits. The server ends the connection
// when the time for it is over. It refuses headers that are too long
// immediately.
func waitsForNobody(t *testing.T, program string) {
	e := expose(t, program, storetest.SQLite(t), configured(t, unlimited))
	const head = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: reader-secret\r\nContent-Type: application/json\r\n"
	for name, of := range map[string]struct {
		sent   string
		within time.Duration
		has    string
	}{
		"half of the headers": {head, 5 * time.Second, ""},
		"half of the body":    {head + "Content-Length: 100\r\n\r\n{", 15 * time.Second, "400 Bad Request"},
		"chunks without an end": {head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
			15 * time.Second, "400 Bad Request"},
		"headers of 40 KB": {head + "X-Long: " + strings.Repeat("a", 40000) + "\r\n\r\n",
			0, "431 Request Header Fields Too Large"},
		"two lengths": {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 0,
			"400 Bad Request"},
		"no length that is a number": {head + "Content-Length: -1\r\n\r\n{}", 0, "400 Bad Request"},
		"a chunk of no length": {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 0,
			"400 Bad Request"},
		"what is no HTTP":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 0, "400 Bad Request"},
		"the preface of another HTTP": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, "400 Bad Request"},
		"a method that goes on and on": {strings.Repeat("A", 5000) +
			" /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 0, "405 Method Not Allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", strings.TrimPrefix(e.address, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			began := time.Now()
			late := patience.Of(t, 5*time.Second)
			_ = connection.SetDeadline(began.Add(of.within + 2*late))
			if _, err := io.WriteString(connection, of.sent); err != nil && of.within > 0 {
				t.Fatal(err)
			}
			answer, _ := bufio.NewReader(connection).ReadString('\n') // the rest may be missing
			took := time.Since(began)
			if !strings.Contains(answer, of.has) || took < of.within-time.Second || took > of.within+late {
				t.Errorf("%q after %v, want %q within %v", answer, took, of.has, of.within)
			}
		})
	}
	t.Cleanup(func() { e.alive("everything") })
}

// takesTrustedDocumentsOnly serves a list of trusted documents that changes
// meanwhile.
func takesTrustedDocumentsOnly(t *testing.T, program string) {
	hash := func(document string) string {
		sum := sha256.Sum256([]byte(document))
		return hex.EncodeToString(sum[:])
	}
	const first, second = "query First { viewer { userId } }", "query Second { viewer { projectId } }"
	path := filepath.Join(t.TempDir(), "documents.json")
	put := func(text string) {
		next := path + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	put(fmt.Sprintf("{%q: %q}", hash(first), first))
	e := expose(t, program, storetest.SQLite(t), "--trusted-documents", path, "--trusted-only")
	byHash := func(document string) string { return fmt.Sprintf(`{"documentId": %q}`, hash(document)) }
	e.hold(probe{name: "a trusted one", body: byHash(first), has: `"rae"`})
	e.hold(probe{name: "a trusted one by GET", method: "GET", path: "/graphql?documentId=" + hash(first), has: `"rae"`})
	e.hold(probe{name: "text", document: "{ __typename }", codes: "PERSISTED_QUERY_REQUIRED"})
	e.hold(probe{name: "an unknown one", body: byHash(second), codes: "PERSISTED_QUERY_REQUIRED"})
	e.hold(probe{name: "another hash", body: fmt.Sprintf(`{"query": %q, "documentId": %q}`, second, hash(first)),
		status: 400, codes: "BAD_REQUEST"})
	put(fmt.Sprintf("{%q: %q, %q: %q}", hash(first), first, hash(second), second))
	for began := time.Now(); e.send(probe{name: "the new one",
		body: byHash(second)}).codes != ""; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience.Of(t, 20*time.Second) {
			t.Fatal("the changed file is not read")
		}
		e.hold(probe{name: "the old one meanwhile", body: byHash(first), has: `"rae"`})
	}
	put("{")
	e.hold(probe{name: "the old one with a broken file", body: byHash(first), has: `"rae"`})
}
