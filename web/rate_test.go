package web

import (
	"testing"
	"time"
)

// TestGuessingIsAsSlowAsItsPriceSays guesses a token each millisecond for ten
// seconds at the default rate: 51 points each.
func TestGuessingIsAsSlowAsItsPriceSays(t *testing.T) {
	t.Parallel()
	points := DefaultLimits().AddressPoints
	b := newBuckets(points)
	start, accepted := time.Now(), 0
	for i := range 10_000 {
		now := start.Add(time.Duration(i) * time.Millisecond)
		if b.take("192.0.2.1", 1, now) == nil {
			accepted++
			b.charge("192.0.2.1", refusedPoints, now)
		}
	}
	if paid := int(14*points)/(1+refusedPoints) + 1; accepted > paid {
		t.Errorf("%d guesses were accepted, %d are paid for", accepted, paid)
	}
	if refused := b.take("192.0.2.1", 1, start.Add(11*time.Second)); refused != nil {
		t.Errorf("a second later: %+v", refused)
	}
}
