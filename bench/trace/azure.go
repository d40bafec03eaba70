package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/client"
)

// azure replays a day of arrivals and departures of virtual machines in an empty
// cloud with one client. Then it replays the day again and kills the server, and
// compares the placements. The folder has the day in the form of
// github.com/huaweicloud/trace_generation_rnn: flavor_map.txt, interval_map.txt.gz,
// v1.test.txt.gz and v1.test.durations.txt.gz, here from the Azure public data set
// of 2017 (Cortez et al., "Resource Central", SOSP 2017, CC BY 4.0).
func (c *cloud) azure(ctx context.Context, database, strategy string) error {
	d, err := readDay(c.data)
	if err != nil {
		return err
	}
	number, size := d.hosts()
	fmt.Fprintf(c.out, "%s, %s: %d machines arrive, %d leave in the day; %d hosts with %d VCPU and %d MEMORY_MB\n",
		database, strategy, len(d.flavors), d.leaving, number, size.processors, size.memory)
	first := &replay{day: d, strategy: strategy}
	if err := first.run(ctx, c, database); err != nil || c.kills == 0 {
		return err
	}
	second := &replay{day: d, strategy: strategy, random: rand.New(rand.NewPCG(1, 7))}
	second.drawKills(c.kills)
	if err := second.run(ctx, c, database); err != nil {
		return err
	}
	differ := second.differences(first)
	fmt.Fprintf(c.out, "  %d kills, %d of them before the answer; %d placements differ\n",
		second.killed, second.unanswered, differ)
	if differ > 0 || second.killed != len(second.kills) {
		return errors.New("the replay with kills differs from the first replay, or lacks kills")
	}
	return nil
}

// replay is a day that one client replays.
type replay struct {
	*day
	strategy string
	kills    map[int]bool // by number of the call
	random   *rand.Rand

	server             *local.Server
	client             *local.Client
	free               map[string]flavor // by host
	placed             []string          // hosts by machine, empty if it was refused
	present            map[int]bool      // by machine
	used, peak         flavor
	took               []time.Duration // of calls that place
	sent               int
	killed, unanswered int
}

// drawKills draws the calls during which the server is killed.
func (r *replay) drawKills(number int) {
	r.kills = map[int]bool{}
	for _, call := range r.random.Perm(len(r.calls))[:min(number, len(r.calls))] {
		r.kills[call] = true
	}
}

// differences returns the number of machines that the replays placed differently.
func (r *replay) differences(other *replay) (number int) {
	for machine, where := range r.placed {
		if other.placed[machine] != where {
			number++
		}
	}
	return number
}

// run replays the day on a new database and checks the allocations in the end.
func (r *replay) run(ctx context.Context, c *cloud, database string) (err error) {
	name := fmt.Sprintf("%s_%d", strings.ToLower(r.strategy), len(r.kills))
	if r.server, r.client, err = c.start(ctx, database, name, 1); err != nil {
		return err
	}
	defer func() { _ = r.server.Stop() }()
	defer r.client.Close()
	number, size := r.hosts()
	if err := r.create(ctx, number, size); err != nil {
		return err
	}
	r.placed, r.present = make([]string, len(r.flavors)), map[int]bool{}
	began := time.Now()
	for number, one := range r.calls {
		if err := r.call(ctx, number, one); err != nil {
			return fmt.Errorf("call %d: %w", number, err)
		}
	}
	took := time.Since(began).Seconds()
	if err := r.check(ctx); err != nil {
		return err
	}
	r.print(c.out, took, number, size)
	return nil
}

func (r *replay) print(out io.Writer, seconds float64, hosts int, size flavor) {
	refused := 0
	for _, where := range r.placed {
		if where == "" {
			refused++
		}
	}
	share := func(used, of int) float64 { return 100 * float64(used) / float64(hosts*of) }
	fmt.Fprintf(out, "  %d refused, at most %.1f %% of VCPU and %.1f %% of MEMORY_MB used, %d in the end, as stored\n",
		refused, share(r.peak.processors, size.processors), share(r.peak.memory, size.memory), len(r.present))
	fmt.Fprintf(out, "  %.0f s, %.0f times as fast as it happened; %.0f calls/s, ",
		seconds, daySeconds/seconds, float64(r.sent)/seconds)
	fmt.Fprintf(out, "place p50 %.1f ms, p99 %.1f ms, %d delayed\n",
		measured.Quantile(r.took, 50), measured.Quantile(r.took, 99), r.client.Delayed.Load())
}

func (r *replay) create(ctx context.Context, number int, size flavor) error {
	r.free = map[string]flavor{}
	var hosts []object
	for i := range number {
		name := fmt.Sprint("host", i)
		r.free[id(name)] = size
		hosts = append(hosts, object{"uuid": id(name), "name": name,
			"inventories": []object{inventory("VCPU", size.processors), inventory("MEMORY_MB", size.memory)}})
	}
	return r.client.InChunks(ctx, "createResourceProviders", "items", hosts, 500)
}

// call makes a call of the day: it places machines, or releases them.
func (r *replay) call(ctx context.Context, number int, one call) error {
	if one.flavor == (flavor{}) {
		return r.release(ctx, number, one.machines)
	}
	return r.place(ctx, number, one)
}

func (r *replay) place(ctx context.Context, number int, one call) error {
	var consumers []object
	for _, machine := range one.machines {
		consumers = append(consumers, consumer(nameOf(machine), "INSTANCE"))
	}
	var of answer
	resources := []object{amount("VCPU", one.flavor.processors), amount("MEMORY_MB", one.flavor.memory)}
	err := r.ask(ctx, number, placing(allocationFields, object{
		"request": object{"resources": resources}, "consumers": consumers, "atomic": false,
		"strategy": r.strategy, "seed": number,
	}), &of)
	if err != nil {
		return err
	}
	for i, result := range of.Place.Results {
		fits, err := result.fits()
		if err != nil {
			return err
		}
		if !fits {
			err = r.refuse(one.flavor)
		} else {
			err = r.accept(one.machines[i], result.Consumer.Allocations)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuse checks that no host has room for a machine.
func (r *replay) refuse(of flavor) error {
	for _, free := range r.free {
		if free.atLeast(of) == free {
			return fmt.Errorf("no room for %v, but a host has %v", of, free)
		}
	}
	return nil
}

// accept checks that the allocations of a machine are on one host with room,
// and notes them.
func (r *replay) accept(machine int, allocations []allocation) error {
	of, host := r.flavors[machine], allocations[0].Provider
	free, ok := r.free[host.UUID]
	if !ok || free.atLeast(of) != free || !slices.Equal(allocations, of.on(host)) {
		return fmt.Errorf("%v has %v, the host had %v", of, allocations, free)
	}
	r.placed[machine], r.present[machine] = host.UUID, true
	r.free[host.UUID] = free.minus(of)
	r.used = r.used.plus(of)
	r.peak = r.peak.atLeast(r.used)
	return nil
}

// release deletes the allocations of the machines that were placed.
func (r *replay) release(ctx context.Context, number int, machines []int) error {
	var consumers []string
	for _, machine := range machines {
		if r.present[machine] {
			of, host := r.flavors[machine], r.placed[machine]
			consumers = append(consumers, id(nameOf(machine)))
			r.used, r.free[host] = r.used.minus(of), r.free[host].plus(of)
			delete(r.present, machine)
		}
	}
	if consumers == nil {
		return nil
	}
	return r.ask(ctx, number, local.Mutation("deleteAllocationsForMany", object{"consumers": consumers}), nil)
}

// ask sends a call with its idempotency key until the server answers. A call of
// kills is first sent once, while the server is killed.
func (r *replay) ask(ctx context.Context, number int, request local.Call, into any) error {
	r.client.Headers = local.Bearing(token) + fmt.Sprintf("Idempotency-Key: %d\r\n", number)
	r.sent++
	if r.kills[number] {
		if err := r.kill(ctx, request); err != nil {
			return err
		}
	}
	began := time.Now()
	err := r.client.Ask(ctx, request, into)
	if into != nil {
		r.took = append(r.took, time.Since(began))
	}
	return err
}

// kill sends a call, kills the server and starts it again. It ignores the
// answer. The first kill follows the answer; others are at a random moment of
// the call, or after an answer that comes earlier.
func (r *replay) kill(ctx context.Context, request local.Call) error {
	var moment <-chan time.Time
	if r.killed++; r.killed > 1 {
		moment = time.After(time.Duration(r.random.Float64() * float64(r.took[len(r.took)-1])))
	}
	killed, answered := make(chan error, 1), make(chan struct{})
	go func() {
		select {
		case <-moment:
		case <-answered:
		}
		killed <- r.server.Kill(syscall.SIGKILL)
	}()
	if r.client.Send(ctx, request, nil).Code != local.Answered {
		r.unanswered++
	}
	close(answered)
	if err := <-killed; err != nil {
		return err
	}
	return r.server.Start(ctx)
}

// check compares the allocations of the server with the machines that were placed
// and have not left.
func (r *replay) check(ctx context.Context) error {
	want := map[string][]allocation{}
	for machine := range r.present {
		want[id(nameOf(machine))] = r.flavors[machine].on(provider{r.placed[machine]})
	}
	got, err := allocated(ctx, r.server.Host)
	if err == nil && !maps.EqualFunc(want, got, slices.Equal[[]allocation]) {
		err = fmt.Errorf("the server has other allocations: %d consumers, want %d", len(got), len(want))
	}
	return err
}

// allocated returns the allocations of all consumers of a server.
func allocated(ctx context.Context, host string) (map[string][]allocation, error) {
	page, all := 500, map[string][]allocation{}
	reader := client.New("http://"+host, client.WithToken(token))
	for one, err := range client.Consumers(ctx, reader, nil, nil, &page) {
		if err != nil {
			return nil, err
		}
		for _, of := range one.Allocations {
			all[one.Uuid] = append(all[one.Uuid], allocation{provider{of.Provider.Uuid}, of.ResourceClass, int(of.Used)})
		}
	}
	return all, nil
}

// on returns the allocations of a machine on a host.
func (f flavor) on(host provider) []allocation {
	return []allocation{{host, "MEMORY_MB", f.memory}, {host, "VCPU", f.processors}}
}

func nameOf(machine int) string { return fmt.Sprint("machine", machine) }
