package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	// historyEvery is the interval at which a server checks whether the
	// capacity history has the current bucket.
	historyEvery = 30 * time.Second
	// historyTime is the time limit of a sample.
	historyTime = 2 * time.Minute
)

// checkHistory checks the flavors of the capacity history.
func checkHistory(options cli.ServeOptions) error {
	of := options.Named("history-flavors")
	switch flavors := options.HistoryFlavors; {
	case len(flavors) > maxCloudFlavor:
		return fmt.Errorf("%s has %d names, at most %d are allowed", of, len(flavors), maxCloudFlavor)
	case slices.Contains(flavors, ""):
		return fmt.Errorf("%s has an empty name", of)
	}
	return nil
}

// recordHistory adds samples to the capacity history until the caller calls
// stop. Servers of a database check at different times, so that usually one of
// them takes the sample.
func recordHistory(s *store.Store, flavors []string) (stop func()) {
	return s.Repeat(historyEvery, "cannot record the capacity history, will retry", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, historyTime)
		defer cancel()
		at := s.Now()
		isDue, withProjects, err := s.HistoryDue(ctx, at)
		if err != nil || !isDue {
			return err
		}
		ctx = access.WithViewer(ctx, access.Viewer{UserID: "history", Roles: []string{access.RoleService}})
		sample, err := sampleOf(ctx, s, flavors)
		if err != nil {
			return err
		}
		var errProjects error // projects may take too long
		if withProjects {
			errProjects = addProjects(ctx, s, sample)
		}
		_, err = s.RecordHistory(ctx, at, sample)
		return errors.Join(errProjects, err)
	})
}

// sampleOf returns the capacity now, as services see it: from the world in memory
// and the consumers that are held.
func sampleOf(ctx context.Context, s *store.Store, flavors []string) (placement.HistorySample, error) {
	ctx, reading := s.WithReading(store.Searching(ctx), store.AtOnce)
	defer reading.End()
	world, err := s.World(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.HeldUnits(ctx)
	if err != nil {
		return nil, err
	}
	sample := placement.SampleOf(world, held)
	fits, err := graph.FitsNamed(ctx, s, flavors)
	if err != nil {
		return nil, err
	}
	sample.AddFlavors(fits)
	return sample, nil
}

// addProjects adds the use of projects: a sum over all allocations.
func addProjects(ctx context.Context, s *store.Store, sample placement.HistorySample) error {
	usages, err := s.Usages(store.Searching(ctx), placement.UsageFilter{By: placement.UsagesByProject},
		new(page.MaxSize))
	if err != nil {
		return err
	}
	sample.AddProjects(usages, len(usages) == page.MaxSize)
	return nil
}
