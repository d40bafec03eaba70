package web_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/web"
)

// onlyConsole makes a server one that has the console and answers its documents
// only.
func onlyConsole(o *web.Options) {
	o.Profile, o.SchemaAccess, o.Console, o.TrustedOnly = web.Locked, web.SchemaForNobody, true, true
}

// TestTheConsoleAlone checks that a server with the console alone answers the
// documents of the console.
func TestTheConsoleAlone(t *testing.T) {
	t.Parallel()
	file, err := os.Open("console/documents.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var documents map[string]string
	if err := json.NewDecoder(text).Decode(&documents); err != nil || len(documents) < 100 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	s := start(t, onlyConsole)
	tried := 0
	for hash, document := range documents {
		if !strings.HasPrefix(strings.TrimSpace(document), "query Session ") {
			continue
		}
		tried++
		for _, request := range []map[string]any{{"query": document}, {"documentId": "sha256:" + hash}} {
			if got := s.ask(request); got.status != http.StatusOK || !strings.Contains(got.body, `"userId":"ada"`) {
				t.Errorf("the document of the console is answered with %d %.300s", got.status, got.body)
			}
		}
		if got := s.send("GET", "/graphql?documentId="+hash, ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("a GET is answered with %d %.300s", got.status, got.body)
		}
		if got := start(t, func(o *web.Options) { o.Profile = web.Locked }).
			ask(map[string]any{"documentId": hash}); got.code() != "PERSISTED_QUERY_NOT_FOUND" {
			t.Errorf("a server without the console answers its document: %.300s", got.body)
		}
	}
	if tried != 2 {
		t.Errorf("%d documents of the session, want 2: with and without the names of types", tried)
	}
}

// TestTheConsoleAloneAnswersNothingElse sends other documents, and reads other
// pages.
func TestTheConsoleAloneAnswersNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, onlyConsole)
	for _, document := range []string{"{ viewer { userId } }", "{ __schema { queryType { name } } }"} {
		if got := s.query(document); got.code() != "PERSISTED_QUERY_REQUIRED" {
			t.Errorf("%s is answered with %.300s", document, got.body)
		}
	}
	if got := s.send("GET", "/schema.graphql", ""); got.status != http.StatusForbidden {
		t.Errorf("the schema is %d", got.status)
	}
	if got := s.send("GET", "/", "", "X-Auth-Token", ""); !strings.Contains(got.body,
		`data-settings="{&#34;ide&#34;:false,`) {
		t.Errorf("/ leads to %d %.300s", got.status, got.body)
	}
}

// atAKeystone is onlyConsole with an identity service that knows one user. This
// tests the handler; package auth asks a server of Keystone's API.
func atAKeystone(o *web.Options) {
	onlyConsole(o)
	o.SignIn.OIDC = &web.OIDCClient{Issuer: "https://login.example.org:8443/realms/cloud", ClientID: "console"}
	o.SignIn.Keystone = func(_ context.Context, with web.Password) (string, time.Time, error) {
		switch with {
		case web.Password{User: "ada", Password: "swordfish", Project: "operations"}:
			return "admin-token", time.Unix(0, 0), nil
		case web.Password{User: "ada", Password: "swordfish", Project: "operations", Domain: "down"}:
			return "", time.Time{}, errors.New("the service is down: swordfish is no reason")
		}
		return "", time.Time{}, problem.Refuse(problem.ErrUnauthenticated, "the password is wrong")
	}
}

// TestSigningInAtKeystone sends the request of the console's form, and requests
// that it never sends.
func TestSigningInAtKeystone(t *testing.T) {
	t.Parallel()
	s := start(t, atAKeystone)
	right := `{"user": "ada", "password": "swordfish", "project": "operations"}`
	for _, test := range []struct {
		body    string
		headers []string
		status  int
		code    string
	}{
		{right, nil, http.StatusOK, ""},
		{right, []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin"}, http.StatusOK, ""},
		{right, []string{"Origin", "https://evil.example.org", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden,
			"FORBIDDEN"},
		{right, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType, "BAD_REQUEST"},
		{right, []string{"Content-Type", "application/x-www-form-urlencoded"},
			http.StatusUnsupportedMediaType, "BAD_REQUEST"},
		{`{"user": "ada", "password": "wrong", "project": "operations"}`, nil,
			http.StatusUnauthorized, "UNAUTHENTICATED"},
		{`{"user": "ada", "password": "swordfish", "project": "operations", "domain": "down"}`, nil,
			http.StatusServiceUnavailable, "UNAVAILABLE"},
		{`{"user": "ada", "password": "swordfish"}`, nil, http.StatusBadRequest, "BAD_REQUEST"},
		{`[]`, nil, http.StatusBadRequest, "BAD_REQUEST"},
		{`{"user": "` + strings.Repeat("a", 20<<10) + `"}`, nil, http.StatusRequestEntityTooLarge, "BAD_REQUEST"},
	} {
		got := s.send("POST", "/console/keystone", test.body, append([]string{"X-Auth-Token", ""}, test.headers...)...)
		if got.status != test.status || got.status != http.StatusOK && got.code() != test.code {
			t.Errorf("%.100s %v: %d %.200s", test.body, test.headers, got.status, got.body)
		}
		if isOK := got.body == `{"expires":"1970-01-01T00:00:00Z","token":"admin-token"}`; isOK != (test.status == http.StatusOK) || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%.100s: %s, %v", test.body, got.body, got.header)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "a user could not sign in") ||
		strings.Contains(log, "admin-token") || strings.Contains(log, `"swordfish"`) {
		t.Errorf("the log is %s", log)
	}
	if got := s.send("GET", "/console/keystone", "", "X-Auth-Token", ""); got.status != http.StatusOK ||
		!strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		t.Errorf("a GET is %d", got.status)
	}
	if got := start(t, onlyConsole).
		send("POST", "/console/keystone", right); got.status != http.StatusMethodNotAllowed {
		t.Errorf("without an identity service it is %d", got.status)
	}
}

// TestGuessingPasswordsIsSlow sends wrong passwords until the address is over
// its rate.
func TestGuessingPasswordsIsSlow(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		atAKeystone(o)
		o.Limits = web.DefaultLimits()
		o.Limits.AddressPoints = 1
	})
	for range 2 { // the first takes a bucket of four points, and owes more
		if got := s.send("POST", "/console/keystone", `{"user": "ada", "password": "guess", "project": "operations"}`,
			"X-Auth-Token", ""); got.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("two wrong passwords were checked")
}

// TestSlowBodiesDelayNoSignIn has many clients send the heads of sign-ins: none has
// a place before its body.
func TestSlowBodiesDelayNoSignIn(t *testing.T) {
	t.Parallel()
	s := start(t, atAKeystone)
	for range 40 {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_, err = io.WriteString(connection, "POST /console/keystone HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		got, err := bufio.NewReader(connection).ReadString('\n')
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 100 ") { // it reads the body
			t.Fatalf("the answer to the head is %s, %v", got, err)
		}
	}
}

// TestThePolicyOfSigningIn reads the content security policies: the console asks
// the server and the issuer, and only the page of the issuer's answer may be in a
// frame of the console.
func TestThePolicyOfSigningIn(t *testing.T) {
	t.Parallel()
	s := start(t, atAKeystone)
	for path, framedBy := range map[string]string{"/console": "'none'", "/console/signed-in": "'self'"} {
		got := s.send("GET", path, "", "X-Auth-Token", "")
		policy := got.header.Get("Content-Security-Policy")
		for _, part := range []string{"connect-src 'self' https://login.example.org:8443;",
			"frame-src 'self' https://login.example.org:8443;", "frame-ancestors " + framedBy} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: %s lacks %s", path, policy, part)
			}
		}
		if got.header.Get("Cache-Control") != "no-store" || !strings.Contains(got.body, "realms/cloud") ||
			!strings.Contains(got.body, "&#34;keystone&#34;:true") {
			t.Errorf("%s: %v\n%s", path, got.header, got.body)
		}
	}
}
