package placementdb_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAFormerPrimaryIsThePast promotes a standby while the primary still runs and
// the server has connections to it. From the first connection to the new primary
// on, no read, write or world is of the old primary, although that has later
// commits. The connection that listens there moves to the new primary.
func TestAFormerPrimaryIsThePast(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	s := storetest.Open(t, pair.URL)
	ctx := storetest.AsAdmin()
	if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	storetest.Within(t, 10*time.Second, "the server hears itself", s.Listening)
	pair.Level(t)
	pair.Part(t)
	for n := range 60 {
		if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: fmt.Sprint("lost-", n)}); err != nil {
			t.Fatal(err)
		}
	}
	pair.Promote(t)
	other := storetest.Open(t, pair.Standby) // the truth
	if _, _, err := other.CreateResourceProvider(ctx, placement.NewProvider{Name: "new"}); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	for range 8 { // more connections than are open: the next ones are to the new primary
		reading.Go(func() { _, _ = s.WorldDifference(ctx) })
	}
	reading.Wait()
	storetest.Within(t, 30*time.Second, "the world of the new primary", func() bool {
		difference, err := s.WorldDifference(ctx)
		return err == nil && difference == "" && s.Ready(ctx) == nil
	})
	storetest.Within(t, 20*time.Second, "the server listens to the new primary", s.Listening)
	for n := range 40 {
		_, _ = s.CreateTrait(ctx, fmt.Sprint("CUSTOM_AFTER_", n)) // may be refused
	}
	former := storetest.Database(t, pair.Primary)
	if found := storetest.Rows(t, former, "SELECT name FROM traits WHERE name LIKE 'CUSTOM_AFTER%'"); len(found) > 0 {
		t.Errorf("the former primary has %v", found)
	}
}

// TestAFormerPrimaryBeforeThePrimaryIsPassed lets a former primary run on as the
// first of two hosts. A server that starts then writes on the new primary alone.
func TestAFormerPrimaryBeforeThePrimaryIsPassed(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	ctx := storetest.AsAdmin()
	if _, err := storetest.Open(t, pair.Primary).CreateTrait(ctx, "CUSTOM_BEFORE"); err != nil {
		t.Fatal(err)
	}
	pair.Level(t)
	pair.Part(t)
	pair.Promote(t)
	both, err := url.Parse(pair.Primary)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := url.Parse(pair.Standby)
	if err != nil {
		t.Fatal(err)
	}
	both.Host += "," + standby.Host
	starting := storetest.Open(t, both.String())
	for n := range 20 {
		if _, err := starting.CreateTrait(ctx, fmt.Sprint("CUSTOM_AFTER_", n)); err != nil {
			t.Fatal(err)
		}
	}
	former := storetest.Database(t, pair.Primary)
	if found := storetest.Rows(t, former, "SELECT name FROM traits WHERE name LIKE 'CUSTOM_AFTER%'"); len(found) > 0 {
		t.Errorf("the former primary has %v", found)
	}
	if difference, err := starting.WorldDifference(ctx); err != nil || difference != "" {
		t.Errorf("the world differs: %s, %v", difference, err)
	}
}
