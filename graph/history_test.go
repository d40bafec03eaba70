package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/graph"
)

// observation is an answer that a server gave while other clients wrote. An
// instant explains it if it lies between the last write acknowledged before the
// request and the last write begun before the end of the answer.
type observation struct {
	query       string
	viewer      string
	first, last int // the states of these instants; 0 is before all writes
	answer      string
	again       func(*graph.Executor) string // the answer of a server without concurrent writes

	wanted    []string // the expected answer at each of the instants
	explained bool
}

// compare adds the expected answer at the next instant.
func (o *observation) compare(wanted string) {
	o.wanted = append(o.wanted, wanted)
	o.explained = o.explained || o.answer == wanted
}

// observedAt returns the unexplained observations that a state may explain.
func observedAt(all []*observation, state int) []*observation {
	var out []*observation
	for _, o := range all {
		if o.first <= state && state <= o.last && !o.explained {
			out = append(out, o)
		}
	}
	return out
}

// explain compares observations with the expected answers at each state in
// turn. It returns the observations that no state explains.
func explain(all []*observation, states int, next func(state int), answerNow func(*observation) string) []*observation {
	for state := range states {
		next(state)
		for _, o := range observedAt(all, state) {
			o.compare(answerNow(o))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(o *observation) bool { return o.explained })
}

// String returns the answer and the expected answers, from the first
// difference.
func (o *observation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s as %s, states %d to %d", o.query, o.viewer, o.first, o.last)
	for i, wanted := range o.wanted {
		at := 0
		for at < min(len(wanted), len(o.answer)) && wanted[at] == o.answer[at] {
			at++
		}
		from := max(0, at-150)
		fmt.Fprintf(&out, "\n  shown: %s\n  at %d:  %s", o.answer[from:min(len(o.answer), at+150)], o.first+i,
			wanted[from:min(len(wanted), at+150)])
	}
	return out.String()
}

// TestTheCheckerRefusesTornAnswers checks explain with a history of two
// registers that are written in turn, and with answers of one instant, of two,
// and of another time.
func TestTheCheckerRefusesTornAnswers(t *testing.T) {
	t.Parallel()
	// At state s the left register has (s+1)/2, the right one s/2.
	at := func(left, right int) string { return fmt.Sprintf("left %d, right %d", left, right) }
	for _, one := range []struct {
		name        string
		first, last int
		answer      string
		explained   bool
	}{
		{"of one instant", 2, 4, at(2, 1), true},
		{"of the first instant", 2, 4, at(1, 1), true},
		{"of the last instant", 2, 4, at(2, 2), true},
		{"the right register later than the left one", 2, 4, at(1, 2), false},
		{"the left register later than the right one", 0, 4, at(2, 0), false},
		{"too old", 3, 4, at(1, 1), false},
		{"of the future", 2, 3, at(2, 2), false},
		{"of no state", 0, 9, at(7, 7), false},
	} {
		state := 0
		o := &observation{query: one.name, first: one.first, last: one.last, answer: one.answer}
		left := explain([]*observation{o}, 10, func(s int) {
			state = s
		}, func(*observation) string { return at((state+1)/2, state/2) })
		if (len(left) == 0) != one.explained {
			t.Errorf("%s: the answer is explained: %v, want %v\n%v", one.name, len(left) == 0, one.explained, o)
		}
	}
}
