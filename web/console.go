package web

import (
	"embed"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
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
