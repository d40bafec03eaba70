package changedb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestACursorIsRefusedOrMissesNothing deletes old changes. Each earlier cursor
// must either be refused with advice, or be followed by every later change.
func TestACursorIsRefusedOrMissesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		ctx, filter := as(t, "p1", access.RoleMember), change.Filter{Kinds: []change.Kind{change.Trait}}
		_, start := all(t, ctx, s, change.Position{}, filter)
		const count, aged = 12, 7
		for n := range count {
			if _, err := s.CreateTrait(storetest.AsAdmin(), fmt.Sprint("CUSTOM_AGED_", n)); err != nil {
				t.Fatal(err)
			}
		}
		changes, more, err := s.Changes(ctx, filter, start, 100)
		if err != nil || more || len(changes) != count {
			t.Fatalf("%d changes, %v, %v", len(changes), more, err)
		}
		old := s.Now().Add(-s.KeepsChanges() - time.Hour).UTC()
		if _, err := storetest.Database(t, url).
			Exec(`UPDATE changes SET created_at = $1 WHERE id <= $2`, old, changes[aged-1].ID); err != nil {
			t.Fatal(err)
		}
		for _, c := range changes[:aged] {
			c.At = old
		}
		if err := s.PruneChanges(ctx); err != nil {
			t.Fatal(err)
		}
		left := wordsOf(changes[aged:])
		if read, _ := all(t, ctx, s, change.Position{}, filter); !slices.Equal(read, left) {
			t.Errorf("from the oldest on there are %v, want %v", read, left)
		}
		for i, c := range changes {
			position, err := s.PositionOf(s.Cursor(c.Position()))
			following := s.Follow(filter, c.Position())
			_, followed := following.Next(ctx, 100)
			following.Stop()
			if i < aged {
				isTooOld(t, err)
				isTooOld(t, followed)
				continue
			}
			if err != nil || followed != nil {
				t.Errorf("a cursor that is kept: %v, %v", err, followed)
			}
			if read, _ := all(t, ctx, s, position, filter); !slices.Equal(read, left[i-aged+1:]) {
				t.Errorf("behind change %d there are %v", i, read)
			}
		}
	})
}

// isTooOld checks that an error explains how to continue.
func isTooOld(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, problem.ErrInvalidInput) ||
		!strings.Contains(err.Error(), `read the current state, then continue from the cursor "latest"`) {
		t.Errorf("a cursor that is too old: %v", err)
	}
}

func wordsOf(changes []*change.Change) (all []string) {
	for _, c := range changes {
		all = append(all, words(c))
	}
	return all
}
