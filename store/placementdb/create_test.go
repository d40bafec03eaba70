package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// newcomers draws new providers from few uuids and names, so that they collide.
type newcomers struct{ *rand.Rand }

func (d newcomers) uuid() string { return storetest.UUID(1000 + d.IntN(14)) }

func (d newcomers) name() string { return fmt.Sprintf("node %d", d.IntN(14)) }

func (d newcomers) provider() placement.NewProvider {
	n := placement.NewProvider{UUID: new(d.uuid()), Name: d.name()}
	switch d.IntN(6) {
	case 0, 1:
		n.Parent = new(d.uuid())
	case 2:
		n.ParentName = new(d.name())
	case 3:
		n.Parent, n.ParentName = new(d.uuid()), new(d.name())
	}
	if d.IntN(4) == 0 {
		n.Resource = new(storetest.UUID(d.IntN(5)))
	}
	if d.IntN(8) == 0 {
		n.Name = ""
	}
	for _, class := range []string{"VCPU", "MEMORY_MB", "NONE"}[:d.IntN(10)/4] {
		n.Inventories = append(n.Inventories,
			placement.Inventory{ResourceClass: class, Total: int32(d.IntN(9)), Reserved: int32(d.IntN(3)),
				MinUnit: 1, MaxUnit: 8, StepSize: 1, AllocationRatio: d.Float64() * 20})
	}
	for range d.IntN(3) {
		n.Traits = append(n.Traits,
			[]string{"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX", "STORAGE_DISK_SSD", "UNKNOWN"}[d.IntN(12)/3])
	}
	for range d.IntN(3) {
		n.Aggregates = append(n.Aggregates, storetest.UUID(2000+d.IntN(6)))
	}
	return n
}

func (d newcomers) list(most int) []placement.NewProvider {
	items := make([]placement.NewProvider, 1+d.IntN(most))
	for i := range items {
		items[i] = d.provider()
	}
	return items
}

// newcomersFixture creates some resources, and a provider linked to one of
// them.
func newcomersFixture(t *testing.T, s *store.Store) {
	ctx := storetest.AsAdmin()
	for i := range 4 {
		if _, err := s.CreateResource(ctx,
			resource.Input{Type: "physical:host", Name: fmt.Sprint(i), UUID: new(storetest.UUID(i))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "node 0", UUID: new(storetest.UUID(1000)),
		Resource: new(storetest.UUID(0))}); err != nil {
		t.Fatal(err)
	}
}

// contentsOf returns the providers, the audit log and the change log of a
// database, without row ids, times and names of mutations.
func contentsOf(t *testing.T, url string) string {
	db := storetest.Database(t, url)
	var out strings.Builder
	for _, query := range []string{
		`SELECT p.uuid, p.name, CAST(p.generation AS text), CAST(p.version AS text), COALESCE(q.uuid, ''), COALESCE(r.uuid, '') FROM resource_providers p
			LEFT JOIN resource_providers q ON q.id = p.parent_id LEFT JOIN resources r ON r.id = p.resource_id`,
		`SELECT p.uuid, c.name, CAST(i.total AS text), CAST(i.reserved AS text), CAST(i.capacity AS text), CAST(i.used AS text), CAST(i.allocation_ratio AS text) FROM inventories i
			JOIN resource_providers p ON p.id = i.provider_id JOIN resource_classes c ON c.id = i.resource_class_id`,
		`SELECT p.uuid, t.name FROM provider_traits h JOIN resource_providers p ON p.id = h.provider_id JOIN traits t ON t.id = h.trait_id`,
		`SELECT p.uuid, a.aggregate FROM provider_aggregates a JOIN resource_providers p ON p.id = a.provider_id`,
		storetest.AuditedRows, storetest.ChangedRows,
	} {
		for _, row := range storetest.Rows(t, db, query) {
			fmt.Fprintln(&out, row)
		}
	}
	return out.String()
}

// TestManyProvidersAreCreatedAsOneAfterTheOther creates random providers in one
// database by one mutation each, and in another database by a bulk mutation.
// Outcomes, databases, audit logs, change logs and worlds must be equal. An
// atomic mutation must succeed if each single one would.
func TestManyProvidersAreCreatedAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.EachPair(t, func(t *testing.T, one, other string) {
		singly, together := storetest.Open(t, one), storetest.Open(t, other)
		newcomersFixture(t, singly)
		newcomersFixture(t, together)
		d := newcomers{rand.New(rand.NewPCG(7, 7))}
		for round := range 25 {
			items := d.list(8)
			if round%3 == 0 {
				items = d.list(2)
			}
			refused := storetest.OneByOne(items, func(item placement.NewProvider) error {
				_, _, err := singly.CreateResourceProvider(storetest.AsAdmin(), item)
				return err
			})
			contents := func() string { return contentsOf(t, other) }
			storetest.Together(t, round%2 == 0, refused, contents,
				func(atomic bool) ([]placementdb.ProviderOutcome, error) {
					_, outcomes, err := together.CreateResourceProviders(storetest.AsAdmin(),
						placement.NewProviders{Items: items, Atomic: atomic})
					return outcomes, err
				})
			if a, b := contentsOf(t, one), contentsOf(t, other); a != b {
				t.Fatalf("one by one:\n%s\ntogether:\n%s", a, b)
			}
			if difference, err := together.WorldDifference(t.Context()); err != nil || difference != "" {
				t.Fatal(difference, err)
			}
			emptyOfNewcomers(t, d, singly, together)
		}
	})
}

// emptyOfNewcomers deletes some providers to make room for others.
func emptyOfNewcomers(t *testing.T, d newcomers, stores ...*store.Store) {
	for range 6 {
		uuid := d.uuid()
		for _, s := range stores {
			if _, _, err := s.DeleteResourceProvider(storetest.AsAdmin(), uuid); err != nil &&
				!errors.Is(err, problem.ErrNotFound) && !errors.Is(err, problem.ErrInUse) {
				t.Fatal(err)
			}
		}
	}
}

// TestManyProvidersBesideOtherWriters runs bulk creations while others create
// and delete the same providers. Each reported creation must have one audit
// event, and the world must equal the database.
func TestManyProvidersBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		newcomersFixture(t, s)
		var created [4]int
		var writers sync.WaitGroup
		for w := range created {
			writers.Go(func() {
				d := newcomers{rand.New(rand.NewPCG(uint64(w), 9))}
				for range 15 {
					created[w] += createSome(t, s, d)
				}
			})
		}
		writers.Wait()
		if difference, err := s.WorldDifference(t.Context()); err != nil || difference != "" {
			t.Error(difference, err)
		}
		events := storetest.Rows(t, storetest.Database(t, url),
			`SELECT key FROM audit_events WHERE action LIKE 'createResourceProvider%'`)
		if told := created[0] + created[1] + created[2] + created[3] + 1; len(events) != told {
			t.Errorf("%d providers were created, and %d events say so", told, len(events))
		}
	})
}

func createSome(t *testing.T, s *store.Store, d newcomers) (created int) {
	ctx := context.Context(storetest.AsAdmin())
	_, outcomes, err := s.CreateResourceProviders(ctx, placement.NewProviders{Items: d.list(6), Atomic: d.IntN(3) == 0})
	if _, refused := problem.Of(err); err != nil && !refused {
		t.Error(err)
	}
	for _, outcome := range outcomes {
		if err == nil && outcome.Row != nil {
			created++
		}
	}
	if _, _, err := s.CreateResourceProvider(ctx, d.provider()); err == nil {
		created++
	}
	for range 4 {
		_, _, err := s.DeleteResourceProvider(ctx, d.uuid())
		if err != nil && !errors.Is(err, problem.ErrNotFound) && !errors.Is(err, problem.ErrInUse) {
			t.Error(err)
		}
	}
	return created
}

// TestTraitsAreEnsuredBesideOtherWriters ensures traits while others create and
// delete the same ones, on PostgreSQL at two servers. No caller is refused, each
// reported creation has one audit event, and the worlds must equal the database.
// In the end all traits exist.
func TestTraitsAreEnsuredBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := []*store.Store{storetest.Open(t, url)}
		if strings.HasPrefix(url, "postgres") {
			servers = append(servers, storetest.Open(t, url)) // a file of SQLite serves one
		}
		var created [4]int
		var writers sync.WaitGroup
		for w := range created {
			writers.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(w), 11))
				for range 15 {
					created[w] += ensureSome(t, servers[w%len(servers)], chance)
				}
			})
		}
		writers.Wait()
		all := lists.Map([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, ensuredName)
		_, made, err := servers[0].EnsureTraits(storetest.AsAdmin(), all)
		_, again, failed := servers[len(servers)-1].EnsureTraits(storetest.AsAdmin(), all)
		if err != nil || failed != nil || len(again) > 0 {
			t.Errorf("created again: %v, %v %v", again, err, failed)
		}
		for _, s := range servers {
			storetest.Within(t, 30*time.Second, "equal to the database", func() bool {
				difference, err := s.WorldDifference(t.Context())
				return err == nil && difference == ""
			})
		}
		const events = `SELECT key FROM audit_events WHERE action IN ('createTrait', 'ensureTraits')`
		told := created[0] + created[1] + created[2] + created[3] + len(made)
		if stored := len(storetest.Rows(t, storetest.Database(t, url), events)); stored != told {
			t.Errorf("%d traits were created, and %d events say so", told, stored)
		}
	})
}

func ensuredName(i int) string { return fmt.Sprint("CUSTOM_ENSURED_", i) }

// ensureSome ensures, creates and deletes traits, and returns how many it
// created.
func ensureSome(t *testing.T, s *store.Store, chance *rand.Rand) (created int) {
	ctx, name := storetest.AsAdmin(), func() string { return ensuredName(chance.IntN(12)) }
	some := []string{"HW_CPU_X86_VMX", name(), name(), name()}
	traits, made, err := s.EnsureTraits(ctx, some)
	if err != nil || len(traits) != len(lists.Distinct(some)) {
		t.Errorf("%v: got %v, %v", some, traits, err)
	}
	created = len(made)
	if _, err := s.CreateTrait(ctx, name()); err == nil {
		created++
	}
	if _, err := s.DeleteTrait(ctx, name()); err != nil && !errors.Is(err, problem.ErrNotFound) {
		t.Error(err)
	}
	return created
}

// TestWrongNamesOfEnsuredTraits checks that each wrong name has an error, and
// that nothing is stored.
func TestWrongNamesOfEnsuredTraits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for want, names := range map[string][]string{
			"input.names":                   {},
			"input.names[0] input.names[2]": {"HW_NONE", "CUSTOM_FINE", "custom_x"},
		} {
			_, _, err := s.EnsureTraits(storetest.AsAdmin(), names)
			problems, _ := problem.Of(err)
			if got := strings.Join(lists.Map(problems, func(one problem.Problem) string { return one.Field }),
				" "); got != want {
				t.Errorf("%v: got %q, want %q", names, got, want)
			}
		}
		if world, err := s.World(storetest.AsAdmin()); err != nil || world.HasTrait("CUSTOM_FINE") {
			t.Errorf("a refused input stored a trait: %v", err)
		}
	})
}
