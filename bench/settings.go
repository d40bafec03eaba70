package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// settingsName is what -works chooses this part by.
const settingsName = "settings of memory and connections"

// trial is a server with other settings than the defaults.
type trial struct {
	name string   // what is set
	env  []string // of the process
	args []string // flags of `serve`
}

// trials returns what is tried. The first is what a server does by itself.
func trials() []trial {
	all := []trial{{name: "defaults"}}
	for _, percent := range []int{50, 100, 200, 400, 800} {
		all = append(all, trial{name: fmt.Sprintf("GOGC %d", percent), env: []string{fmt.Sprintf("GOGC=%d", percent)}})
	}
	for _, limit := range []string{"128MiB", "256MiB"} {
		all = append(all, trial{name: "GOMEMLIMIT " + limit, env: []string{"GOMEMLIMIT=" + limit}})
	}
	for _, connections := range []int{4, 8, 16, 32, 64} {
		all = append(all, trial{name: fmt.Sprintf("%d connections", connections), args: []string{"--database-connections", fmt.Sprint(connections)}})
	}
	return all
}

// tried is what was measured of a mixed load under some settings.
type tried struct {
	Database string `json:"database"`
	Server   string `json:"server"`
	Settings string `json:"settings"`
	sharedRow
	// Resident is the most that the process held, in bytes.
	Resident float64 `json:"residentBytes"`
	// Cycles is how often garbage was collected, on average.
	Cycles float64 `json:"collectionsPerSecond"`
}

// mixedWorks are the works of the mixed load, of which each client does the next
// one: reads of all kinds, and claims that are taken back.
func mixedWorks() []string {
	return []string{
		"20 namespaces with properties, 32 clients", "candidates, first 10", "100 resources with metadata", "50 resources by a pair, 32 clients",
		"candidates, first 1000, full answer", "metadata dialog", "viewer, 32 clients",
	}
}

// tryAll measures the mixed load under all settings, in rounds, on the large world of
// the last binary on each database.
func (b *bench) tryAll(ctx context.Context) ([]tried, error) {
	if !b.isChosen(settingsName) {
		return nil, nil
	}
	var all []tried
	for _, t := range b.targets {
		if t.server == nil || t.world != b.large || t.name != b.binaries[len(b.binaries)-1].name {
			continue
		}
		of, err := b.tryOn(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t, settingsName, err)
		}
		all = append(all, of...)
		if _, err := fmt.Fprintf(b.progress, "%s: %d settings\n", t, len(of)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// tryOn measures all settings on a target, which has its own server again
// afterwards.
func (b *bench) tryOn(ctx context.Context, t *target) ([]tried, error) {
	if err := t.server.stop(); err != nil {
		return nil, err
	}
	s := &sharedBench{sharing: b.sharing, bench: b, on: t}
	of := b.sharing.trials
	all := make([]tried, len(of))
	for round := range b.sharing.tried {
		for i := range of {
			i = (i + round*len(of)/b.sharing.tried) % len(of)
			one := &all[i]
			one.Database, one.Server, one.Settings = t.database, t.name, of[i].name
			if err := s.try(ctx, of[i], one); err != nil {
				return nil, fmt.Errorf("%s: %w", of[i].name, err)
			}
		}
	}
	for i := range all {
		all[i].sharedRow = all[i].closed()
		all[i].Cycles /= float64(b.sharing.tried)
	}
	server, err := startServer(ctx, b.folder, t.file, t.program, t.url)
	if err == nil {
		t.serve(server)
	}
	return all, err
}

// try measures a round of the mixed load under some settings.
func (s *sharedBench) try(ctx context.Context, of trial, into *tried) (err error) {
	server, err := startServerWith(ctx, s.bench.folder, s.on.file+"-tried", s.on.program, s.on.url, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	on := *s.on
	on.serve(server)
	work := s.mixed()
	if _, err := s.send(ctx, []*target{&on}, s.clients, s.each/4, work, nil); err != nil {
		return err
	}
	before, err := server.metric(ctx, "go_gc_duration_seconds_count")
	if err != nil {
		return err
	}
	watched, done := make(chan error, 1), make(chan struct{})
	go func() { watched <- server.watchResident(ctx, done, &into.Resident) }()
	_, err = s.send(ctx, []*target{&on}, s.clients, s.each/2, work, &into.sharedRow)
	close(done)
	if err := errors.Join(err, <-watched); err != nil {
		return err
	}
	after, err := server.metric(ctx, "go_gc_duration_seconds_count")
	into.Cycles += (after - before) / (s.each / 2).Seconds()
	return err
}

// mixed returns the mixed load: the works in turn, and a claim with what takes it
// back after each round of them.
func (s *sharedBench) mixed() sharedWork {
	var reads []request
	for _, work := range works() {
		if slices.Contains(mixedWorks(), work.name) {
			reads = append(reads, work.request(s.on.world, 0))
		}
	}
	return sharedWork{"mixed", func() []request {
		n := int(s.next.Add(1))
		return append(s.pair(n, n, 1), reads...)
	}}
}

// watchResident keeps the most that the process holds, until it is done.
func (s *server) watchResident(ctx context.Context, done <-chan struct{}, most *float64) error {
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(200 * time.Millisecond):
		}
		held, err := s.metric(ctx, "process_resident_memory_bytes")
		if err != nil {
			return err
		}
		*most = max(*most, held)
	}
	return nil
}
