package chart

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// composed returns the project of the compose file. The loader checks the schema,
// and that networks, secrets and volumes exist.
func composed(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../deploy/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// servers returns the services that run the image of deploy/Dockerfile.
func servers(t *testing.T) (all []types.ServiceConfig) {
	t.Helper()
	for _, service := range composed(t).Services {
		if service.Build != nil && service.Build.Dockerfile == "deploy/Dockerfile" {
			all = append(all, service)
		}
	}
	if len(all) < 2 {
		t.Fatalf("the compose file has %d servers", len(all))
	}
	return all
}

func TestComposedContainersAreRestricted(t *testing.T) {
	for name, service := range composed(t).Services {
		isDropped := slices.Contains(service.CapDrop, "ALL") && len(service.CapAdd) == 0 && !service.Privileged
		if !service.ReadOnly || !isDropped || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s has more rights than it needs", name)
		}
		for _, port := range service.Ports {
			if address := net.ParseIP(port.HostIP); !address.IsLoopback() {
				t.Errorf("%s publishes port %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
}

// The program starts with the arguments, variables and files of the servers. Their
// health check succeeds while it runs, and neither afterwards nor with a wrong
// token.
func TestComposedServersServe(t *testing.T) {
	for _, service := range servers(t) {
		t.Run(service.Name, func(t *testing.T) {
			running := composedContainer(t, service)
			checkVariables(t, running.env)
			addresses, end := running.start(t)
			test := service.HealthCheck.Test
			if test[0] != "CMD" || test[1] != readImage(t).entrypoint {
				t.Fatalf("the image cannot run %q", test)
			}
			folder := filepath.Dir(running.mounts["/etc/cadastre/health.yaml"])
			healthy := func(token string) error {
				const context = "{current: here, contexts: {here: {server: 'http://%s', token: %s}}}\n"
				write(t, folder, "health.yaml", fmt.Sprintf(context, addresses["serving"], token))
				return running.command(t.Context(), t, test[2:]...).Run()
			}
			if err := healthy("right"); err != nil {
				t.Errorf("a server that runs is not healthy: %v", err)
			}
			if healthy("wrong") == nil {
				t.Error("a server that refuses a token is healthy")
			}
			end()
			if healthy("right") == nil {
				t.Error("a server that has ended is healthy")
			}
		})
	}
}

// composedContainer returns the container of a service, with files for its
// secrets.
func composedContainer(t *testing.T, service types.ServiceConfig) container {
	t.Helper()
	folder := t.TempDir()
	secrets(t, folder, "sqlite://"+filepath.Join(folder, "cadastre.db"))
	running := container{args: service.Command, env: map[string]string{}, mounts: map[string]string{}}
	for _, secret := range service.Secrets {
		running.mounts[secret.Target] = filepath.Join(folder, filepath.Base(secret.Target))
	}
	for name, value := range service.Environment {
		running.env[name] = *value
	}
	return running
}

var (
	bound  = regexp.MustCompile(`(?m)^\s*bind :(\d+) ssl crt (\S+)`)
	behind = regexp.MustCompile(`(?m)^\s*server \S+ (\S+)$`)
)

// The compose file has the addresses, the port and the certificate of haproxy.cfg,
// and its servers trust the proxy.
func TestComposedProxyFits(t *testing.T) {
	proxy, settings := composed(t).Services["proxy"], read(t, "../../deploy/haproxy.cfg")
	bind := bound.FindStringSubmatch(settings)
	port := strconv.Itoa(int(proxy.Ports[0].Target))
	if bind == nil || bind[1] != port || bind[2] != proxy.Secrets[0].Target {
		t.Errorf("the proxy has the port %s and the certificate %s, its file %q", port, proxy.Secrets[0].Target, bind)
	}
	var want, got []string
	for _, server := range behind.FindAllStringSubmatch(settings, -1) {
		want = append(want, server[1])
	}
	address := proxy.Networks["proxied"].Ipv4Address
	for _, service := range servers(t) {
		port := portOf(t, readImage(t).env["CADASTRE_LISTEN"])
		got = append(got, fmt.Sprintf("%s:%d", service.Networks["proxied"].Ipv4Address, port))
		_, trusted, err := net.ParseCIDR(*service.Environment["CADASTRE_TRUSTED_PROXY"])
		if err != nil || !trusted.Contains(net.ParseIP(address)) {
			t.Errorf("%s trusts %v, the proxy is %s: %v", service.Name, trusted, address, err)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the servers are %q, the proxy asks %q", got, want)
	}
}
