package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// processesName is the name of this part for -works.
const processesName = "several processes"

// sharing is how several servers on one database are timed.
type sharing struct {
	processes []int // numbers of servers, in turns
	clients   int   // of all servers together
	rounds    int
	each      time.Duration // for each work
	lags      int           // commits whose lag is measured in each round
	raced     int           // providers that are claimed until they are full
}

func defaultSharing(rounds int) sharing {
	return sharing{processes: []int{1, 2, 4}, clients: maxClients, rounds: min(rounds, 3), each: 2 * time.Second, lags: 100, raced: 20}
}

// shared holds the measurements of a number of servers.
type shared struct {
	works          map[string]*timed
	lag, lagBeside []time.Duration
	figures        map[string]float64 // of races, and of rows that a commit adds
}

// timed holds the measurements of a work in all rounds.
type timed struct {
	rates []float64
	times []time.Duration
	cpu   cpu
}

// sharedWork is a work of clients of several servers: requests returns what a
// client sends next.
type sharedWork struct {
	name     string
	requests func() []local.Request
}

// sharedBench times servers on the database of a target.
type sharedBench struct {
	sharing
	on   *target
	next atomic.Int64 // number of the next claim
}

// share times every number of processes on the large world of the last binary, on
// PostgreSQL.
func (b *bench) share(ctx context.Context) (lines []measured.Line, err error) {
	on := b.lastOnPostgres()
	if on == nil || !b.isChosen(processesName) {
		return nil, nil
	}
	s := &sharedBench{sharing: b.sharing, on: on}
	works, err := s.works()
	if err != nil {
		return nil, err
	}
	all := make([]shared, len(s.processes))
	for i := range all {
		all[i] = shared{works: map[string]*timed{}, figures: map[string]float64{}}
	}
	for range s.rounds {
		for i, processes := range s.processes {
			if err := s.round(ctx, processes, works, &all[i]); err != nil {
				return nil, fmt.Errorf("%d processes: %w", processes, err)
			}
		}
	}
	for _, work := range works {
		for i, processes := range s.processes {
			of := all[i].works[work.name]
			lines = append(lines, measured.Line{Kind: measured.Processes, Work: work.name, Database: postgres, Server: on.name, Rates: of.rates, Figures: map[string]float64{
				"processes": float64(processes), "clients": float64(s.clients), "perSecond": measured.Median(of.rates),
				"medianMs": measured.Quantile(of.times, 50), "p99Ms": measured.Quantile(of.times, 99),
				"serverCpuMs": measured.Milliseconds(of.cpu.server) / float64(len(of.times)), "databaseCpuMs": measured.Milliseconds(of.cpu.database) / float64(len(of.times)),
			}})
		}
	}
	for i, processes := range s.processes {
		figures := all[i].figures
		figures["processes"] = float64(processes)
		figures["lagMedianMs"], figures["lagP99Ms"] = measured.Quantile(all[i].lag, 50), measured.Quantile(all[i].lag, 99)
		figures["besideMedianMs"], figures["besideP99Ms"] = measured.Quantile(all[i].lagBeside, 50), measured.Quantile(all[i].lagBeside, 99)
		lines = append(lines, measured.Line{Kind: measured.Lag, Database: postgres, Server: on.name, Figures: figures})
	}
	b.say("%s: %v processes on one database", on, s.processes)
	return lines, nil
}

// The works that are no reads.
const (
	claimsOfDifferent = "claims on different providers"
	claimsOfOne       = "claims on one provider"
)

// works returns the works that are timed: reads of works.yaml, and claims, each of
// which another commit takes back.
func (s *sharedBench) works() (all []sharedWork, err error) {
	known, err := works()
	for _, work := range known {
		if slices.Contains([]string{"20 namespaces with properties, 32 clients", "candidates, first 10", "50 resources by a pair, 32 clients"}, work.Name) {
			asked := []local.Request{work.request(s.on.world, 0)}
			name, _, _ := strings.Cut(work.Name, ", 32 clients")
			all = append(all, sharedWork{name, func() []local.Request { return asked }})
		}
	}
	return append(all,
		sharedWork{claimsOfDifferent, func() []local.Request { n := s.number(); return s.pair(n, n, 1) }},
		sharedWork{claimsOfOne, func() []local.Request { return s.pair(s.number(), 0, 1) }}), err
}

func (s *sharedBench) number() int { return int(s.next.Add(1)) }

func (s *sharedBench) pair(n, from, cpus int) []local.Request {
	return s.on.world.claimAndRelease("shared", n, from, cpus)
}

// round times all works on a number of servers. It starts all but the first.
func (s *sharedBench) round(ctx context.Context, processes int, works []sharedWork, into *shared) (err error) {
	servers := []*target{s.on}
	defer func() {
		for _, t := range servers[1:] {
			err = errors.Join(err, t.stop())
		}
	}()
	for len(servers) < processes {
		more, setup := *s.on, s.on.server.Setup
		setup.Name = fmt.Sprintf("%s-%d", setup.Name, len(servers))
		if err := more.serve(ctx, setup); err != nil {
			return err
		}
		servers = append(servers, &more)
	}
	for _, work := range works {
		if into.works[work.name] == nil {
			into.works[work.name] = &timed{}
		}
		if _, err := s.send(ctx, servers, s.clients, s.each/10, work, &timed{}); err != nil { // the first ones fill caches
			return err
		}
		before, err := s.added(ctx)
		if err != nil {
			return err
		}
		commits, err := s.send(ctx, servers, s.clients, s.each, work, into.works[work.name])
		if err != nil {
			return fmt.Errorf("%s: %w", work.name, err)
		}
		if processes == 1 && work.name == claimsOfDifferent {
			after, err := s.added(ctx)
			if err != nil {
				return err
			}
			for i, name := range []string{"changeRowsOfCommit", "auditRowsOfCommit", "writeAheadBytesOfCommit"} {
				into.figures[name] = (after[i] - before[i]) / float64(commits)
			}
		}
	}
	if into.lag, err = s.watch(ctx, servers, into.lag); err != nil {
		return err
	}
	if into.lagBeside, err = s.watchBeside(ctx, servers, into.lagBeside); err != nil {
		return err
	}
	return s.race(ctx, servers, into.figures)
}

// send does a work by clients, each with one of the servers, for some time, and
// returns the number of requests.
func (s *sharedBench) send(ctx context.Context, servers []*target, clients int, limit time.Duration, work sharedWork, into *timed) (int, error) {
	before, err := cpuOf(servers)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var times []time.Duration
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range clients {
		group.Go(func() error {
			c := servers[i%len(servers)].connect(admin, i)
			defer c.close()
			var own []time.Duration
			for sending.Err() == nil && time.Since(began) < limit {
				for _, r := range work.requests() {
					took, _, err := c.timed(asking(r))
					if err != nil {
						return err
					}
					own = append(own, took)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	into.rates = append(into.rates, float64(len(times))/time.Since(began).Seconds())
	into.times = append(into.times, times...)
	after, err := cpuOf(servers)
	into.cpu.add(before, after)
	return len(times), err
}

// cpuOf returns the processor time of servers and their database.
func cpuOf(servers []*target) (sum cpu, err error) {
	for _, t := range servers {
		used, err := t.cpu()
		if err != nil {
			return sum, err
		}
		sum.server, sum.database = sum.server+used.server, used.database
	}
	return sum, nil
}

// added returns the last number of a change and of an audit event, and the length
// of the write-ahead log.
func (s *sharedBench) added(ctx context.Context) (counts [3]float64, err error) {
	text, err := s.on.cluster.Text(ctx, s.on.storage, `SELECT concat_ws(' ', (SELECT coalesce(max(id), 0) FROM changes), (SELECT coalesce(max(id), 0) FROM audit_events), pg_current_wal_lsn() - '0/0'::pg_lsn)`)
	if err == nil {
		_, err = fmt.Sscan(text, &counts[0], &counts[1], &counts[2])
	}
	return counts, err
}

// shownUse asks for the use of a provider in the world in memory.
const shownUse = `query($provider: UUID!) {
	allocationCandidates(first: 1, inTree: $provider, resources: [{resourceClass: "VCPU", amount: 1}]) {
		providerSummaries { inventories { resourceClass used } }
	}
}`

// watch commits on the first server and measures when the others show it, in turn;
// a single server shows its own commit.
func (s *sharedBench) watch(ctx context.Context, servers []*target, lags []time.Duration) ([]time.Duration, error) {
	writer := servers[0].connect(admin, 0)
	defer writer.close()
	watchers := servers[min(1, len(servers)-1):]
	for i := range s.lags {
		from := i + 1
		for s.on.world.freeProvider(from) == s.on.world.freeProvider(0) { // which is claimed beside
			from += s.lags
		}
		reader := watchers[i%len(watchers)].connect(admin, 1)
		lag, err := watchOne(writer, reader, s.pair(s.number(), from, 1), asking(local.Request{Query: shownUse, Variables: object{"provider": s.on.world.freeProvider(from)}}))
		reader.close()
		if err := errors.Join(err, ctx.Err()); err != nil {
			return lags, err
		}
		lags = append(lags, lag)
	}
	return lags, nil
}

// watchOne commits the first of two requests by the writer and returns how long it
// takes from its answer until the reader shows it. It commits the second one,
// which takes the first back, and waits until the reader shows that as well.
func watchOne(writer, reader *connection, pair []local.Request, shown call) (time.Duration, error) {
	answer, err := reader.exchange(shown)
	if err != nil {
		return 0, err
	}
	before := bytes.Clone(unpriced(answer))
	var lags [2]time.Duration
	for i, r := range pair {
		if _, err := writer.exchange(asking(r)); err != nil {
			return 0, err
		}
		for began := time.Now(); ; {
			answer, err := reader.exchange(shown)
			if err != nil {
				return 0, err
			}
			lags[i] = time.Since(began)
			if bytes.Equal(unpriced(answer), before) == (i == 1) {
				break
			}
			if lags[i] > requestTime {
				return 0, errors.New("another process does not show a commit")
			}
		}
	}
	return lags[0], nil
}

// watchBeside is watch while a quarter of the clients claim and release, from a
// provider that is not watched.
func (s *sharedBench) watchBeside(ctx context.Context, servers []*target, lags []time.Duration) ([]time.Duration, error) {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	claiming := make(chan error, 1)
	go func() {
		var err error
		for beside.Err() == nil && err == nil {
			work := sharedWork{claimsOfOne, func() []local.Request { return s.pair(s.number(), 0, 1) }}
			_, err = s.send(ctx, servers, max(1, s.clients/4), 100*time.Millisecond, work, &timed{})
		}
		claiming <- err
	}()
	lags, err := s.watch(ctx, servers, lags)
	stop()
	return lags, errors.Join(err, <-claiming)
}

// racedCPUs is what each claim of a race takes: 16 of them fit an empty provider,
// for which triedEach claims race.
const (
	racedCPUs = vcpus * vcpuRatio / 16
	triedEach = 24
)

// race lets all clients claim more than some providers have, all at once, and
// counts the allocations in the database. It takes the claims back.
func (s *sharedBench) race(ctx context.Context, servers []*target, figures map[string]float64) error {
	seen := map[string]bool{}
	var pairs [][]local.Request
	fit := 0
	for i := range s.raced {
		uuid := s.on.world.freeProvider(i)
		if seen[uuid] {
			continue
		}
		seen[uuid] = true
		fit += s.on.world.roomFor(uuid, racedCPUs)
		for range triedEach {
			pairs = append(pairs, s.pair(s.number(), i, racedCPUs))
		}
	}
	served, err := s.claimAll(ctx, servers, pairs)
	if err != nil {
		return err
	}
	const over = `SELECT count(*) FROM inventories i JOIN (SELECT provider_id, resource_class_id, sum(used) AS used FROM allocations GROUP BY 1, 2) a
		ON a.provider_id = i.provider_id AND a.resource_class_id = i.resource_class_id WHERE a.used > i.capacity OR a.used <> i.used`
	text, err := s.on.cluster.Text(ctx, s.on.storage, over)
	if err != nil {
		return err
	}
	claimed := 0
	for i, ok := range served {
		if !ok {
			continue
		}
		claimed++
		if err := s.on.operator.Ask(ctx, pairs[i][1], nil); err != nil {
			return err
		}
	}
	for name, number := range map[string]int{"tried": len(pairs), "fit": fit, "served": claimed} {
		figures[name] += float64(number)
	}
	figures["overallocated"] = 0
	if claimed != fit || text != "0" {
		return fmt.Errorf("%d claims were served where %d fit, and %s inventories are over-allocated", claimed, fit, text)
	}
	return nil
}

// claimAll sends the first of each two requests by all clients and returns which
// were served. A refusal for another reason than lack of room is an error.
func (s *sharedBench) claimAll(ctx context.Context, servers []*target, pairs [][]local.Request) ([]bool, error) {
	served := make([]bool, len(pairs))
	var next atomic.Int64
	group, claiming := errgroup.WithContext(ctx)
	for i := range s.clients {
		group.Go(func() error {
			c := servers[i%len(servers)].connect(admin, i)
			defer c.close()
			for n := int(next.Add(1)) - 1; n < len(served) && claiming.Err() == nil; n = int(next.Add(1)) - 1 {
				at := n * 7_919 % len(served) // consecutive claims are on different providers
				_, err := c.exchange(asking(pairs[at][0]))
				var refused refusal
				if served[at] = err == nil; err != nil && (!errors.As(err, &refused) || refused.code != "CAPACITY_EXCEEDED") {
					return err
				}
			}
			return nil
		})
	}
	return served, group.Wait()
}

// roomFor returns how many claims of some processors fit a provider of the world
// beside its consumers. Processors run out before other classes.
func (w *world) roomFor(uuid string, cpus int) int {
	p := w.providers[slices.IndexFunc(w.providers, func(p provider) bool { return p.uuid == uuid })]
	free := vcpus * vcpuRatio
	for _, consumer := range p.consumers {
		for _, from := range consumer["allocations"].([]object) {
			free -= from["resources"].([]object)[0]["amount"].(int)
		}
	}
	return free / cpus
}
