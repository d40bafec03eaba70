package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestServersOfThePastAreRefused has a process meet servers of one cluster. Two
// minutes after it refused a former primary, it meets another server.
func TestServersOfThePastAreRefused(t *testing.T) {
	t.Parallel()
	const system = 7
	former, standby := identity{1, system, 1}, identity{3, system, 0}
	for name, of := range map[string]struct {
		met     []identity // before a former primary is refused
		answers int64      // the run of a connection that answers meanwhile
		then    identity
		refused bool
	}{
		"no other server answers": {[]identity{former, {2, system, 2}}, 0, former, false},
		"the primary answers":     {[]identity{former, {2, system, 2}}, 2, former, true},
		"a standby alone answers": {[]identity{former, {2, system, 2}}, 0, standby, true},
		"it was a standby":        {[]identity{standby, {3, system, 2}}, 3, former, true},
	} {
		h := new(history)
		for _, one := range of.met {
			if _, err := h.note(one); err != nil {
				t.Errorf("%s: %+v is refused: %v", name, one, err)
			}
		}
		if _, err := h.note(former); !errors.Is(err, errPast) {
			t.Errorf("%s: the former primary is accepted: %v", name, err)
		}
		h.past = h.past.Add(-2 * pastFor)
		h.known(of.answers)
		if _, err := h.note(of.then); errors.Is(err, errPast) != of.refused {
			t.Errorf("%s: %+v is refused: %v, want %t", name, of.then, err, of.refused)
		}
	}
}

// idle connects to nothing.
type idle struct{ driver.Conn }

func (idle) Connect(context.Context) (driver.Conn, error) { return idle{}, nil }
func (idle) Driver() driver.Driver                        { return nil }
func (idle) Close() error                                 { return nil }

// TestTwoPromotionsRetireConnections has two promotions within 30 seconds, and a
// connection after each.
func TestTwoPromotionsRetireConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := sql.OpenDB(idle{})
		defer func() { _ = pool.Close() }()
		h := &history{pools: []*sql.DB{pool}}
		for run := range int64(3) {
			if _, err := h.note(identity{run + 1, 7, run + 1}); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second)
			conn, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			time.Sleep(5 * time.Second)
		}
		time.Sleep(2 * retiredFor)
		if of := pool.Stats(); of.MaxLifetimeClosed != 2 || of.OpenConnections != 1 {
			t.Errorf("%d connections were closed, %d are open", of.MaxLifetimeClosed, of.OpenConnections)
		}
	})
}
