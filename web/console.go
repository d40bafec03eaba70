package web

import (
	"context"
	"embed"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/graph"
)

// consoleFiles are built from the folder console by `make console`. They are
// committed, so that Go alone builds the program.
//
//go:embed console
var consoleFiles embed.FS

// consoleDocuments returns the documents that the console sends, by their
// SHA-256.
var consoleDocuments = sync.OnceValue(func() map[string]string {
	return must(parseManifest(decompress(must(consoleFiles.ReadFile("console/documents.json.gz")))))
})

// signedInPath is where an OpenID Connect issuer sends users back. A hidden
// frame of the console opens it, too, to renew a session.
const signedInPath = "/console/signed-in"

// addConsole serves the console below /console. Every path is a view except the
// assets. The page reads its address to choose the view.
func (t *transport) addConsole(mux *http.ServeMux) {
	page, sources := must(consoleFiles.ReadFile("console/index.html")), t.SignIn.sources()
	values := map[string]string{"Settings": html.EscapeString(t.consoleSettings())}
	view := func(framedBy string) http.HandlerFunc {
		return servePage(page, values,
			"default-src 'none'; script-src 'self' 'nonce-NONCE'; style-src 'self' 'nonce-NONCE'; img-src 'self' data:; "+
				sources+"; base-uri 'none'; form-action 'none'; frame-ancestors "+framedBy)
	}
	mux.HandleFunc("GET /console", view("'none'"))
	mux.HandleFunc("GET /console/", view("'none'"))
	mux.HandleFunc("GET "+signedInPath, view("'self'"))
	if t.SignIn.Keystone != nil {
		mux.Handle("POST /console/keystone", t.keystoneHandler())
	}
	mux.HandleFunc("GET /console/assets/", http.NotFound)
	for _, file := range must(consoleFiles.ReadDir("console/assets")) { // compressed
		name := file.Name()
		content := must(consoleFiles.ReadFile("console/assets/" + name))
		// the name has the hash of the content
		mux.HandleFunc("GET /console/assets/"+strings.TrimSuffix(name, ".gz"), asset(name, content))
	}
}

// consoleSettings returns the settings for the page's script, as JSON.
func (t *transport) consoleSettings() string {
	return string(must(json.Marshal(map[string]any{
		"roles": t.DemoRoles, "ide": t.Profile == Open, "oidc": t.SignIn.OIDC, "keystone": t.SignIn.Keystone != nil,
	})))
}

// sources returns the parts of the content security policy for requests and
// frames: the server and the issuer.
func (s SignIn) sources() string {
	if s.OIDC == nil {
		return "connect-src 'self'"
	}
	issuer, err := url.Parse(s.OIDC.Issuer)
	if err != nil || issuer.Host == "" {
		return "connect-src 'self'"
	}
	with := "'self' " + issuer.Scheme + "://" + issuer.Host
	return "connect-src " + with + "; frame-src " + with
}

// SignIn has the ways to sign in at the console; each is nil if it is not
// offered.
type SignIn struct {
	OIDC *OIDCClient
	// Keystone returns a token for a user of an OpenStack cloud. Its error wraps
	// problem.ErrUnauthenticated if the cloud refuses the user.
	Keystone func(ctx context.Context, with Password) (token string, expires time.Time, err error)
}

// Password has the credentials of a user at an identity service.
type Password struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Project  string `json:"project"`
	Domain   string `json:"domain"` // of user and project
}

// OIDCClient is the console as a public client of an OpenID Connect issuer.
type OIDCClient struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	Scope    string `json:"scope"`
	Audience string `json:"audience"` // of the tokens
}

// keystoneSignIns is the maximum number of concurrent sign-ins. Each waits for
// the identity service, for 5 seconds at most.
const keystoneSignIns = 16

// keystoneHandler returns a handler that answers a password with a token. The
// caller is not authenticated, so the address pays, and more if the password is
// wrong.
func (t *transport) keystoneHandler() http.Handler {
	places := make(chan struct{}, keystoneSignIns)
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.refuse(w, r, mediaJSON, refusal{status: http.StatusForbidden, code: graph.CodeForbidden,
			message: "only the console of this server may sign in here"})
	}))
	return protection.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, refused := t.signInAtKeystone(r, places)
		if refused != nil {
			t.refuse(w, r, mediaJSON, *refused)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body) // fails when the client has gone
	}))
}

// signInAtKeystone signs a user in and returns the answer. It takes a place once
// it has the body. Neither the password nor the token is logged.
func (t *transport) signInAtKeystone(r *http.Request, places chan struct{}) ([]byte, *refusal) {
	arrived := t.buckets.arrive(rateLimitKey(requestLogOf(r.Context()).address), http.Header{})
	if refused := arrived.address.take(1, time.Now()); refused != nil {
		return nil, refused
	}
	text, refused := receiveBody(r, unauthenticatedBytes)
	if refused != nil {
		return nil, refused
	}
	var with Password
	if err := json.Unmarshal(text, &with); err != nil || with.User == "" || with.Password == "" || with.Project == "" {
		return nil, &refusal{status: http.StatusBadRequest, code: graph.CodeBadRequest,
			message: "the body must have user, password and project; domain may be omitted if it is Default"}
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		return nil, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable,
			retryAfter: 5, message: "too many users are signing in"}
	}
	token, expires, err := t.SignIn.Keystone(r.Context(), with)
	switch {
	case err == nil:
		return must(json.Marshal(map[string]any{"token": token, "expires": expires.UTC()})), nil
	case isUnauthenticated(err):
		arrived.address.charge(refusedPoints, time.Now())
		return nil, &refusal{status: http.StatusUnauthorized, code: graph.CodeUnauthenticated, message: messageOf(err)}
	}
	t.Log.ErrorContext(r.Context(), "a user could not sign in", "requestId",
		graph.RequestID(r.Context()), "error", innermost(err))
	return nil, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
		message: "the identity service cannot be reached at the moment"}
}
