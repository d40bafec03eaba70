package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// TestMain runs the floor if the benchmark starts the test binary as the floor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == floorCommand {
		local.Main("bench", command)
		return
	}
	os.Exit(m.Run())
}

// TestBench runs the benchmark on one build of the server.
func TestBench(t *testing.T) {
	t.Parallel()
	lab, err := local.NewLab(t.Context(), "cadastre-bench-test-", "", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	databases := []string{sqlite, postgres}
	if _, err := pgserver.Programs(); errors.Is(err, pgserver.ErrNone) && os.Getenv("CI") != "true" {
		t.Log(err)
		databases = databases[:1]
	}
	for name, test := range map[string]func(*testing.T, string, []string){
		"every work is measured on every target": testEveryWork, "other answers are refused": testOtherAnswers,
		"shapes and growth": testShapesAndGrowth,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, lab.Program, databases)
		})
	}
}

// allWorks returns the works.
func allWorks(t *testing.T) []work {
	t.Helper()
	all, _, err := works()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// testEveryWork runs the whole benchmark on small worlds.
func testEveryWork(t *testing.T, path string, databases []string) {
	o := options{
		binaries: []binary{{"before", path}, {"after", path}}, databases: databases, peers: []string{floorPeer},
		rounds: 1, operations: 10, within: time.Hour, size: size{minSize, minSize}, smallProviders: minSize, seed: 1,
		sharing: sharing{processes: []int{1, 3}, clients: 4, rounds: 1,
			each: 300 * time.Millisecond, lags: 20, raced: 4},
		following: following{subscriptions: 60, commits: 100, writers: 2, rounds: 1, each: 500 * time.Millisecond},
	}
	lines, err := run(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	targets, clustered := len(databases)*len(o.binaries), len(databases)-1
	goals := 0
	for _, work := range allWorks(t) {
		if work.Goal != (goal{}) {
			goals++
		}
	}
	checkTables(t, lines, map[string]int{
		"run": 1, measured.Work: len(allWorks(t))*targets + 1, // the floor
		measured.Followed: targets, measured.Footprint: targets, measured.Processes: 2 * 5 * clustered, measured.Lag: 2 * clustered,
	})
	judged := 0
	for _, line := range lines {
		checkLine(t, line)
		if line.Goal != "" {
			judged++
		}
	}
	if want := goals * len(databases); goals < 30 || judged != want {
		t.Errorf("%d goals are judged, want %d", judged, want)
	}
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := measured.WriteFile(file, lines); err != nil {
		t.Fatal(err)
	}
	if read, err := measured.ReadFile(file); err != nil || !reflect.DeepEqual(read, lines) {
		t.Errorf("lines are read as other ones: %v", err)
	}
}

// checkTables checks the number of lines of each kind and in its table.
func checkTables(t *testing.T, lines []measured.Line, wanted map[string]int) {
	t.Helper()
	for kind, want := range wanted {
		if got := measured.Of(lines, kind); len(got) != want {
			t.Errorf("%d lines of kind %s, want %d", len(got), kind, want)
		}
		if table := measured.Table(lines, kind); kind != "run" && want > 0 && strings.Count(table, "\n|") != want+1 {
			t.Errorf("the table of kind %s has other lines than %d:\n%s", kind, want, table)
		}
	}
}

// checkLine checks that every figure is measured.
func checkLine(t *testing.T, line measured.Line) {
	t.Helper()
	needed := map[string][]string{
		measured.Work: {"operations", "perSecond", "medianMs", "p99Ms"},
		measured.Followed: {"alonePerSecond", "besidePerSecond", "timesTheMedian", "eventsPerSecond",
			"lagMedianMs", "memoryIdle", "memoryMost"},
		// bytesOfPair is no more than noise in a small world
		measured.Footprint: {"startMs", "startEmptyMs", "heapBytes", "heapEmptyBytes", "residentBytes", "storedBytes"},
		measured.Stored:    {"rows", "bytesOfRow"},
		measured.Processes: {"processes", "perSecond", "medianMs", "p99Ms"},
		measured.Lag:       {"lagMedianMs", "besideMedianMs", "tried", "fit", "served"},
	}[line.Kind]
	if line.Kind == measured.Work && !line.Peer {
		needed = append(needed, "allocations", "allocatedBytes")
		if _, ok := line.Figures["statements"]; !ok {
			t.Errorf("statements are not counted in %+v", line)
		}
	}
	if line.Kind == measured.Work && !strings.HasPrefix(line.Work, "PUT ") { // which is answered 204, with no content
		needed = append(needed, "bytes")
	}
	if line.Kind == measured.Work && runtime.GOOS == "linux" {
		needed = append(needed, "serverCpuMs")
	}
	for _, name := range needed {
		if line.Figures[name] <= 0 {
			t.Errorf("%s is missing in %+v", name, line)
		}
	}
	if strings.HasPrefix(line.Reached, "refused") {
		t.Errorf("%s is refused on %s: %s", line.Work, line.Database, line.Reached)
	}
}

// testOtherAnswers fills two servers with different worlds.
func testOtherAnswers(t *testing.T, path string, _ []string) {
	b := newBench(t, options{binaries: []binary{{"before", path}, {"after", path}}, databases: []string{sqlite}})
	b.works = allWorks(t)[:2]
	b.large = newWorld(1, size{minSize, minSize}, nil)
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := newWorld(2, size{minSize, minSize}, nil).providers[0] // one server has a host more
	other.name, other.traits, other.aggregates, other.resource = "other", commonTraits(), nil, ""
	if err := b.targets[1].operator.Ask(t.Context(),
		local.Mutation("createResourceProviders", object{"items": []object{other.input()}}), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.measure(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "before on sqlite and after on sqlite answer differently") {
		t.Errorf("got %v, want that the answers differ", err)
	}
}

// newBench returns a run of the benchmark that ends with the test.
func newBench(t *testing.T, o options) *bench {
	t.Helper()
	lab, err := local.NewLab(t.Context(), "cadastre-bench-test-", o.binaries[0].path, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Lab: lab, options: o, deadline: time.Now().Add(time.Hour)}
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestWorldFollowsFromItsSeed(t *testing.T) {
	t.Parallel()
	const resources = 1000
	w := newWorld(1, size{200, resources}, nil)
	if !reflect.DeepEqual(w, newWorld(1, size{200, resources}, nil)) {
		t.Error("one seed makes two worlds")
	}
	if reflect.DeepEqual(w.providers, newWorld(2, size{200, resources}, nil).providers) {
		t.Error("two seeds make one world")
	}
	full, crowded, used := 0, 0, 0
	for _, p := range w.providers {
		switch {
		case p.full:
			full++
		case p.crowded:
			crowded++
		case len(p.consumers) > 0:
			used++
		}
	}
	if full != 10 || crowded != 10 || used != 90 {
		t.Errorf("%d hosts are full, %d crowded, %d more used, want 10, 10 and 90", full, crowded, used)
	}
	for i, want := range []int{500, 20, 5, 1, 1, 370} {
		if holders := w.holders(pairs()[i]); holders != want {
			t.Errorf("%d of %d resources have %v, want %d", holders, resources, pairs()[i], want)
		}
	}
}

// holders returns the number of resources with a pair.
func (w *world) holders(of pair) (count int) {
	for _, resource := range w.resources {
		for _, item := range resource["metadata"].([]object) {
			if item["key"] == of.key && item["value"] == of.value {
				count++
			}
		}
	}
	return count
}

// TestStoppedProcessIsGone stops a program that would otherwise continue.
func TestStoppedProcessIsGone(t *testing.T) {
	t.Parallel()
	p, err := local.Start(filepath.Join(t.TempDir(), "log"), "TERM", nil, os.Environ(), "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID, 0); err != nil {
		t.Errorf("process %d does not run: %v", p.PID, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still runs: %v", p.PID, err)
	}
}

// TestFlags parses valid and invalid flags.
func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-binary a=/x -binary b=/y -db postgres -peers floor -works clients -skip viewer -rounds 2 -operations 9 -within 1m -providers 30 -resources 40 -small 25 -seed 5 -json f"), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		binaries: []binary{{"a", "/x"}, {"b", "/y"}}, databases: []string{postgres}, peers: []string{floorPeer},
		choice: local.Choice{Only: regexp.MustCompile("clients"), Skipped: regexp.MustCompile("viewer")}, rounds: 2,
		operations: 9,
		within:     time.Minute, size: size{30, 40}, smallProviders: 25, seed: 5, json: "f", timeout: o.timeout,
		following: following{subscriptions: 1_000, commits: 500, writers: 8, rounds: 2, each: 5 * time.Second},
		sharing:   defaultSharing(2),
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	for _, args := range []string{"-binary /x", "-binary a=/x -binary a=/y", "-db oracle", "-db sqlite,sqlite",
		"-rounds 0", "-operations 0", "-providers 3", "-small 3", "-works none", "-skip .", "-skip (",
		"-peers nobody", "-peers floor,floor", "more"} {
		if o, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s: got %+v, want an error", args, o)
		}
	}
}

// TestWorksAreComplete finds works without a peer or a goal.
func TestWorksAreComplete(t *testing.T) {
	t.Parallel()
	var names []string
	for _, work := range allWorks(t) {
		if slices.Contains(names, work.Name) {
			t.Errorf("two works are called %q", work.Name)
		}
		names = append(names, work.Name)
		if (work.Goal.Ratio > 0) != (work.Peer != nil) ||
			work.Peer != nil && !slices.Contains(peers(), work.Peer.With) {
			t.Errorf("%s: a goal of %v without its peer, or a peer without a goal", work.Name, work.Goal)
		}
		if clients := strings.Contains(work.Name, "clients"); clients != (work.Clients > 1) ||
			work.Clients > maxClients {
			t.Errorf("%s has %d clients", work.Name, work.Clients)
		}
	}
	for _, work := range allWorks(t) {
		if than := work.Goal.Than; than != "" && !slices.Contains(names, than) {
			t.Errorf("%s is compared with %q, which is no work", work.Name, than)
		}
	}
}

// TestGoals judges figures.
func TestGoals(t *testing.T) {
	t.Parallel()
	own, than := &measured.Line{Figures: map[string]float64{"medianMs": 5, "perSecond": 300, "timesThePeer": 2,
		"timesThePeersCpu": 1}}, &measured.Line{Figures: map[string]float64{"medianMs": 2}}
	for _, test := range []struct {
		goal goal
		met  bool
		than *measured.Line
		want string
	}{
		{goal{Median: 5}, false, nil, "yes"}, {goal{Median: 4.9}, false, nil, "no"},
		{goal{Rate: 300}, false, nil, "yes"}, {goal{Rate: 301}, false, nil, "no"},
		{goal{Ratio: 2}, true, nil, "yes"}, {goal{Ratio: 2.1}, true, nil, "no"},
		{goal{Ratio: 2}, false, nil, "unknown"}, {goal{Ratio: 2, CPU: 1.1}, true, nil, "no"},
		{goal{Times: 2.5}, false, than, "yes"}, {goal{Times: 2}, false, than, "no"},
		{goal{Times: 2}, false, nil, "unknown"}, {goal{Median: 4, Ratio: 2}, false, nil, "no"},
	} {
		if got := test.goal.reached(own, test.met, test.than); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.goal, got, test.want)
		}
	}
}

// TestRowsAreComparedByContent reads the answers of Cadastre and of PostGraphile
// to one question.
func TestRowsAreComparedByContent(t *testing.T) {
	t.Parallel()
	list := work{List: "list.nodes"}
	own, err := rowsOf(list.rows(), []byte(`{"data": {"list": {"nodes": [
		{"name": "b", "description": null, "items": [{"k": 1}, {"k": 2}]}, {"name": "a", "description": "x", "items": []}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		nodes, query string
		same         bool
	}{
		{`{"name": "a", "description": "x", "items": {"nodes": []}}, {"name": "b", "description": "", "items": {"nodes": ["{\"k\": 2}", {"k": 1}]}}`, list.rows(), true},
		{`{"of": {"name": "a", "description": "x", "items": []}}, {"of": {"name": "b", "items": [{"k": 1}, {"k": 2}]}}`,
			".data.list.nodes[].of | canonical", true},
		{`{"name": "a", "description": "x", "items": []}`, list.rows(), false},
		{`{"name": "a", "description": "x", "items": []}, {"name": "b", "items": [{"k": 1}, {"k": 3}]}`, list.rows(),
			false},
		{``, list.rows(), false},
	} {
		rows, err := rowsOf(test.query, fmt.Appendf(nil, `{"data": {"list": {"nodes": [%s]}}}`, test.nodes))
		if err != nil {
			t.Fatal(err)
		}
		if err := sameRows(own, rows); (err == nil) != test.same {
			t.Errorf("%s: %v", test.nodes, err)
		}
	}
}

// TestCandidatesAreComparedByContent reads the answers of Cadastre and of the
// reference placement to one question.
func TestCandidatesAreComparedByContent(t *testing.T) {
	t.Parallel()
	works := allWorks(t)
	one := works[slices.IndexFunc(works, func(w work) bool { return w.Peer != nil && w.Peer.With == placementPeer })]
	own := &series{work: one, rows: 1}
	answer := func(amount, total int) []byte {
		return fmt.Appendf(nil, `{"allocation_requests": [{"allocations": {"p": {"resources": {"VCPU": %d}}}, "mappings": {"": ["p"]}}],
			"provider_summaries": {"p": {"resources": {"VCPU": {"capacity": %d, "used": 0}}, "traits": ["B", "A"], "parent_provider_uuid": null, "root_provider_uuid": "p"}}}`, amount, total)
	}
	cadastre := []byte(`{"data": {"allocationCandidates": {"nodes": [
		{"allocations": [{"provider": {"uuid": "q"}, "resources": []}], "mappings": []},
		{"allocations": [{"provider": {"uuid": "p"}, "resources": [{"resourceClass": "VCPU", "amount": 4}]}], "mappings": [{"suffix": "", "providers": [{"uuid": "p"}]}]}],
		"providerSummaries": [{"provider": {"uuid": "p", "parent": null, "root": {"uuid": "p"}}, "inventories": [{"resourceClass": "VCPU", "capacity": 64, "used": 0}], "traits": ["A", "B"]}]}}}`)
	for _, test := range []struct {
		answer []byte
		same   bool
	}{{answer(4, 64), true}, {answer(5, 64), false}, {answer(4, 65), false},
		{[]byte(`{"allocation_requests": [], "provider_summaries": {}}`), false}} {
		if err := own.sameRowsAs(test.answer, [][]byte{cadastre}); (err == nil) != test.same {
			t.Errorf("%s: %v", test.answer, err)
		}
	}
}

// TestValuesFillVariables fills lists, objects and paths.
func TestValuesFillVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(1, size{minSize, minSize}, nil)
	variables := object{"a": []any{"$consumer", object{"b": "$projects"}}, "c": "plain", "$free": "d"}
	of := &target{world: w}
	got := of.variables(Question{Variables: variables}, 3)
	want := object{"a": []any{w.uuid("consumer of a work", 3), object{"b": of.value("projects", 0)}},
		"c": "plain", of.value("free", 3).(string): "d"}
	if !reflect.DeepEqual(got, want) || bytes.Contains(of.call(Question{Variables: variables}, 3).Body, []byte("$")) {
		t.Errorf("got %v, want %v", got, want)
	}
	call := of.call(Question{Method: "PUT", Path: "/allocations/$consumer?limit=1", Variables: variables}, 3)
	if path := "/allocations/" + w.uuid("consumer of a work", 3) + "?limit=1"; call.Path != path ||
		!bytes.Contains(call.Body, []byte(`"c":"plain"`)) {
		t.Errorf("got %s %s, want the path %s", call.Path, call.Body, path)
	}
}
