package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// sharing configures the timing of several servers on one database.
type sharing struct {
	processes []int // numbers of servers, in turns
	clients   int   // of all servers together
	rounds    int
	each      time.Duration // for each work
	lags      int           // measured lags of commits in each round
	raced     int           // providers that clients claim until they are full
}

func defaultSharing(rounds int) sharing {
	return sharing{
		processes: []int{1, 2, 4}, clients: maxClients, rounds: min(rounds, 3),
		each: 2 * time.Second, lags: 100, raced: 20,
	}
}

// shared holds the measurements for one number of servers.
type shared struct {
	works          []timing
	lag, lagBeside []time.Duration
	figures        map[string]float64 // of races, and of rows that a commit adds
}

// sharedWork is a work of clients of several servers. The function requests
// returns the next requests of a client.
type sharedWork struct {
	name     string
	requests func() []local.Call
}

// sharedBench times servers on the database of a target.
type sharedBench struct {
	sharing
	on   *target
	next atomic.Int64 // number of the next claim
}

// share times every number of processes on the large world of the last binary, on
// PostgreSQL. It measures nothing on other targets.
func (b *bench) share(ctx context.Context, on *target) (lines []measured.Line, err error) {
	if on != b.lastOnPostgres() {
		return nil, nil
	}
	s := &sharedBench{sharing: b.sharing, on: on}
	works, err := s.works()
	if err != nil {
		return nil, err
	}
	all := make([]shared, len(s.processes))
	for i := range all {
		all[i] = shared{works: make([]timing, len(works)), figures: map[string]float64{}}
	}
	for range s.rounds {
		for i, processes := range s.processes {
			if err := s.round(ctx, processes, works, &all[i]); err != nil {
				return nil, fmt.Errorf("%d processes: %w", processes, err)
			}
		}
	}
	add := func(kind, work string, processes int, rates []float64, figures map[string]float64) {
		figures["processes"], figures["clients"] = float64(processes), float64(s.clients)
		lines = append(lines, measured.Line{
			Kind: kind, Work: work, Database: postgres, Server: on.name, Rates: rates, Figures: figures,
		})
	}
	for number, work := range works {
		for i, processes := range s.processes {
			of := &all[i].works[number]
			add(measured.Processes, work.name, processes, of.rates, of.figures(on))
		}
	}
	for i, processes := range s.processes {
		for name, lags := range map[string][]time.Duration{"lag": all[i].lag, "beside": all[i].lagBeside} {
			all[i].figures[name+"MedianMs"] = measured.Quantile(lags, 50)
			all[i].figures[name+"P99Ms"] = measured.Quantile(lags, 99)
		}
		add(measured.Lag, "", processes, nil, all[i].figures)
	}
	return lines, nil
}

// claimsOfDifferent is the work for which the benchmark counts rows per commit.
const claimsOfDifferent = "claims on different providers"

// works returns the works to time: reads of works.yaml, and claims. Another
// commit undoes each claim.
func (s *sharedBench) works() (all []sharedWork, err error) {
	known, _, err := works()
	for _, work := range known {
		if work.Shared {
			asked := []local.Call{s.on.call(work.Question, 0)}
			name, _, _ := strings.Cut(work.Name, ", 32 clients")
			all = append(all, sharedWork{name, func() []local.Call { return asked }})
		}
	}
	return append(all,
		sharedWork{claimsOfDifferent, func() []local.Call { n := s.number(); return s.pair(n, n, 1) }},
		sharedWork{"claims on one provider", s.claimOne}), err
}

func (s *sharedBench) claimOne() []local.Call { return s.pair(s.number(), 0, 1) }

func (s *sharedBench) number() int { return int(s.next.Add(1)) }

func (s *sharedBench) pair(n, from, cpus int) []local.Call {
	return s.on.world.claimAndRelease("shared", n, from, cpus)
}

// round times all works on a number of servers, then the lags of commits and a
// race. It starts all servers but the first, and stops them.
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
	for number, work := range works {
		if err := s.time(ctx, servers, work, &into.works[number], into.figures); err != nil {
			return fmt.Errorf("%s: %w", work.name, err)
		}
	}
	if err := s.watch(ctx, servers, &into.lag); err != nil {
		return err
	}
	if err := s.watchBeside(ctx, servers, &into.lagBeside); err != nil {
		return err
	}
	return s.race(ctx, servers, into.figures)
}

// time times a work. For claims on different providers on one server it also
// measures the rows and the bytes of the write-ahead log that a commit adds.
func (s *sharedBench) time(
	ctx context.Context, servers []*target, work sharedWork, of *timing, figures map[string]float64,
) error {
	// The first requests fill caches.
	if err := (&timing{}).spend(ctx, s.each/10, servers, s.clients, work.requests, nil); err != nil {
		return err
	}
	counted := len(servers) == 1 && work.name == claimsOfDifferent
	before, err := s.added(ctx)
	if err != nil {
		return err
	}
	sent := len(of.times)
	if err := of.spend(ctx, s.each, servers, s.clients, work.requests, nil); err != nil || !counted {
		return err
	}
	after, err := s.added(ctx)
	for i, name := range []string{"changeRowsOfCommit", "auditRowsOfCommit", "writeAheadBytesOfCommit"} {
		figures[name] = (after[i] - before[i]) / float64(len(of.times)-sent)
	}
	return err
}

// added returns the highest ids of changes and of audit events, and the length
// of the write-ahead log.
func (s *sharedBench) added(ctx context.Context) (counts [3]float64, err error) {
	text, err := local.Text(ctx, s.on.cluster.URL(s.on.storage),
		`SELECT concat_ws(' ', (SELECT coalesce(max(id), 0) FROM changes),
		(SELECT coalesce(max(id), 0) FROM audit_events), pg_current_wal_lsn() - '0/0'::pg_lsn)`)
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

// watch commits on the first server and measures the time until another server
// shows the commit. The other servers take turns. A single server shows its own
// commit.
func (s *sharedBench) watch(ctx context.Context, servers []*target, lags *[]time.Duration) error {
	writer := servers[0].client(admin, 0)
	defer writer.Close()
	watchers := servers[min(1, len(servers)-1):]
	for i := range s.lags {
		from := i + 1
		for s.on.world.freeProvider(from) == s.on.world.freeProvider(0) { // which watchBeside claims
			from++
		}
		reader := watchers[i%len(watchers)].client(admin, 1)
		provider := s.on.world.freeProvider(from)
		shown := local.Operation(shownUse, object{"provider": provider})
		used := s.on.world.used(provider)
		lag, err := watchOne(ctx, writer, reader, s.pair(s.number(), from, 1), shown, used)
		reader.Close()
		if err != nil {
			return err
		}
		*lags = append(*lags, lag)
	}
	return nil
}

// watchOne commits the first of two requests by the writer, which claims a
// processor, and then the second, which releases it. It returns the time from
// the writer's answer to the claim until the reader shows the claim. First it
// waits until the reader shows as many used processors as without the claim:
// the reader may still show an earlier claim, which another reader followed.
func watchOne(ctx context.Context, writer, reader *local.Client, pair []local.Call, shown local.Call, used int) (
	time.Duration, error,
) {
	if _, err := awaitUse(ctx, reader, shown, used); err != nil {
		return 0, err
	}
	if err := writer.Ask(ctx, pair[0], nil); err != nil {
		return 0, err
	}
	lag, err := awaitUse(ctx, reader, shown, used+1)
	if err != nil {
		return 0, err
	}
	return lag, writer.Ask(ctx, pair[1], nil)
}

// awaitUse asks a reader until it shows a number of used processors, and
// returns the time that this took. After requestTime it gives up with an error.
func awaitUse(ctx context.Context, reader *local.Client, shown local.Call, used int) (time.Duration, error) {
	want := fmt.Appendf(nil, `{"resourceClass":"VCPU","used":%d}`, used)
	var buffer bytes.Buffer
	for began := time.Now(); time.Since(began) < requestTime; {
		answer, err := reader.Insist(ctx, shown, &buffer)
		if took := time.Since(began); err != nil || bytes.Contains(answer, want) {
			return took, err
		}
	}
	return 0, fmt.Errorf("another process does not show a commit: it shows %.500s", &buffer)
}

// watchBeside is watch while a quarter of the clients claim and release. They use a
// provider that watch does not use.
func (s *sharedBench) watchBeside(ctx context.Context, servers []*target, lags *[]time.Duration) error {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	claiming := make(chan error, 1)
	go func() {
		var err error
		for beside.Err() == nil && err == nil {
			err = (&timing{}).spend(ctx, 100*time.Millisecond, servers, max(1, s.clients/4), s.claimOne, nil)
		}
		claiming <- err
	}()
	err := s.watch(ctx, servers, lags)
	stop()
	return errors.Join(err, <-claiming)
}

// Each claim of a race takes racedCPUs: 16 claims fit an empty provider, and
// triedEach claims race for it.
const (
	racedCPUs = vcpus * vcpuRatio / 16
	triedEach = 24
)

// overAllocated counts inventories whose allocations exceed their capacity, or
// do not add up to their use.
const overAllocated = `SELECT count(*) FROM inventories i
	JOIN (SELECT provider_id, resource_class_id, sum(used) AS used FROM allocations GROUP BY 1, 2) a
	ON a.provider_id = i.provider_id AND a.resource_class_id = i.resource_class_id
	WHERE a.used > i.capacity OR a.used <> i.used`

// race makes all clients concurrently claim more than some providers have, and
// then undoes the claims. It is an error if more or fewer claims than fit
// succeed, or if an inventory is over-allocated.
func (s *sharedBench) race(ctx context.Context, servers []*target, figures map[string]float64) error {
	rooms := map[string]int{} // by uuid, of claims
	var pairs [][]local.Call
	for i := range s.raced {
		uuid := s.on.world.freeProvider(i)
		if _, ok := rooms[uuid]; ok {
			continue
		}
		rooms[uuid] = (vcpus*vcpuRatio - s.on.world.used(uuid)) / racedCPUs
		for range triedEach {
			pairs = append(pairs, s.pair(s.number(), i, racedCPUs))
		}
	}
	fit := 0
	for room := range maps.Values(rooms) {
		fit += room
	}
	served, err := s.sendAll(ctx, servers, pairs, 0, "CAPACITY_EXCEEDED")
	if err != nil {
		return err
	}
	over, err := local.Text(ctx, s.on.cluster.URL(s.on.storage), overAllocated)
	if err != nil {
		return err
	}
	released, err := s.sendAll(ctx, servers, pairs, 1, "NOT_FOUND")
	if err != nil {
		return err
	}
	for name, number := range map[string]int{"tried": len(pairs), "fit": fit, "served": served} {
		figures[name] += float64(number)
	}
	figures["overallocated"] = 0
	if served != fit || released != fit || over != "0" {
		return fmt.Errorf("%d claims were served and %d released where %d fit, and %s inventories are over-allocated",
			served, released, fit, over)
	}
	return nil
}

// sendAll sends one request of each pair, from all clients, and returns the
// number that the servers accepted. A refusal is an error unless its code is
// refusal.
func (s *sharedBench) sendAll(ctx context.Context, servers []*target, pairs [][]local.Call, which int,
	refusal string,
) (int, error) {
	var next, served atomic.Int64
	d := drive{clients: connect(servers, admin, s.clients)}
	defer d.close()
	d.next = func() []operation {
		n := int(next.Add(1)) - 1
		if n >= len(pairs) {
			return nil
		}
		return []operation{{pairs[n*7_919%len(pairs)][which]}} // consecutive claims are on different providers
	}
	d.check = func(_ []byte, err error) error {
		var refused local.Answer
		if err == nil {
			served.Add(1)
		} else if !errors.As(err, &refused) || refused.Code != refusal {
			return err
		}
		return nil
	}
	_, _, err := d.run(ctx)
	return int(served.Load()), err
}

// used returns the processors that the loaded consumers of a provider take.
// Processors run out before other classes.
func (w *world) used(uuid string) int {
	i := slices.IndexFunc(w.providers, func(p provider) bool { return p.uuid == uuid })
	return w.providers[i].used
}
