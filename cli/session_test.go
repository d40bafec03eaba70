package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
)

// TestExitStatuses runs commands that end with every exit status. Errors must
// name the wrong flag.
func TestExitStatuses(t *testing.T) {
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	t.Setenv("CADASTRE_CONFIG", filepath.Join(t.TempDir(), "none.yaml"))
	const refused = "BAD_USER_INPUT: "
	for line, want := range map[string]struct {
		status int
		text   string
	}{
		"cadastre resource list -q --limit 1": {0, ""},
		"cadastre":                            {0, "Usage: cadastre <command>"},
		"cadastre metadata":                   {0, "Usage: cadastre metadata <command>"},
		"cadastre help":                       {0, "Usage: cadastre <command>"},
		"cadastre help metadata":              {0, "Usage: cadastre metadata <command>"},
		"cadastre help metadata set":          {0, "$ cadastre metadata set home ticket=4711"},
		"cadastre watch ''":                   {2, "unexpected argument"},
		"cadastre resources":                  {2, `did you mean "resource"`},
		"cadastre metadata set home":          {2, `expected "<items> ..."`},
		"cadastre metadata set home =x":       {2, `"=x" has no key`},
		"cadastre metadata set home a=\xff":   {2, `<items>: "a=\xff" is not valid UTF-8`},
		"cadastre metadata set '' a=1":        {2, "<resource> is empty"},
		"cadastre resource show ''":           {2, "<resource> is empty"},
		"cadastre metadata set home a=1 --service-owned --user-owned": {2,
			"--service-owned and --user-owned can't be used together"},
		"cadastre resource list -c size": {2, "--columns: unknown column"},
		"cadastre resource list --where '{metadata: {kex: rack}}'": {2,
			`--where: "{metadata: {kex: rack}}": unknown field`},
		"cadastre resource list --updated-since soon": {2, "--updated-since: "},
		"cadastre resource list --sort name:up":       {2, "--sort: "},
		"cadastre resource list --sort size":          {2, `--sort: must be one of name, `},
		"cadastre provider list --by-class VCPU":      {3, "--sort: a value is required"},
		"cadastre resource list --context none": {2,
			`--context: the context "none" does not exist`},
		"cadastre resource list --token= --os-cloud none": {2, `the cloud "none"`},
		"cadastre resource list --ca-cert /none":          {2, "--ca-cert: "},
		"cadastre candidates --resource VCPU": {2,
			`--resource: "VCPU" is not of the form CLASS=AMOUNT`},
		"cadastre candidates --from-flavor n1.large --resource VCPU=1": {2, "--from-flavor cannot be combined"},
		"cadastre resource show compute-1":                             {2, "ambiguous, 10 resources match"},
		"cadastre resource show compute-01 --candidates":               {3, "request no resources"},
		"cadastre resource show g1.small --candidates":                 {0, "CANDIDATE  PROVIDER"},
		"cadastre resource show compute-01": {0,
			"\nCAPABILITIES  arch=x86_64, bmc_address="},
		"cadastre resource show compute-01 -o table": {0,
			"\nPROVIDER      510e9489-3813-553f-a51b-edf71e683d22\n"},
		"cadastre inventory set compute-01 VCPU --total x": {2, `--total: must be an integer, is "x"`},
		"cadastre inventory set compute-01 VCPU --allocation-ratio NaN": {2,
			`--allocation-ratio: must be a number, is "NaN"`},
		"cadastre query":     {2, "nothing to send"},
		"cadastre query '{'": {2, "the document: "},
		"cadastre query 'subscription { resourceChanged { change { what } } }'": {2, "`cadastre watch`"},
		"cadastre watch --after x":                      {3, "--after: is not a cursor"},
		"cadastre candidates":                           {3, "--resource: must name an amount"},
		"cadastre fits":                                 {3, "--resource: must name an amount"},
		"cadastre query '{ viewer { userId } }' -v a=1": {2, "declares no variable $a"},
		"cadastre query '{ viewer { name } }'": {3,
			"GRAPHQL_VALIDATION_FAILED: "},
		"cadastre resource list --type OS::Manila::Shar": {3,
			refused + `--type "OS::Manila::Shar": unknown resource type`},
		"cadastre resource list --type physical:host --type OS::Nova::Flavour": {3,
			refused + `--type "OS::Nova::Flavour": `},
		"cadastre resource list --tag ''": {3,
			refused + "--tag \"\" name: "},
		"cadastre namespace create ''": {3, refused + "<name>: "},
		"cadastre resource create x --type physical:rack --metadata a= --tag ''": {3,
			"--metadata \"a=\" value: "},
		"cadastre provider list --required HW_NONE": {3,
			refused + "--required HW_NONE: "},
		"cadastre candidates --resource VCPU=1 --resource NONE=2": {3,
			refused + "--resource NONE=2: unknown resource class"},
		"cadastre candidates --group _A --resource VCPU=1 --group _B --resource PCPU=0": {3,
			refused + "--resource PCPU=0: "},
		"cadastre place --consumer 3f0c2f4e-0000-4000-8000-00000000000e --project p --user '' --resource NONE=2 --hosts '{requirements: [{key: none, requirement: x}]}'": {3, refused + "--hosts: "},
		"cadastre place --consumer 3f0c2f4e-0000-4000-8000-00000000000e --project p --user '' --resource NONE=2":                                                         {3, "--user: must be"},
		"cadastre place --consumer 3f0c2f4e-0000-4000-8000-00000000000e --project p --user u --resource VCPU=99999":                                                      {6, "--consumer 3f0c2f4e-0000-4000-8000-00000000000e: no provider has room"},
		"cadastre candidates --resource VCPU=1 --group _A --resource VGPU=1 --required '!NONE'":                                                                          {3, refused + "--required !NONE: "},
		"cadastre property create Lab x --title X --type string --minimum 1":                                                                                             {4, "NOT_FOUND: "},
		"cadastre metadata check OS::Nova::Flavor capabilities:gpu= hw:cpu_cores=1":                                                                                      {3, "the metadata break their definitions"},
		"cadastre resource show nothing-of-this-name":                                                                                                                    {4, `resource "nothing-of-this-name" does not exist`},
		"cadastre metadata show home none":                    {4, `metadata item "none" does not exist`},
		"cadastre namespace show none":                        {4, `namespace "none" does not exist`},
		"cadastre property list none":                         {4, `namespace "none" does not exist`},
		"cadastre trait show NONE":                            {4, `trait "NONE" does not exist`},
		"cadastre namespace delete none --yes":                {4, "NOT_FOUND: "},
		"cadastre resource list --token wrong":                {5, "unknown token"},
		"cadastre audit list --token demo-reader":             {5, "FORBIDDEN: "},
		"cadastre namespace create Cadastre::Watchdog":        {6, "ALREADY_EXISTS: "},
		"cadastre namespace delete Cadastre::Watchdog --yes":  {6, "PROTECTED: "},
		"cadastre metadata set home a=1 --revision 99":        {6, "CONCURRENT_UPDATE: "},
		"cadastre resource list --server 127.0.0.1:1":         {7, "connection refused"},
		"cadastre --server 127.0.0.1:1 resource list":         {7, "connection refused"},
		"cadastre --token demo-reader audit list":             {5, "FORBIDDEN: "},
		"cadastre --context none resource list":               {2, `the context "none" does not exist`},
		"cadastre -o value trait show HW_CPU_X86_AVX -c name": {0, "HW_CPU_X86_AVX\n"},
		"cadastre provider delete compute-13 --yes":           {6, "its children are \"compute-13:"},
	} {
		printed, status := shell(t, line)
		if status != want.status || !strings.Contains(printed, want.text) {
			t.Errorf("%s ends with %d and prints\n%.500s\nwant %d and %q", line,
				status, printed, want.status, want.text)
		}
	}
}

// TestAWarningIsNotOutput writes a value that breaks its definition. The warning
// is on standard error.
func TestAWarningIsNotOutput(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"metadata", "set", "compute-01", "rack_unit=999", "--server",
		demotest.Serve(t), "--token", demo.AdminToken}
	err := cli.Run(t.Context(), cli.Program{}, args, &stdout, &stderr)
	if err != nil || strings.Contains(stdout.String(), "warning") ||
		!strings.Contains(stderr.String(), "warning: rack_unit: ") {
		t.Errorf("printed %s, and on standard error %s: %v", &stdout, &stderr, err)
	}
}

// TestMissing checks that errors about missing objects suggest the nearest
// name, and that deletions look up their objects before they ask.
func TestMissing(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	const near = `namespace "Cadastre::Watchdg" does not exist; did you mean "Cadastre::Watchdog"?`
	for line, want := range map[string]string{
		"namespace show Cadastre::Watchdg":               near,
		"property list Cadastre::Watchdg":                near,
		"namespace delete Cadastre::Watchdg":             near,
		"resource-type show physical:hots":               `did you mean "physical:host"?`,
		"trait delete HW_CPU_X86_AVX5":                   `trait "HW_CPU_X86_AVX5" does not exist; did you mean "HW_CPU_X86_AVX"?`,
		"trait show HW_CPU_X86_AVX5":                     `trait "HW_CPU_X86_AVX5" does not exist; did you mean "HW_CPU_X86_AVX"?`,
		"resource-class delete VCPUS":                    `resource class "VCPUS" does not exist; did you mean "VCPU"?`,
		"resource-class delete CUSTOM_NONE":              `resource class "CUSTOM_NONE" does not exist`,
		"metadata delete home none":                      `metadata item of home "none" does not exist`,
		"inventory delete compute-01:numa0 VGPU":         `inventory of compute-01:numa0 "VGPU" does not exist`,
		"capability delete physical:host none":           `capability of physical:host "none" does not exist`,
		"capability delete physical:host cpu_info:model": "nothing was deleted",
		"inventory replace compute-01:numa0 VCPU=1":      "nothing was deleted",
		"trait delete HW_CPU_X86_AVX2":                   "nothing was deleted",
	} {
		printed, status := shell(t, "cadastre "+line)
		isMissing := want != "nothing was deleted"
		if status == 0 || (status == 4) != isMissing || isMissing && strings.Contains(printed, "filter.") ||
			!strings.Contains(printed, want) {
			t.Errorf("%s ends with %d and prints %s; want %q", line, status, printed, want)
		}
	}
}

// TestInterrupt ends commands that wait for the standard input.
func TestInterrupt(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	for _, args := range []string{"resource delete home", "query", "move apply -", "login --token="} {
		ctx, interrupt := context.WithTimeout(t.Context(), patience.Of(t, time.Second))
		silent, end := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- cli.Run(ctx, cli.Program{Stdin: silent}, strings.Fields(args), io.Discard, io.Discard)
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s succeeds without input", args)
			}
		case <-time.After(patience.Of(t, 10*time.Second)):
			t.Errorf("%s does not end with its context", args)
		}
		interrupt()
		_ = end.Close()
	}
}

// TestNames finds resources and providers by name, and by the beginnings of
// names and uuids.
func TestNames(t *testing.T) {
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	host, _ := shell(t, "cadastre provider show compute-07 -c uuid -o value")
	for line, want := range map[string]string{
		"cadastre resource show ebf728f5-376a-5438-8ef0-c3a299ba60eb -c name -o value": "home",
		"cadastre resource show home -c uuid -o value":                                 "ebf728f5-376a-5438-8ef0-c3a299ba60eb",
		"cadastre resource show HOME-FRA -c name -o value":                             "home-fra2",
		// exact, though other names begin with it
		"cadastre resource show ci-cache -c name -o value":                           "ci-cache",
		"cadastre resource list --parent office -q --limit 1":                        "ebf728f5-376a-5438-8ef0-c3a299ba60eb",
		"cadastre provider show compute-07 -c name -o value":                         "compute-07",
		"cadastre provider show " + host[:12] + " -c name -o value":                  "compute-07",
		"cadastre provider list --in-tree compute-07:numa0 --roots -c name -o value": "compute-07",
		"cadastre consumer show wiki -c resource -o value":                           "wiki",
	} {
		if printed, status := shell(t, line); status != 0 || strings.TrimSpace(printed) != want {
			t.Errorf("%s ends with %d and prints %q, want %q", line, status, printed, want)
		}
	}
	printed, status := shell(t, "cadastre provider show compute-07:num")
	if status != 2 || !strings.Contains(printed, `"compute-07:num" is ambiguous, 2 providers match`) ||
		!strings.Contains(printed, "  compute-07:numa0\n") {
		t.Errorf("an ambiguous name ends with %d and prints %s", status, printed)
	}
	if printed, status := shell(t, "cadastre resource show compute"); status != 2 ||
		!strings.Contains(printed, "and 14 more") {
		t.Errorf("a very ambiguous name ends with %d and prints %s", status, printed)
	}
}

// TestBeginningsOfUUIDsHaveEightCharacters writes shorter ones in each place
// that takes a uuid. The names contain them, too. A beginning that is also the name
// of another object is ambiguous.
func TestBeginningsOfUUIDsHaveEightCharacters(t *testing.T) {
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	const first, second, third = "0a0a0a0a-0000-4000-8000-000000000001", "0a0a0a0a-0000-4000-8000-000000000002",
		"00000000-0000-4000-8000-000000000003"
	for _, create := range []string{"resource create --type physical:host", "provider create"} {
		for _, of := range []string{"'twin-0a0a0a' --uuid " + first, "'other twin-0' --uuid " + second} {
			if printed, status := shell(t, "cadastre "+create+" "+of); status != 0 {
				t.Fatalf("%s %s ends with %d and prints %s", create, of, status, printed)
			}
		}
	}
	for _, of := range []string{"resource show", "resource list --parent",
		"resource delete --yes", "metadata list", "provider show",
		"provider list --in-tree", "inventory list", "consumer show", "allocation list --consumer",
		"aggregate show", "watch resource"} {
		for _, begun := range []string{"0", "0a0a0a0"} {
			want := `"` + begun +
				`" does not exist: no name begins with it, and the beginning of a uuid needs 8 characters or more`
			if printed, status := shell(t, "cadastre "+of+" "+begun); status != 4 || !strings.Contains(printed, want) {
				t.Errorf("%s %s ends with %d and prints %s", of, begun, status, printed)
			}
		}
	}
	for kind, create := range map[string]string{"resource": " create --type physical:host", "provider": " create"} {
		if printed, status := shell(t, "cadastre "+kind+create+" 0a0a0a0a --uuid "+third); status != 0 {
			t.Fatalf("%s%s ends with %d and prints %s", kind, create, status, printed)
		}
		printed, status := shell(t, "cadastre "+kind+" show 0a0a0a0a")
		for _, want := range []string{`"0a0a0a0a" is ambiguous, 3 ` + kind + `s match`,
			"  " + first, "  " + second, "  " + third} {
			if status != 2 || !strings.Contains(printed, want) {
				t.Errorf("an ambiguous beginning of a %s ends with %d and prints %s, want %q", kind, status, printed,
					want)
			}
		}
		if printed, status := shell(t, "cadastre "+kind+
			" show 0a0a0a0a-0000-4000-8000-000000000002 -c name -o value"); status != 0 ||
			strings.TrimSpace(printed) != "other twin-0" {
			t.Errorf("a whole uuid of a %s ends with %d and prints %s", kind, status, printed)
		}
	}
	checkAuditKeys(t, first, second, third)
}

// checkAuditKeys checks beginnings of uuids in keys of the audit log. A key of
// metadata is none.
func checkAuditKeys(t *testing.T, first, second, third string) {
	t.Helper()
	for key, want := range map[string]string{
		"0a0a0a0a": `"0a0a0a0a" is ambiguous, 2 objects match` +
			"; write more of it, or a uuid:\n  " + first + "\n  " + second,
		"00000000-0000-4000-8000-00": third + "\n" + third,
		"0b0b0b0b":                   "",
	} {
		if printed, status := shell(t, "cadastre audit list -c key -o value --key "+
			key); (status == 2) != (key == "0a0a0a0a") || !strings.Contains(strings.TrimSpace(printed), want) {
			t.Errorf("the events of %s end with %d and print %s, want %q", key, status, printed, want)
		}
	}
	if printed, status := shell(t, "cadastre metadata problems --key 0a0a0a0a"); status != 0 {
		t.Errorf("the problems of a key end with %d and print %s", status, printed)
	}
}

// TestPaginate compares a list read page by page with the whole list.
func TestPaginate(t *testing.T) {
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.ReaderToken)
	names := func(line string) (names []string) {
		printed, status := shell(t, line)
		var data struct {
			All struct{ Nodes []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(printed), &data); err != nil || status != 0 {
			t.Fatalf("%s ends with %d: %v\n%.300s", line, status, err, printed)
		}
		for _, node := range data.All.Nodes {
			names = append(names, node.Name)
		}
		return names
	}
	want := names("cadastre query '{ all: traits(first: 1000) { nodes { name } } }'")
	got := names("cadastre query --paginate 'query($n: Int!, $next: String) { all: traits(first: $n, after: $next) { ...P } } fragment P on TraitConnection { nodes { name } pageInfo { endCursor hasNextPage } }' -v n=37")
	if len(want) < 300 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("page by page there are %d traits, at once %d", len(got), len(want))
	}
	file := filepath.Join(t.TempDir(), "q.graphql")
	if err := os.WriteFile(file, []byte("query A { viewer { userId } } query B { viewer { projectId } }"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"cadastre query -f " + file +
			" --operation B -o value": "demo",
		"cadastre query -f " +
			file: "the document has 2 operations",
		"cadastre query -f " + file +
			" --operation C": `no operation "C"`,
		"cadastre query --paginate '{ traits { nodes { name } } }'":                                                          "requires a query with a list whose argument 'after' is a variable",
		"cadastre query --paginate 'query($a: String) { traits(after: $a, first: 3) { nodes { name } } }'":                   "select pageInfo { hasNextPage endCursor } of traits",
		"cadastre query --paginate 'query($a: String) { ...A } fragment A on Query { ...A }'":                                "requires a query with a list",
		"echo { viewer { userId } } | cadastre query":                                                                        "",
		"cadastre query 'query($u: UUID!) { resource(uuid: $u) { name } }' -v u=ebf728f5-376a-5438-8ef0-c3a299ba60eb -o csv": "name\nhome",
	} {
		if strings.HasPrefix(line, "echo") {
			continue // this shell cannot parse a brace
		}
		if printed, _ := shell(t, line); !strings.Contains(printed, want) {
			t.Errorf("%s prints\n%s\nwant %q", line, printed, want)
		}
	}
}

// TestContexts saves servers and tokens in a private file, and sends a token
// only to its own server.
func TestContexts(t *testing.T) {
	address := demotest.Serve(t)
	file := filepath.Join(t.TempDir(), "deep", "contexts.yaml")
	t.Setenv("CADASTRE_CONFIG", file)
	t.Chdir(t.TempDir())
	keystone := identity(t)
	run := func(line, want string, wantStatus int) {
		t.Helper()
		if printed, status := shell(t, line); status != wantStatus || !strings.Contains(printed, want) {
			t.Errorf("%s ends with %d and prints\n%s\nwant %d and %q", line, status, printed, wantStatus, want)
		}
	}
	run("echo wrong | cadastre login --server "+address, "unknown token", 5)
	if _, err := os.Stat(file); err == nil {
		t.Error("a token that is unknown is kept")
	}
	run("echo | cadastre login --server "+address, "no token was given", 2)
	run("echo demo-reader | cadastre login --server "+address, "demo-reader", 0)
	run("cadastre login boss --token demo-admin --server "+address, "the context is boss", 0)
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want the mode %v", path, info.Mode(), err, mode)
		}
	}
	run("cadastre whoami -q", "demo-admin", 0)
	run("cadastre whoami -q --context default", "demo-reader", 0)
	run("cadastre whoami -q --token demo-member", "demo-member", 0)
	run("cadastre context use default", "default", 0)
	run("cadastre whoami -q", "demo-reader", 0)
	run("cadastre whoami -q --os-cloud prod --server "+address, "demo-admin", 0)
	run("cadastre whoami -q --os-cloud wrong --server "+address, "does not accept the credentials", 5)
	run("cadastre login cloud --os-cloud prod --server "+address, "demo-admin", 0)
	run("cadastre whoami -q", "demo-admin", 0)
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%v: the file has the cloud's secret\n%s", err, text)
	}
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"data": {"viewer": {"userId": "x"}}}`)
	}))
	t.Cleanup(other.Close)
	run("cadastre whoami -q --server "+other.URL, "x", 0)
	run("cadastre whoami -q --context boss --server "+other.URL, "x", 0)
	t.Setenv("OS_TOKEN", "from-openstack")
	run("cadastre whoami -q --server "+other.URL, "x", 0)
	if strings.Join(seen, ",") != ",,Bearer from-openstack" {
		t.Errorf("another server got the tokens %q", seen)
	}
	t.Setenv("OS_TOKEN", "")
	setOpenRC(t, keystone)
	run("cadastre whoami -q --server "+other.URL, "x", 0)
	if seen[len(seen)-1] != "Bearer demo-admin" {
		t.Errorf("the OS_* variables make the credentials %q", seen[len(seen)-1])
	}
	run("cadastre context delete boss none", `context "none" does not exist`, 4)
	run("cadastre context delete boss cloud default -q", "boss\ncloud\ndefault", 0)
	run("cadastre context list -o json", "[]", 0)
	if err := os.WriteFile(file, []byte("contexts: [secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, status := shell(t, "cadastre whoami"); status == 0 ||
		strings.Contains(printed, "secret") || !strings.Contains(printed, file) {
		t.Errorf("a file that cannot be read ends with %d and prints %s", status, printed)
	}
}

// setOpenRC sets the variables of an openrc file.
func setOpenRC(t *testing.T, keystone string) {
	t.Helper()
	for name, value := range map[string]string{"AUTH_URL": keystone, "USERNAME": "ada", "PASSWORD": "secret",
		"PROJECT_NAME": "operations", "USER_DOMAIN_NAME": "Default",
		"PROJECT_DOMAIN_NAME": "Default", "TENANT_NAME": "old"} {
		t.Setenv("OS_"+name, value)
	}
}

// TestAuthorities connects to a server whose certificate only --ca-cert trusts.
func TestAuthorities(t *testing.T) {
	behind, err := url.Parse(demotest.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
	}})
	t.Cleanup(server.Close)
	folder := t.TempDir()
	known, other := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "none.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, text := range map[string][]byte{known: certificate, other: []byte("no certificate")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CADASTRE_CONFIG", filepath.Join(folder, "contexts.yaml"))
	line := "cadastre whoami -q --token demo-reader --server " + server.URL
	for flags, want := range map[string]string{"": "certificate", " --ca-cert " + known: "demo-reader\n",
		" --ca-cert " + other: "has no certificate in PEM"} {
		if printed, status := shell(t, line+flags); !strings.Contains(printed, want) ||
			(status == 0) != (want == "demo-reader\n") {
			t.Errorf("%s ends with %d and prints %s", flags, status, printed)
		}
	}
	if printed, status := shell(t, fmt.Sprintf("cadastre login tls --token demo-reader --server %s --ca-cert %s",
		server.URL, known)); status != 0 {
		t.Errorf("login: %s", printed)
	}
	if printed, status := shell(t, "cadastre whoami -q"); status != 0 || printed != "demo-reader\n" {
		t.Errorf("the context lacks the authority: %s", printed)
	}
}

// TestChangesOfAllKindsAreWatchedInOrder watches the kept changes in two parts,
// the second after the last cursor of the first. Both together are the changes
// of these kinds in the order of the API.
func TestChangesOfAllKindsAreWatchedInOrder(t *testing.T) {
	t.Setenv("CADASTRE_SERVER", demotest.Serve(t))
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	want, _ := shell(t, `cadastre query '{ changes(first: 1000, filter: {kinds: [NAMESPACE, RESOURCE, RESOURCE_PROVIDER,
		CONSUMER]}) { nodes { kind key } } }' -o csv -c kind,key`)
	first, status := shell(t, "cadastre watch --kept --limit 30 -o csv -c kind,key,cursor")
	lines := strings.Split(strings.TrimSpace(first), "\n")
	last := lines[len(lines)-1]
	cut := strings.LastIndex(last, ",")
	rest := fmt.Sprint(strings.Count(want, "\n") - 31)
	second, other := shell(t, "cadastre watch all --after "+last[cut+1:]+" -o csv -c kind,key --limit "+rest)
	for i, line := range lines {
		lines[i] = line[:strings.LastIndex(line, ",")]
	}
	_, second, _ = strings.Cut(second, "\n") // without the headings
	if got := strings.Join(lines, "\n") + "\n" + second; got != want || status+other != 0 {
		t.Errorf("%d and %d: got\n%s\nwant\n%s", status, other, got, want)
	}
}
