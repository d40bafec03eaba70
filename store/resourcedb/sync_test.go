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
	"strings"
	"sync/atomic"
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
	own    string // a person's capability
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
		thing := origin.Thing{ForeignID: id, Name: fmt.Sprintf("name %d", c.IntN(3)),
			ProjectID:   fmt.Sprintf("p%d", c.IntN(2)),
			Visibility:  []access.Visibility{access.Public, access.Private}[c.IntN(2)],
			Description: []*string{nil, new(""), new("ÄÖ")}[c.IntN(3)]}
		for _, key := range []string{"hw:cpu", "size", "later"} {
			if c.IntN(2) == 0 {
				thing.Metadata = append(thing.Metadata,
					metadef.KeyValue{Key: key,
						Value: []string{"0", "1", "2", "", strings.Repeat("Ü", 3000)}[c.IntN(5)]})
			}
		}
		for _, name := range []string{"arch", "flags", "rack"} {
			if c.IntN(2) == 0 {
				thing.Capabilities = append(thing.Capabilities,
					metadef.KeyValue{Key: name, Value: []string{"x", `["a","b"]`, `["b"]`}[c.IntN(3)]})
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
			_, _, err := c.s.ChangeMetadata(c.ctx,
				resource.MetadataChange{Resource: is.uuid, Items: []metadef.KeyValue{{Key: "note", Value: is.note}}})
			if err != nil {
				c.t.Fatal(err)
			}
		}
		c.takeOver(id)
		if is := c.model[id]; is.uuid != "" && c.IntN(6) == 0 {
			is.own = fmt.Sprint("own ", c.IntN(100))
			if _, err := c.s.SetCapabilities(c.ctx, is.uuid,
				[]metadef.KeyValue{{Key: "own", Value: is.own}}, nil); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// takeOver lets a person own a key of the origin.
func (c *cloud) takeOver(id string) {
	is := c.model[id]
	if is.items()["later"] == "" || is.uuid == "" || c.IntN(6) > 0 {
		return
	}
	is.taken = "mine"
	_, _, err := c.s.ChangeMetadata(c.ctx, resource.MetadataChange{Resource: is.uuid, UserModifiable: new(true),
		Items: []metadef.KeyValue{{Key: "later", Value: is.taken}}})
	if err != nil {
		c.t.Fatal(err)
	}
}

// pass reads the other system, perhaps with a fault, and writes the things that it read.
func (c *cloud) pass() {
	c.passes++
	read := slices.SortedFunc(maps.Values(c.things), func(a, b origin.Thing) int {
		return cmp.Compare(a.ForeignID, b.ForeignID)
	})
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
	pages := c.pages(read, reading)
	c.outdate()
	want := c.compareSync(pages)
	var got origin.Counts
	for _, p := range pages {
		counts, err := c.s.SyncResources(c.ctx, p)
		if err != nil {
			c.t.Fatal(err)
		}
		got = sum(got, counts)
		for range c.IntN(5) / 4 { // perhaps again, as after an answer that was lost
			if _, err := c.s.SyncResources(c.ctx, p); err != nil {
				c.t.Fatal(err)
			}
		}
		c.written(p)
		if c.IntN(20) == 0 {
			c.expire(p.Scope())
			return // the writer is killed
		}
	}
	if difference := want.Difference; difference != nil {
		if want.Difference = nil; got != want {
			c.t.Fatalf("pass %d: %+v, want as in the dry run %+v", c.passes, got, want)
		}
		want.Difference = difference
	}
	c.end(pages[0].Scope(), pages[0].Pass, reading, want.Difference)
}

// pages splits a pass into pages at random.
func (c *cloud) pages(read []origin.Thing, reading origin.Reading) (pages []origin.Page) {
	after := new("")
	for begin := true; begin || len(read) > 0; begin = false {
		size := min(len(read), 1+c.IntN(6))
		p := origin.Page{Origin: "openstack", Region: "one", Kind: "flavors", Pass: storetest.UUID(5000 + c.passes),
			ResourceType: "OS::Nova::Flavor", Resources: read[:size]}
		if read = read[size:]; reading.ProvesAbsence() {
			if p.Range = (&origin.Range{After: after}); len(read) > 0 {
				through := p.Resources[size-1].ForeignID
				p.Range.Through, after = &through, &through
			}
		}
		pages = append(pages, p)
	}
	return pages
}

// outdate makes the delay of all resources end that are gone.
func (c *cloud) outdate() {
	err := c.s.Execute(c.ctx, c.s.Pool, `UPDATE resource_origins SET gone_at = `+c.s.Time("$1")+
		` WHERE gone_at IS NOT NULL`, c.s.Now().Add(-origin.DefaultDelay-time.Hour))
	if err != nil {
		c.t.Fatal(err)
	}
}

// sum adds the counts of a page.
func sum(all, page origin.Counts) origin.Counts {
	all.Created += page.Created
	all.Updated += page.Updated
	all.Unchanged += page.Unchanged
	all.Returned += page.Returned
	all.Absent += page.Absent
	return all
}

// compareSync makes a dry run of half of the passes. It returns its counts, and
// checks that it wrote nothing and that the changes are as many as the counts say.
func (c *cloud) compareSync(pages []origin.Page) (all origin.Counts) {
	if c.IntN(2) == 0 {
		return all
	}
	rows := c.rows()
	difference := &origin.Difference{}
	for _, p := range pages {
		p.DryRun = true
		counts, err := c.s.SyncResources(c.ctx, p)
		if err != nil {
			c.t.Fatal(err)
		}
		all = sum(all, counts)
		difference.Changes = append(difference.Changes, counts.Difference.Changes...)
		difference.Present += counts.Difference.Present
		difference.Gone += counts.Difference.Gone
		difference.Deleted += counts.Difference.Deleted
	}
	effects := map[origin.Effect]int{}
	for _, change := range difference.Changes {
		effects[change.Effect]++
		if (len(change.Changed) > 0) != (change.Effect == origin.Updated) || !slices.IsSorted(change.Changed) {
			c.t.Fatalf("pass %d: %+v", c.passes, change)
		}
	}
	if effects[origin.Created] != all.Created || effects[origin.Updated] != all.Updated ||
		effects[origin.Returned] > all.Returned ||
		effects[origin.Gone] != difference.Gone || effects[origin.Deleted] != difference.Deleted ||
		effects[origin.Absent]+effects[origin.Gone] < all.Absent {
		c.t.Fatalf("pass %d: %v, %+v, %+v", c.passes, effects, all, difference)
	}
	if after := c.rows(); !slices.Equal(after, rows) {
		c.t.Fatalf("pass %d: a dry run wrote rows: %v, before %v", c.passes, after, rows)
	}
	all.Difference = difference
	return all
}

// rows returns what tells of writes: the numbers of audit events, changes, and
// resources, and the state of the passes.
func (c *cloud) rows() []string {
	rows, err := sqldb.Column[string](c.ctx, c.s.DB, c.s.Pool,
		`SELECT CAST(COUNT(*) AS text) FROM audit_events UNION ALL SELECT CAST(COUNT(*) AS text) FROM changes
		UNION ALL SELECT COALESCE(SUM(revision), 0) || ' ' || COUNT(*) FROM resources UNION ALL SELECT CAST(COUNT(*) AS text) FROM resource_types
		UNION ALL SELECT COALESCE(SUM(absent), 0) || ' ' || COUNT(missed_by) FROM resource_origins UNION ALL SELECT COALESCE(pass, '') FROM syncs`)
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

// expire ends the time of a pass whose writer was killed: its own end, which
// says that it did not read everything, does so.
func (c *cloud) expire(scope origin.Scope) {
	_, err := c.s.EndSync(c.ctx, origin.End{Origin: scope.Origin, Region: scope.Region, Kind: scope.Kind,
		Pass: storetest.UUID(5000 + c.passes), Failure: new("killed")})
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
		if !seen[id] && !is.gone && is.absent < 2 && id > *p.Range.After &&
			(p.Range.Through == nil || id <= *p.Range.Through) {
			is.absent++
		}
	}
}

// end ends a pass, and compares its result with the model, and with a dry run
// unless the difference is nil.
func (c *cloud) end(scope origin.Scope, pass string, reading origin.Reading, d *origin.Difference) {
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
			if is.gone { // the delay has ended
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
	got, err := c.s.EndSync(c.ctx, origin.End{Origin: scope.Origin, Region: scope.Region, Kind: scope.Kind, Pass: pass,
		Reading: reading, Limits: limits, Delay: origin.DefaultDelay})
	if err != nil || got != want {
		c.t.Fatalf("pass %d, %+v, %+v: %+v, want %+v: %v", c.passes, reading, limits, got, want, err)
	}
	c.endsAs(d, present, reading, limits, got)
}

// endsAs compares the end of a pass with the difference of a dry run, unless that
// is nil.
func (c *cloud) endsAs(d *origin.Difference, present int, reading origin.Reading,
	limits origin.Limits, got origin.Ended) {
	if d == nil {
		return
	}
	want := origin.Ended{Gone: reading.Gone(d.Present, d.Gone, limits), Deleted: d.Deleted}
	if reading.ProvesAbsence() {
		want.Refused = d.Gone - want.Gone
	}
	if got != want || reading.ProvesAbsence() && d.Present != present {
		c.t.Fatalf("pass %d, %+v, %+v: %+v, want as in the dry run %+v", c.passes, reading, limits, got, d)
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
		c.t.Fatalf("pass %d: %d resources, %d origins, want %d: %v", c.passes,
			len(ids), len(origins), len(c.model), err)
	}
	got := c.found(ids, items)
	for _, one := range found.Items {
		from := origins[one.ID]
		is := c.model[from.ForeignID]
		if is.uuid == "" {
			is.uuid = one.UUID
		}
		shown := origin.Thing{ForeignID: from.ForeignID, Name: one.Name,
			ProjectID: one.ProjectID, Visibility: one.Visibility}
		want := origin.Thing{ForeignID: from.ForeignID, Name: is.thing.Name,
			ProjectID: is.thing.ProjectID, Visibility: is.thing.Visibility}
		if one.UUID != is.uuid || !reflect.DeepEqual(shown, want) || (from.GoneAt != nil) != is.gone ||
			!maps.Equal(got[one.ID], is.items()) {
			c.t.Fatalf("pass %d: %+v, %v, %+v, want %+v", c.passes, one, got[one.ID], from, is)
		}
	}
}

// found returns the metadata and capabilities of resources, as items does.
func (c *cloud) found(ids []int64, items map[int64][]*resource.MetadataItem) map[int64]map[string]string {
	values, err := c.s.CapabilitiesOf(c.ctx, ids, true)
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[int64]map[string]string{}
	for _, id := range ids {
		all[id] = map[string]string{}
		for _, item := range items[id] {
			all[id][item.Key] = fmt.Sprint(item.Value, item.UserModifiable)
		}
		for _, value := range values[id] {
			all[id]["capability "+value.Name] = value.Value
		}
	}
	return all
}

// counted compares the stored numbers of resources with each value with the values.
func (c *cloud) counted() {
	wrong, err := sqldb.Column[string](c.ctx, c.s.DB, c.s.Pool,
		`SELECT COALESCE(n.value, m.value) || ' ' || COALESCE(n.resource_count, 0)
		FROM (SELECT capability_id, value, COUNT(*) AS has FROM capability_members GROUP BY capability_id, value) m
		FULL JOIN capability_counts n ON n.capability_id = m.capability_id AND n.value = m.value WHERE COALESCE(n.resource_count, 0) <> COALESCE(m.has, 0)`)
	if err != nil || len(wrong) > 0 {
		c.t.Fatalf("pass %d: counts of values: %v, %v", c.passes, wrong, err)
	}
}

// items returns the metadata and capabilities that the resource of a thing must have.
func (is *synced) items() map[string]string {
	items := map[string]string{}
	for _, one := range is.thing.Capabilities {
		items["capability "+one.Key] = one.Value
	}
	if is.own != "" {
		items["capability own"] = is.own
	}
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
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		c := &cloud{Rand: rand.New(rand.NewPCG(soak.Seed(t), 28)), t: t, ctx: ctx, s: s,
			things: map[string]origin.Thing{}, model: map[string]*synced{}}
		for range soak.Count(t, "CADASTRE_SOAK_PASSES", 300) {
			c.change()
			c.pass()
			c.compare()
			c.counted()
			c.annotate()
		}
		if c.passes < 10 || len(c.model) == 0 {
			t.Errorf("%d passes, %d things", c.passes, len(c.model))
		}
	})
}

// images is a page with all images of another system, of a pass.
func images(pass int) origin.Page {
	p := origin.Page{Origin: "openstack", Region: "one", Kind: "images", Pass: storetest.UUID(pass),
		ResourceType: "OS::Glance::Image", Range: new(origin.Range)}
	for i := range 20 {
		p.Resources = append(p.Resources,
			origin.Thing{ForeignID: storetest.UUID(100 + i), Name: "image", ProjectID: "p", Visibility: access.Public,
				Metadata: []metadef.KeyValue{{Key: "os_distro", Value: "debian"}}})
	}
	return p
}

// events returns the number of audit events.
func events(ctx context.Context, t *testing.T, s *store.Store) int64 {
	t.Helper()
	events, err := sqldb.Column[int64](ctx, s.DB, s.Pool, `SELECT COUNT(*) FROM audit_events`)
	if err != nil {
		t.Fatal(err)
	}
	return events[0]
}

// sends sends a page, and compares its counts.
func sends(ctx context.Context, t *testing.T, s *store.Store, p origin.Page, want origin.Counts) {
	t.Helper()
	if counts, err := s.SyncResources(ctx, p); err != nil || counts != want {
		t.Fatalf("%+v, %v", counts, err)
	}
}

// TestAPageWithoutChangesWritesNothing syncs the same things again, and counts
// audit events.
func TestAPageWithoutChangesWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleService}})
		sends(ctx, t, s, images(1), origin.Counts{Created: 20})
		before := events(ctx, t, s)
		sends(ctx, t, s, images(1), origin.Counts{Unchanged: 20})
		if after := events(ctx, t, s); after != before {
			t.Errorf("%d audit events more", after-before)
		}
		if _, err := s.SyncResources(ctx, images(2)); !errors.Is(err, problem.ErrConcurrentUpdate) {
			t.Errorf("a second pass at the same time: %v", err)
		}
	})
}

// TestAPassWithoutChangesHasNoEvent makes two passes over the same things. The
// second one changes only the time of the last pass.
func TestAPassWithoutChangesHasNoEvent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleService}})
		end := func(pass int) {
			t.Helper()
			_, err := s.EndSync(ctx, origin.End{Origin: "openstack", Region: "one", Kind: "images",
				Pass: storetest.UUID(pass), Reading: origin.Reading{Complete: true, Seen: 20}})
			if err != nil {
				t.Fatal(err)
			}
		}
		sends(ctx, t, s, images(1), origin.Counts{Created: 20})
		end(1)
		before, eventsBefore := syncState(ctx, t, s), events(ctx, t, s)
		hold := images(2)
		hold.Resources, hold.Range = nil, nil
		sends(ctx, t, s, hold, origin.Counts{})
		if held := syncState(ctx, t, s); !held.Running || before.Running {
			t.Errorf("a pass begins: %+v, %+v", held, before)
		}
		sends(ctx, t, s, images(2), origin.Counts{Unchanged: 20})
		end(2)
		if after := events(ctx, t, s); after != eventsBefore {
			t.Errorf("a pass without changes has %d audit events", after-eventsBefore)
		}
		if after := syncState(ctx, t, s); !after.CompletedAt.After(*before.CompletedAt) || after.Running {
			t.Errorf("a pass without changes: %+v, before %+v", after, before)
		}
	})
}

// syncState returns the state of the only sync.
func syncState(ctx context.Context, t *testing.T, s *store.Store) *origin.State {
	t.Helper()
	states, err := s.Syncs(ctx)
	if err != nil || len(states) != 1 {
		t.Fatalf("%v, %v", states, err)
	}
	return states[0]
}

// TestAPassTakesOverAfterAMinute has two passes over one kind. The second one
// writes once the first has written nothing for a minute, and the first is then
// refused.
func TestAPassTakesOverAfterAMinute(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		begin := time.Now()
		var passed atomic.Int64 // tasks of the store read the clock, too
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Now: func() time.Time { return begin.Add(time.Duration(passed.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		wait := func(time time.Duration) {
			passed.Add(int64(time))
			if !s.Postgres() {
				return
			}
			if err := s.Execute(t.Context(), s.Pool, `UPDATE syncs SET held_until = held_until - make_interval(secs => $1)`,
				time.Seconds()); err != nil { // PostgreSQL has the clock of holds
				t.Error(err)
			}
		}
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleService}})
		write := func(pass int) error {
			_, err := s.SyncResources(ctx, origin.Page{Origin: "openstack", Region: "one", Kind: "images",
				Pass: storetest.UUID(pass), ResourceType: "OS::Glance::Image",
				Resources: []origin.Thing{{ForeignID: "a", Name: fmt.Sprint(pass, passed.Load()),
					ProjectID: "p", Visibility: access.Public}}})
			return err
		}
		first := write(1)
		if passed.Add(int64(time.Hour)); s.Postgres() && !errors.Is(write(2), problem.ErrConcurrentUpdate) {
			t.Error("a server whose clock is ahead takes over")
		}
		passed.Add(-int64(time.Hour))
		hold := func(pass int) error {
			_, err := s.SyncResources(ctx, origin.Page{Origin: "openstack", Region: "one", Kind: "images",
				Pass: storetest.UUID(pass), ResourceType: "OS::Nova::Flavor"})
			return err
		}
		for range 3 { // without a change
			if wait(40 * time.Second); hold(1) != nil || !errors.Is(hold(2), problem.ErrConcurrentUpdate) {
				t.Error("the second pass takes over from one that waits")
			}
		}
		if wait(50 * time.Second); first != nil || !errors.Is(write(2), problem.ErrConcurrentUpdate) {
			t.Error("the second pass writes beside the first")
		}
		if wait(12 * time.Second); write(2) != nil || !errors.Is(write(1), problem.ErrConcurrentUpdate) {
			t.Error("the second pass does not take over")
		}
	})
}

// TestAGoneThingStaysOnAServerWithAWrongClock ends a pass on a server whose clock
// is eight days ahead.
func TestAGoneThingStaysOnAServerWithAWrongClock(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	ahead, err := store.Open(t.Context(),
		store.Options{URL: url, Now: func() time.Time { return time.Now().AddDate(0, 0, 8) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ahead.Close() })
	s, ctx := storetest.Open(t, url), storetest.AsAdmin()
	things := []origin.Thing{{ForeignID: "a", Name: "a", ProjectID: "p", Visibility: access.Public}}
	for pass, of := range []*store.Store{s, s, s, ahead} {
		page := origin.Page{Origin: "cloud", Region: "one", Kind: "images", Pass: storetest.UUID(pass + 1),
			ResourceType: "OS::Glance::Image", Resources: things, Range: new(origin.Range)}
		if _, err := of.SyncResources(ctx, page); err != nil {
			t.Fatal(err)
		}
		page.DryRun = true
		if counts, err := of.SyncResources(ctx, page); err != nil || counts.Difference.Deleted != 0 {
			t.Errorf("pass %d would delete: %+v, %v", pass, counts.Difference, err)
		}
		things = nil
		ended, err := of.EndSync(ctx, origin.End{Origin: "cloud", Region: "one", Kind: "images",
			Pass: storetest.UUID(pass + 1), Reading: origin.Reading{Complete: true},
			Limits: origin.Limits{Allow: true}, Delay: origin.DefaultDelay})
		if want := []origin.Ended{{}, {}, {Gone: 1}, {}}[pass]; err != nil || ended != want {
			t.Errorf("pass %d: %+v, %v, want %+v", pass, ended, err, want)
		}
	}
}

// TestASyncLeavesOutWhatIsNotRegistered syncs a capability before and after its
// registration, where names are registered explicitly.
func TestASyncLeavesOutWhatIsNotRegistered(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url,
			Resources: store.ResourceOptions{CapabilityRegistration: resource.RegisterExplicitly}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		ctx := storetest.AsAdmin()
		p := origin.Page{Origin: "openstack", Region: "one", Kind: "hosts",
			Pass: storetest.UUID(1), ResourceType: "physical:host"}
		for i := range 2 {
			p.Resources = append(p.Resources,
				origin.Thing{ForeignID: storetest.UUID(10 + i), Name: "host", ProjectID: "p", Visibility: access.Public,
					Capabilities: []metadef.KeyValue{{Key: "arch", Value: "x86_64"},
						{Key: "rack", Value: fmt.Sprint(i)}}})
		}
		register := func(name string) {
			if _, err := s.CreateCapability(ctx, p.ResourceType, name, nil); err != nil {
				t.Fatal(err)
			}
		}
		register("arch")
		sends(ctx, t, s, p, origin.Counts{Created: 2})
		sends(ctx, t, s, p, origin.Counts{Unchanged: 2})
		register("rack")
		sends(ctx, t, s, p, origin.Counts{Updated: 2})
		sends(ctx, t, s, p, origin.Counts{Unchanged: 2})
		counts, err := sqldb.Column[string](ctx, s.DB, s.Pool,
			`SELECT value || ' ' || resource_count FROM capability_counts ORDER BY value`)
		if want := []string{"0 1", "1 1", "x86_64 2"}; err != nil || !slices.Equal(counts, want) {
			t.Errorf("%v, %v, want %v", counts, err, want)
		}
	})
}

// TestASyncTakesNoUUIDOfAnother creates things whose ids are uuids of resources
// that people made, and things of equal ids in two regions.
func TestASyncTakesNoUUIDOfAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(),
			access.Viewer{UserID: "sync", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		own := storetest.UUID(7)
		people := store.Content{Resources: []store.ResourceRecord{{UUID: own, Type: "OS::Nova::Server", Name: "own",
			ProjectID: "p", Visibility: access.Public}}}
		if err := s.FillEmpty(ctx, people); err != nil {
			t.Fatal(err)
		}
		for i, region := range []string{"one", "two"} {
			counts, err := s.SyncResources(ctx, origin.Page{Origin: "openstack", Region: region, Kind: "servers",
				Pass: storetest.UUID(1), ResourceType: "OS::Nova::Server",
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
