package main

import (
	"context"
	"runtime/debug"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
)

// TestMemoryReturnsWhenItIsNoLongerInUse holds memory while the program is idle
// and returns memory, and then drops it. The program stays idle, and returns
// that memory, too. The test is not parallel: others would collect garbage.
func TestMemoryReturnsWhenItIsNoLongerInUse(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const every, size = 20 * time.Millisecond, 8 * returnBytes
	debug.FreeOSMemory() // so that the memory below is new
	before := memoryInUse().held
	returnMemory(ctx, every)
	answers := [][]byte{make([]byte, size)}
	for i := range answers[0] {
		answers[0][i] = 1
	}
	began := memoryInUse()
	if !patience.Until(t, 10*time.Second, func() bool {
		return memoryInUse().collections >= began.collections+2 // the program tried to return the memory
	}) {
		t.Fatal("memory was never collected")
	}
	answers[0] = nil
	if !patience.Until(t, 20*time.Second, func() bool {
		return memoryInUse().held < before+size/2
	}) {
		t.Errorf("the program holds %d bytes, %d before", memoryInUse().held, before)
	}
}
