package metadefdb

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Memory is the definitions in memory at some time, so that tests can restore
// them.
type Memory struct {
	held *resident.State[definitions]
}

// Memory returns the definitions that the store has in memory.
func (s *MetadefStore) Memory() Memory { return Memory{s.memory.State()} }

// Remember restores definitions as outdated: the store knows that it is behind.
func (s *MetadefStore) Remember(m Memory) { s.memory.Replace(m.held) }

// Mistake restores definitions as current: the store does not know that it is
// behind.
func (s *MetadefStore) Mistake(m Memory) {
	s.memory.Replace(&resident.State[definitions]{Value: m.held.Value, UpTo: s.memory.State().UpTo})
}

// WithoutCatchUps calls run while no catch up of definitions runs. A catch up
// that begins with a Mistake would keep it.
func (s *MetadefStore) WithoutCatchUps(t *testing.T, run func()) {
	t.Helper()
	if err := s.memory.Exclusively(t.Context(), func() error { run(); return nil }); err != nil {
		t.Error(err)
	}
}

// KeepsDefinitions reports whether the store has definitions in memory.
func (s *MetadefStore) KeepsDefinitions() bool { return s.memory.Held() != nil }

// IsMemory reports whether the store has the definitions of m in memory.
func (s *MetadefStore) IsMemory(m Memory) bool {
	return s.memory.Held() == m.held.Value
}

// MeasureDefinitions loads the definitions once more. It returns the memory
// used, the estimate, and the number of properties.
func (s *MetadefStore) MeasureDefinitions(b *testing.B) (used, supposed, properties int64) {
	b.Helper()
	var before, after runtime.MemStats
	s.schemas = newSchemas()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var held *definitions
	err := s.ReadAt(context.Background(), func(on sqldb.Conn, _ changelog.Snapshot) (err error) {
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

// HoldCatchUps makes all catch-ups of definitions wait until the test calls the
// returned function. That function catches up once, calls then, and releases
// the others.
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
