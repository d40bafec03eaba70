package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// TestTraces replays small traces on one build of the server.
func TestTraces(t *testing.T) {
	t.Parallel()
	lab, err := local.NewLab(t.Context(), "cadastre-trace-test-", "", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	o := options{program: lab.Program, data: gpuTrace(t), trace: "gpu", databases: []string{measured.SQLite},
		strategies: []string{"PACK"}, seeds: 1, clients: 1, percent: 130, kills: 2}
	t.Run("gpu", func(t *testing.T) {
		t.Parallel()
		replayed(t, o, "seed 0: 100.00 % of GPUs; 6 tasks, 2 without room", "mean of 1: 100.00 % of GPUs")
	})
	for _, kind := range []string{measured.SQLite, measured.Postgres} {
		t.Run("azure/"+kind, func(t *testing.T) {
			t.Parallel()
			if _, err := pgserver.Programs(); kind == measured.Postgres &&
				errors.Is(err, pgserver.ErrNone) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			one, machines := o, 0
			one.databases, one.trace = []string{kind}, "azure"
			one.data, machines = randomDay(t)
			text := replayed(t, one, fmt.Sprint(machines, " machines arrive"), "2 kills", "; 0 placements differ")
			if strings.Contains(text, "\n  0 refused") {
				t.Error("every machine has room")
			}
		})
	}
}

// replayed returns the output of a replay, which has some strings.
func replayed(t *testing.T, o options, wanted ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), o, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q", want)
		}
	}
	return out.String()
}

// TestDay checks the calls of a day that begins after one line: a flavor of a
// batch is a call, and a machine leaves after the arrivals of the last bin of its
// interval.
func TestDay(t *testing.T) {
	t.Parallel()
	arrivals, lasted := make([]string, bins), make([]string, bins)
	arrivals[0], lasted[0] = "a,a,b,a,|,a,|", "U1,U0,C46,U13,|,C1,|"
	arrivals[280], lasted[280] = "b,|,b,|", "U13,|,U1,|"
	got, err := readDay(azureFolder(t, arrivals, lasted))
	if err != nil {
		t.Fatal(err)
	}
	a, b := flavor{2, 3584}, flavor{16, 57344}
	want := &day{flavors: []flavor{a, a, b, a, a, b, b}, leaving: 4, calls: []call{
		{a, []int{0, 1}}, {b, []int{2}}, {a, []int{3}}, {a, []int{4}}, {machines: []int{1}}, {machines: []int{0}},
		{machines: []int{3}}, {b, []int{5}}, {b, []int{6}}, {machines: []int{6}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if number, size := got.hosts(); number != 1 || size != (flavor{64, 195128}) {
		t.Errorf("%d hosts of %v", number, size)
	}
}

// randomDay returns a folder with a day, and its number of machines. Not all have
// room.
func randomDay(t *testing.T) (folder string, machines int) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 7))
	arrivals, lasted := make([]string, bins), make([]string, bins)
	for bin := range 12 {
		for range 3 {
			letter := string("aab"[random.IntN(3)])
			for range 1 + random.IntN(5) {
				arrivals[bin] += letter + ","
				lasted[bin] += []string{"U0", "U1", "U13", "C46"}[random.IntN(4)] + ","
				machines++
			}
			arrivals[bin] += "|,"
			lasted[bin] += "|,"
		}
	}
	arrivals[11] += "c,c,|"
	lasted[11] += "C46,U1,|"
	return azureFolder(t, arrivals, lasted), machines + 2
}

// azureFolder writes the files of a trace: a line of the day before, and a day.
func azureFolder(t *testing.T, arrivals, lasted []string) string {
	t.Helper()
	lines := func(before string, day []string) string {
		text := fmt.Sprintf("%d %s\n", daySeconds-binSeconds, before)
		for bin, of := range day {
			text += fmt.Sprintf("%d %s\n", daySeconds+bin*binSeconds, of)
		}
		return text
	}
	return writeFolder(t, map[string]string{
		"flavor_map.txt": "2,3.5 a\n16,56 b\n60,56 c\n", "interval_map.txt.gz": "0 0\n300 1\n3900 13\n7200 13\n",
		"v1.test.txt.gz": lines("b,|", arrivals), "v1.test.durations.txt.gz": lines("C46,|", lasted),
	})
}

// gpuTrace returns a folder with two nodes and four GPUs.
func gpuTrace(t *testing.T) string {
	t.Helper()
	return writeFolder(t, map[string]string{
		"openb_node_list_gpu_node.csv": "sn,cpu_milli,memory_mib,gpu,model\none,8000,8000,2,T4\nother,8000,8000,2,T4\n",
		"openb_pod_list_default.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" +
			"first,1000,1000,1,1000\nsecond,1000,0,1,1000\n",
	})
}

func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		var written bytes.Buffer
		if written.WriteString(text); strings.HasSuffix(name, ".gz") {
			written.Reset()
			packed := gzip.NewWriter(&written)
			if _, err := packed.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := packed.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), written.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
