package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestSIGHUPReloadsFiles changes all files of a server, breaks them, and
// repairs them, with a SIGHUP after each step. The server is a separate
// process.
func TestSIGHUPReloadsFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const query = "{ viewer { userId } }"
	manifest := func(documents ...string) string {
		var members []string
		for _, document := range documents {
			members = append(members, fmt.Sprintf(`"%x": %q`, sha256.Sum256([]byte(document)), document))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	put("tokens", "tokens: ["+anAdmin+"]")
	put("policy", "rules: {createTrait: [admin]}")
	put("documents", manifest(query))
	certify(t, path("cert"), path("key"), 1)
	server, process := spawn(t, built(t), "--database", storetest.SQLite(t), "--tokens",
		path("tokens"), "--policy", path("policy"),
		"--trusted-documents", path("documents"), "--trusted-only", "--tls-cert",
		path("cert"), "--tls-key", path("key"))
	reload := func(lines ...string) {
		t.Helper()
		before := len(server.stderr.String())
		if err := process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		logged := patience.Until(t, time.Minute, func() bool { // the certificate is reloaded last
			return strings.Contains(server.stderr.String()[before:], "flag=--tls-cert")
		})
		select {
		case <-server.ended:
			t.Fatalf("the server ended: %v\n%s", server.err, server.stderr)
		default:
		}
		for _, line := range lines {
			if !logged || !strings.Contains(server.stderr.String()[before:], line) {
				t.Errorf("the log lacks %q:\n%s", line, server.stderr.String()[before:])
			}
		}
	}
	address := strings.Replace(server.address, "http://", "https://", 1)
	const create = `mutation { createTrait(input: {name: "CUSTOM_A"}) { trait { name } } }`
	expect := func(token, document, want string, number int64) {
		t.Helper()
		answer, got := askTLS(t, address, token, document)
		if !strings.Contains(answer, want) || got != number {
			t.Errorf("%s asks %s: %s by the certificate %d, want %q by %d", token, document, answer, got, want, number)
		}
	}
	expect("secret", query, `"userId":"ada"`, 1)
	expect("other", query, "UNAUTHENTICATED", 1)
	reload(`msg="reloaded, nothing changed" flag=--tokens`, `msg="reloaded, nothing changed" flag=--policy`,
		`msg="reloaded, nothing changed" flag=--trusted-documents`, `msg="reloaded, nothing changed" flag=--tls-cert`)

	put("tokens", "tokens: [{token: other, user: ada, project: operations, roles: [admin]}]")
	put("policy", "rules: {createTrait: [service]}")
	put("documents", manifest(query, create))
	certify(t, path("cert"), path("key"), 2)
	reload(`changed="tokens: 1 added, 1 removed, 0 with a changed user, project, roles or expiry"`,
		`changed="rules: createTrait"`,
		`changed="documents: 1 added, 0 removed"`, `changed="certificate: number 2, valid until`)
	expect("secret", query, "UNAUTHENTICATED", 2)
	expect("other", query, `"userId":"ada"`, 2)
	expect("other", create, "createTrait needs the role service", 2)

	put("tokens", "tokens: []")
	put("policy", "rules: {nothing: [admin]}")
	put("documents", "[]")
	put("cert", "none")
	reload("previous content stays in use\" flag=--tokens", "previous content stays in use\" flag=--policy",
		"previous content stays in use\" flag=--trusted-documents", "previous content stays in use\" flag=--tls-cert")
	expect("other", create, "createTrait needs the role service", 2)

	put("tokens", "tokens: [{token: other, user: bob, project: operations, roles: [service]}]")
	put("policy", "")
	put("documents", manifest(create))
	certify(t, path("cert"), path("key"), 3)
	reload(`0 added, 0 removed, 1 with a changed user`, `changed="rules: createTrait"`,
		`changed="documents: 0 added, 1 removed"`, "number 3")
	expect("other", create, `"name":"CUSTOM_A"`, 3)
	expect("other", query, "PERSISTED_QUERY_REQUIRED", 3)
}

// TestAPipeIsNotReadAgain reloads the file of a shell's <(command): reading it
// would wait forever, and the files after it would not be reloaded. A server that
// still reads it at its start ends at a signal.
func TestAPipeIsNotReadAgain(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()
	path := fmt.Sprintf("/dev/fd/%d", reader.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	pipe := reloadable{"--tokens", path, func() (string, error) { return "", nil }}
	if _, err := pipe.read(); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"--tokens", path}, {"--tokens", path, "--print-config"}, {"--config", path}} {
		if err := run(ctx, append([]string{"serve"}, args...), io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("a server that waits for the pipe of %q: %v", args, err)
		}
	}
}

// TestSIGHUPNeverEndsTheProcess sends SIGHUP all the time while a server
// starts, serves and stops.
func TestSIGHUPNeverEndsTheProcess(t *testing.T) {
	t.Parallel()
	server, process := spawn(t, built(t), "--database", storetest.SQLite(t), "--demo")
	for i := range 200 {
		if i == 100 {
			if err := process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		_ = process.Signal(syscall.SIGHUP) // SIGTERM may have ended it
		time.Sleep(100 * time.Microsecond)
	}
	<-server.ended
	if server.err != nil || !strings.Contains(server.stderr.String(), "nothing to reload: no setting names a file") {
		t.Errorf("the server ended with %v\n%s", server.err, server.stderr)
	}
}

// askTLS sends a query to a server without checking its certificate. It returns
// the answer and the serial number of the certificate.
func askTLS(t *testing.T, address, token, document string) (answer string, number int64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	request, err := http.NewRequest(http.MethodPost, address+"/graphql",
		strings.NewReader(fmt.Sprintf(`{"query": %q}`, document)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), response.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// certify writes a certificate for 127.0.0.1 with a serial number, and its key.
func certify(t *testing.T, certFile, keyFile string, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
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
}
