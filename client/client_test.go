package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestOperationsForAllOfTheSchema finds fields of Query, Mutation and
// Subscription without an operation of the client.
func TestOperationsForAllOfTheSchema(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: string(read(t, "../schema/merged/schema.graphql"))})
	used := map[string]bool{"node": true, "nodes": true} // they look up objects of other answers
	var documents []*ast.QueryDocument
	files, err := filepath.Glob("operations/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		document, err := parser.ParseQuery(&ast.Source{Name: file, Input: string(read(t, file))})
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	for _, text := range client.Followed() {
		document, errs := gqlparser.LoadQueryWithRules(schema, text, rules.NewDefaultRules())
		if errs != nil {
			t.Fatal(errs)
		}
		documents = append(documents, document)
	}
	for _, document := range documents {
		for _, operation := range document.Operations {
			for _, selected := range operation.SelectionSet {
				if field, ok := selected.(*ast.Field); ok {
					used[field.Name] = true
				}
			}
		}
	}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		for _, field := range root.Fields {
			if !strings.HasPrefix(field.Name, "__") && !used[field.Name] {
				t.Errorf("no operation has %s.%s", root.Name, field.Name)
			}
		}
	}
}

// TestPages compares lists read in pages of several sizes.
func TestPages(t *testing.T) {
	t.Parallel()
	server := client.New(demotest.Serve(t), client.WithToken(demo.AdminToken))
	all, few := 1000, 7
	for name, list := range map[string]func(first *int) ([]string, error){
		"namespaces": func(first *int) ([]string, error) {
			return named(client.Collect(client.Namespaces(t.Context(), server, nil, nil, first), 0))
		},
		"resources": func(first *int) ([]string, error) {
			return named(client.Collect(client.Resources(t.Context(), server, nil, nil, first, true), 0))
		},
		"providers": func(first *int) ([]string, error) {
			return named(client.Collect(client.Providers(t.Context(), server, nil, nil, first), 0))
		},
		"consumers": func(first *int) ([]string, error) {
			return named(client.Collect(client.Consumers(t.Context(), server, nil, nil, first), 0))
		},
		"traits": func(first *int) ([]string, error) {
			return named(client.Collect(client.Traits(t.Context(), server, nil, first), 0))
		},
		"properties": func(first *int) ([]string, error) {
			return named(client.Collect(client.Properties(t.Context(), server,
				"Cadastre::VirtualCPUTopology", nil, nil, nil, first), 0))
		},
	} {
		want, err := list(&all)
		if err != nil || len(want) == 0 {
			t.Errorf("%s: %v, %d of them", name, err, len(want))
		}
		for _, first := range []*int{nil, &few} {
			if got, err := list(first); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: error %v, got %d in pages of %v, want %d", name, err, len(got), first, len(want))
			}
		}
	}
	some, err := client.Collect(client.Traits(t.Context(), server, nil, &few), 10)
	if err != nil || len(some) != 10 {
		t.Errorf("collected %d of 10: %v", len(some), err)
	}
	missing := new(client.MissingError)
	if _, err := client.Collect(client.Properties(t.Context(), server, "none", nil, nil, nil, nil), 0); !errors.As(err,
		&missing) || err.Error() != `namespace "none" does not exist` {
		t.Errorf("properties of no namespace: %v", err)
	}
}

// named returns the items as JSON.
func named[T any](all []*T, err error) ([]string, error) {
	var texts []string
	for _, one := range all {
		text, wrong := json.Marshal(one)
		texts, err = append(texts, string(text)), errors.Join(err, wrong)
	}
	return texts, err
}

// TestErrors checks the errors that callers get when a server refuses a
// request.
func TestErrors(t *testing.T) {
	t.Parallel()
	address := demotest.Serve(t)
	reader, stranger := client.New(address, client.WithToken(demo.ReaderToken)), client.New(address)
	name := strings.Repeat("n", 81)
	for _, of := range []struct {
		run  func() error
		code client.ErrorCode
		text string
	}{
		{func() error {
			_, err := client.ReadViewer(t.Context(), stranger)
			return err
		}, client.Unauthenticated, "UNAUTHENTICATED: "},
		{func() error {
			_, err := client.CreateNamespace(t.Context(), reader,
				&client.CreateNamespaceInput{Name: "n", Visibility: optional.Value(client.VisibilityPublic)})
			return err
		}, client.Forbidden, "FORBIDDEN: "},
		{func() error {
			_, err := client.CreateNamespace(t.Context(), client.New(address, client.WithToken(demo.AdminToken)),
				&client.CreateNamespaceInput{Name: name, Visibility: optional.Value(client.VisibilityPublic)})
			return err
		}, client.BadUserInput, "BAD_USER_INPUT: input.name: "},
		{func() error {
			return reader.MakeRequest(t.Context(), &graphql.Request{Query: "query Q { viewer { none } }", OpName: "Q"},
				&graphql.Response{})
		}, client.ValidationFailed, `GRAPHQL_VALIDATION_FAILED: Cannot query field "none"`},
		{func() error { _, err := client.ReadViewer(t.Context(), client.New("127.0.0.1:1")); return err }, "", "Post "},
		{func() error { _, err := client.ReadViewer(t.Context(), client.New("ftp://a")); return err }, "", "Post "},
	} {
		err := of.run()
		if client.Code(err) != of.code || err == nil || !strings.HasPrefix(err.Error(), of.text) {
			t.Errorf("got the code %q and the error %v, want %q and %q", client.Code(err), err, of.code, of.text)
		}
		if err := fmt.Errorf("wrapped: %w", err); client.Code(err) != of.code {
			t.Errorf("the code of a wrapped error is %q, want %q", client.Code(err), of.code)
		}
	}
	if client.Code(nil) != "" {
		t.Error("no error has a code")
	}
}

// TestAbsentAndNull checks that an absent field of an input changes nothing,
// and that null clears the field.
func TestAbsentAndNull(t *testing.T) {
	t.Parallel()
	server := client.New(demotest.Serve(t), client.WithToken(demo.AdminToken))
	text := "what for"
	_, err := client.CreateNamespace(t.Context(), server,
		&client.CreateNamespaceInput{Name: "n", Visibility: optional.Value(client.VisibilityPublic),
			Description: optional.Value(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		set  optional.Of[string]
		want string
	}{{nil, text}, {optional.Value("another"), "another"}, {nil, "another"}, {optional.Null[string](), ""}} {
		answer, err := client.UpdateNamespace(t.Context(), server,
			&client.UpdateNamespaceInput{Name: "n", Description: of.set}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if given := answer.UpdateNamespace.Namespace.Description; given != nil {
			got = *given
		}
		if got != of.want || answer.UpdateNamespace.Namespace.Visibility != client.VisibilityPublic {
			t.Errorf("after %v the description is %q, want %q; %v", of.set, got, of.want,
				answer.UpdateNamespace.Namespace.Visibility)
		}
	}
}

// TestRetries counts the requests to a busy server.
func TestRetries(t *testing.T) {
	t.Parallel()
	const read, write = "query Q { viewer { userId } }", "mutation M { a }"
	busy := func(code string, wait any) string {
		return fmt.Sprintf(`{"errors":[{"message":"no","extensions":{"code":%q,"retryAfter":%v}}]}`, code, wait)
	}
	for name, of := range map[string]struct {
		query, body, header string
		status, fails       int
		options             []client.Option
		requests            int64
		code                client.ErrorCode
	}{
		"a query once busy": {read, busy("RATE_LIMITED", 0.01), "", 429, 1, nil, 2, ""},
		"a query long busy": {read, busy("UNAVAILABLE", 0.01), "", 503, 99,
			[]client.Option{client.WithRetries(2)}, 3, client.Unavailable},
		"a query busy in data": {read, busy("UNAVAILABLE", 0.01), "", 200, 1, nil, 2, ""},
		"a query that is not sent": {read, busy("UNAVAILABLE", 0.01), "", 503, 99,
			[]client.Option{client.WithRetries(0)}, 1, client.Unavailable},
		"a query that waits long":   {read, busy("RATE_LIMITED", 60), "", 429, 99, nil, 1, client.RateLimited},
		"the header says long":      {read, "busy", "60", 503, 99, nil, 1, ""},
		"a query that is wrong":     {read, busy("BAD_USER_INPUT", 0.01), "", 200, 99, nil, 1, client.BadUserInput},
		"a query without an answer": {read, busy("INTERNAL", 0.01), "", 500, 99, nil, 1, client.Internal},
		"a mutation":                {write, busy("UNAVAILABLE", 0.01), "", 503, 99, nil, 4, client.Unavailable},
		"what cannot be read":       {"query {", busy("UNAVAILABLE", 0.01), "", 503, 99, nil, 1, client.Unavailable},
	} {
		var requests atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) > int64(of.fails) {
				_, _ = io.WriteString(w, `{"data":{}}`)
				return
			}
			if of.header != "" {
				w.Header().Set("Retry-After", of.header)
			}
			w.WriteHeader(of.status)
			_, _ = io.WriteString(w, of.body)
		}))
		err := client.New(server.URL, of.options...).
			MakeRequest(t.Context(), &graphql.Request{Query: of.query}, &graphql.Response{})
		if got := requests.Load(); got != of.requests ||
			client.Code(err) != of.code || (err == nil) != (of.fails < 99) {
			t.Errorf("%s: %d requests and the error %v, want %d and %q", name, got, err, of.requests, of.code)
		}
		server.Close()
	}
}

// TestRetriesEnd checks that a wait ends with its context.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := client.ReadViewer(ctx, client.New(server.URL))
	if err == nil || time.Since(start) > patience.Of(t, 10*time.Second) {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// TestHTTPClient checks that a client uses the given HTTP client without
// changing it.
func TestHTTPClient(t *testing.T) {
	t.Parallel()
	sent := &recorder{}
	given := &http.Client{Transport: sent, Timeout: time.Hour}
	server := client.New("cadastre.example.org", client.WithToken("secret"),
		client.WithHTTPClient(given), client.WithTimeout(time.Minute))
	answer, err := client.ReadViewer(t.Context(), server)
	if err != nil || answer.Viewer.UserId != "ada" {
		t.Fatalf("%v: %+v", err, answer)
	}
	if sent.url != "https://cadastre.example.org/graphql" ||
		sent.authorization != "Bearer secret" || sent.within > time.Minute {
		t.Errorf("sent %+v", sent)
	}
	if given.Timeout != time.Hour || given.Transport != http.RoundTripper(sent) {
		t.Errorf("the client that was given is changed: %+v", given)
	}
}

// TestRedirectsKeepTheToken checks that a redirect gets the token on the same
// host only and never without TLS that the first request had, and that a page is
// no answer.
func TestRedirectsKeepTheToken(t *testing.T) {
	t.Parallel()
	var given []string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = append(given, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "<html>Sign in</html>")
	}))
	t.Cleanup(target.Close)
	otherHost := strings.Replace(target.URL, "127.0.0.1", "localhost", 1)
	for i, to := range []string{target.URL, otherHost, target.URL} {
		start := httptest.NewServer
		if i == 2 {
			start = httptest.NewTLSServer
		}
		server := start(http.RedirectHandler(to, http.StatusTemporaryRedirect))
		_, err := client.ReadViewer(t.Context(), client.New(server.URL, client.WithToken("secret"),
			client.WithHTTPClient(server.Client())))
		if err == nil || !strings.HasPrefix(err.Error(), "the answer is not from a Cadastre server: ") {
			t.Error(err)
		}
		server.Close()
	}
	if !slices.Equal(given, []string{"Bearer secret", "", ""}) {
		t.Errorf("the targets got the tokens %q", given)
	}
}

// TestRedirectsKeepFiles checks that files and exports follow a redirect.
func TestRedirectsKeepFiles(t *testing.T) {
	t.Parallel()
	var given []string
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		given = append(given, r.Method+" "+r.URL.Path+" "+string(text))
	}))
	t.Cleanup(target.Close)
	for status, want := range map[int][]string{
		http.StatusPermanentRedirect: {"POST /below/import {}\n[]", "GET /below/export "},
		http.StatusMovedPermanently:  {"GET /below/import ", "GET /below/export "}, // as for every POST
	} {
		given = nil
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+r.RequestURI, status)
		}))
		to := client.New(server.URL+"/below", client.WithRetries(0))
		files := client.WithFiles(t.Context(), "{}", "[]")
		_, _ = client.ImportNamespaces(files, to, &client.ImportNamespacesInput{}, nil)
		_, _ = client.ExportNamespaces(client.WithFileExport(t.Context()), to, []string{"a"}, nil, true)
		if !slices.Equal(given, want) {
			t.Errorf("%d: the target got %q, want %q", status, given, want)
		}
		server.Close()
	}
}

// recorder answers requests without a server.
type recorder struct {
	url, authorization string
	within             time.Duration
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.url, r.authorization = request.URL.String(), request.Header.Get("Authorization")
	if until, ok := request.Context().Deadline(); ok {
		r.within = time.Until(until)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: request,
		Body: io.NopCloser(strings.NewReader(`{"data":{"viewer":{"userId":"ada"}}}`))}, nil
}
