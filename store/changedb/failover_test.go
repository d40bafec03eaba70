package changedb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// branch creates traits and returns the position after each.
func branch(t *testing.T, s *store.Store, prefix string, count int) (after []change.Position) {
	t.Helper()
	ctx := storetest.AsAdmin()
	for n := range count {
		if _, err := s.CreateTrait(ctx, fmt.Sprintf("CUSTOM_%s_%d", prefix, n)); err != nil {
			t.Fatal(err)
		}
		latest, err := s.Latest(ctx, change.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if latest, err = s.PositionOf(s.Cursor(latest)); err != nil {
			t.Fatal(err)
		}
		after = append(after, latest)
	}
	return after
}

// TestACursorOfALostBranchIsRefused fails over to a standby that lacks changes.
// The new primary gives their ids away. Cursors of these changes are refused, by
// the server that made them and by others. All other cursors, and streams that
// ran meanwhile, continue with each change of the new primary.
func TestACursorOfALostBranchIsRefused(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	s := storetest.Open(t, pair.URL)
	ctx, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, 2*time.Minute))
	defer cancel()
	kept := branch(t, s, "KEPT", 5)
	pair.Level(t)
	ofOne, reader := s.Follow(change.Filter{Keys: []string{"CUSTOM_NEW_1"}}, kept[4]),
		s.Follow(change.Filter{}, kept[4])
	for _, one := range []*store.Following{ofOne, reader} {
		defer one.Stop()
		if _, err := one.Next(ctx, 10); err != nil {
			t.Fatal(err)
		}
	}
	pair.Part(t)
	lost := branch(t, s, "LOST", 40)
	storetest.Within(t, 20*time.Second, "the reader has lost changes", func() bool {
		changes, err := reader.Next(ctx, 1000)
		return err == nil && len(changes) > 0
	})
	pair.Promote(t)
	pair.Stop(t)
	other := storetest.Open(t, pair.Standby)
	fresh := branch(t, other, "NEW", 60)
	if fresh[59].ID <= lost[39].ID {
		t.Fatalf("the new primary has not passed the lost ids: %d, %d", fresh[59].ID, lost[39].ID)
	}
	var want []string
	for n := range 60 {
		want = append(want, fmt.Sprintf("Trait CUSTOM_NEW_%d CREATED", n))
	}
	storetest.Within(t, 60*time.Second, "the server follows the new primary", func() bool {
		return s.Ready(ctx) == nil
	})
	for _, of := range []*store.Store{s, other} {
		for n, position := range kept {
			got, _ := all(t, ctx, of, position, change.Filter{})
			if before := 4 - n; len(got) < before || !slices.Equal(got[before:], want) {
				t.Errorf("after %d: %v", n, got)
			}
		}
		for n, position := range lost {
			following := of.Follow(change.Filter{}, position)
			_, err := following.Next(ctx, 10)
			following.Stop()
			_, _, failed := of.Changes(ctx, change.Filter{}, position, 10)
			if !errors.Is(err, problem.ErrInvalidInput) || !errors.Is(failed, problem.ErrInvalidInput) {
				t.Errorf("the lost cursor %d is resumed: %v, %v", n, err, failed)
			}
		}
	}
	if got := follows(ctx, ofOne, 1); !slices.Equal(got, want[1:2]) {
		t.Errorf("a stream of one key got %v", got)
	}
	if got := follows(ctx, reader, 1); len(got) > 0 {
		t.Errorf("a stream at a lost change goes on: %v", got)
	}
}

// follows reads some changes of a stream, or fewer if it ends.
func follows(ctx context.Context, of *store.Following, count int) (got []string) {
	for len(got) < count && ctx.Err() == nil {
		changes, err := of.Next(ctx, 1000)
		if errors.Is(err, problem.ErrInvalidInput) {
			return got
		}
		for _, one := range changes {
			got = append(got, words(one))
		}
		if err == nil && len(changes) == 0 {
			_ = of.Wait(ctx) // ends with the context, which the loop asks
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return got
}
