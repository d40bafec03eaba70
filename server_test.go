package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// output collects what the program writes while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var servingAt = regexp.MustCompile(`msg=serving address=(\S+)`)

// boot runs `cadastre serve` on a free port until the test ends, or until stop.
func boot(t *testing.T, args ...string) (address string, stdout *output, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, stderr := &output{}, &output{}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), stdout, stderr)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ended with %v\n%s", err, stderr)
		}
	})
	t.Cleanup(stop)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		if at := servingAt.FindStringSubmatch(stderr.String()); at != nil {
			return "http://" + at[1], stdout, stop
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("serve ended at once: %v\n%s", err, stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("the server did not start:\n%s", stderr)
	return "", nil, nil
}

// ask sends a query and gives the status and the answer.
func ask(t *testing.T, address, token, query string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(answer))
}

func TestTheDemoAnswersAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	database := "sqlite://" + filepath.Join(t.TempDir(), "cadastre.db")
	var first string
	for round := range 2 {
		address, stdout, stop := boot(t, "--demo", "--database", database)
		for _, told := range []string{address, "demo-admin", "demo-member", "demo-reader", "curl -sG"} {
			if !strings.Contains(stdout.String(), told) {
				t.Errorf("the greeting does not tell %q:\n%s", told, stdout)
			}
		}
		status, answer := ask(t, address, "demo-reader", `{ namespaces { totalCount } resources { totalCount } resourceProviders { totalCount }
			allocationCandidates(resources: [{resourceClass: "VCPU", amount: 4}, {resourceClass: "MEMORY_MB", amount: 2048}], first: 5) { nodes { allocations { provider { name } resources { resourceClass amount } } } } }`)
		if status != http.StatusOK || strings.Contains(answer, "errors") || strings.Contains(answer, `"totalCount":0`) {
			t.Errorf("%d %s", status, answer)
		}
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
	address, _, _ := boot(t, "--demo", "--database", storetest.SQLite(t))
	for _, token := range []string{"", "unknown"} {
		status, answer := ask(t, address, token, `{ viewer { userId } }`)
		if status != http.StatusUnauthorized || !strings.Contains(answer, "UNAUTHENTICATED") {
			t.Errorf("token %q: %d %s", token, status, answer)
		}
	}
	for _, open := range []string{"/", "/livez", "/readyz", "/schema.graphql", "/metrics"} {
		response, err := http.Get(address + open)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %d", open, response.StatusCode)
		}
	}
}

func TestADemoListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"serve", "--demo", "--listen", "0.0.0.0:0", "--database", storetest.SQLite(t)}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
}

func TestServingWithoutTokensIsRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--database", storetest.SQLite(t)}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--tokens") {
		t.Errorf("got %v", err)
	}
}

// TestLoadRealDefinitions loads a folder of real definition files through the
// command line into an empty server of each database, twice, and counts: case 50
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
	storetest.EachURL(t, func(t *testing.T, url string) {
		tokens := filepath.Join(t.TempDir(), "tokens.yaml")
		if err := os.WriteFile(tokens, []byte("tokens:\n  - {token: secret, user: ada, project: operations, roles: [admin]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		address, _, _ := boot(t, "--database", url, "--tokens", tokens)
		for _, want := range []string{
			"33 namespaces: 33 created, 0 updated, 0 unchanged, 0 skipped, 0 failed\n",
			"33 namespaces: 0 created, 0 updated, 33 unchanged, 0 skipped, 0 failed\n",
		} {
			var stdout bytes.Buffer
			if err := run(t.Context(), []string{"metadefs", "load", folder, "--server", address, "--token", "secret"}, &stdout, io.Discard); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(stdout.String(), want) {
				t.Errorf("got %q, want %q", stdout.String(), want)
			}
		}
		countDefinitions(t, address)
		namesByResourceType(t, address)
	})
}

// countDefinitions counts what the real files define, and the integers among
// the defaults.
func countDefinitions(t *testing.T, address string) {
	t.Helper()
	_, answer := ask(t, address, "secret", `{ namespaces(first: 100) { totalCount nodes {
		properties { name type default itemEnum } objects { properties { type default } } resourceTypeAssociations { resourceType { name } } } } }`)
	type property struct {
		Name, Type string
		Default    json.RawMessage
		ItemEnum   []string
	}
	var got struct {
		Data struct {
			Namespaces struct {
				TotalCount int
				Nodes      []struct {
					Properties []property
					Objects    []struct{ Properties []property }

					ResourceTypeAssociations []struct{ ResourceType struct{ Name string } }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	properties, objects, inObjects, associations, integers, features := 0, 0, 0, 0, 0, 0
	types := map[string]bool{}
	count := func(p property) {
		if p.Type == "INTEGER" && p.Default != nil && !bytes.ContainsAny(p.Default, `"nN`) {
			integers++
		}
		if p.Name == "cpu_info:features" {
			features = len(p.ItemEnum)
		}
	}
	for _, namespace := range got.Data.Namespaces.Nodes {
		properties += len(namespace.Properties)
		objects += len(namespace.Objects)
		for _, p := range namespace.Properties {
			count(p)
		}
		for _, object := range namespace.Objects {
			inObjects += len(object.Properties)
			for _, p := range object.Properties {
				count(p)
			}
		}
		for _, association := range namespace.ResourceTypeAssociations {
			associations++
			types[association.ResourceType.Name] = true
		}
	}
	counted := fmt.Sprint(got.Data.Namespaces.TotalCount, properties, objects, inObjects, associations, len(types), integers, features)
	if want := "33 136 23 63 63 6 21 178"; counted != want {
		t.Errorf("namespaces, properties, objects, properties in objects, associations, types, integer defaults, features: %s, want %s", counted, want)
	}
}

func namesByResourceType(t *testing.T, address string) {
	t.Helper()
	for resourceType, name := range map[string]string{"OS::Nova::Flavor": "hw:cpu_sockets", "OS::Glance::Image": "hw_cpu_sockets"} {
		_, answer := ask(t, address, "secret", fmt.Sprintf(
			`{ namespaces(filter: {resourceTypes: [%[1]q]}) { nodes { name properties(resourceType: %[1]q) { name } } } }`, resourceType))
		if !strings.Contains(answer, `"name":"`+name+`"`) {
			t.Errorf("%s: no %s in %s", resourceType, name, answer)
		}
	}
}

// TestDefaultsOfTheFlagsAreTheDefaultsOfTheRooms holds the defaults that
// `cadastre serve --help` shows to those that the rooms have.
func TestDefaultsOfTheFlagsAreTheDefaultsOfTheRooms(t *testing.T) {
	t.Parallel()
	var served cli.ServeOptions
	program := cli.Program{Serve: func(_ context.Context, options cli.ServeOptions) error {
		served = options
		return nil
	}}
	if err := cli.Run(t.Context(), program, []string{"serve"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := web.Limits(served.Limits), web.DefaultLimits(); got != want {
		t.Errorf("limits: the flags say %+v, the room %+v", got, want)
	}
}

func TestMetricsAreServedElsewhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stderr, ended, database := &output{}, make(chan error, 1), storetest.SQLite(t)
	go func() {
		ended <- run(ctx, []string{"serve", "--demo", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
			"--trusted-proxy", "127.0.0.1/32,10.0.0.0/8", "--database", database}, io.Discard, stderr)
	}()
	at := func(name string) string {
		pattern := regexp.MustCompile(`msg=` + name + ` address=(\S+)`)
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if found := pattern.FindStringSubmatch(stderr.String()); found != nil {
				return "http://" + found[1]
			}
		}
		t.Fatalf("no line %s:\n%s", name, stderr)
		return ""
	}
	serving, measuring := at("serving"), at("measuring")
	for _, ask := range []struct {
		address, path string
		want          int
	}{ // in this order: what was asked of the server is what the other listener has measured
		{serving, "/metrics", 404}, {serving, "/livez", 200},
		{measuring, "/metrics", 200}, {measuring, "/livez", 404}, {measuring, "/graphql", 404}, {measuring, "/schema.graphql", 404},
	} {
		response, err := http.Get(ask.address + ask.path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != ask.want || ask.want == 200 && ask.path == "/metrics" && !strings.Contains(string(body), "cadastre_http_requests_total") {
			t.Errorf("GET %s%s: %d, want %d: %.200s", ask.address, ask.path, response.StatusCode, ask.want, body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFlagsThatSayNothingAreRefused(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("rules: {placement.wirte: [admin], setTag: [admin], viewer: [root]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"serve", "--demo", "--listen", "127.0.0.1:0", "--policy", policy, "--database", storetest.SQLite(t)}, io.Discard, io.Discard)
	for _, unknown := range []string{policy, "placement.wirte", "setTag", "root"} {
		if err == nil || !strings.Contains(err.Error(), unknown) {
			t.Errorf("a policy of what is not known: %v, want %s named", err, unknown)
		}
	}
	for flag, value := range map[string]string{"--trusted-proxy": "10.0.0.1", "--allowed-origins": "dash.example.org", "--metrics-listen": "nowhere", "--tls-cert": "cert.pem"} {
		err := run(t.Context(), []string{"serve", "--demo", "--listen", "127.0.0.1:0", flag, value, "--database", storetest.SQLite(t)}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s %s: %v", flag, value, err)
		}
	}
}
