package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// ledger holds the acknowledged claims. At the end the program compares it with
// the database. One client claims for each consumer, one request after the
// other.
type ledger struct {
	mu       sync.Mutex
	expected map[string]*expectation // by consumer
	asked    int
}

// expectation holds the possible states of a consumer: the last acknowledged
// state, and the states of later requests without a clear answer.
type expectation struct {
	acknowledged string // see holding
	possible     []string
	claimed      bool // whether the server acknowledged any request
}

// nothing is the state of a consumer without allocations.
const nothing = ""

// holding returns the state of a consumer after a claim.
func holding(provider string, amount int) string { return fmt.Sprint(provider, ":", amount) }

func newLedger() *ledger { return &ledger{expected: map[string]*expectation{}} }

// note records the result of a request. with is the state of the consumer if
// the request succeeds, and code is the code of the answer.
func (l *ledger) note(consumer, with, code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	of := l.expected[consumer]
	if of == nil {
		of = &expectation{}
		l.expected[consumer] = of
	}
	switch code {
	case local.Answered:
		of.acknowledged, of.possible, of.claimed = with, nil, true
	case local.Unanswered, "OUTCOME_UNKNOWN", "TIMEOUT":
		of.possible = append(of.possible, with)
	}
}

// verdict lists the differences between a database and the acknowledged claims.
type verdict struct {
	Claims        int      // requests
	Acknowledged  int      // consumers with an acknowledged claim
	Lost          []string // acknowledged, but not in the database
	Unasked       []string // refused, but in the database
	OverAllocated []string // inventories with more allocations than capacity
	Miscounted    []string // inventories with a use that differs from the sum of their allocations
	Found         []string // findings of the doctor
}

// allocated selects each inventory of a database, with its capacity and use, and the
// allocations of consumers. SQLite and PostgreSQL both understand it.
const allocated = `SELECT CAST(p.uuid AS text), i.capacity, i.used, coalesce(CAST(c.uuid AS text), ''), coalesce(a.used, 0)
	FROM resource_providers p JOIN inventories i ON i.provider_id = p.id
	LEFT JOIN allocations a ON a.provider_id = p.id AND a.resource_class_id = i.resource_class_id
	LEFT JOIN consumers c ON c.id = a.consumer_id`

// judge compares the allocations in a database with the acknowledged claims. Each
// provider has one inventory.
func (l *ledger) judge(ctx context.Context, db *sql.DB) (of verdict, err error) {
	rows, err := db.QueryContext(ctx, allocated)
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	type inventory struct{ capacity, used, sum int }
	inventories, found := map[string]inventory{}, map[string][]string{}
	for rows.Next() {
		var provider, consumer string
		var one inventory
		var amount int
		if err := rows.Scan(&provider, &one.capacity, &one.used, &consumer, &amount); err != nil {
			return of, err
		}
		one.sum = inventories[provider].sum + amount
		if inventories[provider] = one; consumer != "" {
			found[consumer] = append(found[consumer], holding(provider, amount))
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(inventories)) {
		one := inventories[provider]
		text := fmt.Sprintf("%s: %d of %d, allocations %d", provider, one.used, one.capacity, one.sum)
		if max(one.sum, one.used) > one.capacity {
			of.OverAllocated = append(of.OverAllocated, text)
		}
		if one.sum != one.used {
			of.Miscounted = append(of.Miscounted, text)
		}
	}
	l.compare(found, &of)
	return of, rows.Err()
}

// compare adds the wrong allocations of consumers to a verdict.
func (l *ledger) compare(found map[string][]string, of *verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.Claims = l.asked
	for _, consumer := range slices.Sorted(maps.Keys(l.expected)) {
		want, got := l.expected[consumer], strings.Join(found[consumer], " ")
		if want.claimed {
			of.Acknowledged++
		}
		if got == want.acknowledged || slices.Contains(want.possible, got) {
			continue
		}
		text := fmt.Sprintf("consumer %s has %q, want %q", consumer, got,
			append([]string{want.acknowledged}, want.possible...))
		if got == nothing || want.acknowledged != nothing {
			of.Lost = append(of.Lost, text)
		} else {
			of.Unasked = append(of.Unasked, text)
		}
	}
}
