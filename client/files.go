package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
)

type fileKey struct{}

// file is in the context of a request that goes to /import with text as its
// body, or to /export.
type file struct {
	export bool
	text   string
}

// WithFiles returns a context in which ImportNamespaces sends definition files
// as the body of its request: up to 64 MiB. The server stores all of them or
// none. The input must not have documents.
func WithFiles(ctx context.Context, files ...string) context.Context {
	return context.WithValue(ctx, fileKey{}, file{text: strings.Join(files, "\n")})
}

// WithFileExport returns a context in which ExportNamespaces returns the file
// of one namespace. The file may exceed the limit of an answer.
func WithFileExport(ctx context.Context) context.Context {
	return context.WithValue(ctx, fileKey{}, file{export: true})
}

// redirect rewrites the request of an operation for /import or /export if its
// context is from WithFiles or WithFileExport.
func redirect(request *http.Request) error {
	of, ok := request.Context().Value(fileKey{}).(file)
	if !ok || request.Body == nil { // a redirect from a POST to a GET has no body
		return nil
	}
	var asked struct {
		Query         string
		OperationName string
		Variables     json.RawMessage
	}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		return err
	}
	folder := path.Dir(request.URL.Path) // a redirect leads from the rewritten path
	if of.export {
		var variables struct {
			Names    []string
			Portable json.RawMessage
		}
		if err := json.Unmarshal(asked.Variables, &variables); err != nil {
			return err
		}
		request.Method, request.URL.Path, of.text = http.MethodGet, path.Join(folder, "export"), ""
		request.URL.RawQuery = url.Values{"name": variables.Names, "portable": {string(variables.Portable)}}.Encode()
	} else {
		request.URL.Path = path.Join(folder, "import")
		request.URL.RawQuery = url.Values{"query": {asked.Query}, "operationName": {asked.OperationName},
			"variables": {string(asked.Variables)}}.Encode()
	}
	request.ContentLength = int64(len(of.text))
	request.GetBody = func() (io.ReadCloser, error) {
		if of.text == "" {
			return http.NoBody, nil
		}
		return io.NopCloser(strings.NewReader(of.text)), nil
	}
	request.Body, _ = request.GetBody()
	return nil
}
