package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document/documenttest"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/web"
)

// TestHostileDocumentsAreAnsweredShortlyAndSoon sends documents made to cost
// the server much. Each answer is small and fast and has the expected code.
// docs/measured/attacks.md has the measured times.
func TestHostileDocumentsAreAnsweredShortlyAndSoon(t *testing.T) {
	t.Parallel()
	unpaid := func(profile web.Profile) func(*web.Options) {
		return func(o *web.Options) {
			o.Profile, o.Limits = profile, web.DefaultLimits()
			o.Limits.PrincipalPoints, o.Limits.AdminPoints = 0, 0
		}
	}
	s, open := start(t, unpaid(web.Locked)), start(t, unpaid(web.Open))
	for name, test := range documenttest.HostileDocuments() {
		for _, server := range []*server{s, open} {
			began := time.Now()
			got := server.ask(map[string]any{"query": test.Query, "variables": test.Variables})
			took := time.Since(began)
			if len(got.body) > 64<<10 {
				t.Errorf("%s: an answer of %d bytes: %.200s", name, len(got.body), got.body)
			}
			if code := got.code(); code != test.Code && test.Code != "-" {
				t.Errorf("%s: %d %q, want %q: %.300s", name, got.status, code, test.Code, got.body)
			}
			if len(got.codes()) > 20 {
				t.Errorf("%s: %d errors", name, len(got.codes()))
			}
			if got.status != 200 && got.status != 413 {
				t.Errorf("%s: %d %.200s", name, got.status, got.body)
			}
			if took > patience.Of(t, 5*time.Second) {
				t.Errorf("%s took %v", name, took)
			}
			if server == s {
				t.Logf("%-28s %8.1f ms %6d bytes  %s", name,
					float64(took.Microseconds())/1000, len(got.body), got.code())
			}
		}
	}
	if got := s.query("{ __typename }"); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

// holdsOnce has the check ask new servers until it returns no message, and
// reports the last message. Slow requests cost more points. So one try may fail
// on a slow machine.
func holdsOnce(t *testing.T, change func(*web.Options), check func(s *server) string) {
	t.Helper()
	var wrong string
	if !patience.Until(t, 30*time.Second, func() bool { wrong = check(start(t, change)); return wrong == "" }) {
		t.Error(wrong)
	}
}

func TestACallerWhoSpendsTooMuchIsHeldBack(t *testing.T) {
	t.Parallel()
	poor := func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		// a burst of two, and the next point after four seconds
		o.Limits.PrincipalPoints, o.Limits.AdminPoints = 0.251, 0.251
	}
	holdsOnce(t, poor, func(s *server) string {
		for range 2 {
			if got := s.query("{ __typename }"); got.status != 200 {
				return fmt.Sprintf("a simple one: %d %s", got.status, got.body)
			}
		}
		if got := s.query("{ __typename }"); got.status != 429 || got.code() != "RATE_LIMITED" ||
			got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"retryAfter":`) {
			return fmt.Sprintf("the third: %d %s %v", got.status, got.body, got.header)
		}
		if got := s.query("{ __typename }", "X-Auth-Token", "reader-token"); got.status != 200 {
			return fmt.Sprintf("another caller: %d %s", got.status, got.body)
		}
		return ""
	})
}

func TestExpensiveOperationsSpendMore(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints = 15, 15 // a burst of sixty
	})
	// 19 points, and more for the request and its work
	const expensive = "{ namespaces(first: 75) { nodes { properties { name } } } }"
	codes, began := map[string]int{}, time.Now()
	for range 6 {
		codes[s.query(expensive).code()]++
	}
	earned := int(time.Since(began).Seconds()) // at most this many more
	if codes[""] < 1 || codes[""] > 3+earned || codes[""]+codes["RATE_LIMITED"] != 6 {
		t.Errorf("got %v, want one to three of six, and %d more for the time it took", codes, earned)
	}
}

// TestServicesAndAdministratorsHaveBudgetsOfTheirOwn checks that a viewer has
// the largest budget of its roles.
func TestServicesAndAdministratorsHaveBudgetsOfTheirOwn(t *testing.T) {
	t.Parallel()
	different := func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints = 0.251, 1000 // a burst of two
	}
	holdsOnce(t, different, func(s *server) string {
		for range 20 {
			if got := s.query("{ __typename }"); got.status != 200 {
				return fmt.Sprintf("an administrator: %d %s", got.status, got.body)
			}
		}
		began, codes := time.Now(), map[string]int{}
		for range 10 {
			codes[s.query("{ __typename }", "X-Auth-Token", "reader-token").code()]++
		}
		if codes[""] < 2 || codes[""] > 2+earnedSince(began, 0.251) || codes["RATE_LIMITED"] == 0 {
			return fmt.Sprintf("a reader: %v", codes)
		}
		return ""
	})
}

// TestSlowOperationsAreLogged checks that the log line has the operation's
// price and its work, but no content of the request.
func TestSlowOperationsAreLogged(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.SlowOperation = time.Nanosecond })
	s.ask(map[string]any{"query": `query Slow($search: String) { namespaces(filter: {search: $search}) { totalCount } namespace(name: "literal") { name } resources(filter: {search: $search}) { totalCount } }`,
		"variables": map[string]any{"search": "secret"}})
	log := s.log.String()
	for _, want := range []string{`"msg":"slow operation"`, `"operation":"Slow"`, `"kind":"query"`, `"statements":5`,
		`"decisions":["page by sql: resources are not in memory","count by sql: resources are not in memory"]`,
		`"rows":`, `"bytes":`, `"milliseconds":`, `"costPriced":`, `"costFound":`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	for _, not := range []string{"secret", "literal", "admin-token"} {
		if strings.Contains(log, not) {
			t.Errorf("the log has %s: %s", not, log)
		}
	}
	quiet := start(t, func(o *web.Options) { o.SlowOperation = time.Hour })
	quiet.query("{ viewer { userId } }")
	if strings.Contains(quiet.log.String(), "slow operation") {
		t.Error("a fast operation is logged as a slow one")
	}
}

// TestAnAddressThatGuessesTokensIsHeldBack checks that an address that guesses
// tokens does not hold back known tokens from the same address.
func TestAnAddressThatGuessesTokensIsHeldBack(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.AddressPoints = 5.5 // a burst of 22, and a guess costs 51: the next one is possible after 5 s
	})
	if got := s.query("{ __typename }"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	codes, began := map[string]int{}, time.Now()
	for range 20 {
		codes[s.query("{ __typename }", "X-Auth-Token", "guess").code()]++
		if got := s.query("{ __typename }"); got.status != 200 {
			t.Errorf("a token that was seen: %d %s", got.status, got.body)
		}
	}
	got := s.query("{ __typename }", "X-Auth-Token", "reader-token")
	earned := int(time.Since(began) / (5 * time.Second))
	if got.status != 429 && earned == 0 {
		t.Errorf("a token that was not seen: %d %s", got.status, got.body)
	}
	if codes["UNAUTHENTICATED"] < 1 || codes["UNAUTHENTICATED"] > 1+earned ||
		codes["UNAUTHENTICATED"]+codes["RATE_LIMITED"] != 20 {
		t.Errorf("got %v, want one of twenty, and %d more for the time it took", codes, earned)
	}
}

func TestThousandSimpleRequestsAreAdmitted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 125 {
				if got := s.query("{ viewer { userId } }"); got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
					return
				}
			}
		})
	}
	wait.Wait()
}

const waits = `cadastre_graphql_operations_total{kind="mutation"} 1`

func TestBeyondTheCapRequestsAreToldToComeBack(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.Concurrent, o.Limits.OperationTime = 1, patience.Of(t, time.Minute)
	})
	release := s.holdWrites()
	done := make(chan answer, 1)
	go func() { done <- s.query(waiting) }()
	s.await(waits)
	got := s.query("{ __typename }", "X-Auth-Token", "reader-token")
	if got.status != 503 || got.code() != "UNAVAILABLE" || got.header.Get("Retry-After") != "1" {
		t.Errorf("another viewer: %d %s %v", got.status, got.body, got.header)
	}
	got = s.query("{ __typename }")
	if got.status != 429 || got.code() != "RATE_LIMITED" || got.header.Get("Retry-After") != "1" {
		t.Errorf("the same viewer: %d %s %v", got.status, got.body, got.header)
	}
	release()
	if first := receive(t, done); first.status != 200 || first.code() != "" {
		t.Errorf("the first: %d %s", first.status, first.body)
	}
	if got := s.query("{ __typename }"); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

func TestAnOperationHasADeadlineThatReachesTheDatabase(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.OperationTime = patience.Of(t, 500*time.Millisecond)
	})
	s.holdWrites()
	began := time.Now()
	got := s.query(waiting)
	if got.status != 200 || got.code() != "TIMEOUT" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	var many strings.Builder
	for i := range 60 {
		fmt.Fprintf(&many, `m%d: createNamespace(input: {name: "waiting %d"}) { namespace { name } } `, i, i)
	}
	got = s.query("mutation { " + many.String() + "}")
	if codes := got.codes(); len(codes) != 60 ||
		slices.ContainsFunc(codes, func(code string) bool { return code != "TIMEOUT" }) ||
		!strings.Contains(got.body, `"m59":null`) {
		t.Errorf("sixty that wait: %d %s", got.status, got.body)
	}
	if took := time.Since(began); took > patience.Of(t, 5*time.Second) {
		t.Errorf("they took %v", took)
	}
	s = start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.OperationTime = time.Nanosecond
	})
	c := s.connect()
	c.say(asAdmin).expect(ack)
	if got := c.subscribe("s", `subscription { namespaceChanged(names: ["n"]) { cursor } }`).
		expect(`{"id":"s","type":"error"`); !strings.Contains(got, `"TIMEOUT"`) {
		t.Errorf("the beginning of a subscription: %s", got)
	}
}

func TestAClientThatGoesAwayEndsItsOperation(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.OperationTime = 0
	})
	s.holdWrites()
	ctx, cancel := context.WithCancel(context.Background())
	body := fmt.Sprintf(`{"query": %q}`, waiting)
	request, err := http.NewRequestWithContext(ctx, "POST", s.url+"/graphql", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Auth-Token": {"admin-token"}}
	failed := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(request)
		failed <- err
	}()
	s.await(waits)
	cancel()
	if err := receive(t, failed); err == nil {
		t.Error("the request ended well")
	}
	began := time.Now()
	if err := s.stop(); err != nil { // waits for the operation
		t.Error(err)
	}
	if took := time.Since(began); took > patience.Of(t, 5*time.Second) {
		t.Errorf("the operation went on for %v", took)
	}
	if log := s.log.String(); !strings.Contains(log, "TIMEOUT") {
		t.Errorf("the operation did not end with the request:\n%s", log)
	}
}

func TestPersistedDocumentsAreFoundByTheirHash(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) { o.Profile = web.Locked })
	const document = "query Who { viewer { userId } }"
	by := func(hash string) map[string]any {
		return map[string]any{"persistedQuery": map[string]any{"version": 1, "sha256Hash": hash}}
	}
	hash := hashOf(document)
	if got := s.ask(map[string]any{"extensions": by(hash)}); got.status != 200 ||
		got.code() != "PERSISTED_QUERY_NOT_FOUND" || !strings.Contains(got.body, `"PersistedQueryNotFound"`) {
		t.Errorf("not yet there: %d %s", got.status, got.body)
	}
	if got := s.ask(map[string]any{"extensions": by(hashOf("other")), "query": document}); got.status != 400 ||
		got.code() != "BAD_REQUEST" {
		t.Errorf("another hash: %d %s", got.status, got.body)
	}
	for _, broken := range []any{1, map[string]any{}, map[string]any{"version": 2, "sha256Hash": hash},
		map[string]any{"version": 1, "sha256Hash": "x"}, map[string]any{"version": 1, "sha256Hash": 1}} {
		if got := s.ask(map[string]any{"query": document,
			"extensions": map[string]any{"persistedQuery": broken}}); got.status != 400 {
			t.Errorf("%v: %d %s", broken, got.status, got.body)
		}
	}
	if got := s.ask(map[string]any{"extensions": by(hash), "query": document}); got.code() != "" {
		t.Errorf("registering: %d %s", got.status, got.body)
	}
	for name, request := range map[string]map[string]any{
		"by the extension":  {"extensions": by(hash)},
		"in capitals":       {"extensions": by(strings.ToUpper(hash))},
		"by its id":         {"documentId": hash},
		"by its id in full": {"documentId": "sha256:" + hash},
	} {
		if got := s.ask(request); !strings.Contains(got.body, `"ada"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.send("GET", "/graphql?documentId="+hash, ""); !strings.Contains(got.body, `"ada"`) {
		t.Errorf("by GET: %d %s", got.status, got.body)
	}
	invalid := "{ nothing }"
	s.ask(map[string]any{"extensions": by(hashOf(invalid)), "query": invalid})
	if got := s.ask(map[string]any{"extensions": by(hashOf(invalid))}); got.code() != "PERSISTED_QUERY_NOT_FOUND" {
		t.Errorf("an invalid document was kept: %s", got.body)
	}
}

func TestTrustedDocumentsAreTheOnlyOnes(t *testing.T) {
	t.Parallel()
	const document = "query Who { viewer { userId } }"
	path := filepath.Join(t.TempDir(), "documents.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"%s": %q}`, hashOf(document), document), 0o600); err != nil {
		t.Fatal(err)
	}
	trusted, err := web.ReadTrustedDocuments(path)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *web.Options) { o.Trusted, o.TrustedOnly = trusted, true })
	if got := s.ask(map[string]any{"documentId": hashOf(document)}); !strings.Contains(got.body, `"ada"`) {
		t.Errorf("by its hash: %d %s", got.status, got.body)
	}
	if got := s.query(document); !strings.Contains(got.body, `"ada"`) {
		t.Errorf("by its text: %d %s", got.status, got.body)
	}
	for name, request := range map[string]map[string]any{
		"another":            {"query": "{ __typename }"},
		"another by its own": {"query": "{ __typename }", "documentId": hashOf("{ __typename }")},
		"an unknown hash":    {"documentId": hashOf("{ __typename }")},
	} {
		if got := s.ask(request); got.code() != "PERSISTED_QUERY_REQUIRED" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for name, text := range map[string]string{
		"a wrong hash": `{"` + hashOf("other") + `": "{ __typename }"}`,
		"no documents": `{}`, "a list": `[]`, "no JSON": `{`,
		"another format": `{"format": "x", "operations": []}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := web.ReadTrustedDocuments(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	apollo := fmt.Sprintf(`{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id": "%s", "name": "Who", "type": "query", "body": %q}]}`, hashOf(document), document)
	if err := os.WriteFile(path, []byte(apollo), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := web.ReadTrustedDocuments(path); err != nil {
		t.Error(err)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestAnIdentityServiceThatIsDownIsNotEveryoneIn(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Authenticate = func(context.Context, http.Header) (access.Viewer, error) {
			return access.Viewer{}, problem.Refuse(problem.ErrUnavailable, "connection refused by 10.0.0.1")
		}
	})
	got := s.query("{ __typename }")
	if got.status != 503 || got.code() != "UNAVAILABLE" || got.header.Get("Retry-After") == "" ||
		strings.Contains(got.body, "10.0.0.1") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
