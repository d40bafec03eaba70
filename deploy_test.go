package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The unit of systemd gives the server few rights.
func TestTheUnitIsHardened(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	out, err := exec.CommandContext(t.Context(), program, "security", "--offline=yes", "--threshold=20",
		"deploy/cadastre.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The image of deploy/Dockerfile serves a SQLite database without the rights of
// root.
func TestTheImageServes(t *testing.T) {
	program, err := exec.LookPath("buildah")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs buildah and root")
	}
	t.Setenv("CGO_ENABLED", "0") // a static program
	folder := t.TempDir()
	if _, err := buildAt(filepath.Join(folder, "cadastre")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "LICENSE", "deploy/Dockerfile", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	buildah := func(args ...string) *exec.Cmd {
		store := []string{"--root", filepath.Join(folder, "root"), "--runroot",
			filepath.Join(folder, "run"), "--storage-driver", "vfs"}
		return exec.Command(program, append(store, args...)...)
	}
	var container string
	for _, args := range [][]string{{"bud", "--isolation", "chroot", "-f", folder + "/Dockerfile", "-t",
		"cadastre", folder}, {"from", "cadastre"}} {
		out, err := buildah(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		container = strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { _ = buildah("rm", "--all").Run() })
	s := newServing()
	command := buildah("run", "--isolation", "chroot", container, "/usr/bin/cadastre", "serve", "--demo",
		"--listen", "127.0.0.1:0", "--tokens=")
	command.Stdout, command.Stderr = s.stdout, s.stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-s.ended
	})
	s.start(t, command.Wait)
	if status, text := ask(t, s.address, demo.AdminToken, `{ viewer { userId } }`); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// alertName matches the name of an alert in the rules.
var alertName = regexp.MustCompile(`alert: (\w+)`)

func TestEveryAlertIsExplained(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alertName.FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(page), "| `"+alert[1]+"` |") {
			t.Errorf("docs/operations.md does not explain %s", alert[1])
		}
	}
}

// A Prometheus scrapes two servers and evaluates the rules and the queries of the
// dashboard. A server that ends makes its alert pending.
func TestPrometheusEvaluatesTheRules(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus")
	}
	database := storetest.Postgres(t)
	one, _ := boot(t, "--demo", "--database", database)
	other, end := boot(t, "--demo", "--database", database)
	address := monitor(t, program, one.address, other.address)
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Health, State string }
			}
		}
	}
	storetest.Within(t, time.Minute, "every rule is evaluated", func() bool {
		if readJSON(t.Context(), address+"/api/v1/rules", &rules) != nil || len(rules.Data.Groups) == 0 {
			return false
		}
		for _, rule := range rules.Data.Groups[0].Rules {
			if rule.Health != "ok" || rule.State != "inactive" {
				return false
			}
		}
		return scraped(t.Context(), address) == 4
	})
	for _, query := range dashboardQueries(t) {
		var answer struct{ Status, Error string }
		if err := readJSON(t.Context(), address+"/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil ||
			answer.Status != "success" {
			t.Errorf("%s: %+v %v", query, answer, err)
		}
	}
	end()
	storetest.Within(t, time.Minute, "an alert is pending for the server that ended", func() bool {
		if readJSON(t.Context(), address+"/api/v1/rules", &rules) != nil {
			return false
		}
		return rules.Data.Groups[0].Rules[0].State == "pending"
	})
}

// dashboardQueries returns all queries of the dashboard.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("deploy/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}

// cloudMetricsPath is where tests read the metrics of the cloud.
const cloudMetricsPath = "/metrics/cloud?flavor=n1.large&show=failures&show=quota&show=drift"

func TestTheServerHasTheMetricsOfTheRules(t *testing.T) {
	t.Parallel()
	server, _ := boot(t, "--demo", "--database", storetest.EmptySQLite(t))
	answerOf(t, server.address, `{ none }`) // a metric of requests, and one of errors, needs one
	loneConsumer(t, server.address)
	text, err := os.ReadFile("deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, metrics := get(t, server.address+"/metrics")
	_, ofCloud := get(t, server.address+cloudMetricsPath)
	metrics += ofCloud
	used := string(text) + strings.Join(dashboardQueries(t), " ")
	for _, name := range regexp.MustCompile(`cadastre_\w+`).FindAllString(used, -1) {
		if !strings.Contains(metrics, name) && !strings.HasPrefix(name, "cadastre_sync_") { // a demo has no sync
			t.Errorf("the server has no metric %s", name)
		}
	}
}

// scraped returns the number of targets that Prometheus reaches.
func scraped(ctx context.Context, address string) (up int) {
	var found struct {
		Data struct{ Result []struct{ Value []any } }
	}
	if readJSON(ctx, address+"/api/v1/query?query=up", &found) != nil {
		return 0
	}
	for _, one := range found.Data.Result {
		if len(one.Value) == 2 && one.Value[1] == "1" {
			up++
		}
	}
	return up
}

// monitor starts a Prometheus with the rules, and returns its address.
func monitor(t *testing.T, program string, servers ...string) string {
	t.Helper()
	rules, err := filepath.Abs("deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	port, err := pgserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var targets []string
	for _, server := range servers {
		targets = append(targets, strings.TrimPrefix(server, "http://"))
	}
	configuration := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: cadastre, static_configs: [{targets: &servers ['%s']}]},\n"+
		" {job_name: cadastre-cloud, metrics_path: /metrics/cloud, params: {flavor: [n1.large], show: [failures, quota, drift]}, static_configs: [{targets: *servers}]}]\n",
		rules, strings.Join(targets, "', '"))
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	command := exec.Command(program, "--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+listen)
	var log strings.Builder
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + listen
}

// readJSON reads the JSON of an address.
func readJSON(ctx context.Context, address string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(into)
}
