package resourcedb_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// defaulted are resources that users, a sync and the rules of two namespaces
// write, and a model of the items of users and the sync.
type defaulted struct {
	*rand.Rand
	t      *testing.T
	url    string
	s      *store.Store
	users  map[string]map[string]string // by resource and key: the last value
	synced map[string]map[string]string
	rules  map[string][]metadef.DefaultRule // by namespace
}

var (
	defaultKeys   = []string{"a", "b", "c", "d", "size"}
	defaultTypes  = []string{"Strict", "OS::Glance::Image"}
	twoProjects   = []string{"demo", "operations"}
	twoNamespaces = []string{"first", "second"}
)

// newDefaulted creates resources of a strict type, and others by a sync.
func newDefaulted(t *testing.T, url string) *defaulted {
	d := &defaulted{Rand: rand.New(rand.NewPCG(soak.Seed(t), 32)), t: t, url: url, s: storetest.Open(t, url),
		users: map[string]map[string]string{}, synced: map[string]map[string]string{},
		rules: map[string][]metadef.DefaultRule{}}
	newcomersFixture(t, d.s)
	d.syncs(d.Rand)
	for _, name := range twoNamespaces {
		if _, err := d.s.CreateNamespace(storetest.AsAdmin(), metadef.NamespaceInput{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		uuid := storetest.UUID(50 + i)
		if _, err := d.s.CreateResource(storetest.AsAdmin(),
			resource.Input{Type: "Strict", Name: "r", UUID: &uuid, ProjectID: &twoProjects[i%2]}); err != nil {
			t.Fatal(err)
		}
		d.users[uuid] = map[string]string{}
	}
	for uuid := range d.synced {
		d.users[uuid] = map[string]string{}
	}
	return d
}

// syncs writes images with some of two keys.
func (d *defaulted) syncs(r *rand.Rand) {
	p := images(1)
	p.Resources = nil
	for i := range 6 {
		thing := origin.Thing{ForeignID: storetest.UUID(100 + i), Name: "image",
			ProjectID: twoProjects[i%2], Visibility: access.Private}
		for _, key := range []string{"c", "d"} {
			if r.IntN(2) == 0 {
				thing.Metadata = append(thing.Metadata,
					metadef.KeyValue{Key: key, Value: []string{"1", "2"}[r.IntN(2)]})
			}
		}
		p.Resources = append(p.Resources, thing)
	}
	if _, err := d.s.SyncResources(storetest.AsAdmin(), p); err != nil {
		d.t.Error(err)
	}
	for _, thing := range p.Resources {
		d.synced[thing.ForeignID] = lists.Index(thing.Metadata, func(item metadef.KeyValue) (string, string) {
			return item.Key, item.Value
		})
	}
}

// uses lets users set and delete the other keys of resources of their projects.
func (d *defaulted) uses(r *rand.Rand) {
	for range 20 {
		i, key, first := r.IntN(4), "size", 50 // the strict type defines no other key
		if r.IntN(2) == 0 {
			key, first = []string{"a", "b", "size"}[r.IntN(3)], 100
		}
		change := resource.MetadataChange{Resource: storetest.UUID(first + i)}
		if r.IntN(3) == 0 {
			change.Mode, change.Keys = resource.DeleteMetadata, []string{key}
		} else {
			change.Items = []metadef.KeyValue{{Key: key, Value: []string{"1", "2"}[r.IntN(2)]}}
		}
		ctx := access.WithViewer(context.Background(),
			access.Viewer{UserID: "u", ProjectID: twoProjects[i%2], Roles: []string{access.RoleMember}})
		_, _, err := d.s.ChangeMetadata(ctx, change)
		switch {
		case err != nil && !errors.Is(err, problem.ErrNotFound):
			d.t.Error(err)
		case change.Mode == resource.DeleteMetadata:
			delete(d.users[change.Resource], key)
		default:
			d.users[change.Resource][key] = change.Items[0].Value
		}
	}
}

// rewrites sets random rules.
func (d *defaulted) rewrites(r *rand.Rand) {
	for range 2 {
		name := twoNamespaces[r.IntN(2)]
		rules := resourcetest.DrawRules(r.IntN, defaultTypes, twoProjects, defaultKeys, []string{"1", "2", "x"})
		if _, err := d.s.SetDefaults(storetest.AsAdmin(),
			metadef.DefaultsChange{Namespace: name, Rules: rules}); err != nil {
			d.t.Error(err)
		}
		d.rules[name] = rules
	}
}

// applies applies the rules of a namespace to all resources.
func (d *defaulted) applies(name string, first int, dryRun bool) (all []resource.AppliedDefaults) {
	run := resource.DefaultsRun{Namespace: name, First: first, DryRun: dryRun}
	for {
		applied, err := d.s.ApplyDefaults(storetest.AsAdmin(), run)
		if err != nil {
			d.t.Error(err)
			return nil
		}
		all = append(all, applied)
		if run.After = applied.Next; run.After == nil {
			return all
		}
	}
}

// all writes as everyone concurrently.
func (d *defaulted) all() {
	var writers sync.WaitGroup
	for _, write := range []func(*rand.Rand){d.syncs, d.uses, d.rewrites,
		func(r *rand.Rand) { d.applies("first", 1+r.IntN(5), false) },
		func(r *rand.Rand) { d.applies("second", 1+r.IntN(5), r.IntN(4) == 0) },
	} {
		r := rand.New(rand.NewPCG(d.Uint64(), 33))
		writers.Go(func() { write(r) })
	}
	writers.Wait()
}

// read returns all resources, and their items by row id.
func (d *defaulted) read() (map[string]*resource.Resource, map[int64][]*resource.MetadataItem) {
	of, err := d.s.ResourcesByUUID(storetest.AsAdmin(), slices.Sorted(maps.Keys(d.users)))
	if err != nil {
		d.t.Fatal(err)
	}
	var ids []int64
	for _, one := range of {
		ids = append(ids, one.ID)
	}
	items, err := d.s.MetadataOf(storetest.AsAdmin(), ids, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return of, items
}

// settles applies the rules of a namespace without other writers: a dry run
// has the same result and writes nothing, resources have the metadata of the
// definition or a refusal, and a second application changes nothing.
func (d *defaulted) settles(name string) {
	in, err := d.s.NamespaceNamed(storetest.AsAdmin(), name)
	if err != nil {
		d.t.Fatal(err)
	}
	contents := resourcesIn(d.t, d.url)
	of, before := d.read()
	first := 1 + d.IntN(4)
	dry := d.applies(name, first, true)
	if resourcesIn(d.t, d.url) != contents {
		d.t.Fatal("a dry run writes")
	}
	wet := d.applies(name, first, false)
	if !reflect.DeepEqual(dry, wet) {
		d.t.Fatalf("a dry run returns %+v, the application %+v", dry, wet)
	}
	refused := d.refused(wet)
	_, after := d.read()
	for uuid, one := range of {
		want := resourcetest.WithDefaults(in.ID, d.rules[name], *one, d.typeOf(uuid), before[one.ID])
		if refused[uuid] {
			want = resourcetest.Values(before[one.ID])
		}
		if got := resourcetest.Values(after[one.ID]); !maps.Equal(got, want) {
			d.t.Fatalf("%s has %v, want %v by %+v after %v", uuid, got, want, d.rules[name],
				resourcetest.Values(before[one.ID]))
		}
	}
	for _, applied := range d.applies(name, 1000, false) {
		if applied.Added+applied.Changed+applied.Removed > 0 || applied.Refused != len(refused) {
			d.t.Fatalf("a second application: %+v", applied)
		}
	}
}

// typeOf returns the type of a resource: the sync wrote images.
func (d *defaulted) typeOf(uuid string) string {
	if d.synced[uuid] == nil {
		return defaultTypes[0]
	}
	return defaultTypes[1]
}

// refused returns the resources that refuse their change. setMetadata must
// refuse each with the same problems.
func (d *defaulted) refused(pages []resource.AppliedDefaults) map[string]bool {
	refused := map[string]bool{}
	for _, applied := range pages {
		for _, result := range applied.Results {
			if len(result.Problems) == 0 {
				continue
			}
			refused[result.Resource] = true
			change := resource.MetadataChange{Resource: result.Resource}
			for _, item := range result.Items {
				change.Items = append(change.Items, metadef.KeyValue{Key: item.Key, Value: *item.After})
			}
			for _, item := range result.DeleteKeys {
				change.Keys = append(change.Keys, item.Key)
			}
			_, _, err := d.s.ChangeMetadata(storetest.AsAdmin(), change)
			problems := problem.InError(err)
			for i := range problems {
				problems[i].Field = strings.TrimPrefix(problems[i].Field, "input.")
			}
			if !reflect.DeepEqual(problems, result.Problems) {
				d.t.Fatalf("%s refuses %+v, setMetadata %+v", result.Resource, result.Problems, problems)
			}
		}
	}
	return refused
}

// stays checks that the items of users and the sync are as they wrote them, and
// that all others are derived.
func (d *defaulted) stays() {
	of, items := d.read()
	for uuid, one := range of {
		want, got := map[string]string{}, map[string]string{}
		maps.Copy(want, d.users[uuid])
		maps.Copy(want, d.synced[uuid])
		for _, item := range items[one.ID] {
			if item.DerivedFrom == 0 {
				got[item.Key] = item.Value
			}
		}
		if !maps.Equal(got, want) {
			d.t.Fatalf("%s has %v of users and the sync, want %v", uuid, got, want)
		}
	}
}

// TestDefaultsBesideOtherWriters lets users, a sync, new rules and applications
// write concurrently, and then each namespace once more alone.
func TestDefaultsBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDefaulted(t, url)
		refused, rounds := 0, soak.Rounds(24)
		for range rounds {
			d.all()
			d.stays()
			for _, name := range twoNamespaces {
				d.settles(name)
				refused += len(d.refused(d.applies(name, 1000, true)))
			}
			d.stays()
		}
		if refused == 0 && rounds > 6 {
			t.Error("no resource refuses its change")
		}
	})
}

// TestAnApplicationWaitsForNewRules begins an application while a transaction
// that has not ended changes the rules. It must apply the new ones.
func TestAnApplicationWaitsForNewRules(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	d := newDefaulted(t, url)
	rules := func(value string) []metadef.DefaultRule {
		return []metadef.DefaultRule{{ResourceType: defaultTypes[1], Key: "new", Value: value}}
	}
	if _, err := d.s.SetDefaults(storetest.AsAdmin(),
		metadef.DefaultsChange{Namespace: "first", Rules: rules("old value")}); err != nil {
		t.Fatal(err)
	}
	db := storetest.Database(t, url)
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.Exec(`UPDATE namespaces SET default_rules = replace(default_rules, 'old value', 'new value')`)
	}
	if err != nil {
		t.Fatal(err)
	}
	var applied sync.WaitGroup
	isDone := atomic.Bool{}
	applied.Go(func() { d.applies("first", 1000, false); isDone.Store(true) })
	storetest.Within(t, 10*time.Second, "waiting or done", func() bool {
		return isDone.Load() ||
			len(storetest.Rows(t, db,
				`SELECT 'x' FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)) > 0
	})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	applied.Wait()
	_, items := d.read()
	for _, of := range items {
		if value, ok := resourcetest.Values(of)["new"]; ok && value.Value != "new value" {
			t.Fatalf("the application writes %q", value.Value)
		}
	}
}
