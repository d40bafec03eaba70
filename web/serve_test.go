package web_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/web"
)

// dial opens a connection to a server.
func (s *server) dial() net.Conn {
	s.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// ends returns the rest that a connection sends until the other side closes it.
func ends(t *testing.T, connection net.Conn, within time.Duration) string {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(connection)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Errorf("the connection was still open after %v", within)
	}
	return string(rest)
}

// TestClientsThatAreSlowLoseTheirConnection sends half of the headers, half of
// a body, and nothing, with limits of half a second, a second and five seconds.
func TestClientsThatAreSlowLoseTheirConnection(t *testing.T) {
	t.Parallel()
	s := startServing(t, nil, web.ServeOptions{
		HeaderTime: patience.Of(t, 500*time.Millisecond), ReadTime: patience.Of(t, time.Second),
		IdleTime: patience.Of(t, 5*time.Second),
	})
	for name, text := range map[string]string{
		"half of the headers": "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"half of a body":      "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin-token\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"nothing":             "",
	} {
		connection := s.dial()
		if _, err := io.WriteString(connection, text); err != nil {
			t.Fatal(err)
		}
		rest := ends(t, connection, patience.Of(t, 10*time.Second))
		if strings.Contains(rest, " 200 ") || strings.Contains(rest, " 500 ") {
			t.Errorf("%s: %s", name, rest)
		}
	}
	if got := s.query("{ __typename }"); got.status != 200 {
		t.Errorf("afterwards: %d", got.status)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if got := s.query("{ __typename }", "X-Long",
		strings.Repeat("x", 64<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", got.status)
	}
}

func TestIdleConnectionsDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for range 500 {
		s.dial()
	}
	if got := s.query("{ viewer { userId } }"); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestWhatWasAcceptedIsAnsweredBeforeTheServerStops stops a server while a
// mutation waits for the database. The mutation succeeds and is stored.
func TestWhatWasAcceptedIsAnsweredBeforeTheServerStops(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	release := s.holdWrites()
	done := make(chan answer, 1)
	go func() { done <- s.query(waiting) }()
	s.await(waits)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	if !patience.Until(t, 10*time.Second, func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	}) {
		t.Error("connections are still accepted")
	}
	select {
	case err := <-stopped:
		t.Errorf("stopped before the answer: %v", err)
	default:
	}
	release()
	if got := receive(t, done); got.status != 200 || got.code() != "" {
		t.Errorf("the mutation: %d %s", got.status, got.body)
	}
	if err := receive(t, stopped); err != nil {
		t.Error(err)
	}
}

func TestWhatOutlastsTheGracePeriodIsCutOff(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, left := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(left)
	})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(ctx, listener, handler, web.ServeOptions{GracePeriod: 100 * time.Millisecond})
	}()
	go func() { _, _ = http.Get("http://" + listener.Addr().String()) }()
	receive(t, entered)
	stop()
	if err := receive(t, served); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
	receive(t, left)
}

// leavesNothing checks that no goroutines remain except earlier ones.
func leavesNothing(t *testing.T, before goleak.Option) {
	t.Helper()
	var left error
	if !patience.Until(t, 30*time.Second, func() bool { left = goleak.Find(before); return left == nil }) {
		t.Error(left)
	}
}

// TestAServerLeavesNothingBehind runs alone, before the parallel tests
// continue.
func TestAServerLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("server", func(t *testing.T) {
		s := start(t, nil)
		for range 20 {
			s.query("{ namespaces { nodes { name } } }")
		}
		connection := s.dial()
		if _, err := io.WriteString(connection, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(connection), nil); err != nil {
			t.Fatal(err)
		}
		s.dial()
	})
	leavesNothing(t, before)
}

func TestServeByTLSFollowsItsFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	if _, err := web.ReadCertificate(certFile, keyFile); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("without the file: %v", err)
	}
	authority := writeCertificate(t, certFile, keyFile)
	certificate, err := web.ReadCertificate(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(ctx, listener, handler, web.ServeOptions{Certificate: certificate})
	}()
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	response, err := client.Get("https://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "HTTP/2.0" {
		t.Errorf("got %s, %v", body, err)
	}
	_ = response.Body.Close()
	transport.CloseIdleConnections()
	stop()
	if err := receive(t, served); err != nil {
		t.Error(err)
	}
}

// writeCertificate writes a certificate for 127.0.0.1 and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
