package placementdb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// replacers draws replacements of a few providers, including missing ones.
type replacers struct{ *rand.Rand }

const replacedProviders = 8

func (d replacers) uuid() string { return storetest.UUID(1000 + d.IntN(replacedProviders)) }

// part returns a random replacement of one part of a provider, or of several if
// several is set. It may be invalid.
func (d replacers) part(uuid string, several bool) placement.Replacement {
	r := placement.Replacement{Provider: &uuid}
	if d.IntN(5) == 0 {
		r.Generation = new(int64(d.IntN(6)))
	}
	which := d.IntN(3)
	if which == 0 || several && d.IntN(2) == 0 {
		r.Inventories = []placement.Inventory{}
		for i, class := range []string{"VCPU", "DISK_GB", "MEMORY_MB", "NONE", "none"} {
			if d.IntN(2+3*i) == 0 {
				r.Inventories = append(r.Inventories,
					placement.Inventory{ResourceClass: class, Total: int32(d.IntN(40)), Reserved: int32(d.IntN(3)),
						MinUnit: 1, MaxUnit: 8, StepSize: 1, AllocationRatio: float64(1 + d.IntN(3))})
			}
		}
	}
	if which == 1 || several && d.IntN(2) == 0 {
		r.Traits = []string{}
		for range d.IntN(4) {
			r.Traits = append(r.Traits,
				[]string{"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX", "STORAGE_DISK_SSD", "HW_CPU_X86_AVX3", ""}[d.IntN(14)/3])
		}
	}
	if which == 2 || several && d.IntN(2) == 0 {
		r.Aggregates = []string{}
		for range d.IntN(3) {
			r.Aggregates = append(r.Aggregates, storetest.UUID(2000+d.IntN(6)))
		}
	}
	return r
}

// list returns replacements, at most one for each provider.
func (d replacers) list() []placement.Replacement {
	var items []placement.Replacement
	for _, i := range d.Perm(replacedProviders + 1)[:1+d.IntN(replacedProviders)] {
		items = append(items, d.part(storetest.UUID(1000+i), d.IntN(3) == 0))
	}
	return items
}

// replacedFixture creates providers with inventories, some of them in use.
func replacedFixture(t *testing.T, s *store.Store) {
	for i := range replacedProviders {
		uuid := storetest.UUID(1000 + i)
		storetest.RoomyProvider(t, s, uuid)
		if i%2 == 0 {
			if _, err := s.SetAllocations(storetest.AsAdmin(), claimOne(uuid, storetest.UUID(3000+i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// replaceOne runs a replacement with the mutation for a single part of a single
// provider, if one exists.
func replaceOne(s *store.Store, r placement.Replacement) error {
	var err error
	ctx := storetest.AsAdmin()
	switch {
	case r.Inventories != nil && r.Traits == nil && r.Aggregates == nil:
		_, _, err = s.SetInventories(ctx,
			placement.ProviderInventories{Provider: *r.Provider, Generation: r.Generation, Inventories: r.Inventories})
	case r.Inventories == nil && r.Traits != nil && r.Aggregates == nil:
		_, _, err = s.SetProviderTraits(ctx,
			placement.ProviderTraits{Provider: *r.Provider, Generation: r.Generation, Traits: r.Traits})
	case r.Inventories == nil && r.Traits == nil && r.Aggregates != nil:
		_, _, err = s.SetProviderAggregates(ctx,
			placement.ProviderAggregates{Provider: *r.Provider, Generation: r.Generation, Aggregates: r.Aggregates})
	default:
		_, _, err = s.SetOnResourceProviders(ctx,
			placement.Replacements{Items: []placement.Replacement{r}, Atomic: true})
		problems := problem.InError(err)
		for i := range problems {
			problems[i].Field = strings.Replace(problems[i].Field, "input.items[0]", "input", 1)
		}
		err = problems.Err()
	}
	return err
}

// TestManyProvidersAreChangedAsOneAfterTheOther makes random replacements in
// one database by one mutation each, and in another database by a bulk
// mutation, with providers named by uuid or by name. Outcomes, databases, audit
// logs, change logs and worlds must be equal. An invalid item of an atomic
// mutation must leave everything unchanged.
func TestManyProvidersAreChangedAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.EachPair(t, func(t *testing.T, one, other string) {
		singly, together := storetest.Open(t, one), storetest.Open(t, other)
		replacedFixture(t, singly)
		replacedFixture(t, together)
		d := replacers{rand.New(rand.NewPCG(11, 7))}
		written := 0
		for round := range 40 {
			items := d.list()
			refused := storetest.OneByOne(items, func(item placement.Replacement) error {
				return replaceOne(singly, item)
			})
			written += len(items)
			contents := func() string { return contentsOf(t, other) }
			storetest.Together(t, round%2 == 0, refused, contents,
				func(atomic bool) ([]placementdb.ProviderOutcome, error) {
					_, outcomes, err := together.SetOnResourceProviders(storetest.AsAdmin(),
						placement.Replacements{Items: items, Atomic: atomic})
					return outcomes, err
				})
			if a, b := contentsOf(t, one), contentsOf(t, other); a != b {
				t.Fatalf("one by one:\n%s\ntogether:\n%s", a, b)
			}
			if difference, err := together.WorldDifference(t.Context()); err != nil || difference != "" {
				t.Fatal(difference, err)
			}
		}
		if written < 100 {
			t.Errorf("only %d replacements were drawn", written)
		}
	})
}

// TestReplacementsAreOfOneProviderEach names providers by name, twice, in two
// ways, and not at all.
func TestReplacementsAreOfOneProviderEach(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		replacedFixture(t, s)
		uuid, other := storetest.UUID(1000), storetest.UUID(1001)
		traits := []string{"HW_CPU_X86_AVX"}
		_, outcomes, err := s.SetOnResourceProviders(storetest.AsAdmin(),
			placement.Replacements{Items: []placement.Replacement{
				{ProviderName: &uuid, Traits: traits}, // equals its name
				{Provider: &uuid, Traits: traits},
				{Traits: traits},
				{Provider: &other, ProviderName: &other},
				{ProviderName: new("\x00")},
				{Provider: &other, Inventories: []placement.Inventory{}, Traits: traits, Aggregates: []string{uuid}},
			}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{
			"[]", "[input.items[1].provider: duplicate resource provider " + uuid + "]",
			"[input.items[2].provider: is required without providerName]",
			"[input.items[3].providerName: cannot be combined with provider]",
			`[input.items[4].providerName: NOT_FOUND: resource provider "\x00" does not exist]`,
			"[input.items[5].provider: duplicate resource provider " + other + "]",
		} {
			var told []string
			for _, one := range outcomes[i].Problems {
				told = append(told, one.Reported())
			}
			if got := fmt.Sprint(told); got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
		generation := *generationOf(t, s, other)
		_, outcomes, err = s.SetOnResourceProviders(storetest.AsAdmin(),
			placement.Replacements{Atomic: true, Items: []placement.Replacement{
				{Provider: &other, Inventories: []placement.Inventory{}, Traits: traits,
					Aggregates: []string{uuid}, Generation: &generation}}})
		if err != nil {
			t.Fatal(err)
		}
		if now := outcomes[0].Row; now.Generation != generation+1 || len(now.Inventories) != 0 ||
			!slices.Equal(now.Traits, traits) || !slices.Equal(now.Aggregates, []string{uuid}) {
			t.Errorf("%+v", now)
		}
		for _, count := range []int{0, placement.MaxReplacements + 1} {
			_, _, err := s.SetOnResourceProviders(storetest.AsAdmin(),
				placement.Replacements{Items: make([]placement.Replacement, count)})
			if !errors.Is(err, problem.ErrInvalidInput) {
				t.Errorf("%d items: %v", count, err)
			}
		}
	})
}

// TestManyProvidersAreChangedBesideOtherWriters replaces parts of providers on
// two servers while others claim from, change, delete and create the providers.
// Each reported replacement must have one audit event, inventories in use must
// stay, and the worlds must equal the database.
func TestManyProvidersAreChangedBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := []*store.Store{storetest.Open(t, url)}
		if strings.HasPrefix(url, "postgres") {
			servers = append(servers, storetest.Open(t, url))
		}
		replacedFixture(t, servers[0])
		var replaced [4]int
		var writers sync.WaitGroup
		for w := range replaced {
			writers.Go(func() {
				d, s := replacers{rand.New(rand.NewPCG(uint64(w), 13))}, servers[w%len(servers)]
				for range 12 {
					replaced[w] += replaceSome(t, s, d)
				}
			})
		}
		writers.Wait()
		for _, s := range servers {
			storetest.Within(t, 10*time.Second, "the world of the database", func() bool {
				difference, err := s.WorldDifference(t.Context())
				return err == nil && difference == ""
			})
		}
		db := storetest.Database(t, url)
		events := storetest.Rows(t, db, `SELECT key FROM audit_events WHERE action = 'setOnResourceProviders'`)
		if told := replaced[0] + replaced[1] + replaced[2] + replaced[3]; len(events) != told || told == 0 {
			t.Errorf("%d replacements were made, and %d events say so", told, len(events))
		}
		lost := storetest.Rows(t, db, `SELECT CAST(a.used AS text) FROM allocations a LEFT JOIN inventories i
			ON i.provider_id = a.provider_id AND i.resource_class_id = a.resource_class_id WHERE i.id IS NULL`)
		if len(lost) > 0 {
			t.Errorf("%d allocations have no inventory", len(lost))
		}
	})
}

// replaceSome makes replacements and other changes of the same providers. It
// returns the number of replacements made.
func replaceSome(t *testing.T, s *store.Store, d replacers) (made int) {
	ctx := storetest.AsAdmin()
	_, outcomes, err := s.SetOnResourceProviders(ctx, placement.Replacements{Items: d.list(), Atomic: d.IntN(4) == 0})
	if _, refused := problem.Of(err); err != nil && !refused {
		t.Error(err)
	}
	for _, outcome := range outcomes {
		if err == nil && outcome.Row != nil {
			made++
		}
	}
	uuid := d.uuid()
	claim := claimOne(uuid, storetest.UUID(4000+d.IntN(1<<20)))
	others := []func() error{
		func() error { _, err := s.SetAllocations(ctx, claim); return err },
		func() error { return replaceOne(s, d.part(uuid, false)) },
		func() error { _, _, err := s.DeleteResourceProvider(ctx, uuid); return err },
		func() error {
			_, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{UUID: &uuid, Name: uuid})
			return err
		},
		func() error { _, err := s.DeleteAllocations(ctx, storetest.UUID(3000+d.IntN(8))); return err },
	}
	if err := others[d.IntN(len(others))](); errors.Is(err, problem.ErrUnavailable) {
		t.Error(err)
	}
	return made
}
