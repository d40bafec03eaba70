package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestCommandsWithoutAServer runs the commands that print what the program
// knows.
func TestCommandsWithoutAServer(t *testing.T) {
	t.Parallel()
	program := cli.Program{Version: "1.2.3", Commit: "abc", SDL: "type Query {\n}\n"}
	for words, wants := range map[string][]string{
		"version":            {"cadastre 1.2.3 (commit abc)\n"},
		"--version":          {"cadastre 1.2.3 (commit abc)\n"},
		"serve --version":    {"cadastre 1.2.3 (commit abc)\n"},
		"schema":             {program.SDL},
		"metadefs schema":    {`"$schema"`},
		"--help":             {"Usage: cadastre <command>", "metadefs load", "capability set", "metadata unset", "serve"},
		"metadata --help":    {"Usage: cadastre metadata <command>", "replace"},
		"metadata set -h":    {"<resource> <items>", "$CADASTRE_TOKEN", "$CADASTRE_SERVER", `"http://127.0.0.1:8080"`},
		"serve --help":       {"$CADASTRE_KEYSTONE_CACHE_TTL", "--limit-cost=2000000"},
		"metadefs load -h":   {"skip,merge,prefer-new,overwrite"},
		"metadefs unload -h": {"--include-protected"},
	} {
		var stdout, stderr strings.Builder
		if err := cli.Run(t.Context(), program, strings.Fields(words), &stdout, &stderr); err != nil || stderr.String() != "" {
			t.Errorf("%s: error %v, notes %q", words, err, stderr.String())
		}
		for _, want := range wants {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s prints\n%s\nwant %q", words, stdout.String(), want)
			}
		}
	}
	var document any
	var schema strings.Builder
	if err := cli.Run(t.Context(), program, []string{"metadefs", "schema"}, &schema, io.Discard); err != nil || json.Unmarshal([]byte(schema.String()), &document) != nil {
		t.Errorf("the schema of a definition file is not JSON: %v\n%s", err, schema.String())
	}
	refuse(t, map[string]string{
		"":            "expected one of",
		"serv":        `unexpected argument serv, did you mean "serve"?; see ` + "`cadastre --help`",
		"version now": "unexpected argument now",
	})
}

// TestFlagsFromTheEnvironment sets the address and the token of every command.
func TestFlagsFromTheEnvironment(t *testing.T) {
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	t.Setenv("CADASTRE_SERVER", c.address)
	for token, wantErr := range map[string]string{"reader": "", "": "unknown token", "wrong": "unknown token"} {
		t.Setenv("CADASTRE_TOKEN", token)
		var stdout strings.Builder
		err := cli.Run(t.Context(), cli.Program{}, command("metadata get", share), &stdout, io.Discard)
		if wantErr == "" && (err != nil || !strings.HasPrefix(stdout.String(), "KEY")) || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("CADASTRE_TOKEN=%s: error %v, want %q, prints\n%s", token, err, wantErr, stdout.String())
		}
	}
}

// clients returns a run of each command that is a client of a server.
func clients(t *testing.T) [][]string {
	t.Helper()
	c := console{t: t, folder: t.TempDir()}
	return [][]string{
		command("metadata get", share), command("metadata set", share, "a=1"), command("metadata replace", share, "a=1"), command("metadata unset", share, "a"),
		command("capability list physical:host"), command("capability get physical:host arch"),
		command("capability set physical:host arch --public"), command("capability create physical:host gpu"),
		command("metadefs load", c.file("n.json", `{"namespace": "N", "visibility": "public"}`)),
		command("metadefs export", filepath.Join(c.folder, "out")), command("metadefs unload N"),
	}
}

// TestBrokenServers runs each command against what is not a server of ours.
func TestBrokenServers(t *testing.T) {
	t.Parallel()
	answering := func(status int, contentType, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, of := range map[string]struct{ address, want string }{
		"gone":                     {"http://127.0.0.1:1", "connection refused"},
		"no address":               {"nowhere", "unsupported protocol scheme"},
		"another server":           {answering(404, "text/html", "<p>Not here"), ": the server answered 404 Not Found"},
		"a proxy without a server": {answering(502, "text/html", "<p>Bad gateway"), ": the server answered 502 Bad Gateway"},
		"half an answer":           {answering(200, "application/json", `{"data": {`), "unexpected EOF"},
		"a terminal's controls":    {answering(200, "application/json", `{"errors": [{"message": "\u001b[2Jgone"}]}`), ": \uFFFD[2Jgone"},
		"an error without a code":  {answering(200, "application/json", `{"errors": [{"message": "no"}]}`), ": no"},
		"several errors": {answering(200, "application/json", `{"errors": [{"message": "one", "extensions": {"code": "A", "field": "input.x"}}, {"message": "two", "extensions": {"code": "B"}}]}`),
			": A: one (input.x)\nB: two"},
	} {
		for _, args := range clients(t) {
			var stdout strings.Builder
			err := cli.Run(t.Context(), cli.Program{}, append(args, "--server", of.address, "--token", "admin"), &stdout, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), of.address+": ") || !strings.Contains(err.Error(), of.want) || stdout.String() != "" {
				t.Errorf("%s: %q: error %v, want %q, prints %q", name, args, err, of.want, stdout.String())
			}
		}
	}
}

// TestASilentServer holds that each command ends with its context while a
// server takes connections and answers nothing.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, args := range clients(t) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- cli.Run(ctx, cli.Program{}, append(args, "--server", "http://"+listener.Addr().String()), io.Discard, io.Discard)
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
				t.Errorf("%q: got the error %v", args, err)
			}
		case <-time.After(patience.Of(t, 10*time.Second)):
			t.Fatalf("%q goes on after its context", args)
		}
	}
}

// TestOutputThatNobodyReads holds that a command whose output is lost fails.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	reader, closed := io.Pipe()
	_ = reader.Close()
	for _, args := range append(clients(t), command("metadata get", host, "-o", "json"), command("capability list physical:host --all --detail")) {
		err := cli.Run(t.Context(), cli.Program{}, append(args, "--server", c.address, "--token", "admin"), closed, io.Discard)
		if err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("%q: got the error %v", args, err)
		}
	}
	for _, args := range []string{"version", "schema", "metadefs schema"} {
		if err := cli.Run(t.Context(), cli.Program{SDL: "type Query"}, strings.Fields(args), closed, io.Discard); err == nil {
			t.Errorf("%s succeeds", args)
		}
	}
}
