package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestTheDemoAnswersAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	database := "sqlite://" + filepath.Join(t.TempDir(), "cadastre.db")
	var first string
	for round := range 2 {
		server, stop := boot(t, "--demo", "--database", database)
		for _, told := range []string{server.address, "demo-admin", "demo-member", "demo-reader", "curl -sG"} {
			if !strings.Contains(server.stdout.String(), told) {
				t.Errorf("the greeting lacks %q:\n%s", told, server.stdout)
			}
		}
		status, answer := ask(t, server.address, "demo-reader",
			`{ namespaces { totalCount } resources { totalCount } resourceProviders { totalCount }
			allocationCandidates(resources: [{resourceClass: "VCPU", amount: 4}, {resourceClass: "MEMORY_MB", amount: 2048}], first: 5) { nodes { allocations { provider { name } resources { resourceClass amount } } } } }`)
		if status != http.StatusOK || strings.Contains(answer, "errors") || strings.Contains(answer, `"totalCount":0`) {
			t.Errorf("%d %s", status, answer)
		}
		answer, _, _ = strings.Cut(answer, `,"extensions"`) // the cost depends on the content
		if round == 0 {
			first = answer
		} else if answer != first {
			t.Errorf("after a restart the answer differs:\n%s\n%s", first, answer)
		}
		stop()
	}
}

func TestNobodyIsUnauthenticated(t *testing.T) {
	t.Parallel()
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t))
	for _, token := range []string{"", "unknown"} {
		status, answer := ask(t, server.address, token, `{ viewer { userId } }`)
		if status != http.StatusUnauthorized || !strings.Contains(answer, "UNAUTHENTICATED") {
			t.Errorf("token %q: %d %s", token, status, answer)
		}
	}
	for _, open := range []string{"/", "/livez", "/readyz", "/schema.graphql", "/metrics"} {
		if status, _ := get(t, server.address+open); status != http.StatusOK {
			t.Errorf("GET %s: %d", open, status)
		}
	}
}

func TestADemoListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"serve", "--demo", "--listen", "0.0.0.0:0", "--database",
		storetest.EmptySQLite(t)}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
}

func TestServingWithoutTokensIsRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--database", storetest.EmptySQLite(t)},
		io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--tokens") {
		t.Errorf("got %v", err)
	}
}

// TestLoadRealDefinitions loads a folder of real definition files twice with
// the command line, into an empty server of each database, and counts: case 50
// of the reference system.
func TestLoadRealDefinitions(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("CADASTRE_TEST_DEFINITIONS")
	if folder == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CADASTRE_TEST_DEFINITIONS is not set")
		}
		t.Skip("CADASTRE_TEST_DEFINITIONS names no folder of definition files")
	}
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		server, _ := boot(t, "--database", url, "--tokens", tokenFile(t, anAdmin))
		for _, want := range []string{
			"33 namespaces: 33 created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n",
			"33 namespaces: 0 created, 0 updated, 33 unchanged, 0 skipped, 0 failed\n",
		} {
			var stdout bytes.Buffer
			if err := run(t.Context(), []string{"metadefs", "load", folder, "--server", server.address, "--token",
				"secret"}, &stdout, io.Discard); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(stdout.String(), want) {
				t.Errorf("got %q, want %q", stdout.String(), want)
			}
		}
		countDefinitions(t, server.address)
		namesByResourceType(t, server.address)
	})
}

// definedProperty is a property of the real files in the API.
type definedProperty struct {
	Name, Type string
	Default    json.RawMessage
	ItemEnum   []string
}

// hasIntegerDefault reports whether the default is an integer.
func (p definedProperty) hasIntegerDefault() bool {
	return p.Type == "INTEGER" && p.Default != nil && !bytes.ContainsAny(p.Default, `"nN`)
}

// countDefinitions counts the definitions of the real files, and the integer
// defaults among them.
func countDefinitions(t *testing.T, address string) {
	t.Helper()
	_, answer := ask(t, address, "secret", `{ namespaces(first: 100) { totalCount nodes {
		properties { name type default itemEnum } objects { properties { name type default itemEnum } } resourceTypeAssociations { resourceType { name } } } } }`)
	var got struct {
		Data struct{ Namespaces definedNamespaces }
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if counted, want := got.Data.Namespaces.counted(), "33 136 23 63 63 6 21 178"; counted != want {
		t.Errorf("namespaces, properties, objects, properties in objects, associations, types, integer defaults, features: %s, want %s", counted, want)
	}
}

type definedNamespaces struct {
	TotalCount int
	Nodes      []struct {
		Properties []definedProperty
		Objects    []struct{ Properties []definedProperty }

		ResourceTypeAssociations []struct{ ResourceType struct{ Name string } }
	}
}

func (d definedNamespaces) counted() string {
	properties, objects, inObjects, associations, integers, features := 0, 0, 0, 0, 0, 0
	types := map[string]bool{}
	for _, namespace := range d.Nodes {
		all := namespace.Properties
		properties += len(all)
		objects += len(namespace.Objects)
		for _, object := range namespace.Objects {
			inObjects += len(object.Properties)
			all = append(all, object.Properties...)
		}
		for _, p := range all {
			if p.hasIntegerDefault() {
				integers++
			}
			if p.Name == "cpu_info:features" {
				features = len(p.ItemEnum)
			}
		}
		for _, association := range namespace.ResourceTypeAssociations {
			associations++
			types[association.ResourceType.Name] = true
		}
	}
	return fmt.Sprint(d.TotalCount, properties, objects, inObjects, associations, len(types), integers, features)
}

func namesByResourceType(t *testing.T, address string) {
	t.Helper()
	for resourceType, name := range map[string]string{"OS::Nova::Flavor": "hw:cpu_sockets",
		"OS::Glance::Image": "hw_cpu_sockets"} {
		_, answer := ask(t, address, "secret", fmt.Sprintf(
			`{ namespaces(filter: {resourceTypes: [%[1]q]}) { nodes { name properties(resourceType: %[1]q) { name } } } }`, resourceType))
		if !strings.Contains(answer, `"name":"`+name+`"`) {
			t.Errorf("%s: no %s in %s", resourceType, name, answer)
		}
	}
}

// TestDefaultsOfTheFlagsAreThoseOfThePackages compares the defaults in
// `cadastre serve --help` with the defaults of the packages. Flags of zero make all
// limits zero except Strings, which has no flag: so every other limit has one.
func TestDefaultsOfTheFlagsAreThoseOfThePackages(t *testing.T) {
	t.Parallel()
	var served cli.ServeOptions
	program := cli.Program{Serve: func(_ context.Context, options cli.ServeOptions) error {
		served = options
		return nil
	}}
	if err := cli.Run(t.Context(), program, []string{"serve"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := webLimits(served.Limits), web.DefaultLimits(); got != want {
		t.Errorf("limits: the flags have %+v, the package %+v", got, want)
	}
	var none web.Limits
	none.Strings = true
	if got := webLimits(cli.Limits{}); got != none {
		t.Errorf("limits: without values the flags have %+v, want none", got)
	}
}

func TestMetricsAndProfilesAreServedElsewhere(t *testing.T) {
	t.Parallel()
	server, stop := boot(t, "--demo", "--metrics-listen", "127.0.0.1:0", configured(t, "pprof-listen: 127.0.0.1:0\n"),
		"--trusted-proxy", "127.0.0.1/32,10.0.0.0/8", "--database", storetest.EmptySQLite(t))
	serving, measuring, profiling := server.address, server.logged(t, "measuring"), server.logged(t, "profiling")
	for _, ask := range []struct {
		address, path string
		want          int
	}{ // in this order: the metrics listener must have measured the requests to the server
		{serving, "/metrics", 404}, {serving, "/livez", 200}, {serving, "/debug/pprof/", 404},
		{profiling, "/debug/pprof/", 200}, {profiling, "/debug/pprof/heap", 200},
		{profiling, "/metrics", 404}, {profiling, "/graphql", 404},
		{measuring, "/metrics", 200}, {measuring, "/livez", 404}, {measuring, "/graphql", 404},
		{measuring, "/schema.graphql", 404},
	} {
		status, body := get(t, ask.address+ask.path)
		if status != ask.want || status == 200 && ask.path == "/metrics" &&
			!strings.Contains(body, "cadastre_http_requests_total") {
			t.Errorf("GET %s%s: %d, want %d: %.200s", ask.address, ask.path, status, ask.want, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
}

// TestTheExitStatus runs the program as a process.
func TestTheExitStatus(t *testing.T) {
	t.Parallel()
	program := built(t)
	if info, err := os.Stat(".git"); err == nil && info.IsDir() { // go build knows the commit of such a tree
		head, err := exec.Command("git", "rev-parse", "HEAD").Output()
		if err != nil {
			t.Fatal(err)
		}
		built, err := exec.Command(program, "--version").Output()
		if err != nil || !strings.Contains(string(built), " (commit "+strings.TrimSpace(string(head))) {
			t.Errorf("--version prints %q, %v, want the commit %s", built, err, head)
		}
	}
	for args, want := range map[string]struct {
		status int
		says   string // at the beginning of the standard output or, with an error, of the standard error
	}{
		"version":                         {0, "cadastre "},
		"--version":                       {0, "cadastre "},
		"metadata set --help":             {0, "Usage: cadastre metadata set"},
		"":                                {0, "Usage: cadastre <command>"},
		"resources":                       {2, "cadastre: unexpected argument resources"},
		"serve --limit-depth=7":           {2, "cadastre: --limit-depth is not a flag: set the key limits.depth"},
		"serve --listen nowhere":          {2, "cadastre: --listen nowhere: "},
		"serve --demo --listen 0.0.0.0:0": {2, "cadastre: a demo cannot listen on 0.0.0.0:0"},
		"metadata get x --server http://127.0.0.1:1": {7, "cadastre: http://127.0.0.1:1: "},
	} {
		command := exec.Command(program, strings.Fields(args)...)
		var stdout, stderr strings.Builder
		command.Stdout, command.Stderr = &stdout, &stderr
		err := command.Run()
		said := stdout.String()
		if err != nil {
			said = stderr.String()
		}
		if command.ProcessState.ExitCode() != want.status || !strings.HasPrefix(said, want.says) {
			t.Errorf("%q: %v, says %.200q, want the status %d and %q", args, err, said, want.status, want.says)
		}
	}
}

func TestFlagsThatSayNothingAreRefused(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("rules: {placement.wirte: [admin], setTag: [admin], viewer: [root]}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"serve", "--demo", "--listen", "127.0.0.1:0", "--policy", policy, "--database",
		storetest.EmptySQLite(t)}, io.Discard, io.Discard)
	for _, unknown := range []string{policy, "placement.wirte", "setTag", "root"} {
		if err == nil || !strings.Contains(err.Error(), unknown) {
			t.Errorf("a policy of what is not known: %v, want %s named", err, unknown)
		}
	}
	for flag, value := range map[string]string{"--trusted-proxy": "10.0.0.1", "--allowed-origins": "dash.example.org",
		"--metrics-listen": "nowhere", "--tls-cert": "cert.pem"} {
		err := run(t.Context(), []string{"serve", "--demo", "--listen", "127.0.0.1:0", flag, value, "--database",
			storetest.EmptySQLite(t)}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s %s: %v", flag, value, err)
		}
	}
}

// TestFlagsAreCheckedBeforeAnythingIsMade starts servers with one wrong flag
// each, and one server with all of them.
func TestFlagsAreCheckedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	refused := func(want []string, flags ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "cadastre.db")
		err := run(t.Context(),
			append([]string{"serve", "--demo", "--listen", "127.0.0.1:0", "--database", "sqlite://" + path}, flags...),
			io.Discard, io.Discard)
		for _, want := range want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %q", flags, err, want)
			}
		}
		if files, _ := filepath.Glob(path + "*"); len(files) > 0 {
			t.Errorf("%q: made %q", flags, files)
		}
	}
	all, named := []string(nil), []string(nil)
	for _, flag := range [][2]string{
		{"--metrics-listen", "nowhere"}, {"--tls-cert", broken}, {"--tls-key", broken},
		{"--tokens", broken}, {"--policy", broken}, {"--trusted-documents", broken}, {"--trusted-proxy", "10.0.0.1"},
		{"--allowed-origins", "dash.example.org"}, {"--oidc-issuer", "nowhere"}, {"--keystone-url", "nowhere"},
	} {
		refused([]string{flag[0]}, flag[0], flag[1])
		all = append(all, flag[0], flag[1])
		if flag[0] != "--tls-key" { // the error names the certificate first
			named = append(named, flag[0])
		}
	}
	refused(named, all...)
	refused([]string{"--trusted-proxy"}, "--trusted-proxy", "::ffff:10.0.0.0/104")
	refused([]string{"--listen nowhere", "--tls-cert"}, "--listen", "nowhere", "--tls-cert", broken)
	refused([]string{"--listen : no address"}, "--listen=")
	refused([]string{"--trusted-only", "--tokens"}, "--demo=false", "--trusted-only")
	refused([]string{"--database: "}, "--database", "mysql://u:secret@h/db")
	file := configured(t,
		"policy: broken\ntls-cert: cert.pem\ntrusted-only: true\npprof-listen: 0.0.0.0:0\nkeystone: {url: nowhere}\ndatabase-listen: nowhere")
	at := strings.TrimPrefix(file, "--config=") + ":"
	refused([]string{at + "1: policy", at + "2: tls-cert and --tls-key must be set together",
		at + "3: trusted-only requires --trusted-documents",
		at + "4: pprof-listen", at + "5: keystone.url", at + "6: database-listen"}, file)
	refused([]string{"--metrics-listen " + taken.Addr().String()}, "--metrics-listen", taken.Addr().String())
}
