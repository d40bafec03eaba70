package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryWorkIsMeasuredOnEveryTarget runs the whole benchmark on a small world.
func TestEveryWorkIsMeasuredOnEveryTarget(t *testing.T) {
	t.Parallel()
	path := built(t)
	o := options{
		binaries:  []binary{{"before", path}, {"after", path}},
		databases: []string{sqlite, postgres}, rounds: 1, size: size{minSize, minSize}, seed: 1,
	}
	_, err := postgresPrograms()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Log(err)
		o.databases = o.databases[:1]
	}
	r, err := run(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := len(works()) * len(o.databases) * len(o.binaries)
	if len(r.Rows) != want {
		t.Errorf("got %d rows, want %d", len(r.Rows), want)
	}
	checkRows(t, r.Rows)
	checkForms(t, r)
}

// checkRows checks that every number is measured.
func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		named := row.Work != "" && row.Database != "" && row.Binary != ""
		if counted := min(row.Operations, row.Rows, row.Bytes) > 0; !named || !counted || row.Median <= 0 || row.P99 < row.Median {
			t.Errorf("a number is missing: %+v", row)
		}
		if measuresCPU() && (row.ServerCPU == nil || *row.ServerCPU <= 0 || (row.DatabaseCPU == nil) != (row.Database == sqlite)) {
			t.Errorf("time on processors is missing: %+v", row)
		}
		if row.Work == "claim" && row.DatabaseCPU != nil && *row.DatabaseCPU <= 0 {
			t.Errorf("PostgreSQL wrote without a processor: %+v", row)
		}
	}
}

// checkForms checks the two forms of a report.
func checkForms(t *testing.T, r *report) {
	t.Helper()
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	// Two lines above the table, and two of its head.
	if lines := strings.Count(table.String(), "\n"); lines != 4+len(r.Rows) {
		t.Errorf("a table of %d rows has %d lines:\n%s", len(r.Rows), lines, table.String())
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

// TestOtherAnswersAreRefused fills two servers with different worlds.
func TestOtherAnswersAreRefused(t *testing.T) {
	t.Parallel()
	path := built(t)
	o := options{binaries: []binary{{"before", path}, {"after", path}}, databases: []string{sqlite}}
	targets, err := startTargets(t.Context(), o, t.TempDir(), nil)
	defer func() {
		if err := stopTargets(targets); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := readDefinitions("")
	if err != nil {
		t.Fatal(err)
	}
	var w *world
	for i, target := range targets {
		w = newWorld(uint64(i), size{minSize, minSize}, definitions)
		if err := w.load(t.Context(), target.server.client); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := measure(t.Context(), targets, w, 1, t.Output()); err == nil || !strings.Contains(err.Error(), "before on sqlite and after on sqlite answer differently") {
		t.Errorf("got %v, want that the answers differ", err)
	}
}

func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cadastre")
	if err := build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
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
	for i, want := range []int{370, 20, 5, 1, 1} {
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
	p, err := startProcess(filepath.Join(t.TempDir(), "log"), "TERM", nil, os.Environ(), "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.pid, 0); err != nil {
		t.Errorf("process %d does not run: %v", p.pid, err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(p.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still runs: %v", p.pid, err)
	}
}

// TestFlags reads what the command takes and refuses.
func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-binary a=/x -binary b=/y -db postgres -rounds 2 -providers 30 -resources 40 -seed 5 -json f"), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		binaries: []binary{{"a", "/x"}, {"b", "/y"}}, databases: []string{postgres}, rounds: 2,
		size: size{30, 40}, seed: 5, json: "f", timeout: o.timeout,
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	for _, args := range []string{"-binary /x", "-binary a=/x -binary a=/y", "-db oracle", "-db sqlite,sqlite", "-rounds 0", "-providers 3", "more"} {
		if o, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s: got %+v, want an error", args, o)
		}
	}
}
