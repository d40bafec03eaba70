package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// cloudsFile serves Keystone, a flavor of Nova and lists of Nova without a row. It
// returns a clouds.yaml that names them.
func cloudsFile(t *testing.T, lists ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	cloud := httptest.NewServer(mux)
	t.Cleanup(cloud.Close)
	mux.HandleFunc("GET /v3/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w,
			`{"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": %q}]}}`,
			cloud.URL+"/v3/")
	})
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": {"expires_at": "2036-01-31T12:00:00.000000Z", "project": {"id": "operations"}, "catalog": [{"type": "compute", "name": "nova",
			"endpoints": [{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": %q}]}]}}`,
			cloud.URL+"/compute/v2.1")
	})
	mux.HandleFunc("GET /compute/v2.1/flavors/detail", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"flavors": [{"id": "1", "name": "m1.tiny", "ram": 512, "disk": 1, "vcpus": 1}]}`)
	})
	for _, list := range lists {
		mux.HandleFunc("GET /compute/v2.1/"+list, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{%q: []}`, strings.TrimPrefix(strings.TrimSuffix(list, "/detail"), "os-"))
		})
	}
	return fmt.Sprintf("clouds: {prod: {region_name: RegionOne, auth: {auth_url: %q, username: ada, password: secret, user_domain_name: Default}}}", cloud.URL+"/v3")
}

// setCloud makes the process use a clouds.yaml with a flavor's cloud.
func setCloud(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, []byte(cloudsFile(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", file)
}

// TestAServerFollowsACloud serves with --sync until the flavor of a cloud is a
// resource, and the other kinds of Nova have failed.
func TestAServerFollowsACloud(t *testing.T) {
	setCloud(t)
	server, stop := boot(t, "--demo", "--sync", "prod", "--database", storetest.EmptySQLite(t))
	var answer string
	if !patience.Until(t, 10*time.Second, func() bool {
		_, answer = ask(t, server.address, "demo-admin", `{ syncs { origin region kind present failures } }`)
		return strings.Contains(answer, `"servers"`)
	}) {
		t.Fatalf("the cloud is not read: %s, %s", answer, server.stderr)
	}
	want := `{"data":{"syncs":[{"origin":"prod","region":"RegionOne","kind":"aggregates","present":0,"failures":1},` +
		`{"origin":"prod","region":"RegionOne","kind":"flavors","present":1,"failures":0},` +
		`{"origin":"prod","region":"RegionOne","kind":"hypervisors","present":0,"failures":1},`
	if !strings.HasPrefix(answer, want) {
		t.Errorf("%s, want %s", answer, want)
	}
	_, answer = ask(t, server.address, "demo-reader",
		`{ resources(filter: {types: ["OS::Nova::Flavor"], name: "m1.tiny"}) { nodes { projectId origin { foreignId } } } }`)
	if want := `[{"projectId":"operations","origin":{"foreignId":"1"}}]`; !strings.Contains(answer, want) {
		t.Errorf("%s, want %s", answer, want)
	}
	_, metrics := get(t, server.address+"/metrics")
	for _, want := range []string{`cadastre_sync_present{kind="flavors",origin="prod",region="RegionOne"} 1`,
		`cadastre_sync_failures{kind="flavors",origin="prod",region="RegionOne"} 0`,
		`cadastre_sync_failures{kind="hypervisors",origin="prod",region="RegionOne"} 1`,
		`cadastre_sync_lag_seconds{kind="flavors",origin="prod",region="RegionOne"} `,
		"# TYPE cadastre_sync_refused gauge", "# TYPE cadastre_sync_absent gauge", "# TYPE cadastre_sync_gone gauge"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, `cadastre_sync_lag_seconds{kind="hypervisors"`) {
		t.Error("a kind that was never complete has a lag")
	}
	stop()
	for _, want := range []string{`a pass changed things`, `kind=flavors created=1`,
		`a pass failed`, `kind=hypervisors`} {
		if !strings.Contains(server.stderr.String(), want) {
			t.Errorf("the log lacks %s: %s", want, server.stderr)
		}
	}
}

// TestAServerWithTrustedDocumentsFollowsACloud serves with --sync, and refuses all
// documents of others, except the console's.
func TestAServerWithTrustedDocumentsFollowsACloud(t *testing.T) {
	setCloud(t)
	server, stop := boot(t, "--demo", "--sync", "prod", "--profile", "locked", "--console", "--trusted-only",
		"--database", storetest.EmptySQLite(t))
	const want = "kind=flavors created=1"
	if !patience.Until(t, 10*time.Second, func() bool { return strings.Contains(server.stderr.String(), want) }) {
		t.Errorf("the log lacks %s: %s", want, server.stderr)
	}
	if _, answer := ask(t, server.address, "demo-admin", "{ syncs { kind } }"); !strings.Contains(answer, "errors") {
		t.Errorf("another document: %s", answer)
	}
	stop()
}

// TestSyncFlagsAreChecked serves with a cloud that does not exist, and with the
// regions of none.
func TestSyncFlagsAreChecked(t *testing.T) {
	setCloud(t)
	for args, want := range map[string]string{
		"--sync stage": `--sync: the cloud "stage"`,
		"--config " +
			strings.TrimPrefix(configured(t, "sync-regions: [a]\n"), "--config="): "sync-regions requires --sync",
	} {
		err := run(t.Context(), append([]string{"serve", "--demo", "--database", storetest.EmptySQLite(t)},
			strings.Fields(args)...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
