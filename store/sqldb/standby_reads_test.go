package sqldb_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hasTrait reports whether an operation finds a trait, and whether a standby
// answered it.
func hasTrait(ctx context.Context, s *store.Store, how store.How, name string) (found, spread bool, err error) {
	ctx, reading := s.WithReading(ctx, how)
	defer reading.End()
	reading.Spread()
	err = s.Query(ctx, s.Pool, "SELECT EXISTS (SELECT 1 FROM traits WHERE name = $1)", func(rows *sql.Rows) error {
		return rows.Scan(&found)
	}, name)
	return found, reading.IsSpread(), err
}

// delayReplay stops and resumes the replay of a standby until the context ends.
func delayReplay(ctx context.Context, t *testing.T, standby *sql.DB) {
	chance := rand.New(rand.NewPCG(soak.Seed(t), 1))
	for ctx.Err() == nil {
		for _, call := range []string{"pg_wal_replay_pause()", "pg_wal_replay_resume()"} {
			if _, err := standby.Exec("SELECT " + call); err != nil {
				t.Error(err)
			}
			pause.For(ctx, time.Duration(chance.IntN(20))*time.Millisecond)
		}
	}
}

// checkSession writes a trait on one of two servers, and reads it on the one
// with a standby. After a write on the other server, it sends the position.
func checkSession(t *testing.T, s, other *store.Store, chance *rand.Rand, name string) {
	by, after := s, ""
	if chance.IntN(2) == 0 {
		by = other
	}
	if _, err := by.CreateTrait(storetest.AsAdmin(), name); err != nil {
		t.Error(err)
	}
	if by == other {
		after = other.Position()
	}
	ctx, err := store.After(storetest.AsAdmin(), after)
	if err != nil {
		t.Error(err)
		return
	}
	pause.For(ctx, time.Duration(chance.IntN(5))*time.Millisecond)
	how := []store.How{store.Each, store.AtOnce}[chance.IntN(2)]
	if found, spread, err := hasTrait(ctx, s, how, name); err != nil || !found {
		t.Errorf("%s, written by the other server: %t, read on the standby: %t, is missing, %v", name, by == other,
			spread, err)
	}
}

// TestAStandbyShowsWhatItsReaderWrote lets clients write on two servers and read
// on the one with a standby, whose replay stops and resumes meanwhile.
func TestAStandbyShowsWhatItsReaderWrote(t *testing.T) {
	t.Parallel()
	const clients, writes, least = 4, 300, 20
	pair := storetest.PostgresPair(t)
	other, s := storetest.Open(t, pair.Primary), pair.OpenSpread(t, store.Options{})
	reads := func() store.StandbyReads {
		for _, of := range s.StandbyReads() {
			return of
		}
		return store.StandbyReads{}
	}
	ctx, stop := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, time.Minute))
	var replay, working sync.WaitGroup
	replay.Go(func() { delayReplay(ctx, t, storetest.Database(t, pair.Standby)) })
	for client := range clients {
		working.Go(func() {
			chance := rand.New(rand.NewPCG(soak.Seed(t), uint64(100+client)))
			isEnough := func() bool { return reads().Read >= least && reads().Behind >= least }
			for i := 0; i < soak.Rounds(writes) || !isEnough() && ctx.Err() == nil; i++ {
				checkSession(t, s, other, chance, fmt.Sprintf("CUSTOM_%d_%d", client, i))
			}
		})
	}
	working.Wait()
	stop()
	replay.Wait()
	if t.Logf("%+v", reads()); reads().Read < least || reads().Behind < least {
		t.Errorf("the standby read and was behind too rarely: %+v", reads())
	}
}

// TestAStandbyIsLeft cuts a standby from its primary, promotes it, and stops it.
// The primary answers then, and other connections to the standby are not used.
func TestAStandbyIsLeft(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresPair(t)
	s := pair.OpenSpread(t, store.Options{})
	if len(s.Pools()) != 4 {
		t.Errorf("the pools are %v", s.Pools())
	}
	finds := func(name string) {
		t.Helper()
		found, spread, err := hasTrait(storetest.AsAdmin(), s, store.Each, name)
		if err != nil || !found || spread {
			t.Errorf("%s: found %t, on the standby %t, %v", name, found, spread, err)
		}
	}
	create := func(name string) {
		t.Helper()
		if _, err := s.CreateTrait(storetest.AsAdmin(), name); err != nil {
			t.Fatal(err)
		}
	}
	create("CUSTOM_BEFORE")
	storetest.CheckSpread(t, s)
	pair.Part(t)
	create("CUSTOM_CUT")
	finds("CUSTOM_CUT")
	pair.Promote(t)
	// Transactions of both timelines have the same numbers.
	for range 50 {
		if _, err := storetest.Database(t, pair.Standby).Exec("SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
	}
	finds("CUSTOM_CUT")
	pair.StopStandby(t)
	finds("CUSTOM_CUT")
}

// TestAStandbyOfAnotherTimelineIsLeft promotes a standby while the primary still
// runs. A standby that follows the promoted one has more transactions than the
// primary, but lacks the last one of the primary.
func TestAStandbyOfAnotherTimelineIsLeft(t *testing.T) {
	t.Parallel()
	pair := storetest.PostgresChain(t)
	s := pair.OpenSpread(t, store.Options{})
	pair.Part(t)
	if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_CUT"); err != nil {
		t.Fatal(err)
	}
	pair.Promote(t)
	for i := range 50 {
		insert := fmt.Sprintf("INSERT INTO traits (name, standard, created_at, updated_at) VALUES ('CUSTOM_NEW_%d', false, now(), now())", i)
		if _, err := pair.Promoted(t).Exec(insert); err != nil {
			t.Fatal(err)
		}
	}
	last := storetest.Database(t, pair.Standby)
	storetest.Within(t, 20*time.Second, "the last standby follows", func() bool {
		var rows int
		err := last.QueryRow("SELECT count(*) FROM traits WHERE name LIKE 'CUSTOM_NEW_%'").Scan(&rows)
		return err == nil && rows == 50
	})
	found, spread, err := hasTrait(storetest.AsAdmin(), s, store.Each, "CUSTOM_CUT")
	if err != nil || !found || spread {
		t.Errorf("found %t, on the standby %t, %v", found, spread, err)
	}
}

func TestReadURLs(t *testing.T) {
	t.Parallel()
	const primary = "postgres://a@one/cadastre"
	for _, of := range []struct {
		database, read string
		good           bool
	}{
		{primary, "", true},
		{"sqlite://cadastre.db", "", true},
		{primary, "postgres://a@two:5433,three/cadastre", true},
		{primary, "postgres://a@two/cadastre?sslmode=some", false},
		{primary, "two:5432", false},
		{primary, "sqlite://cadastre.db", false},
		{"sqlite://cadastre.db", primary, false},
	} {
		if err := store.CheckFurtherURL(of.database, of.read); (err == nil) != of.good {
			t.Errorf("%s for %s: %v", of.read, of.database, err)
		}
	}
}
