package resourcedb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// countingServer is a store with resources in memory, and another one on the
// same connections without.
type countingServer struct {
	kept *store.Store
	read *resourcedb.ResourceStore
}

func newCountingServer(t *testing.T, s *store.Store) countingServer {
	t.Helper()
	if err := s.LoadResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	return countingServer{s, resourcedb.New(s.DB, s.MetadefStore,
		store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone, ResidentBytes: -1})}
}

// counted returns all counts of the resources of a filter as strings, and
// whether each of them took no statement.
func counted(ctx context.Context, t *testing.T, s *resourcedb.ResourceStore, filter resource.Filter,
	wanted []resource.FacetRequest, search string) (said []string, silent []bool) {
	t.Helper()
	add := func(of func(ctx context.Context) (any, error)) {
		ctx, statements := store.CountStatements(ctx)
		answer, err := of(ctx)
		text, marshalErr := json.Marshal(answer)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		said, silent = append(said, fmt.Sprint(string(text), err)), append(silent, err == nil && statements() == 0)
	}
	add(func(ctx context.Context) (any, error) { return s.CountResources(ctx, filter) })
	add(func(ctx context.Context) (any, error) { return s.ExplainResources(ctx, filter) })
	add(func(ctx context.Context) (any, error) {
		return s.Facets(ctx, resource.EveryResource, []int64{0}, filter, wanted)
	})
	add(func(ctx context.Context) (any, error) {
		return s.MetadataFacets(ctx, resource.EveryResource, []int64{0}, filter,
			[]string{"color", "size", "unknown"}, 2)
	})
	add(func(ctx context.Context) (any, error) {
		return s.MetadataKeys(ctx, filter, nil, search, page.Request{First: new(2)})
	})
	add(func(ctx context.Context) (any, error) { return s.CountMetadataKeys(ctx, filter, nil, search) })
	return said, silent
}

// pages returns all pages of a filter in an order, as a string.
func pages(ctx context.Context, s *resourcedb.ResourceStore, filter resource.Filter,
	order page.Order, request page.Request) string {
	said := ""
	for range 100 {
		got, err := s.Resources(ctx, filter, order, request)
		text, _ := json.Marshal(got.Items)
		if said += fmt.Sprintln(string(text), got.Cursors, got.HasMore, err); err != nil || !got.HasMore {
			return said
		}
		if request.Last != nil {
			request.Before = &got.Cursors[0]
		} else {
			request.After = &got.Cursors[len(got.Cursors)-1]
		}
	}
	return said + "without end"
}

// differentPages is difference for the pages of a list. It adds the number of
// times that memory found them to bySets.
func (c countingServer) differentPages(t *testing.T, chance *rand.Rand, viewer access.Viewer,
	filter resource.Filter, bySets *atomic.Int64) string {
	t.Helper()
	ctx, reading := c.kept.WithReading(access.WithViewer(t.Context(), viewer), store.AtOnce)
	defer reading.End()
	reading.Spread()
	order := page.Order{Field: []string{"NAME", "TYPE", "PROJECT", "UPDATED_AT"}[chance.IntN(4)],
		Descending: chance.IntN(2) == 0}
	request := page.Request{First: new(1 + chance.IntN(9))}
	if chance.IntN(2) == 0 {
		request = page.Request{Last: request.First}
	}
	measured, _ := store.Measure(ctx)
	fromMemory, fromDatabase := pages(measured, c.kept.ResourceStore, filter, order, request),
		pages(ctx, c.read, filter, order, request)
	if strings.Contains(strings.Join(store.Decisions(measured), " "), "page by sets") {
		bySets.Add(1)
	}
	if fromMemory != fromDatabase {
		return fmt.Sprintf("pages by %+v under %s\nfrom memory\n%s\nfrom the database\n%s", order,
			describeFilter(filter), fromMemory, fromDatabase)
	}
	return ""
}

// difference compares the answers of memory and the database at one instant. It
// returns "" if they are equal, and adds the number of answers from memory to
// silent.
func (c countingServer) difference(t *testing.T, viewer access.Viewer, filter resource.Filter,
	wanted []resource.FacetRequest, silent *atomic.Int64) string {
	t.Helper()
	ctx, reading := c.kept.WithReading(access.WithViewer(t.Context(), viewer), store.AtOnce)
	defer reading.End()
	reading.Spread()
	fromMemory, isSilent := counted(ctx, t, c.kept.ResourceStore, filter, wanted, "o")
	fromDatabase, _ := counted(ctx, t, c.read, filter, wanted, "o")
	for i, said := range fromMemory {
		if isSilent[i] {
			silent.Add(1)
		}
		if said != fromDatabase[i] {
			return fmt.Sprintf("%d under %s and %s\nfrom memory\n%s\nfrom the database\n%s", i, describeFilter(filter),
				describe(wanted), said, fromDatabase[i])
		}
	}
	return ""
}

func describeFilter(filter resource.Filter) string {
	text, _ := json.Marshal(filter)
	return string(text)
}

// change makes a random change to values by which resources are counted.
func (w *randomWorld) change(ctx context.Context, s *store.Store) error {
	uuid := storetest.UUID(1 + w.chance.IntN(80))
	visibility := []access.Visibility{access.Private, access.Public}[w.chance.IntN(2)]
	var pairs []metadef.KeyValue
	for _, key := range worldKeys {
		if w.chance.IntN(2) == 0 {
			pairs = append(pairs, metadef.KeyValue{Key: key, Value: w.pick(worldValues)})
		}
	}
	var tags []string
	for _, tag := range worldTags {
		if w.chance.IntN(3) == 0 {
			tags = append(tags, tag)
		}
	}
	var err error
	switch w.chance.IntN(10) {
	case 0, 1:
		project := w.pick(worldProjects)
		_, err = s.CreateResource(ctx, resource.Input{Type: w.pick(worldTypes), UUID: &uuid, Name: w.pick(worldNames),
			ProjectID: &project, Visibility: &visibility, Metadata: pairs, Tags: tags})
	case 2:
		_, err = s.DeleteResource(ctx, uuid, nil)
	case 3, 4:
		_, err = s.UpdateResource(ctx, resource.Patch{UUID: uuid, Visibility: metadeftest.To(visibility),
			NewName: metadeftest.To(w.pick(worldNames))})
	case 5:
		_, err = s.SetResourceTags(ctx, uuid, tags, nil)
	case 6:
		name := w.pick(worldTypes)
		_, err = s.UpdateResourceType(ctx, metadef.ResourceTypeChange{Name: name, NewName: metadeftest.To(name + "'")})
		if err == nil && w.chance.IntN(10) > 0 {
			_, err = s.UpdateResourceType(ctx,
				metadef.ResourceTypeChange{Name: name + "'", NewName: metadeftest.To(name)})
		}
	default:
		_, _, err = s.ChangeMetadata(ctx,
			resource.MetadataChange{Resource: uuid,
				Mode:  []resource.MetadataMode{resource.MergeMetadata, resource.ReplaceMetadata}[w.chance.IntN(2)],
				Items: pairs})
	}
	return err
}

// wasRefused reports whether an error is nil or due to a concurrent change.
func wasRefused(err error) bool {
	refusal, invalid := new(problem.Refusal), new(problem.InvalidInput)
	return err == nil || errors.As(err, &refusal) || errors.As(err, &invalid)
}

// TestCountsOfAnInstantAreTheDatabases compares the counts of memory and the
// database at one instant, under random filters and as each kind of viewer,
// while several clients write to one server or to two. The second one reads on a
// standby.
func TestCountsOfAnInstantAreTheDatabases(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		world, servers := countingServers(t, url)
		random := func(seed int) *randomWorld {
			return &randomWorld{World: world.World, chance: rand.New(rand.NewPCG(uint64(seed), 17))}
		}
		ctx, stop := context.WithCancel(storetest.AsAdmin())
		var writers, readers sync.WaitGroup
		var silent, paged atomic.Int64
		for client := range 2 {
			writers.Go(func() {
				for w := random(client); ctx.Err() == nil; {
					if err := w.change(ctx, servers[client%len(servers)].kept); ctx.Err() == nil && !wasRefused(err) {
						t.Errorf("a write: %v", err)
					}
				}
			})
		}
		for i, server := range servers {
			readers.Go(func() {
				w := random(10 + i)
				viewers := kindsOfViewers()
				for n := range instantsCounted {
					filter, wanted := w.filter(), w.facets()
					if n%2 == 0 { // memory decides these more often
						wanted = lists.Map(wanted, ofSets)
					}
					name := w.pick([]string{"admin", "service", "member", "reader", "foreign", "nobody"})
					if found := server.difference(t, viewers[name], filter, wanted, &silent); found != "" {
						t.Errorf("instant %d as %s: %s", n, name, found)
						return
					}
					if found := server.differentPages(t, w.chance, viewers[name], filter, &paged); found != "" {
						t.Errorf("instant %d as %s: %s", n, name, found)
						return
					}
				}
			})
		}
		readers.Wait()
		stop()
		writers.Wait()
		storetest.CheckSpread(t, servers[len(servers)-1].kept)
		if got := silent.Load(); got < int64(instantsCounted*len(servers)) && !t.Failed() {
			t.Errorf("memory decided only %d times", got)
		}
		if got := paged.Load(); got < int64(instantsCounted*len(servers)/10) && !t.Failed() {
			t.Errorf("memory found only %d lists of pages", got)
		}
	})
}

// countingServers returns a server of a random world on SQLite, or two on
// PostgreSQL.
func countingServers(t *testing.T, url string) (*randomWorld, []countingServer) {
	t.Helper()
	if !strings.HasPrefix(url, "postgres:") {
		world, s := newRandomWorld(t, url, 15, resource.DiscoveryEveryone)
		return world, []countingServer{newCountingServer(t, s)}
	}
	pair := storetest.PostgresPair(t)
	world, s := newRandomWorld(t, pair.Primary, 15, resource.DiscoveryEveryone)
	spread := pair.OpenSpread(t,
		store.Options{Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
	return world, []countingServer{newCountingServer(t, s), newCountingServer(t, spread)}
}

// ofSets returns the facet, or one that memory can count if it cannot count
// this one.
func ofSets(of resource.FacetRequest) resource.FacetRequest {
	if of.By == resource.FacetCapabilityValue {
		of.By, of.Key = resource.FacetTag, nil
	}
	of.IncludeUnused = false
	return of
}

// instantsCounted is the number of instants that the test reads from each
// server.
const instantsCounted = 40
