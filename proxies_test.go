package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// proxies are the programs whose files in deploy/ the tests run, with the words of
// the files that depend on the machine.
var proxies = map[string]func(folder, file, certificate string) (command, words []string){
	"haproxy": func(_, file, certificate string) ([]string, []string) {
		return []string{"-db", "-f", file}, []string{"/etc/haproxy/cadastre.pem", certificate}
	},
	"nginx": func(folder, file, certificate string) ([]string, []string) {
		general := "daemon off; error_log stderr; pid " + filepath.Join(folder, "nginx.pid") + ";"
		return []string{"-p", folder, "-c", file, "-g", general}, []string{"/etc/nginx/cadastre.crt", certificate,
			"/etc/nginx/cadastre.key", certificate, "http {", "http { access_log off; client_body_temp_path body; " +
				"proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;"}
	},
}

// TestProxies runs the proxies of deploy/ before two servers: queries, event
// streams and WebSockets pass, the servers see the address of the client, and no
// request fails while a server stops.
func TestProxies(t *testing.T) {
	t.Parallel()
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skip("needs " + name)
			}
			database, tokens := storetest.Postgres(t), tokenFile(t, anAdmin)
			var servers []*serving
			var stops []func()
			for range 2 {
				server, stop := boot(t, "--database", database, "--tokens", tokens, "--trusted-proxy", "127.0.0.1/32")
				servers, stops = append(servers, server), append(stops, stop)
			}
			address, transport := proxied(t, name, program, servers[0].address, servers[1].address)
			through := &proxy{address, transport}
			through.tellsAtOnce(t)
			through.opensSockets(t)
			if name == "nginx" { // HAProxy bounds them from version 3.0 on
				through.endsFloods(t)
			}
			through.outlives(t, stops[0])
		})
	}
}

// proxied starts a proxy before two servers. It returns its address, and a
// transport that trusts its certificate.
func proxied(t *testing.T, name, program, one, other string) (string, *http.Transport) {
	t.Helper()
	port, err := pgserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := selfSigned(t)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(certificate))
	folder := t.TempDir()
	joined, file := filepath.Join(folder, "both.pem"), filepath.Join(folder, name+".conf")
	text, err := filepath.Glob("deploy/" + name + ".c*f*")
	if err != nil || len(text) != 1 {
		t.Fatalf("deploy/ has %v for %s, %v", text, name, err)
	}
	example, err := os.ReadFile(text[0])
	if err != nil {
		t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	args, words := proxies[name](folder, file, joined)
	words = append(words, "10.0.0.11:8080", strings.TrimPrefix(one, "http://"), "10.0.0.12:8080",
		strings.TrimPrefix(other, "http://"), "bind :8443", "bind "+listen, "listen 8443", "listen "+listen)
	written := strings.NewReplacer(words...).Replace(string(example))
	if err := os.WriteFile(joined, []byte(certificate+key), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	log := &output{}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "localhost"},
		ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	address := "https://" + listen
	storetest.Within(t, time.Minute, name+" serves", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return address, transport
}

// proxy is a running proxy, and the connections to it.
type proxy struct {
	address   string
	transport *http.Transport
}

// ask sends a document and returns the status and the answer.
func (p *proxy) ask(ctx context.Context, document string) (int, string, error) {
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", "secret")
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// tellsAtOnce checks that the proxy keeps no event back.
func (p *proxy) tellsAtOnce(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, time.Minute))
	defer cancel()
	server := client.New(p.address, client.WithToken("secret"),
		client.WithHTTPClient(&http.Client{Transport: p.transport}))
	const document = `subscription($after: String) { resourceChanged(after: $after) { cursor resource { name } } }`
	const creation = `mutation { createResource(input: {type: "OS::Nova::Flavor", name: "new"}) { resource { uuid } } }`
	_, latest, err := p.ask(ctx, `{ changes(first: 1) { latest } }`)
	cursor := regexp.MustCompile(`"latest":"([^"]+)"`).FindStringSubmatch(latest)
	if err != nil || cursor == nil {
		t.Fatalf("%s %v", latest, err)
	}
	if status, text, err := p.ask(ctx, creation); err != nil ||
		status != http.StatusOK || strings.Contains(text, "errors") {
		t.Fatalf("%d %s %v", status, text, err)
	}
	for event, err := range client.Follow[struct {
		ResourceChanged struct{ Resource struct{ Name string } }
	}](ctx, server, document, map[string]any{"after": cursor[1]}) {
		if err != nil || event.ResourceChanged.Resource.Name != "new" {
			t.Errorf("the event is %+v, %v", event, err)
		}
		return
	}
	t.Error("no event came")
}

// opensSockets checks that a WebSocket passes.
func (p *proxy) opensSockets(t *testing.T) {
	t.Helper()
	one := p.transport.Clone() // WebSockets begin in HTTP/1.1
	one.ForceAttemptHTTP2, one.TLSClientConfig.NextProtos, one.TLSNextProto = false, []string{"http/1.1"}, nil
	defer one.CloseIdleConnections()
	address := strings.Replace(p.address, "http", "ws", 1) + "/graphql"
	connection, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: &http.Client{Transport: one}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.CloseNow() }()
	greeting := []byte(`{"type":"connection_init","payload":{"X-Auth-Token":"secret"}}`)
	if err := connection.Write(t.Context(), websocket.MessageText, greeting); err != nil {
		t.Fatal(err)
	}
	if _, text, err := connection.Read(t.Context()); err != nil || !strings.Contains(string(text), "connection_ack") {
		t.Errorf("%s %v", text, err)
	}
}

// floods are HTTP/2 frames that cost a client nothing, and the bytes before them.
var floods = map[string]struct{ before, frame string }{
	"SETTINGS": {"", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	"PRIORITY": {"", "\x00\x00\x05\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x10"},
	"empty DATA": {"\x00\x00\x0e\x01\x04\x00\x00\x00\x01\x83\x87\x84\x41\x09localhost", // POST /
		"\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
}

// endsFloods sends such frames until the proxy says that it ends the connection.
func (p *proxy) endsFloods(t *testing.T) {
	t.Helper()
	const most = 64 << 20 // bytes
	for name, flood := range floods {
		settings := p.transport.TLSClientConfig.Clone()
		settings.NextProtos = []string{"h2"}
		connection, err := tls.Dial("tcp", strings.TrimPrefix(p.address, "https://"), settings)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			const goAway = 7
			for head := make([]byte, 9); head[3] != goAway; { // of a frame: its length in 3 bytes, its type
				if _, err := io.ReadFull(connection, head); err != nil {
					return
				}
				length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
				if _, err := io.CopyN(io.Discard, connection, length); err != nil {
					return
				}
			}
		}()
		_, err = io.WriteString(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+floods["SETTINGS"].frame+flood.before)
		sent, frames := 0, strings.Repeat(flood.frame, 1000)
		for isOpen := true; isOpen && err == nil && sent < most; sent += len(frames) {
			_, err = io.WriteString(connection, frames)
			select {
			case <-ended:
				isOpen = false
			default:
			}
		}
		if sent >= most {
			t.Errorf("the proxy reads %d bytes of %s frames", sent, name)
		}
		_ = connection.Close()
	}
}

// outlives stops a server while requests come, and checks that each is answered.
func (p *proxy) outlives(t *testing.T, stop func()) {
	t.Helper()
	stopped := make(chan struct{})
	for i := range 300 {
		if i == 100 {
			go func() {
				defer close(stopped)
				stop()
			}()
		}
		status, text, err := p.ask(t.Context(), `{ viewer { userId } }`)
		if err != nil || status != http.StatusOK || !strings.Contains(text, "ada") {
			t.Errorf("request %d: %d %s %v", i, status, text, err)
		}
	}
	<-stopped
}
