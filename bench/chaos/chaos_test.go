package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pgserver"
)

// TestMain runs the attacker if the program starts the test binary as the
// attacker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == attackCommand {
		local.Main("chaos", command)
		return
	}
	os.Exit(m.Run())
}

// shortly has the flags of a run that is short enough for continuous
// integration.
const shortly = "-for 1s -round 1s -rounds 1 -resources 400 -providers 60 -items 10 -clients 60 -think 150ms"

// TestChaos attacks and breaks a small world. It does not check times. It
// checks that no claim is lost, no inventory is over-allocated, no answer is
// INTERNAL, memory stays below its limit, and only the attacker gets 503 for
// longer than a second.
func TestChaos(t *testing.T) {
	t.Parallel()
	lab, err := local.NewLab(t.Context(), "cadastre-chaos-test-", "", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	for _, kind := range []string{sqlite, postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if _, err := pgserver.Programs(); kind == postgres &&
				errors.Is(err, pgserver.ErrNone) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			o, err := parse(strings.Fields(shortly+" -db "+kind+" -binary "+lab.Program+" -other "+lab.Program),
				t.Output())
			if err != nil {
				t.Fatal(err)
			}
			o.choice.Only = regexp.MustCompile("60 aliases|sameSubtree|hard to validate|unread long|claims on one|without a token|large bodies")
			o.unavailable = patience.Of(t, maxOf503)
			r, err := run(t.Context(), o, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			for _, promise := range r.broken {
				t.Error(promise)
			}
			t.Log(measured.Tables(r.lines))
			happened(t, r)
		})
	}
}

// happened checks that a run did its work: attackers sent requests, clients
// claimed, and faults happened.
func happened(t *testing.T, r *report) {
	t.Helper()
	needed := map[string][]string{
		measured.Attack: {"attackerProcessor", "peakBytes", "lookUpQuietP99Ms", "claimAttackedP99Ms"},
		measured.Faults: {"requests", "claims", "acknowledged"},
		measured.Memory: {"beforeBytes", "afterBytes"}, measured.Verdict: {"claims"},
	}
	for kind, figures := range needed {
		of := measured.Of(r.lines, kind)
		if want := map[string]int{measured.Attack: 7}[kind]; len(of) != max(1, want) {
			t.Errorf("%d measurements of kind %s", len(of), kind)
		}
		for _, line := range of {
			for _, figure := range figures {
				if line.Figures[figure] == 0 {
					t.Errorf("%s did not happen: %+v", figure, line)
				}
			}
			if asked := kind == measured.Attack ||
				kind == measured.Faults; asked && !strings.Contains(line.Notes["innocents"], local.Answered) ||
				strings.Contains(line.Notes["faults"], " 0 x,") {
				t.Errorf("nobody was answered, or a fault did not happen: %+v", line)
			}
		}
	}
}

// TestAttacksAreQuestions fills every question of attacks.yaml.
func TestAttacksAreQuestions(t *testing.T) {
	t.Parallel()
	all, err := readAttacks()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{size: size{Resources: 10, Items: 5, Providers: 20}, asked: all}
	for _, one := range all.Attacks {
		first, second := w.ask(one.Question, values{Size: max(1, one.Most), N: 1}).Body,
			w.ask(one.Question, values{Size: max(1, one.Most), N: 2}).Body
		if bytes.Equal(first, second) == one.Varied {
			t.Errorf("%s: varied is %t", one.Name, one.Varied)
		}
		if small := w.ask(one.Question, values{Size: 1, N: 1}).Body; (len(small) < len(first)) != (one.Most > 0) {
			t.Errorf("%s: %d bytes of size 1, %d of size %d", one.Name, len(small), len(first), one.Most)
		}
	}
	for _, of := range [][]Question{all.Reads, all.Searches, {all.Questions["claim"], all.Questions["release"]}} {
		for _, one := range of {
			if body := w.ask(one, values{Consumer: "c", Provider: "p"}).Body; !json.Valid(body) {
				t.Errorf("%s is not JSON", body)
			}
		}
	}
	if len(all.Attacks) != 25 || len(all.Reads) != 4 || len(all.Searches) != 3 {
		t.Errorf("%d attacks, %d reads, %d searches", len(all.Attacks), len(all.Reads), len(all.Searches))
	}
}

// TestTheLedgerFindsWhatIsWrong compares a ledger with a database that differs.
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
	if len(of.Lost) != 1 || !strings.Contains(of.Lost[0], "consumer lost ") || len(of.Unasked) != 2 ||
		of.Acknowledged != 4 || of.Claims != 8 {
		t.Errorf("got %+v", of)
	}
	if all := of.promises("db").broken; len(all) != 3 {
		t.Errorf("failures are %q", all)
	}
}

// TestTheLongestTimeOf503 checks longestUnavailable.
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

// TestFlags parses valid and invalid flags.
func TestFlags(t *testing.T) {
	t.Parallel()
	all, err := readAttacks()
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(strings.Fields("-db postgres -attacks contains -rounds 3 -memory 0 -server --profile=locked"),
		t.Output())
	if err != nil || len(o.chosen(all.Attacks)) != 2 || o.rounds != 3 || o.memory != 0 ||
		len(o.flags) != 1 || len(o.databases) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-db oracle", "-rounds 0", "-attacks (", "-providers 3", "more"} {
		if _, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%s is no error", args)
		}
	}
}
