package sync_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// A large cloud.
const (
	manyHosts, manyServers, manyFlavors, manyImages = 10_000, 100_000, 2_000, 20_000
	manyProjects                                    = 100
)

// sized are the kinds of a large cloud, in the order of a pass.
var sized = []string{"flavors", "hypervisors", "providers", "servers", "allocations", "images"}

// hostOf returns the uuid of a host and of its provider.
func hostOf(i int) string { return fmt.Sprintf("66666666-0000-4000-8000-%012d", i) }

func serverOf(i int) string { return fmt.Sprintf("77777777-0000-4000-8000-%012d", i) }

// ofChange returns the time of a change in seconds after another one.
func ofChange(seconds int) string {
	return time.Date(2026, 1, 31, 12, 0, seconds, 0, time.UTC).Format(time.RFC3339)
}

// newLargeFake returns a cloud with servers on all hosts.
func newLargeFake() *fake {
	f := &fake{size: 1000, lacks: "reservation", lists: map[string][]object{}, objects: map[string]object{},
		owners: map[string]string{}, usage: map[string]int{}}
	f.lists[services], f.lists[aggregates], f.lists[images+" hidden"] = []object{}, []object{}, []object{}
	for i := range manyFlavors {
		f.lists[flavors] = append(f.lists[flavors],
			object{"id": fmt.Sprint(i), "name": fmt.Sprint("flavor ", i), "ram": 512 + i, "disk": i, "vcpus": 1 + i%64,
				"os-flavor-access:is_public": true,
				"extra_specs": object{"hw:cpu_policy": "dedicated",
					"resources:VGPU": fmt.Sprint(i % 4)}})
	}
	for i := range manyImages {
		f.lists[images] = append(f.lists[images],
			object{"id": fmt.Sprint("image-", i), "name": "image",
				"owner": fmt.Sprint("p", i%manyProjects), "visibility": "private",
				"os_distro": "debian", "hw_disk_bus": "virtio", "min_disk": i % 50})
	}
	for i := range manyHosts {
		f.lists[hypervisors] = append(f.lists[hypervisors],
			object{"id": hostOf(i), "hypervisor_hostname": fmt.Sprint("node-", i),
				"hypervisor_type": "QEMU", "state": "up",
				"status": "enabled", "cpu_info": object{"arch": "x86_64",
					"features": []string{"aes", "avx", "vmx"}, "topology": object{"cores": 8}}})
		f.provide(hostOf(i), fmt.Sprint("node-", i), "", 64, "HW_CPU_X86_AVX", "HW_CPU_X86_VMX")
		f.objects["/placement/resource_providers/"+hostOf(i)+"/allocations"] = object{"allocations": object{}}
	}
	for i := range manyServers {
		f.owners[serverOf(i)] = fmt.Sprint("p", i%manyProjects)
		f.lists[servers] = append(f.lists[servers],
			object{"id": serverOf(i), "name": fmt.Sprint("server ", i),
				"tenant_id": f.owners[serverOf(i)], "status": "ACTIVE", "updated": ofChange(-i),
				"metadata": object{"role": "web", "team": fmt.Sprint(i % 50), "cost": fmt.Sprint(i)}})
		f.place(serverOf(i), hostOf(i%manyHosts))
		f.usage[f.owners[serverOf(i)]]++
	}
	return f
}

// place moves a consumer to a provider.
func (f *fake) place(consumer, provider string) {
	const list = "/placement/resource_providers/"
	if own := f.objects["/placement/allocations/"+consumer]; own != nil {
		for before := range own["allocations"].(object) {
			delete(f.objects[list+before+"/allocations"]["allocations"].(object), consumer)
		}
	}
	resources := object{"resources": object{"CUSTOM_GPU": 1}}
	f.objects[list+provider+"/allocations"]["allocations"].(object)[consumer] = resources
	f.objects["/placement/allocations/"+consumer] = object{"allocations": object{provider: resources},
		"project_id": f.owners[consumer], "user_id": "ada"}
	f.changes(provider)
}

// BenchmarkSizeOfACloud follows a large cloud, with the program and its server in
// separate processes: the first pass over each kind, a thousand changes, and
// passes without a change. Run it with -benchtime 1x.
func BenchmarkSizeOfACloud(b *testing.B) {
	f := newLargeFake()
	f.start(b)
	program := filepath.Join(b.TempDir(), "cadastre")
	if out, err := exec.Command("go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	serve, address := startServer(b, program)
	server := client.New(address, client.WithToken("admin"))
	follow := exec.Command(program, "sync", "openstack", "--follow", "--interval", "1s", "--kinds",
		strings.Join(sized, ","), "--project", "operations", "--server", address, "--token", "sync", "-o", "json")
	follow.Env = append(os.Environ(), "OS_AUTH_URL="+f.url+"/v3", "OS_USERNAME=ada",
		"OS_PASSWORD=secret", "OS_USER_DOMAIN_NAME=Default",
		"OS_PROJECT_NAME=admin", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME=one")
	began := time.Now()
	passes := linesOf(b, follow, follow.StdoutPipe)
	await := func(round string, changed int) {
		written := 0
		for written < changed {
			line := <-passes
			var pass client.SyncCounts
			if err := json.Unmarshal([]byte(line), &pass); err != nil {
				b.Fatalf("%s: %v: %s", round, err, line)
			}
			b.Logf("%s: %s after %.1f s", round, line, time.Since(began).Seconds())
			written += pass.Created + pass.Updated
		}
		if written != changed {
			b.Errorf("%s: %d were written, want %d", round, written, changed)
		}
		b.ReportMetric(time.Since(began).Seconds(), round+"-s")
	}
	await("first", manyFlavors+2*manyHosts+2*manyServers+manyImages)
	f.mu.Lock()
	began = time.Now()
	for i := range 500 {
		f.lists[servers][i*37]["metadata"].(object)["cost"] = "changed"
		f.lists[servers][i*37]["updated"] = ofChange(1800)
		f.place(serverOf(i*53), hostOf((i*53+1)%manyHosts))
	}
	f.mu.Unlock()
	await("changes", 1000)
	ask := func(query string) (answer object) {
		if err := server.MakeRequest(b.Context(), &graphql.Request{Query: query},
			&graphql.Response{Data: &answer}); err != nil {
			b.Fatal(err)
		}
		return answer
	}
	const latest = `{ auditEvents(first: 1) { nodes { id } } changes(first: 0) { latest } }`
	before, now := fmt.Sprint(ask(latest)), time.Now().UTC().Format(time.RFC3339)
	for ended := 0; ended < len(sized); time.Sleep(time.Second) {
		ended = 0
		for _, one := range ask(`{ syncs { completedAt } }`)["syncs"].([]any) {
			if at, _ := one.(object)["completedAt"].(string); at > now {
				ended++
			}
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "without-changes-s")
	if after := fmt.Sprint(ask(latest)); after != before {
		b.Errorf("passes without a change wrote: %s, before %s", after, before)
	}
	reportPeaks(b, map[string]*exec.Cmd{"sync": follow, "server": serve})
}

// startServer starts a server on SQLite with the tokens admin and sync, and returns
// its address.
func startServer(b *testing.B, program string) (serve *exec.Cmd, address string) {
	b.Helper()
	tokens := filepath.Join(b.TempDir(), "tokens.yaml")
	const roles = "tokens:\n- {token: admin, user: ada, project: operations, roles: [admin]}\n- {token: sync, user: sync, project: operations, roles: [service]}\n"
	if err := os.WriteFile(tokens, []byte(roles), 0o600); err != nil {
		b.Fatal(err)
	}
	serve = exec.Command(program, "serve", "--tokens", tokens, "--listen", "127.0.0.1:0",
		"--database", storetest.EmptySQLite(b))
	log := linesOf(b, serve, serve.StderrPipe)
	for address == "" {
		line, isOpen := <-log
		if !isOpen {
			b.Fatal("the server ended")
		}
		if _, after, found := strings.Cut(line, "msg=serving address="); found {
			address, _, _ = strings.Cut("http://"+after, " ")
		}
	}
	go func() {
		for range log { // or the server waits
		}
	}()
	return serve, address
}

// reportPeaks reports the most memory that processes held.
func reportPeaks(b *testing.B, commands map[string]*exec.Cmd) {
	b.Helper()
	for name, command := range commands {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
		if err != nil {
			b.Fatal(err)
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		kilobytes, err := strconv.ParseFloat(strings.Fields(peak)[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(kilobytes/1024, name+"-MiB")
	}
}

// linesOf starts a command, and sends the lines of one of its outputs until the
// benchmark ends.
func linesOf(b *testing.B, command *exec.Cmd, pipe func() (io.ReadCloser, error)) <-chan string {
	b.Helper()
	out, err := pipe()
	if err != nil {
		b.Fatal(err)
	}
	if command.Stderr == nil {
		command.Stderr = os.Stderr
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for says := bufio.NewScanner(out); says.Scan(); {
			lines <- says.Text()
		}
	}()
	return lines
}
