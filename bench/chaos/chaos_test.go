package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// TestMain is the attacker where the program would be.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		if err := runAttacker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// shortly are flags of a run that a gate can wait for.
const shortly = "-round 1s -rounds 1 -resources 400 -providers 60 -items 10 -clients 60 -think 150ms"

// TestChaos attacks and breaks a small world. What takes how long is not judged:
// nothing is lost, over-allocated or INTERNAL, memory is below its limit, and
// only the attacker gets 503 for longer than a second.
func TestChaos(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cadastre")
	if err := local.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	for kind, least := range map[string]int{sqlite: 2, postgres: 4} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if _, err := pgserver.Programs(); kind == postgres && errors.Is(err, pgserver.ErrNone) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			long := max(16*time.Second, patience.Of(t, 10*time.Second)) // for faults of every kind
			o, err := parse(strings.Fields(shortly+" -for "+long.String()+" -db "+kind+" -binary "+path), t.Output())
			if err != nil {
				t.Fatal(err)
			}
			o.only = regexp.MustCompile("60 aliases|sameSubtree|hard to validate|nobody reads|claims on one|large bodies")
			r, err := run(t.Context(), o, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			for _, failure := range r.failures(false, patience.Of(t, maxOf503)) {
				t.Error(failure)
			}
			t.Log(tables(r.lines()))
			happened(t, r, least)
		})
	}
}

// happened checks that a run was one: that attackers worked, claims were made,
// and faults suffered.
func happened(t *testing.T, r *report, kinds int) {
	t.Helper()
	for _, row := range r.rows {
		if row.codes[local.Answered] == 0 || row.processor == 0 || row.peak == 0 || row.quiet.lookUps.p99 == 0 || row.attacked.claims.p99 == 0 {
			t.Errorf("nothing happened: %+v", row)
		}
	}
	for _, of := range r.endured {
		if of.codes[local.Answered] == 0 || of.verdict.Claims == 0 || of.verdict.Acknowledged == 0 {
			t.Errorf("nothing happened: %+v", of)
		}
		suffered := 0
		for _, fault := range of.faults {
			if fault.times > 0 {
				suffered++
			}
		}
		if suffered < min(kinds, len(of.faults)) {
			t.Errorf("%d kinds of faults happened, want %d", suffered, kinds)
		}
	}
}

// TestTheLedgerFindsWhatIsWrong compares a ledger with a different database.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.note("kept", "a:1", local.Answered)
	l.note("lost", "a:1", local.Answered)
	l.note("unclear", "a:1", local.Unanswered)
	l.note("refused", "a:1", "UNAVAILABLE")
	l.note("released", "a:1", local.Answered)
	l.note("released", nothing, local.Answered)
	l.note("maybe released", "a:1", local.Answered)
	l.note("maybe released", nothing, "OUTCOME_UNKNOWN")
	of := verdict{}
	l.compare(map[string][]string{"kept": {"a:1"}, "unclear": {"a:1"}, "refused": {"a:1"}, "released": {"a:1"}}, &of)
	if len(of.Lost) != 1 || !strings.Contains(of.Lost[0], "consumer lost ") || len(of.Unasked) != 2 || of.Acknowledged != 4 || of.Claims != 8 {
		t.Errorf("got %+v", of)
	}
	if all := of.failed("db"); len(all) != 3 {
		t.Errorf("failures are %q", all)
	}
}

// TestTheLongestTimeOf503 holds how it is counted.
func TestTheLongestTimeOf503(t *testing.T) {
	t.Parallel()
	at := func(second int, unavailable bool) ending {
		return ending{at: time.Unix(int64(second), 0), unavailable: unavailable}
	}
	for _, test := range []struct {
		ended []ending
		want  time.Duration
	}{
		{nil, 0},
		{[]ending{at(1, true)}, 0},
		{[]ending{at(5, true), at(1, true), at(3, true)}, 4 * time.Second},
		{[]ending{at(1, true), at(2, false), at(3, true), at(5, true), at(9, false)}, 2 * time.Second},
	} {
		if got := longestUnavailable(test.ended); got != test.want {
			t.Errorf("%v: got %v, want %v", test.ended, got, test.want)
		}
	}
}

// TestProxy cuts and swallows.
func TestProxy(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			connection, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				bytes := make([]byte, 1)
				for {
					if _, err := connection.Read(bytes); err != nil {
						return
					}
					if _, err := connection.Write(bytes); err != nil {
						return
					}
				}
			}()
		}
	}()
	p, err := startProxy(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	ask := func(connection net.Conn, wait time.Duration) error {
		_ = connection.SetDeadline(time.Now().Add(wait))
		_, err := connection.Write([]byte("x"))
		if err == nil {
			_, err = connection.Read(make([]byte, 1))
		}
		return err
	}
	dial := func() net.Conn {
		connection, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	first, long := dial(), patience.Of(t, 10*time.Second)
	if err := ask(first, long); err != nil {
		t.Error(err)
	}
	p.swallow(true)
	if err := ask(first, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what was swallowed was answered: %v", err)
	}
	p.swallow(false)
	second := dial()
	if err := ask(second, long); err != nil {
		t.Error(err)
	}
	p.cut()
	if err := ask(second, long); err == nil {
		t.Error("what was cut was answered")
	}
}

// TestFlags parses valid and invalid flags.
func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-db postgres -attacks contains -rounds 3 -memory 0 -server --profile=locked"), t.Output())
	if err != nil || len(o.chosen()) != 2 || o.rounds != 3 || o.memory != 0 || len(o.flags) != 1 || len(o.databases) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-db oracle", "-rounds 0", "-attacks (", "-providers 3", "more"} {
		if _, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s is no error", args)
		}
	}
}

// TestMeasurementsAreMerged replaces measurements by newer ones.
func TestMeasurementsAreMerged(t *testing.T) {
	t.Parallel()
	line := func(kind, work, database string, figure float64) measured.Line {
		return measured.Line{Kind: kind, Work: work, Database: database, Figures: map[string]float64{"peakBytes": figure}}
	}
	first, second := attacks()[0].name, attacks()[1].name
	old := []measured.Line{line(measured.Run, "", "", 1), line(measured.Attack, first, sqlite, 1), line(measured.Attack, second, sqlite, 1), line(measured.Faults, "", postgres, 1)}
	got := merged(old, []measured.Line{line(measured.Run, "", "", 2), line(measured.Attack, second, sqlite, 2), line(measured.Attack, first, postgres, 2)})
	want := []measured.Line{line(measured.Run, "", "", 2), line(measured.Attack, first, sqlite, 1), line(measured.Attack, first, postgres, 2), line(measured.Attack, second, sqlite, 2), line(measured.Faults, "", postgres, 1)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestThePageIsThatOfTheMeasurements compares docs/measured/attacks.md with the
// measurements beside it.
func TestThePageIsThatOfTheMeasurements(t *testing.T) {
	t.Parallel()
	const folder = "../../docs/measured/"
	lines, err := measured.ReadFile(folder + linesFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(folder + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, ok := strings.Cut(string(page), keptMark); !ok || got != pageOf(lines) {
		t.Errorf("%s%s is not the page of %s", folder, pageFile, linesFile)
	}
}
