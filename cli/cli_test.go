package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestCommandsWithoutAServer runs the commands that need no server.
func TestCommandsWithoutAServer(t *testing.T) {
	t.Parallel()
	program := cli.Program{Version: "1.2.3", Commit: "abc", SDL: "type Query {\n}\n"}
	for words, wants := range map[string][]string{
		"version":            {"cadastre 1.2.3 (commit abc)\n"},
		"--version":          {"cadastre 1.2.3 (commit abc)\n"},
		"serve --version":    {"cadastre 1.2.3 (commit abc)\n"},
		"schema":             {program.SDL},
		"metadefs schema":    {`"$schema"`},
		"--help":             {"Usage: cadastre <command>", "metadefs", "capability", "metadata", "serve"},
		"metadata --help":    {"Usage: cadastre metadata <command>", "replace"},
		"metadata set -h":    {"<resource> <items>", "$CADASTRE_TOKEN", "$CADASTRE_SERVER", `"http://127.0.0.1:8080"`},
		"serve --help":       {"$CADASTRE_KEYSTONE_URL", "--slow-operation=1s"},
		"metadefs load -h":   {"skip,merge,prefer-new,overwrite"},
		"metadefs unload -h": {"--include-protected"},
	} {
		var stdout, stderr strings.Builder
		if err := cli.Run(t.Context(), program, strings.Fields(words), &stdout, &stderr); err != nil ||
			stderr.String() != "" {
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
	if err := cli.Run(t.Context(), program, []string{"metadefs", "schema"}, &schema, io.Discard); err != nil ||
		json.Unmarshal([]byte(schema.String()), &document) != nil {
		t.Errorf("the schema of a definition file is not JSON: %v\n%s", err, schema.String())
	}
	refuse(t, map[string]string{
		"serv":        `unexpected argument serv; did you mean "serve"?; see ` + "`cadastre --help`",
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
		if wantErr == "" && (err != nil || !strings.HasPrefix(stdout.String(), "KEY")) ||
			wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("CADASTRE_TOKEN=%s: error %v, want %q, prints\n%s", token, err, wantErr, stdout.String())
		}
	}
}

// clients returns the arguments of each command that is a client of a server.
func clients(t *testing.T) [][]string {
	t.Helper()
	c := console{t: t, folder: t.TempDir()}
	return [][]string{
		command("metadata get", share), command("metadata set", share, "a=1"),
		command("metadata replace", share, "a=1"), command("metadata unset --yes", share, "a"),
		command("capability list physical:host"), command("capability get physical:host arch"),
		command("capability set physical:host arch --public"), command("capability create physical:host gpu"),
		command("metadefs load", c.file("n.json", `{"namespace": "N", "visibility": "public"}`)),
		command("metadefs export", filepath.Join(c.folder, "out")), command("metadefs unload N --yes"),
	}
}

// TestWatchMissesNothingBeforeItsFirstEvent cuts a stream before its first
// event, and makes a change before the next stream.
func TestWatchMissesNothingBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	direct := serve(t, storetest.SQLite(t))
	target, err := url.Parse(direct.address)
	if err != nil {
		t.Fatal(err)
	}
	proxy, streams := httputil.NewSingleHostReverseProxy(target), 0
	proxy.FlushInterval = -1
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			if streams++; streams == 1 {
				w.Header().Set("Content-Type", "text/event-stream")
				return
			}
			direct.notes("admin", "", "resource", "create", "between", "--type", "T", "--visibility", "public")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	direct.notes("admin", "", "resource-type", "create", "T")
	through := console{t, between.URL, t.TempDir()}
	ended := time.AfterFunc(patience.Of(t, 10*time.Second), func() {
		direct.notes("admin", "", "resource", "create", "late", "--type", "T", "--visibility", "public")
	})
	defer ended.Stop()
	through.prints("reader", "NAME\nbetween", "watch", "resource", "--limit", "1", "-c", "name")
}

// TestBrokenServers runs each command against servers that are not Cadastre.
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
		"gone":             {"http://127.0.0.1:1", "connection refused"},
		"an empty address": {"localhost:1/", "connection refused"},
		"another server":   {answering(404, "text/html", "<p>Not here"), ": the server answered 404 Not Found"},
		"a proxy without a server": {answering(502, "text/html", "<p>Bad gateway"),
			": the server answered 502 Bad Gateway"},
		"half an answer":       {answering(200, "application/json", `{"data": {`), "unexpected EOF"},
		"no answer of GraphQL": {answering(200, "application/json", `{"status": "maintenance"}`), "it has no data"},
		"null":                 {answering(200, "application/json", `{"data": null}`), "it has no data"},
		"a terminal's controls": {answering(200, "application/json", `{"errors": [{"message": "\u001b[2Jgone"}]}`),
			": \uFFFD[2Jgone"},
		"an error without a code": {answering(200, "application/json", `{"errors": [{"message": "no"}]}`), ": no"},
		"several errors": {answering(200, "application/json",
			`{"errors": [{"message": "one", "extensions": {"code": "A", "field": "input.x"}}, {"message": "two", "extensions": {"code": "B"}}]}`),
			": A: one (input.x)\nB: two"},
	} {
		for _, args := range clients(t) {
			var stdout strings.Builder
			err := cli.Run(t.Context(), cli.Program{},
				append(args, "--server", of.address, "--token", "admin", "--retries", "0"), &stdout, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), of.address+": ") ||
				!strings.Contains(err.Error(), of.want) || stdout.String() != "" {
				t.Errorf("%s: %q: error %v, want %q, prints %q", name, args, err, of.want, stdout.String())
			}
		}
	}
}

// TestASilentServer checks that each command ends with its context while a
// server accepts connections but sends nothing.
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
			ended <- cli.Run(ctx, cli.Program{}, append(args, "--server", "http://"+listener.Addr().String()),
				io.Discard, io.Discard)
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%q: got the error %v", args, err)
			}
		case <-time.After(patience.Of(t, 10*time.Second)):
			t.Fatalf("%q goes on after its context", args)
		}
	}
}

// TestTimeout checks that each command ends on its own while a server accepts
// connections but sends nothing, or half an answer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"silent": "",
		"half an answer": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = connection.Close() })
				go func() {
					_, _ = connection.Read(make([]byte, 1)) // an answer before the request would be another error
					_, _ = io.WriteString(connection, sent)
				}()
			}
		}()
		for _, args := range clients(t) {
			ended := make(chan error, 1)
			go func() {
				ended <- cli.Run(t.Context(), cli.Program{},
					append(args, "--server", listener.Addr().String(), "--timeout", "50ms"), io.Discard, io.Discard)
			}()
			select {
			case err := <-ended:
				if err == nil ||
					!strings.Contains(err.Error(), listener.Addr().
						String()+": no answer in time, --timeout is 50ms: ") {
					t.Errorf("%s: %q: got the error %v", name, args, err)
				}
			case <-time.After(patience.Of(t, 10*time.Second)):
				t.Fatalf("%s: %q hangs", name, args)
			}
		}
	}
}

// TestAddressesOfAServer names one server in several ways.
func TestAddressesOfAServer(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	host := strings.TrimPrefix(c.address, "http://")
	_, port, _ := net.SplitHostPort(host)
	for _, address := range []string{host, "localhost:" + port, host + "/", host + "/graphql", host + "/graphql/",
		c.address, c.address + "/", c.address + "/graphql", "HTTP://" + host} {
		if err := cli.Run(t.Context(), cli.Program{},
			command("metadata get", share, "--token", "reader", "--server", address),
			io.Discard, io.Discard); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	err := cli.Run(t.Context(), cli.Program{},
		command("metadata get", share, "--token", "reader", "--server", "https://"+host), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "write http:// before its address") {
		t.Errorf("https: %v", err)
	}
	refuse(t, map[string]string{
		"metadata get x --server http://":           `--server: "http://" is not the address of a server`,
		"metadata get x --server ftp://example.org": "is not the address of a server",
		"metadata get x --server example.org/?a=b":  "is not the address of a server",
		"metadata get x --server=":                  "is not the address of a server",
		"capability list x --server http://a:b":     "is not the address of a server",
		"metadefs unload x --timeout 0s":            "--timeout must be 1ms or more, is 0s",
		"metadefs export x --timeout soon":          "--timeout",
		"metadata unset x y --yes --server [::1":    "is not the address of a server",
	})
}

// TestDeletingAsks answers the question of each command that deletes.
func TestDeletingAsks(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	file := c.file("n.json", `{"namespace": "N", "visibility": "public"}`)
	if _, _, err := c.run("admin", "", "metadata", "set", share, "a=1", "b=2"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.run("admin", "", "metadefs", "load", file); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		args []string
		asks string
		word string
	}{
		{command("metadata unset", share, "a", "b"), `Delete "a", "b" of the resource ` + share + "? Type yes: ",
			"yes"},
		{command("metadata replace", share), "Delete all metadata of the resource " + share + "? Type yes: ", "yes"},
		{command("metadata replace --include-service-owned", share), "Delete all metadata", "yes"},
		{command("metadefs unload N"), `Delete "N" of ` + c.address + ", with everything in them? Type yes: ", "yes"},
		{command("metadefs unload --origin x"), `Delete namespaces of the origin "x" of `, "yes"},
		{command("metadefs unload --resource-type x N"), `Delete "N" that apply to "x" of `, "yes"},
		{command("metadefs unload --all"), "Delete all namespaces of " + c.address, "all"},
		{command("metadefs load --mode overwrite", file), "Delete content that is not in the files", "yes"},
		{command("metadefs load --mode prefer-new", file), "Delete content that is not in the files", "yes"},
		{command("metadefs load --mode prefer-new --include-protected", file),
			"Delete content that is not in the files", "yes"},
	} {
		for _, answer := range []string{"", "\n", "no\n", "y\n", strings.ToUpper(of.word) + "\n"} {
			stdout, stderr, err := c.run("admin", answer, of.args...)
			if err == nil ||
				!strings.Contains(err.Error(), "nothing was deleted: type "+of.word+" to confirm, or use --yes") ||
				!strings.Contains(stderr, of.asks) || stdout != "" {
				t.Errorf("%q after %q: %v\n%s%s", of.args, answer, err, stdout, stderr)
			}
		}
	}
	const kept = "KEY VALUE USER MODIFIABLE\na 1 yes\nb 2 yes\nmanaged yes no"
	c.prints("admin", kept, "metadata", "get", share)
	c.prints("admin", "1 namespace exported to "+c.folder, "metadefs", "export", c.folder)
	for _, args := range [][]string{command("metadata unset", share, "a"), command("metadata replace", share),
		command("metadefs load --mode overwrite", file), command("metadefs unload N")} {
		if _, stderr, err := c.run("admin", "yes\n", args...); err != nil {
			t.Errorf("%q: %v\n%s", args, err, stderr)
		}
	}
	c.prints("admin",
		"1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed (dry run, nothing was changed)",
		"metadefs", "load", "--mode", "overwrite", "--dry-run", file)
}

// TestAnErrorOfALaterBatch has a wrong move in the second batch. The command shows
// the outcomes of the first one.
func TestAnErrorOfALaterBatch(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	const move = `{"consumer": %[1]q, "consumerGeneration": 1, "allocations": [
		{"provider": "` + share + `", "resources": [{"resourceClass": "VCPU", "amount": 1}]}]}`
	moves := make([]string, 101)
	for i := range moves {
		moves[i] = fmt.Sprintf(move, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	}
	moves[100] = fmt.Sprintf(move, "x")
	file := c.file("plan.json", "["+strings.Join(moves, ",")+"]")
	c.fails("admin", "consumer", command("move apply --dry-run", file), "00000000-0000-4000-8000-000000000099")
}

// TestTheEnvironmentDecidesNothing sets every variable that a client flag could
// have.
func TestTheEnvironmentDecidesNothing(t *testing.T) {
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	for _, flag := range []string{"YES", "ALL", "INCLUDE_PROTECTED", "INCLUDE_SERVICE_OWNED", "MODE", "BUILTIN",
		"ORIGIN", "NAME", "RESOURCE_TYPE", "PRIVATE", "PUBLIC", "DRY_RUN", "VERSION"} {
		t.Setenv("CADASTRE_"+flag, "true")
	}
	c.fails("admin", "nothing to unload", command("metadefs unload"))
	c.fails("admin", "nothing was deleted", command("metadefs unload N"))
	c.fails("admin", "nothing was deleted", command("metadata replace", share))
	c.fails("admin", "nothing to load", command("metadefs load"))
	c.fails("admin", "--private", command("capability set physical:host arch"))
	c.prints("member", "KEY VALUE USER MODIFIABLE\na 1 yes\nmanaged yes no", "metadata", "replace", share, "a=1")
	variable := regexp.MustCompile(`\$CADASTRE_\w+`)
	for _, args := range append(clients(t), command("version")) {
		var help strings.Builder
		if err := cli.Run(t.Context(), cli.Program{}, append(args, "--help"), &help, io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, name := range variable.FindAllString(help.String(), -1) {
			if !slices.Contains([]string{"$CADASTRE_SERVER", "$CADASTRE_TOKEN", "$CADASTRE_TIMEOUT", "$CADASTRE_OUTPUT",
				"$CADASTRE_CONTEXT", "$CADASTRE_CA_CERT"}, name) {
				t.Errorf("%q reads %s", args, name)
			}
		}
	}
}

// TestOutputThatNobodyReads checks that a command fails if its output is lost.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	reader, closed := io.Pipe()
	_ = reader.Close()
	for _, args := range append(clients(t), command("metadata get", host, "-o", "json"),
		command("capability list physical:host --all --detail")) {
		err := cli.Run(t.Context(), cli.Program{}, append(args, "--server", c.address, "--token", "admin"), closed,
			io.Discard)
		if err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("%q: got the error %v", args, err)
		}
	}
	for _, args := range []string{"version", "schema", "metadefs schema"} {
		if err := cli.Run(t.Context(), cli.Program{SDL: "type Query"},
			strings.Fields(args), closed, io.Discard); err == nil {
			t.Errorf("%s succeeds", args)
		}
	}
}
