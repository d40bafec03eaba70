package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
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
	fmt.Fprintf(c.out, "%s, %s: %d machines arrive, %d leave in the day, %d calls; %d hosts with %d VCPU and %d MEMORY_MB\n",
		database, strategy, len(d.flavors), d.leaving, len(d.calls), number, size.processors, size.memory)
	first := &replay{day: d, strategy: strategy}
	if err := first.run(ctx, c, database); err != nil || c.kills == 0 {
		return err
	}
	second := &replay{day: d, strategy: strategy, kills: map[int]bool{}, random: rand.New(rand.NewPCG(1, 7))}
	for _, number := range second.random.Perm(len(d.calls))[:min(c.kills, len(d.calls))] {
		second.kills[number] = true
	}
	if err := second.run(ctx, c, database); err != nil {
		return err
	}
	differ := 0
	for machine, where := range first.placed {
		if second.placed[machine] != where {
			differ++
		}
	}
	fmt.Fprintf(c.out, "  %d kills, %d of them before the answer; %d placements differ\n", second.killed, second.unanswered, differ)
	if differ > 0 || second.killed != len(second.kills) {
		return errors.New("the replay with kills is another one")
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
	placed             []string     // by machine: its allocations, empty if it was refused
	present            map[int]bool // by machine
	used, peak         flavor
	took               []time.Duration // of calls that place
	sent               int
	killed, unanswered int
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
	r.print(c, took, number, size)
	return r.check(ctx)
}

func (r *replay) print(c *cloud, seconds float64, hosts int, size flavor) {
	refused := 0
	for _, where := range r.placed {
		if where == "" {
			refused++
		}
	}
	slices.Sort(r.took)
	fmt.Fprintf(c.out, "  %d refused, at most %.1f %% of processors and %.1f %% of memory used; %.0f s, %.0f times as fast as it happened; "+
		"%.0f calls/s, place p50 %.1f ms, p99 %.1f ms, %d delayed\n", refused,
		100*float64(r.peak.processors)/float64(hosts*size.processors), 100*float64(r.peak.memory)/float64(hosts*size.memory),
		seconds, daySeconds/seconds, float64(r.sent)/seconds, quantile(r.took, 50), quantile(r.took, 99), r.client.Delayed.Load())
}

func (r *replay) create(ctx context.Context, number int, size flavor) error {
	var hosts []object
	for i := range number {
		name := fmt.Sprint("host", i)
		hosts = append(hosts, object{"uuid": id(name), "name": name,
			"inventories": []object{inventory("VCPU", size.processors), inventory("MEMORY_MB", size.memory)}})
	}
	return r.client.InChunks(ctx, "createResourceProviders", "items", hosts, 500)
}

// call makes a call of the day.
func (r *replay) call(ctx context.Context, number int, one call) error {
	if one.flavor == (flavor{}) {
		return r.release(ctx, number, one.machines)
	}
	return r.place(ctx, number, one)
}

const allocations = "allocations { provider { uuid } resourceClass used }"

func (r *replay) place(ctx context.Context, number int, one call) error {
	var consumers []object
	for _, machine := range one.machines {
		consumers = append(consumers, consumer(nameOf(machine), "INSTANCE"))
	}
	var of answer
	err := r.ask(ctx, number, placing(allocations, object{
		"request":   object{"resources": []object{amount("VCPU", one.flavor.processors), amount("MEMORY_MB", one.flavor.memory)}},
		"consumers": consumers, "strategy": r.strategy, "seed": number, "atomic": false,
	}), &of)
	if err != nil {
		return err
	}
	for i, result := range of.Place.Results {
		fits, err := result.fits()
		if err != nil {
			return err
		}
		if machine := one.machines[i]; fits {
			r.placed[machine], r.present[machine] = string(result.Consumer.Allocations), true
			r.used = r.used.plus(one.flavor)
		}
	}
	r.peak = r.peak.atLeast(r.used)
	return nil
}

// release deletes the allocations of the machines that were placed.
func (r *replay) release(ctx context.Context, number int, machines []int) error {
	var consumers []string
	for _, machine := range machines {
		if r.present[machine] {
			consumers = append(consumers, id(nameOf(machine)))
			r.used = r.used.minus(r.flavors[machine])
			delete(r.present, machine)
		}
	}
	if consumers == nil {
		return nil
	}
	return r.ask(ctx, number, local.Mutation("deleteAllocationsForMany", object{"consumers": consumers}), nil)
}

// ask sends a call with its key until the server answers.
func (r *replay) ask(ctx context.Context, number int, request local.Request, into any) error {
	r.client.Headers = local.Bearing("trace") + fmt.Sprintf("Idempotency-Key: %d\r\n", number)
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

// kill sends a call, kills the server and starts it again. The first kill follows
// the answer, which is lost. The others are at a random moment of a call.
func (r *replay) kill(ctx context.Context, request local.Request) error {
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
		killed <- r.server.Kill()
	}()
	if r.client.Send(ctx, request.Call(), nil).Code != local.Answered {
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
	want := map[string]string{}
	for machine := range r.present {
		want[id(nameOf(machine))] = r.placed[machine]
	}
	got, err := allocated(ctx, r.client)
	if err == nil && !maps.Equal(want, got) {
		err = fmt.Errorf("the server has other allocations: %d consumers, want %d", len(got), len(want))
	}
	return err
}

// allocated returns the allocations of all consumers.
func allocated(ctx context.Context, client *local.Client) (map[string]string, error) {
	type page struct {
		Consumers struct {
			Nodes []struct {
				UUID        string
				Allocations json.RawMessage
			}
			PageInfo struct{ EndCursor *string }
		}
	}
	const query = "query($after: String) { consumers(first: 500, after: $after) { nodes { uuid " + allocations + " } pageInfo { endCursor } } }"
	all := map[string]string{}
	for after := (*string)(nil); ; {
		var of page
		if err := client.Ask(ctx, local.Request{Query: query, Variables: object{"after": after}}, &of); err != nil {
			return nil, err
		}
		for _, one := range of.Consumers.Nodes {
			all[one.UUID] = string(one.Allocations)
		}
		if after = of.Consumers.PageInfo.EndCursor; after == nil {
			return all, nil
		}
	}
}

func nameOf(machine int) string { return fmt.Sprint("machine", machine) }
