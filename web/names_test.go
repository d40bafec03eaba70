package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/web"
)

// TestAPageThatRebindsItsNameGets421 asks a server on a loopback address by
// several names.
func TestAPageThatRebindsItsNameGets421(t *testing.T) {
	t.Parallel()
	serving := web.ServeOptions{AllowedOrigins: []string{"https://cloud.example.org", "http://localhost:*"}}
	s := startServing(t, nil, serving)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:" + port: 200, "127.0.0.1:" + port: 200, "127.0.0.9": 200, "[::1]:" + port: 200,
		"cloud.example.org": 200, "cloud.example.org:443": 200,
		"evil.example.org": 421, "evil.example.org:" + port: 421,
		"localhost.evil.example.org": 421, "127.0.0.1.evil.example.org": 421,
		"0.0.0.0:" + port: 421, "192.0.2.1:" + port: 421, "[::ffff:192.0.2.1]": 421,
	} {
		for _, path := range []string{"/", "/console", "/livez", "/metrics", "/schema.graphql"} {
			if got := s.askBy(host, path); got != want {
				t.Errorf("GET %s as %s: %d, want %d", path, host, got, want)
			}
		}
	}
}

// askBy returns the status of a GET with a name of the server.
func (s *server) askBy(host, path string) int {
	s.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path,
		host); err != nil {
		s.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestAServerOnOtherAddressesHasAnyName asks a server on all addresses.
func TestAServerOnOtherAddressesHasAnyName(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	go func() { _ = web.Serve(t.Context(), listener, answers, web.ServeOptions{}) }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	s := &server{t: t, url: "http://127.0.0.1:" + port}
	if got := s.askBy("cadastre.example.org", "/"); got != http.StatusNoContent {
		t.Errorf("got %d", got)
	}
}

// TestMetricsNeedATokenInTheLockedProfile reads /metrics in both profiles.
func TestMetricsNeedATokenInTheLockedProfile(t *testing.T) {
	t.Parallel()
	for profile, want := range map[web.Profile][3]int{web.Open: {200, 200, 200}, web.Locked: {401, 403, 200}} {
		s := start(t, func(o *web.Options) { o.Profile = profile })
		for i, token := range []string{"", "reader-token", "admin-token"} {
			if got := s.send("GET", "/metrics", "", "X-Auth-Token", token); got.status != want[i] {
				t.Errorf("%s, token %q: %d", profile, token, got.status)
			}
		}
	}
}
