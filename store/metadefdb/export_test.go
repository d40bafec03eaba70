package metadefdb

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Memory is what a store has in memory of definitions, for tests that take it back
// to what it was.
type Memory struct {
	held *resident.State[definitions]
}

// Memory returns what the store has in memory.
func (s *MetadefStore) Memory() Memory { return Memory{s.memory.State()} }

// Remember gives the store back what it had in memory: it is behind, and knows.
func (s *MetadefStore) Remember(m Memory) { s.memory.Replace(m.held) }

// Mistake has the store take what it had in memory for what it has now: it is
// behind, and does not know.
func (s *MetadefStore) Mistake(m Memory) {
	s.memory.Replace(&resident.State[definitions]{Value: m.held.Value, UpTo: s.memory.State().UpTo})
}

// KeepsDefinitions reports whether the store has definitions in memory.
func (s *MetadefStore) KeepsDefinitions() bool { return s.memory.Held() != nil }

// IsMemory reports whether the store has in memory what it had then.
func (s *MetadefStore) IsMemory(m Memory) bool {
	return s.memory.Held() == m.held.Value
}

// MeasureDefinitions loads the definitions once more, and returns how much more
// memory is used then, what was supposed, and how many properties there are.
func (s *MetadefStore) MeasureDefinitions(b *testing.B) (used, supposed, properties int64) {
	b.Helper()
	var before, after runtime.MemStats
	s.schemas = newSchemas()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var held *definitions
	err := s.ReadAt(context.Background(), func(on sqldb.Conn, _ sqldb.Snapshot) (err error) {
		held, err = s.readAll(context.Background(), on, math.MaxInt64)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	for _, in := range held.namespaces {
		properties += int64(len(in.properties))
	}
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), held.bytes, properties
}

// HoldCatchUps has all catch ups of definitions wait until the function is called
// that it returns: that brings them forward once, calls then, and lets the others
// go on.
func (s *MetadefStore) HoldCatchUps(t *testing.T) (catchUp func(then func())) {
	t.Helper()
	isHeld, release := make(chan struct{}), make(chan func())
	ended := make(chan error)
	go func() {
		ended <- s.memory.Exclusively(context.Background(), func() error {
			close(isHeld)
			then := <-release
			err := s.memory.Forward(context.Background())
			then()
			return err
		})
	}()
	<-isHeld
	return func(then func()) {
		t.Helper()
		release <- then
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
