package resourcedb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// cloud is another system with things of one kind, and a model of the
// resources after its syncs.
type cloud struct {
	*rand.Rand
	t      *testing.T
	ctx    context.Context
	s      *store.Store
	things map[string]origin.Thing
	model  map[string]*synced
	passes int
}

// synced is a thing in the model.
type synced struct {
	thing  origin.Thing // as last written
	uuid   string       // "" until it was read
	absent int
	gone   bool
	note   string // a person's
	taken  string // a person's value of a key that the origin had
}

func (c *cloud) id() string {
	if n := c.IntN(20); n < 10 {
		return storetest.UUID(1000 + n)
	} else {
		return fmt.Sprintf("flavor-%d", n)
	}
}

// change changes the other system at random.
func (c *cloud) change() {
	for range c.IntN(4) {
		id := c.id()
		if c.IntN(3) == 0 {
			delete(c.things, id)
			continue
		}
		thing := origin.Thing{ForeignID: id, Name: fmt.Sprintf("name %d", c.IntN(3)), ProjectID: fmt.Sprintf("p%d", c.IntN(2)),
			Visibility: []access.Visibility{access.Public, access.Private}[c.IntN(2)], Description: []*string{nil, new(""), new("ÄÖ")}[c.IntN(3)]}
		for _, key := range []string{"hw:cpu", "size", "later"} {
			if c.IntN(2) == 0 {
				thing.Metadata = append(thing.Metadata, metadef.KeyValue{Key: key, Value: fmt.Sprint(c.IntN(3))})
			}
		}
		c.things[id] = thing
	}
}

// annotate lets a person write on a resource.
func (c *cloud) annotate() {
	for _, id := range slices.Sorted(maps.Keys(c.model)) {
		if is := c.model[id]; is.uuid != "" && c.IntN(6) == 0 {
			is.note = fmt.Sprint("note ", c.IntN(100))
			_, _, err := c.s.ChangeMetadata(c.ctx, resource.MetadataChange{Resource: is.uuid, Items: []metadef.KeyValue{{Key: "note", Value: is.note}}})
			if err != nil {
				c.t.Fatal(err)
			}
		}
		c.takeOver(id)
	}
}

// takeOver lets a person own a key of the origin.
func (c *cloud) takeOver(id string) {
	is := c.model[id]
	if is.items()["later"] == "" || is.uuid == "" || c.IntN(6) > 0 {
		return
	}
	is.taken = "mine"
	_, _, err := c.s.ChangeMetadata(c.ctx, resource.MetadataChange{Resource: is.uuid, UserModifiable: new(true), Items: []metadef.KeyValue{{Key: "later", Value: is.taken}}})
	if err != nil {
		c.t.Fatal(err)
	}
}

// pass reads the other system, perhaps with a fault, and writes the things that it read.
func (c *cloud) pass() {
	c.passes++
	read := slices.SortedFunc(maps.Values(c.things), func(a, b origin.Thing) int { return cmp.Compare(a.ForeignID, b.ForeignID) })
	reading := origin.Reading{Complete: true}
	switch c.IntN(8) {
	case 0: // a page is lost, without an error
		from := c.IntN(len(read) + 1)
		read = slices.Delete(read, from, min(len(read), from+3))
	case 1: // reading fails
		reading.Complete = false
		read = read[:c.IntN(len(read)+1)]
	case 2: // a cell is down
		reading.Unknown = 1
		read = read[:c.IntN(len(read)+1)]
	case 3: // an empty answer
		read = nil
	}
	reading.Seen = len(read)
	isWhole := reading.Complete && reading.Unknown == 0
	scope := origin.Scope{Origin: "openstack", Region: "one", Kind: "flavors"}
	pass := storetest.UUID(5000 + c.passes)
	after := new("")
	for begin := true; begin || len(read) > 0; begin = false {
		size := min(len(read), 1+c.IntN(6))
		p := origin.Page{Origin: scope.Origin, Region: scope.Region, Kind: scope.Kind, Pass: pass, ResourceType: "OS::Nova::Flavor", Resources: read[:size]}
		if read = read[size:]; isWhole {
			if p.Range = (&origin.Range{After: after}); len(read) > 0 {
				through := p.Resources[size-1].ForeignID
				p.Range.Through, after = &through, &through
			}
		}
		for range 1 + c.IntN(5)/4 { // perhaps again, as after an answer that was lost
			if _, err := c.s.SyncResources(c.ctx, p); err != nil {
				c.t.Fatal(err)
			}
		}
		c.written(p)
		if c.IntN(20) == 0 {
			c.expire(scope)
			return // the writer is killed
		}
	}
	c.end(scope, pass, reading)
}

// expire ends the time of a pass whose writer was killed: its own end, which
// says that it did not read everything, does so.
func (c *cloud) expire(scope origin.Scope) {
	_, err := c.s.EndSync(c.ctx, origin.End{Origin: scope.Origin, Region: scope.Region, Kind: scope.Kind, Pass: storetest.UUID(5000 + c.passes), Failure: new("killed")})
	if err != nil {
		c.t.Fatal(err)
	}
}

// written changes the model as a page must.
func (c *cloud) written(p origin.Page) {
	seen := map[string]bool{}
	for _, thing := range p.Resources {
		seen[thing.ForeignID] = true
		is := c.model[thing.ForeignID]
		if is == nil {
			is = new(synced)
			c.model[thing.ForeignID] = is
		}
		is.thing, is.absent, is.gone = thing, 0, false
		if slices.ContainsFunc(thing.Metadata, func(item metadef.KeyValue) bool { return item.Key == "later" }) {
			is.taken = ""
		}
	}
	if p.Range == nil {
		return
	}
	for id, is := range c.model {
		if !seen[id] && !is.gone && is.absent < 2 && id > *p.Range.After && (p.Range.Through == nil || id <= *p.Range.Through) {
			is.absent++
		}
	}
}

// end ends a pass, and compares its result with the model.
func (c *cloud) end(scope origin.Scope, pass string, reading origin.Reading) {
	limits := origin.Limits{Number: 1 + c.IntN(4), Share: 0.5, Allow: c.IntN(6) == 0}
	var want origin.Ended
	present, wasGone := 0, 0
	for _, is := range c.model {
		if is.gone {
			wasGone++
			continue
		}
		if present++; is.absent >= 2 {
			want.Refused++
		}
	}
	if reading.Complete && reading.Unknown == 0 {
		within := reading.Seen > 0 && want.Refused <= limits.Number && 2*want.Refused <= present
		for id, is := range c.model {
			if is.gone { // the delay is 0
				delete(c.model, id)
			} else if is.absent >= 2 && (within || limits.Allow) {
				is.gone = true
				want.Gone++
			}
		}
		want.Refused -= want.Gone
		want.Deleted = wasGone
	} else {
		want.Refused = 0
	}
	got, err := c.s.EndSync(c.ctx, origin.End{Origin: scope.Origin, Region: scope.Region, Kind: scope.Kind, Pass: pass, Reading: reading, Limits: limits})
	if err != nil || got != want {
		c.t.Fatalf("pass %d, %+v, %+v: %+v, want %+v: %v", c.passes, reading, limits, got, want, err)
	}
}

// compare compares the resources with the model.
func (c *cloud) compare() {
	found, err := c.s.Resources(c.ctx, resource.Filter{}, page.Order{Field: "NAME"}, page.Request{First: new(1000)})
	if err != nil {
		c.t.Fatal(err)
	}
	ids := make([]int64, len(found.Items))
	for i, one := range found.Items {
		ids[i] = one.ID
	}
	origins, err := c.s.OriginsOf(c.ctx, ids)
	if err != nil {
		c.t.Fatal(err)
	}
	items, err := c.s.MetadataOf(c.ctx, ids, nil)
	if err != nil || len(origins) != len(c.model) || len(ids) != len(c.model) {
		c.t.Fatalf("pass %d: %d resources, %d origins, want %d: %v", c.passes, len(ids), len(origins), len(c.model), err)
	}
	for _, one := range found.Items {
		from := origins[one.ID]
		is := c.model[from.ForeignID]
		if is.uuid == "" {
			is.uuid = one.UUID
		}
		got := map[string]string{}
		for _, item := range items[one.ID] {
			got[item.Key] = fmt.Sprint(item.Value, item.UserModifiable)
		}
		shown := origin.Thing{ForeignID: from.ForeignID, Name: one.Name, ProjectID: one.ProjectID, Visibility: one.Visibility}
		want := origin.Thing{ForeignID: from.ForeignID, Name: is.thing.Name, ProjectID: is.thing.ProjectID, Visibility: is.thing.Visibility}
		if one.UUID != is.uuid || !reflect.DeepEqual(shown, want) || (from.GoneAt != nil) != is.gone || !maps.Equal(got, is.items()) {
			c.t.Fatalf("pass %d: %+v, %v, %+v, want %+v", c.passes, one, got, from, is)
		}
	}
}

// items returns the metadata that the resource of a thing must have.
func (is *synced) items() map[string]string {
	items := map[string]string{}
	if is.note != "" {
		items["note"] = is.note + "true"
	}
	for _, item := range is.thing.Metadata {
		items[item.Key] = item.Value + "false"
	}
	if is.taken != "" {
		items["later"] = is.taken + "true"
	}
	return items
}

// TestSyncsLoseNothing syncs a system that changes, with passes that lose pages,
// fail, see half, see nothing and are killed, while people write on the
// resources. A model has the result of each pass: no duplicate, no wrong
// deletion, no lost note.
func TestSyncsLoseNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		c := &cloud{Rand: rand.New(rand.NewPCG(soak.Seed(t), 28)), t: t, ctx: ctx, s: s, things: map[string]origin.Thing{}, model: map[string]*synced{}}
		for range soak.Count(t, "CADASTRE_SOAK_PASSES", 300) {
			c.change()
			c.pass()
			c.compare()
			c.annotate()
		}
		if c.passes < 10 || len(c.model) == 0 {
			t.Errorf("%d passes, %d things", c.passes, len(c.model))
		}
	})
}

// TestAPassWithoutChangesWritesNothing syncs the same things again, and counts
// audit events and changes.
func TestAPassWithoutChangesWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleService}})
		p := origin.Page{Origin: "openstack", Region: "one", Kind: "images", Pass: storetest.UUID(1), ResourceType: "OS::Glance::Image", Range: new(origin.Range)}
		for i := range 20 {
			p.Resources = append(p.Resources, origin.Thing{ForeignID: storetest.UUID(100 + i), Name: "image", ProjectID: "p", Visibility: access.Public,
				Metadata: []metadef.KeyValue{{Key: "os_distro", Value: "debian"}}})
		}
		counts, err := s.SyncResources(ctx, p)
		if want := (origin.Counts{Created: 20}); err != nil || counts != want {
			t.Fatalf("%+v, %v", counts, err)
		}
		count := func() int64 {
			events, err := sqldb.Column[int64](ctx, s.DB, s.Pool, `SELECT COUNT(*) FROM audit_events`)
			if err != nil {
				t.Fatal(err)
			}
			return events[0]
		}
		events := count()
		counts, err = s.SyncResources(ctx, p)
		if want := (origin.Counts{Unchanged: 20}); err != nil || counts != want {
			t.Fatalf("%+v, %v", counts, err)
		}
		if after := count(); after != events {
			t.Errorf("%d audit events more", after-events)
		}
		p.Pass = storetest.UUID(2)
		if _, err := s.SyncResources(ctx, p); !errors.Is(err, problem.ErrConcurrentUpdate) {
			t.Errorf("a second pass at the same time: %v", err)
		}
	})
}

// TestAPassTakesOverAfterAMinute has two passes over one kind. The second one
// writes once the first has written nothing for a minute, and the first is then
// refused.
func TestAPassTakesOverAfterAMinute(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Now()
		s, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleService}})
		write := func(pass int) error {
			_, err := s.SyncResources(ctx, origin.Page{Origin: "openstack", Region: "one", Kind: "images", Pass: storetest.UUID(pass), ResourceType: "OS::Glance::Image",
				Resources: []origin.Thing{{ForeignID: "a", Name: fmt.Sprint(pass, now), ProjectID: "p", Visibility: access.Public}}})
			return err
		}
		first := write(1)
		if now = now.Add(59 * time.Second); first != nil || !errors.Is(write(2), problem.ErrConcurrentUpdate) {
			t.Error("the second pass writes beside the first")
		}
		if now = now.Add(2 * time.Second); write(2) != nil || !errors.Is(write(1), problem.ErrConcurrentUpdate) {
			t.Error("the second pass does not take over")
		}
	})
}

// TestASyncTakesNoUUIDOfAnother creates things whose ids are uuids of resources
// that people made, and things of equal ids in two regions.
func TestASyncTakesNoUUIDOfAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		own := storetest.UUID(7)
		people := store.Content{Resources: []store.ResourceRecord{{UUID: own, Type: "OS::Nova::Server", Name: "own", ProjectID: "p", Visibility: access.Public}}}
		if err := s.FillEmpty(ctx, people); err != nil {
			t.Fatal(err)
		}
		for i, region := range []string{"one", "two"} {
			counts, err := s.SyncResources(ctx, origin.Page{Origin: "openstack", Region: region, Kind: "servers", Pass: storetest.UUID(1), ResourceType: "OS::Nova::Server",
				Resources: []origin.Thing{{ForeignID: own, Name: region, ProjectID: "p", Visibility: access.Private}}})
			if err != nil || counts.Created != 1 {
				t.Fatalf("%+v, %v", counts, err)
			}
			found, err := s.Resources(ctx, resource.Filter{}, page.Order{Field: "NAME"}, page.Request{})
			if err != nil || len(found.Items) != i+2 {
				t.Fatalf("%d resources, %v", len(found.Items), err)
			}
		}
	})
}
