package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// processesName is what -works chooses this part by.
const processesName = "several processes"

// sharing is how several servers on one database are timed.
type sharing struct {
	processes []int // how many, in turns
	clients   int   // over all processes, each with one of them
	rounds    int
	each      time.Duration // for each work
	lags      int           // commits that another process is watched for, in each round
	raced     int           // providers that are claimed until they are full
	trials    []trial       // settings of one server under a mixed load
	tried     int           // rounds of them, each half as long as of a work
}

// defaultSharing returns what the benchmark does by itself.
func defaultSharing(rounds int) sharing {
	return sharing{processes: []int{1, 2, 4}, clients: 32, rounds: min(rounds, 3), each: 2 * time.Second, lags: 100, raced: 20, trials: trials(), tried: min(rounds, 2)}
}

// shared is what was measured of several servers on one database.
type shared struct {
	Server    string      `json:"server"`
	Processes int         `json:"processes"`
	Clients   int         `json:"clients"`
	Works     []sharedRow `json:"works"`
	// Lag is from the answer to a commit of one server until another one shows it, in
	// milliseconds, while nothing else happens and beside claims; of one process,
	// until it shows its own.
	Lag       span `json:"lagMs"`
	LagBeside span `json:"lagBesideClaimsMs"`
	// Tried claims race for providers that have room for Fit of them. Claimed of them
	// got it, and Overallocated inventories have less than what is taken from them,
	// or count it wrongly, in the database.
	Tried         int `json:"claimsTried"`
	Fit           int `json:"claimsThatFit"`
	Claimed       int `json:"claimsServed"`
	Overallocated int `json:"overallocated"`
	// What each commit of a claim adds to the database, of one process.
	Changes float64 `json:"changeRowsOfCommit,omitempty"`
	Events  float64 `json:"auditRowsOfCommit,omitempty"`
	Log     float64 `json:"writeAheadBytesOfCommit,omitempty"`
}

// sharedRow is a work on several servers.
type sharedRow struct {
	Work        string    `json:"work"`
	PerSecond   float64   `json:"perSecond"` // the median of Rates
	Rates       []float64 `json:"rates"`
	Median      float64   `json:"medianMs"`
	P99         float64   `json:"p99Ms"`
	ServerCPU   float64   `json:"serverCpuMs"` // of one request, all servers together
	DatabaseCPU float64   `json:"databaseCpuMs"`
	times       []time.Duration
	cpu         cpu
}

// span is the middle and the end of some times, in milliseconds.
type span struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

func spanOf(times []time.Duration) span {
	slices.Sort(times)
	return span{milliseconds(quantile(times, 50)), milliseconds(quantile(times, 99))}
}

// sharedWork is a work that clients of several servers do: requests returns what a
// client sends next, one after the other.
type sharedWork struct {
	name     string
	requests func() []request
}

// share times every number of processes on the large world of the last binary, on
// PostgreSQL.
func (b *bench) share(ctx context.Context) ([]shared, error) {
	if !b.isChosen(processesName) {
		return nil, nil
	}
	var on *target
	for _, t := range b.targets {
		if t.server != nil && t.cluster != nil && t.world == b.large {
			on = t
		}
	}
	if on == nil {
		return nil, nil
	}
	s := &sharedBench{sharing: b.sharing, bench: b, on: on}
	all := make([]shared, len(s.processes))
	timed := make([]sharedTimes, len(s.processes))
	for range s.rounds {
		for i, processes := range s.processes {
			all[i].Server, all[i].Processes, all[i].Clients = on.name, processes, s.clients
			if err := s.round(ctx, processes, &all[i], &timed[i]); err != nil {
				return nil, fmt.Errorf("%d processes: %w", processes, err)
			}
		}
	}
	for i := range all {
		for _, row := range timed[i].rows {
			all[i].Works = append(all[i].Works, row.closed())
		}
		all[i].Lag, all[i].LagBeside = spanOf(timed[i].lag), spanOf(timed[i].lagBeside)
	}
	_, err := fmt.Fprintf(b.progress, "%s: %v processes on one database\n", on, s.processes)
	return all, err
}

// sharedBench times servers on the database of a target.
type sharedBench struct {
	sharing
	bench *bench
	on    *target
	next  atomic.Int64 // number of the next claim
}

// sharedTimes are the times of all rounds.
type sharedTimes struct {
	rows           []*sharedRow
	lag, lagBeside []time.Duration
}

// closed returns the row with the numbers of all rounds.
func (r *sharedRow) closed() sharedRow {
	middle := spanOf(r.times)
	count := float64(len(r.times))
	return sharedRow{
		Work: r.Work, Rates: r.Rates, PerSecond: median(r.Rates), Median: middle.Median, P99: middle.P99,
		ServerCPU: milliseconds(r.cpu.server) / count, DatabaseCPU: milliseconds(max(0, r.cpu.database)) / count,
	}
}

// round times all works on so many servers, of which it starts those that lack.
func (s *sharedBench) round(ctx context.Context, processes int, one *shared, timed *sharedTimes) (err error) {
	servers := []*target{s.on}
	defer func() {
		for _, t := range servers[1:] {
			err = errors.Join(err, t.server.stop())
		}
	}()
	for len(servers) < processes {
		more := *s.on
		server, err := startServer(ctx, s.bench.folder, fmt.Sprintf("%s-%d", s.on.file, len(servers)), s.on.program, s.on.url)
		if err != nil {
			return err
		}
		more.serve(server)
		servers = append(servers, &more)
	}
	for i, work := range s.works() {
		if i == len(timed.rows) {
			timed.rows = append(timed.rows, &sharedRow{Work: work.name})
		}
		if _, err := s.send(ctx, servers, s.clients, s.each/10, work, nil); err != nil { // what the first ones make
			return err
		}
		before, err := s.added(ctx)
		if err != nil {
			return err
		}
		commits, err := s.send(ctx, servers, s.clients, s.each, work, timed.rows[i])
		if err != nil {
			return fmt.Errorf("%s: %w", work.name, err)
		}
		if processes == 1 && work.name == claimsOfDifferent {
			after, err := s.added(ctx)
			if err != nil {
				return err
			}
			one.Changes, one.Events, one.Log = (after[0]-before[0])/float64(commits), (after[1]-before[1])/float64(commits), (after[2]-before[2])/float64(commits)
		}
	}
	if timed.lag, err = s.watch(ctx, servers, timed.lag); err != nil {
		return err
	}
	if timed.lagBeside, err = s.watchBeside(ctx, servers, timed.lagBeside); err != nil {
		return err
	}
	return s.race(ctx, servers, one)
}

// The works that are no reads.
const (
	claimsOfDifferent = "claims on different providers"
	claimsOfOne       = "claims on one provider"
)

// works returns the works that are timed: of the benchmark, and claims, each of
// which is taken back by another commit.
func (s *sharedBench) works() []sharedWork {
	var all []sharedWork
	for _, work := range works() {
		if slices.Contains([]string{"20 namespaces with properties, 32 clients", "candidates, first 10", "50 resources by a pair, 32 clients"}, work.name) {
			asked := []request{work.request(s.on.world, 0)}
			all = append(all, sharedWork{work.name, func() []request { return asked }})
		}
	}
	return append(all,
		sharedWork{claimsOfDifferent, func() []request { n := int(s.next.Add(1)); return s.pair(n, n, 1) }},
		sharedWork{claimsOfOne, func() []request { return s.pair(int(s.next.Add(1)), 0, 1) }})
}

// pair returns the claim of a number of some processors from a free provider, and
// what takes it back.
func (s *sharedBench) pair(n, from, cpus int) []request {
	consumer := s.on.world.uuid("shared", n)
	input := object{"consumers": []object{claim(consumer, s.on.world.freeProvider(from), cpus, 1_024, 10)}}
	return []request{{Query: claiming, Variables: object{"input": input}}, {Query: unclaiming, Variables: object{"input": object{"consumer": consumer}}}}
}

// send does a work by some clients, each with one of the servers, for some time,
// and returns how many requests that were. What was measured is added to the row,
// unless that is nil.
func (s *sharedBench) send(ctx context.Context, servers []*target, clients int, limit time.Duration, work sharedWork, into *sharedRow) (int, error) {
	before, err := s.cpu(servers)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var times []time.Duration
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range clients {
		group.Go(func() error {
			c := &connection{to: servers[i%len(servers)]}
			defer c.close()
			var own []time.Duration
			for sending.Err() == nil && time.Since(began) < limit {
				for _, r := range work.requests() {
					took, _, err := exchanged(c, r)
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
	took := time.Since(began)
	after, err := s.cpu(servers)
	if into != nil {
		into.Rates = append(into.Rates, float64(len(times))/took.Seconds())
		into.times = append(into.times, times...)
		into.cpu.server += after.server - before.server
		into.cpu.database += after.database - before.database
	}
	return len(times), err
}

// exchanged sends a request and returns how long it took, and the answer, which
// is valid until the next request and has no errors.
func exchanged(c *connection, r request) (time.Duration, []byte, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	message := c.to.message(call{method: "POST", path: "/graphql", body: body})
	began := time.Now()
	answer, err := c.exchange(message)
	took := time.Since(began)
	if err == nil {
		_, err = dataOf(answer)
	}
	return took, answer, err
}

// cpu returns what all servers and the database used so far.
func (s *sharedBench) cpu(servers []*target) (sum cpu, err error) {
	for _, t := range servers {
		used, err := t.cpu()
		if err != nil {
			return sum, err
		}
		sum.server, sum.database = sum.server+used.server, used.database
	}
	return sum, nil
}

// added returns how many changes and audit events there have been, and how long
// the log of the database is.
func (s *sharedBench) added(ctx context.Context) (counts [3]float64, err error) {
	for i, query := range []string{
		"SELECT coalesce(max(id), 0) FROM changes", "SELECT coalesce(max(id), 0) FROM audit_events", "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn",
	} {
		text, err := s.on.cluster.Text(ctx, s.on.storage, query)
		if err != nil {
			return counts, err
		}
		if _, err := fmt.Sscan(text, &counts[i]); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// shownUse asks for what is taken from a provider, of the resident world.
const shownUse = `query($provider: UUID!) {
	allocationCandidates(first: 1, inTree: $provider, resources: [{resourceClass: "VCPU", amount: 1}]) {
		providerSummaries { inventories { resourceClass used } }
	}
}`

// watch commits on the first server and watches for it on the others in turn; on
// the first where that is alone.
func (s *sharedBench) watch(ctx context.Context, servers []*target, lags []time.Duration) ([]time.Duration, error) {
	writer := &connection{to: servers[0]}
	defer writer.close()
	watchers := servers
	if len(servers) > 1 {
		watchers = servers[1:]
	}
	for i := range s.lags {
		reader := &connection{to: watchers[i%len(watchers)]}
		from := s.watched(i)
		lag, err := s.watchOne(writer, reader, s.pair(int(s.next.Add(1)), from, 1), request{Query: shownUse, Variables: object{"provider": s.on.world.freeProvider(from)}})
		reader.close()
		if err := errors.Join(err, ctx.Err()); err != nil {
			return lags, err
		}
		lags = append(lags, lag)
	}
	return lags, nil
}

// watched returns the number of the free provider that the i-th commit to watch for
// is on: none that claims beside it are on.
func (s *sharedBench) watched(i int) int {
	besides := s.on.world.freeProvider(0)
	for n := i + 1; ; n++ {
		if s.on.world.freeProvider(n) != besides {
			return n
		}
	}
}

// watchOne commits the first of a pair of requests by the writer and returns how
// long it takes from its answer until the reader shows something else. Then it
// takes the commit back and waits until the reader shows that, too: what is
// watched next may be of the same provider.
func (s *sharedBench) watchOne(writer, reader *connection, pair []request, shown request) (time.Duration, error) {
	_, answer, err := exchanged(reader, shown)
	if err != nil {
		return 0, err
	}
	before := bytes.Clone(unpriced(answer))
	if _, _, err := exchanged(writer, pair[0]); err != nil {
		return 0, err
	}
	lag, err := shownAfter(reader, shown, func(answer []byte) bool { return !bytes.Equal(answer, before) })
	if err != nil {
		return 0, err
	}
	if _, _, err := exchanged(writer, pair[1]); err != nil {
		return 0, err
	}
	_, err = shownAfter(reader, shown, func(answer []byte) bool { return bytes.Equal(answer, before) })
	return lag, err
}

// shownAfter asks until the answer is as expected and returns how long that took.
func shownAfter(reader *connection, shown request, expected func(answer []byte) bool) (time.Duration, error) {
	for began := time.Now(); ; {
		_, answer, err := exchanged(reader, shown)
		lag := time.Since(began)
		switch {
		case err != nil:
			return 0, err
		case expected(unpriced(answer)):
			return lag, nil
		case lag > requestTime:
			return 0, errors.New("a commit is not shown by another process")
		}
	}
}

// watchBeside is watch while a quarter of the clients claim and take back, from
// providers that are not watched.
func (s *sharedBench) watchBeside(ctx context.Context, servers []*target, lags []time.Duration) ([]time.Duration, error) {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	claiming := make(chan error, 1)
	go func() {
		var err error
		for beside.Err() == nil && err == nil {
			work := sharedWork{claimsOfOne, func() []request { return s.pair(int(s.next.Add(1)), 0, 1) }}
			_, err = s.send(ctx, servers, max(1, s.clients/4), 100*time.Millisecond, work, nil)
		}
		claiming <- err
	}()
	lags, err := s.watch(ctx, servers, lags)
	stop()
	return lags, errors.Join(err, <-claiming)
}

// racedCPUs is what each claim of a race takes: of a provider without consumers,
// 16 fit.
const racedCPUs = vcpus * vcpuRatio / 16

// race lets all clients claim more than there is of some providers, all at once,
// and counts in the database what they got. It takes the claims back.
func (s *sharedBench) race(ctx context.Context, servers []*target, one *shared) error {
	const triedEach = 24
	fit := map[string]int{}
	var claims []request
	for i := range s.raced {
		uuid := s.on.world.freeProvider(i)
		if _, ok := fit[uuid]; ok {
			continue
		}
		fit[uuid] = s.on.world.roomFor(uuid, racedCPUs)
		one.Fit += fit[uuid]
		for range triedEach {
			claims = append(claims, s.pair(int(s.next.Add(1)), i, racedCPUs)...)
		}
	}
	one.Tried += len(claims) / 2
	served := make([]bool, len(claims)/2)
	if err := s.claimAll(ctx, servers, claims, served); err != nil {
		return err
	}
	claimed := 0
	for _, ok := range served {
		if ok {
			claimed++
		}
	}
	one.Claimed += claimed
	const over = `SELECT count(*) FROM inventories i JOIN (SELECT provider_id, resource_class_id, sum(used) AS used FROM allocations GROUP BY 1, 2) a
		ON a.provider_id = i.provider_id AND a.resource_class_id = i.resource_class_id WHERE a.used > i.capacity OR a.used <> i.used`
	text, err := s.on.cluster.Text(ctx, s.on.storage, over)
	if err != nil {
		return err
	}
	var overallocated int
	if _, err := fmt.Sscan(text, &overallocated); err != nil {
		return err
	}
	one.Overallocated += overallocated
	c := &connection{to: servers[0]}
	defer c.close()
	for i, ok := range served {
		if ok {
			if _, _, err := exchanged(c, claims[2*i+1]); err != nil {
				return err
			}
		}
	}
	if one.Claimed != one.Fit || overallocated != 0 {
		return fmt.Errorf("%d claims were served where %d fit, and %d inventories are over-allocated", one.Claimed, one.Fit, one.Overallocated)
	}
	return nil
}

// claimAll sends the first of each two requests by all clients and notes which were
// served. One that is refused for another reason than that there is no room is an
// error.
func (s *sharedBench) claimAll(ctx context.Context, servers []*target, claims []request, served []bool) error {
	var next atomic.Int64
	group, claiming := errgroup.WithContext(ctx)
	for i := range s.clients {
		group.Go(func() error {
			c := &connection{to: servers[i%len(servers)]}
			defer c.close()
			for n := int(next.Add(1)) - 1; n < len(served) && claiming.Err() == nil; n = int(next.Add(1)) - 1 {
				// Neighbours in time claim from different providers.
				at := n * 7_919 % len(served)
				_, answer, err := exchanged(c, claims[2*at])
				if served[at] = err == nil; err != nil && !bytes.Contains(answer, []byte(`"CAPACITY_EXCEEDED"`)) {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// roomFor returns how many claims of some processors fit a provider of the world
// beside its consumers, of whose amounts the processors run out first.
func (w *world) roomFor(uuid string, cpus int) int {
	for _, p := range w.providers {
		if p.uuid != uuid {
			continue
		}
		free := vcpus * vcpuRatio
		for _, consumer := range p.consumers {
			for _, from := range consumer["allocations"].([]object) {
				free -= from["resources"].([]object)[0]["amount"].(int)
			}
		}
		return free / cpus
	}
	return 0
}
