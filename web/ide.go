package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

//go:embed ide
var ideFiles embed.FS

// ideAssets are the files of the IDE. ide/NOTICE.txt states the origin and the
// licences of third-party files. These are compressed, which makes the program
// 1 MB smaller.
var ideAssets = []string{
	"graphiql.min.css.gz", "graphiql.min.js.gz", "ide.css", "ide.js",
	"react-dom.production.min.js.gz", "react.production.min.js.gz",
}

// ideTabs are the tabs that the IDE opens with: one for each domain, one for
// joins between domains, and one with a subscription.
var ideTabs = []string{"definitions", "resources", "capabilities", "placement", "joins", "live"}

// A DemoRole is a role for trying out a demo, and a token with this role.
type DemoRole struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// addIDE serves the IDE at / and its assets under /ide/assets/. All files are
// embedded in the program. An asset's address holds the hash of its content, so
// browsers may cache it indefinitely.
func addIDE(mux *http.ServeMux, roles []DemoRole) {
	values := map[string]string{"Settings": string(must(json.Marshal(ideSettings(roles))))} // json escapes <, > and &
	for _, file := range ideAssets {
		content := must(ideFiles.ReadFile("ide/assets/" + file))
		sum, name := sha256.Sum256(content), strings.TrimSuffix(file, ".gz")
		address := "/ide/assets/" + hex.EncodeToString(sum[:8]) + "/" + name
		values["Assets."+strings.NewReplacer(".", "_", "-", "_").Replace(name)] = address
		mux.HandleFunc("GET "+address, asset(file, content))
	}
	mux.HandleFunc("GET /{$}", servePage(must(ideFiles.ReadFile("ide/index.html")), values,
		"default-src 'self'; script-src 'self' 'nonce-NONCE'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "+
			"font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
}

// must returns the value, or panics. It is for embedded and constant input,
// which causes no error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// servePage returns a handler for a page. It replaces each {{.Name}} with a
// value, which the caller must have escaped. Each answer has a new nonce, as
// the value Nonce and in place of NONCE in the content security policy.
func servePage(page []byte, values map[string]string, policy string) http.HandlerFunc {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{{."+name+"}}", value)
	}
	filled := strings.NewReplacer(pairs...).Replace(string(page))
	return func(w http.ResponseWriter, _ *http.Request) {
		nonce := rand.Text()
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", strings.ReplaceAll(policy, "NONCE", nonce))
		_, _ = io.WriteString(w, strings.ReplaceAll(filled, "{{.Nonce}}", nonce)) // fails when the client has gone
	}
}

// ideSettings returns the settings for the page's script.
func ideSettings(roles []DemoRole) map[string]any {
	var tabs []string
	for _, name := range ideTabs {
		tabs = append(tabs, string(must(ideFiles.ReadFile("ide/queries/"+name+".graphql"))))
	}
	return map[string]any{"roles": roles, "tabs": tabs}
}

// notServed returns a handler that answers 404 with the reason.
func notServed(reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusNotFound, reason) }
}

// asset returns a handler for a file, whose name ends in .gz if it is stored
// compressed. It is decompressed on the first request of a client without
// compression.
func asset(file string, stored []byte) http.HandlerFunc {
	name, isCompressed := strings.CutSuffix(file, ".gz")
	decompressed := sync.OnceValue(func() []byte { return decompress(stored) })
	return func(w http.ResponseWriter, r *http.Request) {
		header, body := w.Header(), stored
		header.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
		if isCompressed {
			header.Add("Vary", "Accept-Encoding")
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				header.Set("Content-Encoding", "gzip")
			} else {
				body = decompressed()
			}
		}
		header.Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body) // fails when the client has gone
	}
}

func decompress(content []byte) []byte {
	return must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(content)))))
}
