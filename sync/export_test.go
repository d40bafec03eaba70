package sync

import "time"

// HoldEvery sets the time between two requests that keep other passes away.
func (p *Pass) HoldEvery(time time.Duration) { p.holdTime = time }
