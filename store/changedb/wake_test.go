package changedb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestOnlyWhatMattersWakes has two followers: of one resource, and of all
// resources as a member of another project. Changes that they do not follow or
// may not see must not wake them. When woken, they must get the change.
func TestOnlyWhatMattersWakes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		create := func(n int, visibility access.Visibility) {
			t.Helper()
			project, uuid := "p1", storetest.UUID(n)
			if _, err := s.CreateResource(storetest.AsAdmin(),
				resource.Input{UUID: &uuid, Type: "physical:host", Name: fmt.Sprint("r", n), ProjectID: &project,
					Visibility: &visibility}); err != nil {
				t.Fatal(err)
			}
		}
		readers := map[string]struct {
			ctx    context.Context
			filter change.Filter
		}{
			"one resource": {as(t, "", access.RoleAdmin),
				change.Filter{Kinds: []change.Kind{change.Resource}, Keys: []string{storetest.UUID(100)}}},
			"of others": {as(t, "p2", access.RoleMember), change.Filter{Kinds: []change.Kind{change.Resource}}},
		}
		following := map[string]*store.Following{}
		for name, r := range readers {
			from, err := s.Latest(r.ctx, r.filter)
			if err != nil {
				t.Fatal(err)
			}
			f := s.Follow(r.filter, from)
			defer f.Stop()
			following[name] = f
		}
		create(100, access.Public)
		for name, f := range following {
			tells(t, readers[name].ctx, name, f, change.Created) // so it has started
			for woken := true; woken; {                          // until there is nothing more to read
				within, cancel := context.WithTimeout(readers[name].ctx, patience.Of(t, 500*time.Millisecond))
				woken = f.Wait(within) == nil
				cancel()
				if changes, err := f.Next(readers[name].ctx, 10); err != nil || len(changes) > 0 {
					t.Fatalf("%s: %v, %v", name, changes, err)
				}
			}
		}
		for n := range 20 { // neither of the two receives these
			create(n, access.Private)
		}
		for name, f := range following {
			within, cancel := context.WithTimeout(readers[name].ctx, 300*time.Millisecond)
			if err := f.Wait(within); err == nil {
				t.Errorf("%s: woken by what does not matter", name)
			}
			cancel()
		}
		touch(t, s, storetest.UUID(100))
		for name, f := range following {
			tells(t, readers[name].ctx, name, f, change.Updated)
		}
	})
}

// touch changes a resource.
func touch(t *testing.T, s *store.Store, uuid string) {
	t.Helper()
	description := "touched"
	if _, err := s.UpdateResource(storetest.AsAdmin(),
		resource.Patch{UUID: uuid, Description: metadef.Change[*string]{Set: true, Value: &description}}); err != nil {
		t.Fatal(err)
	}
}

// tells checks that a Following returns one change of the resource.
func tells(t *testing.T, ctx context.Context, name string, f *store.Following, what change.What) {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, patience.Of(t, 10*time.Second))
	defer cancel()
	for {
		changes, err := f.Next(within, 10)
		if err != nil || len(changes) > 1 {
			t.Fatalf("%s: %v, %v", name, changes, err)
		}
		if len(changes) == 1 {
			if changes[0].Key != storetest.UUID(100) || changes[0].What != what {
				t.Errorf("%s: told %v", name, changes[0])
			}
			return
		}
		if err := f.Wait(within); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
