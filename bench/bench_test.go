package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// TestMain is the floor where the benchmark would be.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == floorCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := runFloor(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestBench runs the benchmark on one build of the server.
func TestBench(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cadastre")
	if err := local.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	databases := []string{sqlite, postgres}
	if _, err := pgserver.Programs(); errors.Is(err, pgserver.ErrNone) && os.Getenv("CI") != "true" {
		t.Log(err)
		databases = databases[:1]
	}
	t.Run("every work is measured on every target", func(t *testing.T) {
		t.Parallel()
		testEveryWork(t, path, databases)
	})
	t.Run("other answers are refused", func(t *testing.T) {
		t.Parallel()
		testOtherAnswers(t, path)
	})
	t.Run("shapes and growth", func(t *testing.T) {
		t.Parallel()
		testShapesAndGrowth(t, path, databases)
	})
}

// testEveryWork runs the whole benchmark on small worlds.
func testEveryWork(t *testing.T, path string, databases []string) {
	o := options{
		binaries: []binary{{"before", path}, {"after", path}}, databases: databases, peers: []string{floorPeer},
		rounds: 1, operations: 10, within: time.Hour, size: size{minSize, minSize}, smallProviders: minSize, seed: 1,
		sharing:   sharing{processes: []int{1, 2}, clients: 4, rounds: 1, each: 300 * time.Millisecond, lags: 4, raced: 4, trials: trials()[len(trials())-2:], tried: 1},
		following: following{subscriptions: 60, commits: 100, writers: 2, rounds: 1, each: 500 * time.Millisecond},
	}
	r, err := run(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := len(works())*len(o.databases)*len(o.binaries) + 1 // the floor
	if len(r.Rows) != want {
		t.Errorf("got %d rows, want %d", len(r.Rows), want)
	}
	goals := 0
	for _, work := range works() {
		if work.goal != (goal{}) {
			goals++
		}
	}
	if want := goals * len(o.databases); goals < 30 || len(r.Goals) != want {
		t.Errorf("got %d goals, want %d", len(r.Goals), want)
	}
	checkRows(t, r.Rows)
	checkFollowed(t, r.Followed, len(o.databases)*len(o.binaries))
	checkFootprints(t, r.Footprints, len(o.databases)*len(o.binaries))
	checkShared(t, r.Shared, databases)
	if want := 2 * len(databases); len(r.Tried) != want {
		t.Errorf("settings are tried %d times, want %d", len(r.Tried), want)
	}
	for _, one := range r.Tried {
		if min(one.PerSecond, one.Median, one.Resident) <= 0 || one.Settings == "" || one.Server != "after" {
			t.Errorf("missing in %+v", one)
		}
	}
	checkForms(t, r)
}

// checkShared checks that everything of several processes is measured, where there
// is PostgreSQL.
func checkShared(t *testing.T, all []shared, databases []string) {
	t.Helper()
	if want := 2 * (len(databases) - 1); len(all) != want {
		t.Errorf("%d numbers of processes are measured, want %d", len(all), want)
	}
	for i, one := range all {
		if one.Processes != i+1 || len(one.Works) != 5 || min(one.Lag.Median, one.LagBeside.Median) <= 0 || one.Tried <= one.Fit || one.Fit != one.Claimed || one.Fit == 0 || one.Overallocated != 0 {
			t.Errorf("missing in %+v", one)
		}
		if (one.Processes == 1) != (min(one.Changes, one.Events, one.Log) > 0) {
			t.Errorf("what a commit adds to the database: missing in %+v", one)
		}
		for _, row := range one.Works {
			if row.Work == "" || min(row.PerSecond, row.Median) <= 0 || row.P99 < row.Median {
				t.Errorf("missing in %+v", row)
			}
		}
	}
}

// checkFootprints checks that everything that servers take is measured.
func checkFootprints(t *testing.T, all []footprint, want int) {
	t.Helper()
	if len(all) != want {
		t.Errorf("what they take is measured of %d servers of %d", len(all), want)
	}
	for _, one := range all {
		if min(one.Start, one.StartEmpty, one.Resident, one.HeapEmpty, one.Heap, float64(one.Stored)) <= 0 || len(one.Starts) != starts || one.Pairs != 3*minSize ||
			one.Heap >= one.Resident || (len(one.Tables) > 0) != (one.Database == postgres) {
			t.Errorf("missing in %+v", one)
		}
		for _, table := range one.Tables {
			if table.Bytes+table.Indexes < leastStored || table.Name == "" || table.Rows <= 0 {
				t.Errorf("missing in %+v", table)
			}
		}
	}
}

// checkFollowed checks that everything of commits beside subscriptions is measured.
func checkFollowed(t *testing.T, all []followed, want int) {
	t.Helper()
	if len(all) != want {
		t.Errorf("commits beside subscriptions are measured on %d servers of %d", len(all), want)
	}
	for _, one := range all {
		if min(one.Alone.PerSecond, one.Beside.PerSecond, one.Alone.Median, one.Beside.Median, one.Slower, one.Events, one.MemoryIdle, one.MemoryMost) <= 0 || one.LagP99 < one.LagMedian {
			t.Errorf("missing in %+v", one)
		}
	}
}

// checkRows checks that every number is measured.
func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		for what, missing := range map[string]bool{
			"its names":                 row.Work == "" || row.Server == "" || (row.Database != "") == row.Peer,
			"what the client counts":    min(row.Operations, row.Rows, row.Bytes) <= 0,
			"time by the clock":         row.Median <= 0 || row.P99 < row.Median || row.PerSecond <= 0,
			"time on processors":        local.MeasuresCPU() && (none(row.ServerCPU) || (row.DatabaseCPU == nil) != (row.Database != postgres)),
			"PostgreSQL's processor":    row.Work == "claim" && row.DatabaseCPU != nil && none(row.DatabaseCPU),
			"what the server counts":    !row.Peer && (row.Statements == nil || none(row.Allocations)),
			"what the server's heap is": !row.Peer && none(row.AllocatedBytes),
		} {
			if missing {
				t.Errorf("%s: missing in %+v", what, row)
			}
		}
	}
}

// none reports whether a number is missing, or nothing.
func none(number *float64) bool { return number == nil || *number <= 0 }

// checkForms checks the forms of a report.
func checkForms(t *testing.T, r *report) {
	t.Helper()
	var written strings.Builder
	if err := r.write(&written); err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, table := range append([][][]string{r.goalTable(), r.rowTable()}, r.otherTables()...) {
		if len(table) > 1 {
			tables += len(table) + 1 // the rule below its head
		}
	}
	if lines := strings.Count(written.String(), "\n|"); lines != tables || tables < len(r.Goals)+len(r.Rows)+len(r.Followed)+len(r.Footprints)+len(r.Tried) {
		t.Errorf("tables of %d goals and %d rows have %d lines:\n%s", len(r.Goals), len(r.Rows), lines, written.String())
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := r.writeJSON(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, r) {
		t.Errorf("the JSON of a report is read as another one:\n%s", text)
	}
}

// testOtherAnswers fills two servers with different worlds.
func testOtherAnswers(t *testing.T, path string) {
	b := newBench(t, options{binaries: []binary{{"before", path}, {"after", path}}, databases: []string{sqlite}})
	definitions, err := readDefinitions("")
	if err != nil {
		t.Fatal(err)
	}
	b.works = works()[:2]
	b.large = newWorld(1, size{minSize, minSize}, definitions)
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// One server has a host more.
	other := newWorld(2, size{minSize, minSize}, nil).providers[0]
	other.name += "-other"
	set := object{"inventories": []object{{"provider": other.uuid, "inventories": other.inventories}}, "consumers": []object{}}
	for _, change := range []request{
		manyFields("createResourceProvider", "CreateResourceProviderInput", []object{{"name": other.name, "uuid": other.uuid}}),
		manyFields("setProviderTraits", "SetProviderTraitsInput", []object{{"provider": other.uuid, "traits": commonTraits()}}),
		manyFields("reshape", "ReshapeInput", []object{set}),
	} {
		if err := b.targets[1].server.ask(t.Context(), change, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "before on sqlite and after on sqlite answer differently") {
		t.Errorf("got %v, want that the answers differ", err)
	}
}

// newBench returns a run of the benchmark that ends with the test.
func newBench(t *testing.T, o options) *bench {
	t.Helper()
	folder := t.TempDir()
	for parent := folder; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o711); err != nil { // the user of PostgreSQL passes through
			t.Fatal(err)
		}
	}
	b := &bench{options: o, folder: folder, progress: t.Output(), deadline: time.Now().Add(time.Hour)}
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
	full, used := 0, 0
	for _, p := range w.providers {
		if p.full {
			full++
		}
		if len(p.consumers) > 0 {
			used++
		}
	}
	if full != 10 || used != 100 {
		t.Errorf("of 200 hosts %d are full and %d are used, want 10 and 100", full, used)
	}
	for i, want := range []int{500, 20, 5, 1, 1} {
		holders := 0
		for _, resource := range w.resources {
			for _, held := range resource["metadata"].([]object) {
				if reflect.DeepEqual(held, item(pairs()[i].key, pairs()[i].value)) {
					holders++
				}
			}
		}
		if holders != want {
			t.Errorf("%d of %d resources hold %v, want %d", holders, resources, pairs()[i], want)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ count, percent, want int }{
		{1, 50, 1}, {1, 99, 1}, {2, 50, 1}, {3, 50, 2}, {100, 50, 50}, {100, 99, 99}, {101, 99, 100}, {200, 99, 198},
	} {
		var sorted []time.Duration
		for i := range test.count {
			sorted = append(sorted, time.Duration(i+1))
		}
		if got := quantile(sorted, test.percent); got != time.Duration(test.want) {
			t.Errorf("the %d %% quantile of 1 to %d: got %d, want %d", test.percent, test.count, got, test.want)
		}
	}
}

// TestStoppedProcessIsGone ends a program that would run on.
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

// TestFlags reads what the command takes and refuses.
func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-binary a=/x -binary b=/y -db postgres -peers floor -works clients -skip viewer -rounds 2 -operations 9 -within 1m -providers 30 -resources 40 -small 25 -seed 5 -json f"), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		binaries: []binary{{"a", "/x"}, {"b", "/y"}}, databases: []string{postgres}, peers: []string{floorPeer}, only: regexp.MustCompile("clients"), skipped: regexp.MustCompile("viewer"), rounds: 2, operations: 9,
		within: time.Minute, size: size{30, 40}, smallProviders: 25, seed: 5, json: "f", timeout: o.timeout, command: o.command, following: following{subscriptions: 1_000, commits: 500, writers: 8, rounds: 2, each: 5 * time.Second}, sharing: defaultSharing(2),
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	for _, args := range []string{"-binary /x", "-binary a=/x -binary a=/y", "-db oracle", "-db sqlite,sqlite", "-rounds 0", "-operations 0", "-providers 3", "-small 3", "-works none", "-skip .", "-skip (", "-peers nobody", "-peers floor,floor", "more"} {
		if o, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s: got %+v, want an error", args, o)
		}
	}
}
