// Command trace places the tasks of a published trace of a GPU cluster by each
// strategy, through the API, and prints the share of GPUs that it could allocate.
// The folder has the files of the trace of Weng et al., "Beware of Fragmentation"
// (USENIX ATC 2023): openb_node_list_gpu_node.csv and openb_pod_list_default.csv.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

type object = local.Object

// gpus is the class of a thousandth of a GPU. Each GPU is a child of its node.
const gpus = "CUSTOM_GPU_MILLI"

// A node and a task have processors in thousandths and memory in MiB. A task has
// a number of GPUs, and of thousandths of each.
type node struct {
	name                    string
	processors, memory, gpu int
}

type task struct{ processors, memory, gpu, milli int }

type options struct {
	program, data, database string
	strategies              []string
	seeds, clients, percent int
	moves                   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	o.strategies = []string{"RANDOM", "SPREAD", "PACK", "LEAST_FRAGMENTING"}
	flag.StringVar(&o.program, "program", "", "server program (default: a build of this tree)")
	flag.StringVar(&o.data, "data", "", "`folder` of the trace")
	flag.StringVar(&o.database, "database", "", "`URL` of an empty database of PostgreSQL, for one seed and strategy (default: SQLite)")
	flag.Func("strategies", "strategies as a `LIST` with commas (default all)", local.List(&o.strategies, slices.Clone(o.strategies)))
	flag.IntVar(&o.seeds, "seeds", 10, "`number` of samples")
	flag.IntVar(&o.clients, "clients", 1, "`number` of clients that place at once")
	flag.IntVar(&o.percent, "demand", 130, "GPUs that the tasks ask for, in per cent of all")
	flag.IntVar(&o.moves, "moves", 0, "`number` of moves of a rebalancing in the end, at most 100")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// run places every sample by every strategy, each in an empty cloud.
func run(ctx context.Context, o options) error {
	nodes, tasks, err := read(o.data)
	if err != nil {
		return err
	}
	folder, err := local.Folder("trace")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if o.program == "" {
		o.program = filepath.Join(folder, "cadastre")
		if err := local.Build(ctx, o.program); err != nil {
			return err
		}
	}
	for _, strategy := range o.strategies {
		var sum float64
		for seed := range o.seeds {
			share, err := (&sample{options: o, strategy: strategy, seed: seed, nodes: nodes, tasks: tasks}).run(ctx, folder)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", strategy, seed, err)
			}
			sum += share
		}
		fmt.Printf("%s: mean of %d: %.2f %% of GPUs\n", strategy, o.seeds, sum/float64(o.seeds))
	}
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
	amount := func(class string, units int) object { return object{"resourceClass": class, "amount": units} }
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

// maxShapes is the number of shapes that the server takes.
const maxShapes = 32

// shapes returns the most frequent tasks, by their number.
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
	options
	strategy string
	seed     int
	nodes    []node
	tasks    []task

	mutex  sync.Mutex
	placed int // thousandths of GPUs
	failed int // tasks
	took   []time.Duration
}

// run returns the share of GPUs that the tasks got, in per cent.
func (s *sample) run(ctx context.Context, folder string) (float64, error) {
	name := fmt.Sprintf("%s-%d", strings.ToLower(s.strategy), s.seed)
	tokens := filepath.Join(folder, "tokens.json")
	if err := local.WriteTokens(tokens, []local.Token{{Token: "trace", User: "trace", Project: "trace", Role: "service"}}); err != nil {
		return 0, err
	}
	database := cmp.Or(s.database, "sqlite://"+filepath.Join(folder, name+".db"))
	server, err := local.NewServer(local.Setup{Program: s.program, Folder: folder, Name: name, Database: database, Tokens: tokens})
	if err != nil {
		return 0, err
	}
	if err := server.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { _ = server.Stop() }()
	client := local.NewClient(server.Host, local.Bearing("trace"), "", s.clients, time.Minute)
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
	slices.Sort(s.took)
	share := 100 * float64(s.placed) / float64(capacity)
	fmt.Printf("%s seed %d: %.2f %% of GPUs; %d tasks, %d without room; %d clients: %.0f places/s, p50 %.1f ms, p99 %.1f ms\n",
		s.strategy, s.seed, share, len(s.took), s.failed, s.clients, float64(len(s.took))/time.Since(began).Seconds(),
		s.quantile(50), s.quantile(99))
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
	if err := client.Ask(ctx, local.Request{Query: `query($mix: [MixedRequestInput!]!, $moves: Int!) { rebalancePlan(requests: $mix, maxMoves: $moves) {
		atLeast moves { consumer { uuid } consumerGeneration allocations { provider resources { resourceClass amount } } atLeast } } }`,
		Variables: object{"mix": mix, "moves": s.moves}}, &found); err != nil {
		return err
	}
	took := time.Since(began)
	plan, moves := found.RebalancePlan, []object{}
	after := plan.AtLeast
	for _, move := range plan.Moves {
		moves, after = append(moves, object{"consumer": move.Consumer["uuid"], "consumerGeneration": move.ConsumerGeneration, "allocations": move.Allocations}), move.AtLeast
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
	fmt.Printf("%d moves in %v: fits by share %d before, %d after; together %d before, %d after\n",
		len(moves), took.Round(time.Millisecond), weighted(plan.AtLeast), weighted(after), before, now)
	return nil
}

// together returns how many tasks of a mix fit in turn.
func together(ctx context.Context, client *local.Client, mix []object) (int, error) {
	var answer struct{ FitsTogether struct{ AtLeast int } }
	err := client.Ask(ctx, local.Request{Query: `query($mix: [MixedRequestInput!]!) { fitsTogether(requests: $mix) { atLeast } }`,
		Variables: object{"mix": mix}}, &answer)
	return answer.FitsTogether.AtLeast, err
}

func (s *sample) quantile(percent int) float64 {
	return float64(s.took[len(s.took)*percent/100].Microseconds()) / 1000
}

// create creates the nodes and their GPUs, and returns the capacity in
// thousandths of GPUs.
func (s *sample) create(ctx context.Context, client *local.Client) (capacity int, err error) {
	inventory := func(class string, total int) object { return object{"resourceClass": class, "total": total} }
	if err := client.Ask(ctx, local.Mutation("createResourceClass", object{"name": gpus}), nil); err != nil {
		return 0, err
	}
	var roots, children []object
	for _, one := range s.nodes {
		roots = append(roots, object{"uuid": id(one.name), "name": one.name,
			"inventories": []object{inventory("VCPU", one.processors), inventory("MEMORY_MB", one.memory)}})
		for i := range one.gpu {
			name := fmt.Sprintf("%s-gpu%d", one.name, i)
			children = append(children, object{"uuid": id(name), "name": name, "parent": id(one.name), "inventories": []object{inventory(gpus, 1000)}})
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

func id(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

// drawn returns the tasks in a random order, and then random ones again, until
// they ask for enough GPUs.
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
	const document = `mutation($input: PlaceInput!) { place(input: $input) { results { consumer { uuid } errors { code message } } } }`
	input := object{"request": one.request(), "strategy": s.strategy, "seed": number, "consumers": []object{{
		"uuid": id(fmt.Sprint(s.seed, s.strategy, number)), "projectId": "trace", "userId": "trace", "type": "TASK"}}}
	if s.strategy == "LEAST_FRAGMENTING" {
		input["shapes"] = shapes(s.tasks)
	}
	var answer struct {
		Place struct {
			Results []struct {
				Consumer *struct{ UUID string }
				Errors   []struct{ Code, Message string }
			}
		}
	}
	began := time.Now()
	if err := client.Ask(ctx, local.Request{Query: document, Variables: object{"input": input}}, &answer); err != nil {
		return err
	}
	took := time.Since(began)
	result := answer.Place.Results[0]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.took = append(s.took, took)
	switch {
	case result.Consumer != nil:
		s.placed += one.gpu * one.milli
	case len(result.Errors) == 1 && result.Errors[0].Code == "CAPACITY_EXCEEDED":
		s.failed++
	default:
		return fmt.Errorf("place: %+v", result.Errors)
	}
	return nil
}
