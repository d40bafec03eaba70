package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"golang.org/x/sync/errgroup"
)

// gpus is the class of a thousandth of a GPU. Each GPU is a child of its node.
const gpus = "CUSTOM_GPU_MILLI"

// A node and a task have processors in thousandths and memory in MiB. A task has
// a number of GPUs, and of thousandths of each.
type node struct {
	name                    string
	processors, memory, gpu int
}

type task struct{ processors, memory, gpu, milli int }

// gpu places samples of the tasks of a GPU cluster by one strategy, each in an
// empty cloud, and prints the shares of GPUs that the tasks got. The folder
// has the files of the trace of Weng et al., "Beware of Fragmentation" (USENIX ATC
// 2023): openb_node_list_gpu_node.csv and openb_pod_list_default.csv.
func (c *cloud) gpu(ctx context.Context, database, strategy string) error {
	nodes, tasks, err := read(c.data)
	if err != nil {
		return err
	}
	var sum float64
	for seed := range c.seeds {
		share, err := (&sample{cloud: c, database: database, strategy: strategy, seed: seed,
			nodes: nodes, tasks: tasks}).run(ctx)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		sum += share
	}
	fmt.Fprintf(c.out, "%s: mean of %d: %.2f %% of GPUs\n", strategy, c.seeds, sum/float64(c.seeds))
	return nil
}

// read reads the nodes and tasks of the trace.
func read(folder string) (nodes []node, tasks []task, err error) {
	rows := func(name string) (lines [][]string) {
		file, opened := os.Open(filepath.Join(folder, name))
		if err = errors.Join(err, opened); err == nil {
			defer file.Close()
			lines, err = csv.NewReader(file).ReadAll()
		}
		return lines[min(1, len(lines)):]
	}
	number := func(text string) int {
		n, parsed := strconv.Atoi(cmp.Or(text, "0"))
		err = errors.Join(err, parsed)
		return n
	}
	for _, row := range rows("openb_node_list_gpu_node.csv") {
		nodes = append(nodes, node{row[0], number(row[1]), number(row[2]), number(row[3])})
	}
	for _, row := range rows("openb_pod_list_default.csv") {
		one := task{number(row[1]), number(row[2]), number(row[3]), number(row[4])}
		if one.gpu == 0 {
			one.milli = 0
		}
		tasks = append(tasks, one)
	}
	return nodes, tasks, err
}

// request returns the task as a request, without the weight of a shape.
func (t task) request() object {
	resources := []object{amount("VCPU", t.processors)}
	if t.memory > 0 {
		resources = append(resources, amount("MEMORY_MB", t.memory))
	}
	one := object{"resources": resources}
	var groups []object
	for i := range t.gpu {
		groups = append(groups, object{"suffix": fmt.Sprint("_gpu", i), "resources": []object{amount(gpus, t.milli)}})
	}
	if groups != nil {
		one["groups"], one["groupPolicy"] = groups, "ISOLATE"
	}
	return one
}

// maxShapes is the maximum number of shapes that the server accepts.
const maxShapes = 32

// shapes returns the most frequent tasks as requests, with their numbers as
// weights.
func shapes(tasks []task) (shapes []object) {
	numbers := map[task]int{}
	for _, one := range tasks {
		numbers[one]++
	}
	kinds := slices.SortedFunc(maps.Keys(numbers), func(a, b task) int {
		return cmp.Or(numbers[b]-numbers[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	for _, kind := range kinds[:min(maxShapes, len(kinds))] {
		shape := kind.request()
		shape["weight"] = numbers[kind]
		shapes = append(shapes, shape)
	}
	return shapes
}

// sample is the tasks of one seed, placed by one strategy.
type sample struct {
	*cloud
	database, strategy string
	seed               int
	nodes              []node
	tasks              []task

	mutex  sync.Mutex
	placed int // thousandths of GPUs
	failed int // tasks
	took   []time.Duration
}

// run places the tasks of the sample in an empty cloud. It returns the share of
// GPUs that they got, in per cent.
func (s *sample) run(ctx context.Context) (float64, error) {
	server, client, err := s.start(ctx, s.database, fmt.Sprintf("%s_%d", strings.ToLower(s.strategy), s.seed),
		s.clients)
	if err != nil {
		return 0, err
	}
	defer func() { _ = server.Stop() }()
	defer client.Close()
	capacity, err := s.create(ctx, client)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	sending, of := errgroup.WithContext(ctx)
	sending.SetLimit(s.clients)
	for i, one := range s.drawn(capacity) {
		sending.Go(func() error { return s.place(of, client, i, one) })
	}
	if err := sending.Wait(); err != nil {
		return 0, err
	}
	share := 100 * float64(s.placed) / float64(capacity)
	fmt.Fprintf(s.out,
		"%s seed %d: %.2f %% of GPUs; %d tasks, %d without room; %d clients: %.0f places/s, p50 %.1f ms, p99 %.1f ms\n",
		s.strategy, s.seed, share, len(s.took), s.failed, s.clients, float64(len(s.took))/time.Since(began).Seconds(),
		measured.Quantile(s.took, 50), measured.Quantile(s.took, 99))
	if s.moves > 0 {
		return share, s.rebalance(ctx, client)
	}
	return share, nil
}

// rebalance makes the moves of a plan for the most frequent tasks, and prints how
// many of these tasks fit in turn before and after them.
func (s *sample) rebalance(ctx context.Context, client *local.Client) error {
	var mix []object
	for _, shape := range shapes(s.tasks) {
		share := min(1000, shape["weight"].(int))
		delete(shape, "weight")
		mix = append(mix, object{"request": shape, "share": share})
	}
	before, err := together(ctx, client, mix)
	if err != nil {
		return err
	}
	began := time.Now()
	var found struct {
		RebalancePlan struct {
			AtLeast []int
			Moves   []struct {
				Consumer           object
				ConsumerGeneration int
				Allocations        []object
				AtLeast            []int
			}
		}
	}
	if err := client.Ask(ctx, local.Operation(`query($mix: [MixedRequestInput!]!, $moves: Int!) { rebalancePlan(requests: $mix, maxMoves: $moves) {
		atLeast moves { consumer { uuid } consumerGeneration allocations { provider resources { resourceClass amount } } atLeast } } }`,
		object{"mix": mix, "moves": s.moves}), &found); err != nil {
		return err
	}
	took := time.Since(began)
	plan, moves := found.RebalancePlan, []object{}
	after := plan.AtLeast
	for _, move := range plan.Moves {
		moves, after = append(moves, object{"consumer": move.Consumer["uuid"],
			"consumerGeneration": move.ConsumerGeneration, "allocations": move.Allocations}), move.AtLeast
	}
	if err := client.Ask(ctx, local.Mutation("applyPlan", object{"moves": moves}), nil); err != nil {
		return err
	}
	now, err := together(ctx, client, mix)
	if err != nil {
		return err
	}
	weighted := func(fits []int) (sum int) {
		for i, of := range fits {
			sum += of * mix[i]["share"].(int)
		}
		return sum
	}
	fmt.Fprintf(s.out, "%d moves in %v: fits by share %d before, %d after; together %d before, %d after\n",
		len(moves), took.Round(time.Millisecond), weighted(plan.AtLeast), weighted(after), before, now)
	return nil
}

// together returns how many tasks of a mix fit in turn.
func together(ctx context.Context, client *local.Client, mix []object) (int, error) {
	var answer struct{ FitsTogether struct{ AtLeast int } }
	err := client.Ask(ctx,
		local.Operation(`query($mix: [MixedRequestInput!]!) { fitsTogether(requests: $mix) { atLeast } }`,
			object{"mix": mix}), &answer)
	return answer.FitsTogether.AtLeast, err
}

// create creates the nodes and their GPUs, and returns the capacity in
// thousandths of GPUs.
func (s *sample) create(ctx context.Context, client *local.Client) (capacity int, err error) {
	if err := client.Ask(ctx, local.Mutation("createResourceClass", object{"name": gpus}), nil); err != nil {
		return 0, err
	}
	var roots, children []object
	for _, one := range s.nodes {
		roots = append(roots, object{"uuid": id(one.name), "name": one.name,
			"inventories": []object{inventory("VCPU", one.processors), inventory("MEMORY_MB", one.memory)}})
		for i := range one.gpu {
			name := fmt.Sprintf("%s-gpu%d", one.name, i)
			children = append(children, object{"uuid": id(name), "name": name, "parent": id(one.name),
				"inventories": []object{inventory(gpus, 1000)}})
			capacity += 1000
		}
	}
	for _, inputs := range [][]object{roots, children} {
		if err := client.InChunks(ctx, "createResourceProviders", "items", inputs, 500); err != nil {
			return 0, err
		}
	}
	return capacity, nil
}

// drawn returns the tasks in a random order, and after all tasks random ones
// again, until they ask for s.percent per cent of the capacity.
func (s *sample) drawn(capacity int) (drawn []task) {
	random := rand.New(rand.NewPCG(uint64(s.seed), 7))
	shuffled := slices.Clone(s.tasks)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for asked := 0; asked < capacity*s.percent/100; {
		one := s.tasks[random.IntN(len(s.tasks))]
		if len(drawn) < len(shuffled) {
			one = shuffled[len(drawn)]
		}
		asked += one.gpu * one.milli
		drawn = append(drawn, one)
	}
	return drawn
}

// place places one task. Any error but a lack of room ends the run.
func (s *sample) place(ctx context.Context, client *local.Client, number int, one task) error {
	input := object{"request": one.request(), "strategy": s.strategy, "seed": number,
		"consumers": []object{consumer(fmt.Sprint(s.seed, s.strategy, number), "TASK")}}
	if s.strategy == "LEAST_FRAGMENTING" {
		input["shapes"] = shapes(s.tasks)
	}
	var of answer
	began := time.Now()
	if err := client.Ask(ctx, placing("uuid", input), &of); err != nil {
		return err
	}
	took := time.Since(began)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.took = append(s.took, took)
	fits, err := of.Place.Results[0].fits()
	if fits {
		s.placed += one.gpu * one.milli
	} else {
		s.failed++
	}
	return err
}
