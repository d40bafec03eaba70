package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
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
// nobody else than the attacker is told 503 for longer than a second.
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
			for _, failure := range r.failures(false, patience.Of(t, mostOf503)) {
				t.Error(failure)
			}
			if err := r.write(t.Output()); err != nil {
				t.Error(err)
			}
			happened(t, r, least)
		})
	}
}

// happened checks that a run was one: that attackers worked, claims were made,
// and faults suffered.
func happened(t *testing.T, r *report, kinds int) {
	t.Helper()
	for _, row := range r.Rows {
		if row.Codes[answered] == 0 || row.AttackerProcessor == 0 || row.PeakBytes == 0 || row.Quiet.LookUps.P99 == 0 || row.Attacked.Claims.P99 == 0 {
			t.Errorf("nothing happened: %+v", row)
		}
	}
	for _, of := range r.Endured {
		if of.Codes[answered] == 0 || of.Verdict.Claims == 0 || of.Verdict.Acknowledged == 0 {
			t.Errorf("nothing happened: %+v", of)
		}
		suffered := 0
		for _, fault := range of.Faults {
			if fault.Times > 0 {
				suffered++
			}
		}
		if suffered < min(kinds, len(of.Faults)) {
			t.Errorf("%d kinds of faults happened, want %d", suffered, kinds)
		}
	}
}

// TestTheLedgerFindsWhatIsWrong has a ledger compare what it never saw.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.note("kept", "a:1", answered)
	l.note("lost", "a:1", answered)
	l.note("unclear", "a:1", unanswered)
	l.note("refused", "a:1", "UNAVAILABLE")
	l.note("released", "a:1", answered)
	l.note("released", nothing, answered)
	l.note("maybe released", "a:1", answered)
	l.note("maybe released", nothing, "OUTCOME_UNKNOWN")
	of := verdict{}
	l.compare(map[string][]string{"kept": {"a:1"}, "unclear": {"a:1"}, "refused": {"a:1"}, "released": {"a:1"}}, &of)
	if len(of.Lost) != 1 || !strings.Contains(of.Lost[0], "consumer lost ") || len(of.Unasked) != 2 || of.Acknowledged != 4 || of.Claims != 8 {
		t.Errorf("got %+v", of)
	}
	if of.failures() != 3 {
		t.Errorf("%d failures", of.failures())
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

// TestFlags reads what the command takes and refuses.
func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-db postgres -attacks contains -rounds 3 -memory 0 -server --limit-cost=5"), t.Output())
	if err != nil || len(o.chosen()) != 2 || o.rounds != 3 || o.memory != 0 || len(o.flags) != 1 || len(o.databases) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-db oracle", "-rounds 0", "-attacks (", "-providers 3", "more"} {
		if _, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s is no error", args)
		}
	}
}
