package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/internal/pgproxy"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Replay runs schedules of the model on stores that share a PostgreSQL
// database, each behind a proxy. Triggers of the test record the history of
// each key, so that the model's oracle can check every world of a store.
type Replay struct {
	db       *sql.DB // bypasses the proxies
	crash    func()  // stops and restarts the database server
	crashes  int
	instants atomic.Int64 // the number of instants read
	worlds   int          // the number of worlds checked
	known    int          // the number of answered callers
	servers  []*replayServer
	keys     []changeKey
	callers  sync.WaitGroup
	calls    int
}

// replayServer is a store with the history of its world.
type replayServer struct {
	*PlacementStore
	proxy  *pgproxy.Proxy
	oracle *oracle
	free   chan struct{} // limits concurrent callers

	mu     sync.Mutex
	events []replayEvent
	seen   *placement.World
}

// replayEvent is a world, with the caller that was answered when the world was
// current.
type replayEvent struct {
	world *placement.World
	call  string // "" if no caller
}

// callsAtOnce is the number of concurrent calls to one store of a replay.
const callsAtOnce = 3

func replayUUID(i int) string { return fmt.Sprintf("%08d-0000-4000-8000-%012d", i, i) }

// historyOfTheTest makes PostgreSQL record the history of each key, with the
// transactions.
const historyOfTheTest = `
CREATE TABLE test_history (seq bigserial PRIMARY KEY, kind text, key text, row_id bigint, version bigint, present boolean, number bigint);
CREATE FUNCTION test_provider () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO test_history (kind, key, row_id, version, present, number) VALUES ('ResourceProvider', OLD.uuid, 0, 0, false, pg_current_xact_id()::text::bigint);
  ELSE
    INSERT INTO test_history (kind, key, row_id, version, present, number) VALUES ('ResourceProvider', NEW.uuid, NEW.id, NEW.version, true, pg_current_xact_id()::text::bigint);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION test_name () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO test_history (kind, key, row_id, version, present, number) VALUES (TG_ARGV[0], OLD.name, 0, 0, false, pg_current_xact_id()::text::bigint);
  ELSE
    INSERT INTO test_history (kind, key, row_id, version, present, number) VALUES (TG_ARGV[0], NEW.name, NEW.id, 0, true, pg_current_xact_id()::text::bigint);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER test_history AFTER INSERT OR UPDATE OR DELETE ON resource_providers FOR EACH ROW EXECUTE FUNCTION test_provider ();
CREATE TRIGGER test_history AFTER INSERT OR DELETE ON traits FOR EACH ROW EXECUTE FUNCTION test_name ('Trait');
CREATE TRIGGER test_history AFTER INSERT OR DELETE ON resource_classes FOR EACH ROW EXECUTE FUNCTION test_name ('ResourceClass');`

// NewReplay prepares a database and the stores that share it.
func NewReplay(t testing.TB, db *sql.DB, crash func(), stores []*PlacementStore, proxies []*pgproxy.Proxy) *Replay {
	t.Helper()
	if _, err := db.Exec(historyOfTheTest); err != nil {
		t.Fatal(err)
	}
	run := &Replay{db: db, crash: crash}
	for i := range modelUUIDs {
		run.keys = append(run.keys, changeKey{providerKind, replayUUID(i)})
	}
	for i := range modelTraits {
		run.keys = append(run.keys, changeKey{traitKind, modelTrait(i)})
	}
	run.keys = append(run.keys, changeKey{resourceClassKind, modelClass})
	for i, store := range stores {
		server := &replayServer{PlacementStore: store, proxy: proxies[i], free: make(chan struct{}, callsAtOnce),
			oracle: newOracle(map[changeKey][]modelVersion{}, run.keys)}
		run.servers = append(run.servers, server)
	}
	return run
}

// Run runs the schedule of a seed and checks the invariants.
func (run *Replay) Run(t testing.TB, seed uint64) {
	t.Helper()
	s := newSchedule(seed, replayLength)
	sampling, stop := context.WithCancel(t.Context())
	var samplers sync.WaitGroup
	for _, server := range run.servers {
		samplers.Go(func() {
			for sampling.Err() == nil {
				server.sample("")
				pause.For(sampling, 200*time.Microsecond)
			}
		})
	}
	for _, a := range s.actions {
		run.do(t, s, a)
	}
	run.settle(t, s, seed)
	stop()
	samplers.Wait()
	run.judge(t, seed)
}

// replayLength is the number of actions in a replayed schedule.
const replayLength = 60

// sample records the current world, if it is new or a caller was answered.
func (s *replayServer) sample(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if world := s.cache.World(); world != s.seen || call != "" {
		s.seen = world
		s.events = append(s.events, replayEvent{world, call})
	}
}

// do runs one action, as far as real servers allow. A fault of COMMIT hits the
// next call, or a running one.
func (run *Replay) do(t testing.TB, s schedule, a action) {
	server, r := run.servers[a.process%len(run.servers)], rand.New(rand.NewPCG(a.pick, 2))
	late := time.Duration(r.IntN(15)) * time.Millisecond
	if fault, calls := faultsOfCommits(late)[a.kind]; calls {
		server.proxy.Fail(fault)
		run.call(t, s, server, r)
		return
	}
	switch a.kind {
	case changeSomething, stepLook:
		pause.For(t.Context(), time.Duration(r.IntN(1500))*time.Microsecond)
	case giveUp:
		server.proxy.Cut(false)
	case beginLook:
		server.follower.wake()
	case stepInstant:
		run.readInstant(t, server)
	case beginLoad:
		if err := server.follower.exclusively(t.Context(), func() error {
			_, err := server.follower.load(t.Context())
			return err
		}); err != nil {
			t.Log("load:", err)
		}
	case deliverNote:
		server.proxy.Notifications(false, late)
	case loseNote:
		server.proxy.Notifications(true, 0)
	case loseConnection:
		server.proxy.Cut(true)
	default:
		run.disturb(t, a.kind, server, r)
	}
}

// faultsOfCommits returns the actions that call a server, with the fault of the
// COMMIT.
func faultsOfCommits(late time.Duration) map[actionKind]pgproxy.Fault {
	return map[actionKind]pgproxy.Fault{
		beginTransaction:  {Late: late},
		commitTransaction: {},
		publishCommit:     {Held: late},
		loseCommit:        {Late: late, Silent: true},
		endLostCommit:     {Late: late, Silent: true},
		abortTransaction:  {Lost: true},
	}
}

// disturb changes the database from outside the servers.
func (run *Replay) disturb(t testing.TB, kind actionKind, server *replayServer, r *rand.Rand) {
	t.Helper()
	switch kind {
	case pruneLog:
		run.exec(t, `UPDATE changes SET created_at = created_at - interval '1 hour' WHERE kind <> 'Pruned'`)
		if err := server.PruneChanges(t.Context()); err != nil {
			t.Log("prune:", err)
		}
	case resetStatistics:
		run.exec(t, `SELECT pg_stat_reset_shared('bgwriter')`)
	case crashServer:
		if r.IntN(3) == 0 {
			run.crashes++
			run.crash()
			return
		}
		run.exec(t,
			`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'cadastre'`)
	}
}

func (run *Replay) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := run.db.Exec(statement); err != nil {
		t.Log(statement, err)
	}
}

// call makes a store write something in the background. After a successful
// answer the store's world must have the write.
func (run *Replay) call(t testing.TB, s schedule, server *replayServer, r *rand.Rand) {
	select {
	case server.free <- struct{}{}:
	case <-time.After(patience.Of(t, 5*time.Second)):
		t.Error("the calls of a store come to no end")
		return
	}
	run.calls++
	name := fmt.Sprintf("caller %d", run.calls)
	run.callers.Go(func() {
		defer func() { <-server.free }()
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, 5*time.Second))
		defer cancel()
		ctx = access.WithViewer(ctx, access.Viewer{UserID: name, ProjectID: "p", Roles: []string{access.RoleAdmin}})
		if server.writeSomething(ctx, s, r) == nil {
			server.sample(name)
		}
	})
}

// readInstant makes an operation read at one instant in the background. It
// checks that the operation's world equals the database at that instant.
func (run *Replay) readInstant(t testing.TB, server *replayServer) {
	run.callers.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, 5*time.Second))
		defer cancel()
		ctx = access.WithViewer(ctx, access.Viewer{UserID: "reader", ProjectID: "p", Roles: []string{access.RoleAdmin}})
		difference, err := server.InstantDifference(ctx)
		if err == nil {
			run.instants.Add(1)
		}
		if err == nil && difference != "" {
			t.Errorf("the world of an instant is not the database: %s", difference)
		}
	})
}

// writeSomething runs one random mutation. Refusals are fine.
func (s *replayServer) writeSomething(ctx context.Context, of schedule, r *rand.Rand) error {
	uuid := replayUUID(r.IntN(of.uuids))
	_, found := s.cache.World().Provider(uuid)
	found = found || r.IntN(3) == 0 // the world may lack it
	parent, name := replayUUID(r.IntN(of.uuids)), fmt.Sprintf("name %d", r.IntN(of.uuids))
	switch kind := of.writes[r.IntN(len(of.writes))]; {
	case kind == writeTrait:
		return s.writeName(ctx, modelTrait(r.IntN(modelTraits)), r, s.CreateTrait, s.DeleteTrait)
	case kind == writeClass && r.IntN(2) == 0:
		_, err := s.CreateResourceClass(ctx, modelClass)
		return err
	case kind == writeClass:
		_, err := s.DeleteResourceClass(ctx, modelClass)
		return err
	case !found:
		input := placement.NewProvider{Name: name, UUID: &uuid}
		if r.IntN(2) == 0 {
			input.Parent = &parent
		}
		_, _, err := s.CreateResourceProvider(ctx, input)
		return err
	case kind == deleteProvider:
		_, _, err := s.DeleteResourceProvider(ctx, uuid)
		return err
	case kind == renameProvider:
		_, _, err := s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: uuid, NewName: &name})
		return err
	case kind == moveProvider:
		if r.IntN(3) == 0 {
			parent = ""
		}
		_, _, err := s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: uuid, Parent: &parent})
		return err
	}
	return s.writeUse(ctx, of, uuid, r)
}

func (s *replayServer) writeName(ctx context.Context, name string, r *rand.Rand, create,
	remove func(context.Context, string) (*placement.Trait, error)) error {
	change := create
	if r.IntN(2) == 0 {
		change = remove
	}
	_, err := change(ctx, name)
	return err
}

// writeUse changes traits or an inventory of a provider, or allocations of
// several.
func (s *replayServer) writeUse(ctx context.Context, of schedule, uuid string, r *rand.Rand) (err error) {
	consumer := replayUUID(100 + r.IntN(3))
	switch r.IntN(6) {
	case 0:
		_, _, err = s.SetProviderTraits(ctx,
			placement.ProviderTraits{Provider: uuid, Traits: []string{modelTrait(r.IntN(modelTraits))}})
	case 1:
		_, _, err = s.SetInventory(ctx, placement.InventoryChange{Provider: uuid, Inventory: placement.Inventory{
			ResourceClass: "VCPU", Total: 1000, MinUnit: 1, MaxUnit: 10, StepSize: 1, AllocationRatio: 1}})
	case 2, 3:
		_, err = s.DeleteAllocations(ctx, consumer)
	default:
		claim := placement.ConsumerClaim{UUID: consumer, ProjectID: "p", UserID: "u"}
		for _, i := range r.Perm(of.uuids)[:1+r.IntN(of.uuids)] {
			claim.Allocations = append(claim.Allocations, placement.ProviderAllocation{Provider: replayUUID(i),
				Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}})
		}
		_, err = s.SetAllocations(ctx, placement.Claim{Consumers: []placement.ConsumerClaim{claim}})
	}
	return err
}

// settle ends all activity and waits until each world equals the database. If a
// notification may be lost, it wakes the stores instead of waiting for their
// next poll.
func (run *Replay) settle(t testing.TB, s schedule, seed uint64) {
	t.Helper()
	for _, server := range run.servers {
		server.proxy.Repair()
	}
	lost := slices.ContainsFunc(s.actions, func(a action) bool { return a.kind == loseNote })
	run.callers.Wait()
	if !patience.Until(t, 10*time.Second, func() bool { return run.isQuiet(t) }) {
		t.Fatalf("schedule %d: transactions come to no end", seed)
	}
	for i, server := range run.servers {
		if lost {
			server.follower.wake()
		}
		var difference string
		var err error
		if !patience.Until(t, 10*time.Second, func() bool {
			difference, err = server.WorldDifference(t.Context())
			return err == nil && difference == "" && server.WorldAge() == 0
		}) {
			t.Fatalf("schedule %d: the world of store %d does not become that of the database: %s, error %v, age %s",
				seed, i, difference, err, server.WorldAge())
		}
	}
}

// isQuiet reports whether no transaction runs or is about to commit.
func (run *Replay) isQuiet(t testing.TB) bool {
	t.Helper()
	for _, server := range run.servers {
		if !server.proxy.IsQuiet() {
			return false
		}
	}
	var running int
	err := run.db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL`).Scan(&running)
	if err != nil {
		t.Fatal(err)
	}
	return running == 0
}

// judge checks the invariants for the worlds of a schedule.
func (run *Replay) judge(t testing.TB, seed uint64) {
	t.Helper()
	history, callers := run.history(t), run.callersOf(t)
	for i, server := range run.servers {
		server.oracle.history = history
		events := server.events
		server.events = nil
		run.worlds += len(events)
		for n, event := range events {
			if number, found := callers[event.call]; found {
				server.oracle.needs(changelog.TransactionID{Number: number}, isAnswered)
				run.known++
			}
			if wrong := server.oracle.judge(event.world); wrong != "" {
				t.Fatalf("schedule %d, store %d, world %d of %d, answered %q: %s", seed,
					i, n, len(events), event.call, wrong)
			}
		}
		server.oracle.needsAll(1, isTold)
		if wrong := server.oracle.judge(server.cache.World()); wrong != "" {
			t.Fatalf("schedule %d, store %d, in the end: %s", seed, i, wrong)
		}
	}
}

// Log logs the statistics of a replay.
func (run *Replay) Log(t testing.TB) {
	t.Helper()
	t.Logf("%d calls, of which %d were answered that they are done; %d worlds; %d instants; %d crashes of the server",
		run.calls, run.known, run.worlds, run.instants.Load(), run.crashes)
}

// history reads the history of each key.
func (run *Replay) history(t testing.TB) map[changeKey][]modelVersion {
	t.Helper()
	history := map[changeKey][]modelVersion{}
	for _, key := range run.keys {
		history[key] = []modelVersion{{}}
	}
	rows, err := run.db.Query(`SELECT kind, key, row_id, version, present, number FROM test_history ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key changeKey
		v := modelVersion{commit: 1, rowOnly: true}
		if err := rows.Scan(&key.kind, &key.key, &v.state.Row, &v.state.Version, &v.present,
			&v.transaction.Number); err != nil {
			t.Fatal(err)
		}
		versions := history[key]
		last := len(versions) - 1
		switch {
		case versions[last].transaction == v.transaction:
			versions[last] = v
			continue
		case versions[last].present && v.present && v.state.Version != versions[last].state.Version+1:
			t.Errorf("%v moves the version of %v from %d to %d", v.transaction, key,
				versions[last].state.Version, v.state.Version)
		}
		history[key] = append(versions, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return history
}

// callersOf reads the transaction of each answered caller.
func (run *Replay) callersOf(t testing.TB) map[string]int64 {
	t.Helper()
	callers := map[string]int64{}
	rows, err := run.db.Query(`SELECT DISTINCT user_id, xmin::text::bigint FROM audit_events WHERE user_id LIKE 'caller %'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var number int64
		if err := rows.Scan(&name, &number); err != nil {
			t.Fatal(err)
		}
		callers[name] = number
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return callers
}
