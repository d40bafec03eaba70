package resource

import (
	"time"

	"github.com/cadastre-dev/cadastre/metadef"
)

// WriteRate bounds how many writes of a project are accepted.
type WriteRate struct {
	PerMinute int // 0 is no limit
	Burst     int // how many at once after a pause
}

// TokenBucket holds the writes that a project may make at once; the zero bucket
// is full. It knows no clock: the time comes in.
type TokenBucket struct {
	taken float64
	last  time.Time
}

// Take takes one write. When there is none it says how long to wait.
func (b *TokenBucket) Take(rate WriteRate, now time.Time) (wait time.Duration, ok bool) {
	perSecond := float64(rate.PerMinute) / 60
	if passed := now.Sub(b.last).Seconds(); passed > 0 {
		b.taken = max(0, b.taken-passed*perSecond)
		b.last = now
	}
	if b.taken+1 <= float64(max(1, rate.Burst)) {
		b.taken++
		return 0, true
	}
	missing := b.taken + 1 - float64(max(1, rate.Burst))
	return time.Duration(missing / perSecond * float64(time.Second)), false
}

// Full tells whether nothing is taken, so that the bucket can be forgotten.
func (b *TokenBucket) Full(rate WriteRate, now time.Time) bool {
	return b.taken <= now.Sub(b.last).Seconds()*float64(rate.PerMinute)/60
}

// Limits are what the operator allows; 0 switches a limit off.
type Limits struct {
	MetadataItems int // of one resource
	Writes        WriteRate
}

// DefaultLimits are the limits of a server that is told of none.
func DefaultLimits() Limits {
	return Limits{MetadataItems: metadef.MaxMetadataItems, Writes: WriteRate{PerMinute: 600, Burst: 200}}
}
