package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestErrorsOfGlanceArePages compares errors of the door of Glance with those
// that webob 1.8 writes for the same message.
func TestErrorsOfGlanceArePages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const html, json, text = "text/html; charset=UTF-8", "application/json", "text/plain; charset=UTF-8"
		forms := map[string]string{
			html: "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n" +
				"  namespace &quot;a&lt;b&gt;&amp;&#x27;&#252;&quot; does not exist<br /><br />\n\n\n\n </body>\n</html>",
			json: `{"message":"namespace \"a<b>&'ü\" does not exist<br /><br />\n\n\n","code":"404 Not Found","title":"Not Found"}`,
			text: "404 Not Found\n\nnamespace \"a&'ü\" does not exist\n\n   ",
		}
		for accept, media := range map[string]string{
			"": text, "*/*": html, "text/html": html, "text/*": html, "application/json": json, "application/*": json,
			"application/json, text/html": html, "application/json;q=0.5, text/html;q=0.1": json,
			"text/html;q=0.1, */*":             json,
			"application/json;q=0.9,*/*;q=0.8": json, "application/json;q=0": text, "image/png": text,
			"application/json;charset=utf-8;q=0": text,
		} {
			r := sent{token: "admin", method: http.MethodDelete,
				path:   "/openstack/image/v2/metadefs/namespaces/a%3Cb%3E&'%C3%BC",
				header: http.Header{"Accept": {accept}}}
			got := newDoors(t, s).send(r)
			if got.status != http.StatusNotFound ||
				got.header.Get("Content-Type") != media || got.body != forms[media] {
				t.Errorf("%q: %d %s %q,\nwant %s %q", accept, got.status,
					got.header.Get("Content-Type"), got.body, media, forms[media])
			}
		}
		got := newDoors(t, s).send(sent{token: "admin", method: http.MethodGet, path: "/openstack/image/v2/none",
			header: http.Header{"Accept": {"*/*"}}})
		if want := "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n" +
			"  The resource could not be found.<br /><br />\n\n\n\n </body>\n</html>"; got.body != want {
			t.Errorf("no route: %q, want %q", got.body, want)
		}
	})
}

// TestAnEmptyAcceptIsAbsent checks that an empty header permits JSON.
func TestAnEmptyAcceptIsAbsent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		got := newDoors(t, s).send(sent{token: "admin", method: http.MethodGet,
			path: "/openstack/placement/resource_providers", header: http.Header{"Accept": {""}}})
		if got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// TestFaultsTellNothingInternal checks that the time limit hides its cause.
func TestFaultsTellNothingInternal(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
		fault, ok := rest.FaultOf(fmt.Errorf("query resource_providers: %w", cause))
		if !ok || fault.Status != http.StatusServiceUnavailable || fault.Detail != "the request took too long" {
			t.Errorf("%v: %t %+v", cause, ok, fault)
		}
	}
}
