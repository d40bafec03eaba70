package sqldb_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestFirstRunsTakeTurns starts several functions together. Each runs, and no two
// first runs overlap. One that is stopped before its turn does not run.
func TestFirstRunsTakeTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	var running, overlaps atomic.Int32
	var ran sync.WaitGroup
	ran.Add(5)
	for range 5 {
		stop := s.Repeat(time.Hour, "a run fails", func(context.Context) error {
			defer ran.Done()
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			time.Sleep(20 * time.Millisecond)
			running.Add(-1)
			return nil
		})
		defer stop()
	}
	ran.Wait()
	if overlaps.Load() != 0 {
		t.Errorf("%d first runs overlap", overlaps.Load())
	}

	held, free := make(chan struct{}), make(chan struct{})
	stopHolder := s.Repeat(time.Hour, "a run fails", func(context.Context) error {
		close(held)
		<-free
		return nil
	})
	<-held
	stop := s.Repeat(time.Hour, "a run fails", func(context.Context) error {
		t.Error("a function ran after it was stopped")
		return nil
	})
	stop()
	close(free)
	stopHolder()
}
