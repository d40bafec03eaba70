package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// nowhere discards an answer.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// BenchmarkSmallest times the smallest operation, without reading the request
// from the connection and writing the answer to it.
func BenchmarkSmallest(b *testing.B) {
	s := &server{t: b, store: storetest.Open(b, storetest.SQLite(b)), log: &lockedBuffer{}}
	options := s.options()
	options.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	options.Limits = web.DefaultLimits()
	options.Limits.AddressPoints, options.Limits.AdminPoints = 1e9, 1e9
	handler := web.New(options)
	body := `{"query":"{ viewer { userId } }"}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer admin-token")
		handler.ServeHTTP(&nowhere{http.Header{}}, r)
	}
}
