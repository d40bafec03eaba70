package web

import (
	"crypto/rand"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
)

// consoleFiles are built from the folder console by `make console`. They are
// committed, so that Go alone builds the program.
//
//go:embed console
var consoleFiles embed.FS

// addConsole serves the console below /console. Every path is a view except the
// assets. The page reads its address to choose the view.
func addConsole(mux *http.ServeMux, roles []DemoRole) {
	page := template.Must(template.ParseFS(consoleFiles, "console/index.html"))
	if roles == nil {
		roles = []DemoRole{}
	}
	settings, err := json.Marshal(map[string]any{"roles": roles})
	if err != nil {
		panic(err) // strings always have JSON
	}
	view := func(w http.ResponseWriter, _ *http.Request) {
		nonce := rand.Text()
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+
			"'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		_ = page.Execute(w, map[string]any{"Nonce": nonce, "Settings": string(settings)}) // fails when the client has gone
	}
	mux.HandleFunc("GET /console", view)
	mux.HandleFunc("GET /console/", view)
	mux.HandleFunc("GET /console/assets/", http.NotFound)
	for _, name := range consoleAssets() {
		content, err := fs.ReadFile(consoleFiles, "console/assets/"+name)
		if err != nil {
			panic(err) // embedded with the program
		}
		mux.HandleFunc("GET /console/assets/"+name, asset(name, content)) // the name has the hash of the content
	}
}

// consoleAssets returns the names of the assets of the console.
func consoleAssets() []string {
	files, err := fs.ReadDir(consoleFiles, "console/assets")
	if err != nil {
		panic(err) // embedded with the program
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name()
	}
	return names
}

// addNoConsole answers requests below /console: the console is not served, but
// the API is.
func addNoConsole(mux *http.ServeMux) {
	none := func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusNotFound, "The console is not served in the profile locked. The API is at /graphql; cadastre serve --profile open serves the console here.\n")
	}
	mux.HandleFunc("GET /console", none)
	mux.HandleFunc("GET /console/", none)
}
