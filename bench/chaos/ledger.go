package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// ledger is what claims were acknowledged, to be compared with the database at
// the end. Each consumer is claimed for by one client, one request after the
// other.
type ledger struct {
	mu       sync.Mutex
	expected map[string]*expectation // by consumer
	asked    int
}

// expectation is the state that a consumer may have: the last acknowledged one,
// or one of the requests since then that had no clear answer.
type expectation struct {
	acknowledged string // see holding
	possible     []string
	claimed      bool // whether anything was acknowledged
}

// nothing is the state of a consumer without allocations.
const nothing = ""

// holding returns the state of a consumer after a claim.
func holding(provider string, amount int) string { return fmt.Sprint(provider, ":", amount) }

func newLedger() *ledger { return &ledger{expected: map[string]*expectation{}} }

// note notes what became of a request that was to leave a consumer with something.
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

// verdict lists the differences of a database from the acknowledged claims.
type verdict struct {
	Claims        int      // requests
	Acknowledged  int      // consumers with an acknowledged claim
	Lost          []string // acknowledged, and not there
	Unasked       []string // refused, and there nevertheless
	OverAllocated []string // inventories with more allocations than capacity
	Miscounted    []string // inventories whose use is not the sum of their allocations
}

// judge compares the allocations of a server with the acknowledged claims.
func (l *ledger) judge(ctx context.Context, admin *local.Client) (verdict, error) {
	found, of, err := allocationsOf(ctx, admin)
	if err == nil {
		l.compare(found, &of)
	}
	return of, err
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
		text := fmt.Sprintf("consumer %s has %q, want %q", consumer, got, append([]string{want.acknowledged}, want.possible...))
		if got == nothing || want.acknowledged != nothing {
			of.Lost = append(of.Lost, text)
		} else {
			of.Unasked = append(of.Unasked, text)
		}
	}
}

// pageInfo is where a page ends.
type pageInfo struct {
	HasNextPage bool
	EndCursor   string
}

// providerFound is a provider as a server shows it.
type providerFound struct {
	UUID        string
	Inventories []struct {
		ResourceClass  string
		Capacity, Used int
	}
	Allocations allocationsFound
}

type allocationsFound struct {
	PageInfo pageInfo
	Nodes    []struct {
		Used     int
		Consumer struct{ UUID string }
	}
}

// allocationsOf reads what all consumers have, and which inventories are wrong.
func allocationsOf(ctx context.Context, admin *local.Client) (map[string][]string, verdict, error) {
	const document = `query($after: String) { resourceProviders(first: 20, after: $after) {
		nodes { uuid inventories { resourceClass capacity used } allocations(first: 1000) { pageInfo { endCursor hasNextPage } nodes { used consumer { uuid } } } }
		pageInfo { hasNextPage endCursor } } }`
	found, of, after := map[string][]string{}, verdict{}, any(nil)
	for {
		var got struct {
			ResourceProviders struct {
				Nodes    []providerFound
				PageInfo pageInfo
			}
		}
		if err := admin.Ask(ctx, local.Request{Query: document, Variables: object{"after": after}}, &got); err != nil {
			return nil, of, err
		}
		for _, provider := range got.ResourceProviders.Nodes {
			if err := provider.add(ctx, admin, found, &of); err != nil {
				return nil, of, err
			}
		}
		if !got.ResourceProviders.PageInfo.HasNextPage {
			return found, of, nil
		}
		after = got.ResourceProviders.PageInfo.EndCursor
	}
}

// add adds the allocations of a provider to found, and its wrong inventories to a
// verdict.
func (p providerFound) add(ctx context.Context, admin *local.Client, found map[string][]string, to *verdict) error {
	const more = `query($uuid: UUID!, $after: String) { resourceProvider(uuid: $uuid) {
		allocations(first: 1000, after: $after) { pageInfo { endCursor hasNextPage } nodes { used consumer { uuid } } } } }`
	sum, all := 0, p.Allocations
	for {
		for _, one := range all.Nodes {
			sum += one.Used
			found[one.Consumer.UUID] = append(found[one.Consumer.UUID], holding(p.UUID, one.Used))
		}
		if !all.PageInfo.HasNextPage {
			break
		}
		var next struct {
			ResourceProvider struct{ Allocations allocationsFound }
		}
		if err := admin.Ask(ctx, local.Request{Query: more, Variables: object{"uuid": p.UUID, "after": all.PageInfo.EndCursor}}, &next); err != nil {
			return err
		}
		all = next.ResourceProvider.Allocations
	}
	for _, inventory := range p.Inventories {
		text := fmt.Sprintf("%s of %s: %d of %d, allocations %d", inventory.ResourceClass, p.UUID, inventory.Used, inventory.Capacity, sum)
		if max(sum, inventory.Used) > inventory.Capacity {
			to.OverAllocated = append(to.OverAllocated, text)
		}
		if sum != inventory.Used {
			to.Miscounted = append(to.Miscounted, text)
		}
	}
	return nil
}
