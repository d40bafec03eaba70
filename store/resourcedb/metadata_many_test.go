package resourcedb_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// changers draws changes of the metadata of few resources. Some of these do not
// exist or belong to another project.
type changers struct{ *rand.Rand }

const changedResources = 8

var changedKeys = []string{"size", "a", "b", "owned"}

func (d changers) change(uuid string) resource.MetadataChange {
	c := resource.MetadataChange{Resource: uuid}
	if d.IntN(4) == 0 {
		c.Revision = new(1 + d.IntN(6))
	}
	if d.IntN(6) == 0 {
		c.UserModifiable = new(d.IntN(2) == 0)
	}
	for range d.IntN(4) {
		c.Items = append(c.Items, metadef.KeyValue{Key: changedKeys[d.IntN(13)%4],
			Value: []string{"7", "8", "<&> \u2028 ÄÖ", "TRUE"}[d.IntN(4)]})
	}
	for range d.IntN(5) / 3 {
		c.Keys = append(c.Keys, changedKeys[d.IntN(4)])
	}
	if d.IntN(15) == 0 {
		c.Keys = append(c.Keys, "")
	}
	return c
}

// list returns changes of resources, each once.
func (d changers) list() []resource.MetadataChange {
	var changes []resource.MetadataChange
	for _, i := range d.Perm(changedResources + 1)[:1+d.IntN(changedResources)] {
		changes = append(changes, d.change(storetest.UUID(10+i)))
	}
	return changes
}

// changersFixture creates resources of a strict type and of another type, in
// two projects, with items that users may change and items that they may not.
func changersFixture(t *testing.T, s *store.Store) {
	t.Helper()
	newcomersFixture(t, s)
	for i := range changedResources {
		input := resource.Input{Type: "Strict", Name: "r", UUID: new(storetest.UUID(10 + i)),
			ProjectID:  new([]string{"demo", "operations"}[i/5]),
			Visibility: new(access.Public), Metadata: []metadef.KeyValue{{Key: "size", Value: "7"}}}
		if i%2 == 0 {
			input.Type, input.ServiceMetadata = "physical:host", []metadef.KeyValue{{Key: "owned", Value: "x"}}
		}
		if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetadataOfManyIsChangedAsOneAfterTheOther changes the metadata of random
// resources as random viewers twice: by one mutation each, and by one mutation
// for many in another database. Outcomes, databases, audit logs and change logs
// must be the same. A wrong change in an atomic input must leave everything as
// it is.
func TestMetadataOfManyIsChangedAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.EachPair(t, func(t *testing.T, one, other string) {
		singly, together := storetest.Open(t, one), storetest.Open(t, other)
		changersFixture(t, singly)
		changersFixture(t, together)
		d := changers{rand.New(rand.NewPCG(5, 15))}
		for round := range 24 {
			changes := d.list()
			ctx := access.WithViewer(context.Background(), creators[d.IntN(len(creators))])
			refused := storetest.OneByOne(changes, func(change resource.MetadataChange) error {
				_, _, err := singly.ChangeMetadata(ctx, change)
				return err
			})
			contents := func() string { return resourcesIn(t, other) }
			storetest.Together(t, round%2 == 0, refused, contents,
				func(atomic bool) ([]resourcedb.ResourceOutcome, error) {
					return together.ChangeMetadataOfMany(ctx, resource.MetadataChanges{Items: changes, Atomic: atomic})
				})
			if a, b := resourcesIn(t, one), resourcesIn(t, other); a != b {
				t.Fatalf("one by one:\n%s\ntogether:\n%s", a, b)
			}
		}
	})
}

// TestMetadataOfManyBesideOtherWriters changes the metadata of many resources
// while other writers change, delete and create them. Each change that the
// store reports as made must have one event and must increment the resource's
// revision once.
func TestMetadataOfManyBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		changersFixture(t, s)
		var changed [4]int
		var writers sync.WaitGroup
		for w := range changed {
			writers.Go(func() {
				d := changers{rand.New(rand.NewPCG(uint64(w), 6))}
				for range 12 {
					outcomes, err := s.ChangeMetadataOfMany(storetest.AsAdmin(),
						resource.MetadataChanges{Items: d.list(), Atomic: d.IntN(4) == 0})
					if _, refused := problem.Of(err); err != nil && !refused {
						t.Error(err)
					}
					for _, outcome := range outcomes {
						if err == nil && outcome.Row != nil {
							changed[w]++
						}
					}
					uuid := storetest.UUID(10 + d.IntN(changedResources))
					if d.IntN(3) == 0 {
						_, _ = s.DeleteResource(storetest.AsAdmin(), uuid, nil)
						_, _ = s.CreateResource(storetest.AsAdmin(),
							resource.Input{Type: "physical:host", Name: "r", UUID: &uuid})
					}
					_, _, _ = s.ChangeMetadata(storetest.AsAdmin(), d.change(uuid))
				}
			})
		}
		writers.Wait()
		events := storetest.Rows(t, storetest.Database(t, url),
			`SELECT key FROM audit_events WHERE action = 'setMetadataOnResources'`)
		if told := changed[0] + changed[1] + changed[2] + changed[3]; len(events) != told || told == 0 {
			t.Errorf("%d changes were made, and %d events say so", told, len(events))
		}
	})
}
