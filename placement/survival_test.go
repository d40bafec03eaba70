package placement_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cadastre-dev/cadastre/placement"
)

// allocations returns the allocations of all consumers.
func (r *reality) allocations() (all []*Allocation) {
	for _, consumer := range slices.Sorted(maps.Keys(r.held)) {
		all = append(all, r.held[consumer]...)
	}
	return all
}

// rootOf returns the root of the tree of a provider.
func (r *reality) rootOf(uuid string) string {
	for r.providers[uuid].Parent != "" {
		uuid = r.providers[uuid].Parent
	}
	return uuid
}

// pathOf returns the uuids from the root down to a provider.
func (r *reality) pathOf(uuid string) (path []string) {
	for ; uuid != ""; uuid = r.providers[uuid].Parent {
		path = append([]string{uuid}, path...)
	}
	return path
}

// without returns the providers outside the trees of some roots.
func (r *reality) without(roots map[string]bool) []Provider {
	return slices.DeleteFunc(r.list(), func(p Provider) bool { return roots[r.rootOf(p.UUID)] })
}

// evicted is a consumer that loses its allocations in some trees.
type evicted struct {
	consumer    string
	lost, stays []*Allocation
	size        float64
}

// evicted returns the consumers of the trees of some roots, the largest first.
func (r *reality) evicted(roots map[string]bool) (all []evicted) {
	totals := map[string]int64{}
	for _, p := range r.list() {
		for _, inventory := range p.Inventories {
			totals[inventory.ResourceClass] += inventory.Capacity
		}
	}
	for consumer, held := range r.held {
		e := evicted{consumer: consumer}
		sums := map[string]int64{}
		for _, a := range held {
			if !roots[r.rootOf(a.Provider)] {
				e.stays = append(e.stays, a)
				continue
			}
			e.lost = append(e.lost, a)
			sums[a.ResourceClass] += a.Used
		}
		slices.SortFunc(e.lost, func(a, b *Allocation) int {
			return cmp.Or(slices.Compare(r.pathOf(a.Provider), r.pathOf(b.Provider)),
				strings.Compare(a.ResourceClass, b.ResourceClass))
		})
		for _, class := range slices.Sorted(maps.Keys(sums)) {
			e.size += float64(sums[class]) / float64(max(1, totals[class]))
		}
		if len(e.lost) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b evicted) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.consumer, b.consumer))
	})
	return all
}

// request returns the request of the consumer: the amounts on roots in one group,
// and the amounts on each other provider in a further group.
func (e *evicted) request(r *reality) *Request {
	request := new(Request)
	taken := map[string]bool{}
	groups := map[string]int{}
	for _, a := range e.lost {
		amount := Amount{ResourceClass: a.ResourceClass, Amount: a.Used}
		if r.providers[a.Provider].Parent == "" && !taken[a.ResourceClass] {
			taken[a.ResourceClass] = true
			request.Unsuffixed.Resources = append(request.Unsuffixed.Resources, amount)
			continue
		}
		i, ok := groups[a.Provider]
		if !ok {
			i = len(request.Groups)
			groups[a.Provider] = i
			request.Groups = append(request.Groups, Group{Suffix: fmt.Sprintf("%06d", i)})
		}
		request.Groups[i].Resources = append(request.Groups[i].Resources, amount)
	}
	return request
}

// offered returns providers without free units where an allocation of the
// consumer that stays has a class that it loses.
func (e *evicted) offered(providers []Provider) []Provider {
	offered := slices.Clone(providers)
	for i := range offered {
		offered[i].Inventories = slices.Clone(offered[i].Inventories)
		for k := range offered[i].Inventories {
			of := &offered[i].Inventories[k]
			isOf := func(a *Allocation) bool { return a.ResourceClass == of.ResourceClass }
			if slices.ContainsFunc(e.lost, isOf) && slices.ContainsFunc(e.stays, func(a *Allocation) bool {
				return isOf(a) && a.Provider == offered[i].UUID
			}) {
				of.Used = max(of.Used, of.Capacity)
			}
		}
	}
	return offered
}

// drained places the consumers of the trees of some roots one after the other
// in the world without these trees, and returns the consumers that do not fit.
func (r *reality) drained(roots map[string]bool) (unplaced []string, consumers int) {
	providers := r.without(roots)
	evicted := r.evicted(roots)
	for i := range evicted {
		e := &evicted[i]
		candidates := newOracle(e.offered(providers)).candidates(e.request(r))
		if len(candidates) == 0 {
			unplaced = append(unplaced, e.consumer)
			continue
		}
		providers = using(providers, &candidates[0])
	}
	return unplaced, len(evicted)
}

// failing returns the roots of the trees that fail together, by the name of the
// failure.
func (r *reality) failing(of FailingTogether) map[string]map[string]bool {
	failing := map[string]map[string]bool{}
	for _, p := range r.providers {
		root := r.providers[r.rootOf(p.UUID)]
		names := map[FailureGrouping][]string{FailureOfHost: {root.Name}, FailureOfAggregate: p.Aggregates,
			FailureOfCapability: of.Values[root.ResourceRow]}[of.By]
		for _, name := range names {
			if failing[name] == nil {
				failing[name] = map[string]bool{}
			}
			failing[name][r.rootOf(p.UUID)] = true
		}
	}
	return failing
}

// isWorse reports whether a loss comes before another one.
func isWorse(a, b *Failure) bool {
	return cmp.Or(cmp.Compare(len(b.Unplaced), len(a.Unplaced)), strings.Compare(a.Name(), b.Name())) < 0
}

// racks links each provider to a resource, and returns values of the resources.
func (d *dice) racks(providers []Provider) map[int64][]string {
	values := map[int64][]string{}
	for i := range providers {
		providers[i].ResourceRow = int64(i + 1)
		for _, value := range []string{"r1", "r2", "r3"} {
			if d.chance(2) {
				values[providers[i].ResourceRow] = append(values[providers[i].ResourceRow], value)
			}
		}
	}
	return values
}

// TestSurvivalIsDrainingEachHostInTurn compares the losses of each tree, of each
// aggregate and of each value with a plain placing of their consumers.
func TestSurvivalIsDrainingEachHostInTurn(t *testing.T) {
	unplaced, all := 0, 0
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, _ *Request) {
		racks := d.racks(providers)
		r := d.realityOf(providers)
		w := NewWorld(diceNames, providers)
		for _, by := range []FailureGrouping{FailureOfHost, FailureOfAggregate, FailureOfCapability} {
			together := FailingTogether{By: by, Values: racks}
			failures := w.Failures(together, w.Filter(ProviderFilter{}))
			found, err := failures.Survive(r.allocations())
			if err != nil {
				t.Fatal(err)
			}
			failing := r.failing(together)
			if len(found) != len(failing) {
				t.Fatalf("%d losses, want %d", len(found), len(failing))
			}
			for i, failure := range found {
				want, consumers := r.drained(failing[failure.Name()])
				var got []string
				for _, one := range failure.Unplaced {
					got = append(got, one.Consumer)
				}
				if !slices.Equal(got, want) || failure.Consumers != consumers {
					held := ""
					for _, a := range r.allocations() {
						held += fmt.Sprintf("%+v\n", *a)
					}
					t.Fatalf("%s of %s: %v of %d do not fit, want %v of %d\nproviders %+v\n%s", by,
						failure.Name(), got, failure.Consumers, want, consumers, providers, held)
				}
				if last := found[max(0, i-1)]; isWorse(failure, last) {
					t.Fatalf("%s is behind %s", failure.Name(), last.Name())
				}
				unplaced, all = unplaced+len(got), all+consumers
			}
		}
	})
	t.Logf("%d of %d do not fit", unplaced, all)
}

// fullCloud returns 10,000 hosts, nearly full, with 20 consumers each. One host in
// seven is empty. Some hosts share storage.
func fullCloud(shares bool) (providers []Provider, allocations []*Allocation) {
	providers = flatCloud(10_000)
	add := func(consumer, provider int, class string, used int64) {
		allocations = append(allocations, &Allocation{Consumer: numbered(5_000_000 + consumer),
			Provider: providers[provider].UUID, ResourceClass: class, Used: used})
		for k := range providers[provider].Inventories {
			if of := &providers[provider].Inventories[k]; of.ResourceClass == class {
				of.Used += used
			}
		}
	}
	for i := range 10_000 {
		providers[i].Inventories = []Inventory{stocked("MEMORY_MB", 131072, 0), stocked("VCPU", 64, 0)}
		if !shares {
			providers[i].Inventories = append(providers[i].Inventories, stocked("DISK_GB", 2000, 0))
		}
	}
	if shares {
		for i := range 10 {
			providers = append(providers,
				Provider{UUID: numbered(2_000_000 + i), Name: fmt.Sprintf("pool%d", i), Version: 1,
					Inventories: []Inventory{stocked("DISK_GB", 2_000_000, 0)}, Traits: []string{TraitShares},
					Aggregates: []string{numbered(1_000_000 + i)}})
		}
	}
	for i := range 10_000 {
		for k := range 20 - i%7/6*20 {
			consumer, size := i*20+k, int64(1+(i*7+k*5)%5)
			add(consumer, i, "VCPU", size)
			add(consumer, i, "MEMORY_MB", size*1500)
			disk := i
			if shares {
				disk = 10_000 + i%10
			}
			add(consumer, disk, "DISK_GB", size*10)
		}
	}
	return providers, allocations
}

// BenchmarkSurvive loses each of the hosts of fullCloud.
func BenchmarkSurvive(b *testing.B) {
	for _, shares := range []bool{false, true} {
		providers, allocations := fullCloud(shares)
		w := NewWorld(cloudNames, providers)
		b.Run(fmt.Sprintf("sharing=%v", shares), func(b *testing.B) {
			for b.Loop() {
				found, err := w.Failures(FailingTogether{By: FailureOfHost}, slices.Collect(w.Providers())).
					Survive(allocations)
				if err != nil || len(found) < 10_000 {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}

// usedCloud is a cloud whose consumers change.
type usedCloud struct {
	*rand.Rand
	world   *World
	of, by  map[string][]*Allocation // by consumer, by provider
	version int64
}

func newUsedCloud(providers []Provider, allocations []*Allocation) *usedCloud {
	c := &usedCloud{rand.New(rand.NewPCG(1, 2)), NewWorld(cloudNames, providers),
		map[string][]*Allocation{}, map[string][]*Allocation{}, 1}
	for _, a := range allocations {
		c.of[a.Consumer], c.by[a.Provider] = append(c.of[a.Consumer], a), append(c.by[a.Provider], a)
	}
	return c
}

// set changes the units of an allocation, within its inventory. No units remove it.
func (c *usedCloud) set(a *Allocation, used int64) {
	c.version++
	p, _ := c.world.Provider(a.Provider)
	next := *p
	next.Version, next.Inventories = c.version, slices.Clone(next.Inventories)
	for k := range next.Inventories {
		if in := &next.Inventories[k]; in.ResourceClass == a.ResourceClass {
			used = max(0, min(in.Capacity-in.Used+a.Used, used))
			in.Used, a.Used = in.Used-a.Used+used, used
		}
	}
	c.world = c.world.With(Update{Providers: []Provider{next}})
	isOther := func(b *Allocation) bool { return a != b }
	if others := c.by[a.Provider]; used == 0 {
		c.by[a.Provider] = slices.DeleteFunc(others, func(b *Allocation) bool { return !isOther(b) })
	} else if !slices.Contains(others, a) {
		c.by[a.Provider] = append(others, a)
	}
}

// resize changes the units of a random consumer.
func (c *usedCloud) resize(consumers []string) {
	for _, a := range c.of[consumers[c.IntN(len(consumers))]] {
		c.set(a, 1+c.Int64N(1+2*a.Used))
	}
}

// claimOrRelease releases a random consumer of a host, or claims as much as another
// consumer has.
func (c *usedCloud) claimOrRelease(host string) {
	claims := c.by[host]
	consumer := claims[c.IntN(len(claims))].Consumer
	held, name := c.of[consumer], numbered(60_000_000+int(c.version))
	if c.IntN(2) == 0 && len(claims) > 9 {
		for _, a := range held {
			c.set(a, 0)
		}
		delete(c.of, consumer)
		return
	}
	for _, a := range held {
		p, _ := c.world.Provider(a.Provider)
		for _, in := range p.Inventories {
			if in.ResourceClass == a.ResourceClass && in.Capacity-in.Used < a.Used {
				return
			}
		}
	}
	for _, a := range held {
		next := &Allocation{Consumer: name, Provider: a.Provider, ResourceClass: a.ResourceClass}
		c.of[name] = append(c.of[name], next)
		c.set(next, a.Used)
	}
}

// load returns all allocations of the consumers on some providers; nil means all.
func (c *usedCloud) load(providers []string) (found []*Allocation, err error) {
	if providers == nil {
		for _, held := range c.of {
			found = append(found, held...)
		}
		return found, nil
	}
	seen := map[string]bool{}
	for _, provider := range providers {
		for _, a := range c.by[provider] {
			if !seen[a.Consumer] {
				seen[a.Consumer] = true
				found = append(found, c.of[a.Consumer]...)
			}
		}
	}
	return found, nil
}

// survive computes the losses of all hosts again and again after changes, without
// the time that load takes.
func (c *usedCloud) survive(b *testing.B, change func()) {
	var kept Survivals
	var loaded, longest time.Duration
	load := func(providers []string) ([]*Allocation, error) {
		start := time.Now()
		defer func() { loaded = time.Since(start) }()
		return c.load(providers)
	}
	once := func() (lost int, took time.Duration) {
		start := time.Now()
		found, err := kept.Survive(c.world, FailingTogether{By: FailureOfHost}, load)
		if took = time.Since(start) - loaded; err != nil || len(found) < 10_000 {
			b.Fatal(len(found), err)
		}
		for _, f := range found {
			lost += min(len(f.Unplaced), 1)
		}
		return lost, took
	}
	lost, all := once()
	sum, runs := time.Duration(0), 0
	for b.Loop() {
		change()
		_, took := once()
		sum, longest, runs = sum+took, max(longest, took), runs+1
	}
	b.ReportMetric(float64(lost), "unsurvived")
	b.ReportMetric(float64(all.Milliseconds()), "ms/all")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(runs), "ms/mean")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms/worst")
}

// BenchmarkSurviveAgain loses each of the hosts of BenchmarkSurvive after one claim:
// a consumer of a random host gets another size.
func BenchmarkSurviveAgain(b *testing.B) {
	for _, shares := range []bool{false, true} {
		b.Run(fmt.Sprintf("sharing=%v", shares), func(b *testing.B) {
			c := newUsedCloud(fullCloud(shares))
			consumers := slices.Sorted(maps.Keys(c.of))
			c.survive(b, func() { c.resize(consumers) })
		})
	}
}

// tightCloud returns 10,000 hosts with consumers of ten sizes. They are full, except
// some with some room. The disks are on the hosts, or on ten pools with some room.
func tightCloud(rooms int, pool int32) (providers []Provider, allocations []*Allocation) {
	random, hosts := rand.New(rand.NewPCG(3, 4)), 10_000
	providers = flatCloud(hosts)
	for i := range hosts {
		providers[i].Inventories = []Inventory{stocked("MEMORY_MB", 524_288, 0), stocked("VCPU", 64, 0)}
		if pool == 0 {
			providers[i].Inventories = append(providers[i].Inventories, stocked("DISK_GB", 4000, 0))
		}
	}
	for i := range min(10, int(pool)) {
		providers = append(providers,
			Provider{UUID: numbered(2_000_000 + i), Name: fmt.Sprintf("pool%d", i), Version: 1,
				Inventories: []Inventory{stocked("DISK_GB", pool, 0)}, Traits: []string{TraitShares},
				Aggregates: []string{numbered(1_000_000 + i)}})
	}
	add := func(consumer string, provider int, class string, used int64) {
		allocations = append(allocations,
			&Allocation{Consumer: consumer, Provider: providers[provider].UUID, ResourceClass: class, Used: used})
		for k := range providers[provider].Inventories {
			if of := &providers[provider].Inventories[k]; of.ResourceClass == class {
				of.Used += used
			}
		}
	}
	for i := range hosts {
		left := int64(64)
		if i < rooms {
			left -= 8 + int64(i)%3*7
		}
		for left > 0 {
			consumer, size := numbered(5_000_000+len(allocations)), int64(1)<<random.IntN(5)
			if size = min(size, left); size&(size-1) != 0 {
				size = 1
			}
			left -= size
			add(consumer, i, "VCPU", size)
			add(consumer, i, "MEMORY_MB", size*2048*(1+random.Int64N(2)))
			if disk := i; pool == 0 {
				add(consumer, disk, "DISK_GB", size*20)
			} else {
				add(consumer, hosts+i%10, "DISK_GB", size*20)
			}
		}
	}
	return providers, allocations
}

// BenchmarkSurviveFull loses each of the hosts of tightCloud after a consumer of a
// host with room comes or goes.
func BenchmarkSurviveFull(b *testing.B) {
	for _, rooms := range []int{6, 20} {
		for _, pool := range []int32{0, 1_281_000, 3_000_000} {
			b.Run(fmt.Sprintf("rooms=%d/pool=%d", rooms, pool), func(b *testing.B) {
				c := newUsedCloud(tightCloud(rooms, pool))
				c.survive(b, func() { c.claimOrRelease(numbered(c.IntN(rooms))) })
			})
		}
	}
}
