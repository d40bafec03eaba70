package placementdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
)

// actionKind is a kind of step in a schedule.
type actionKind int

const (
	beginTransaction  actionKind = iota
	changeSomething              // in a running transaction
	commitTransaction            // with an answer
	loseCommit                   // COMMIT is sent and its answer lost; the transaction commits later, or not
	endLostCommit                // such a transaction ends
	abortTransaction
	publishCommit       // the process adds its own commit to its world
	giveUp              // a process stops waiting for its world
	beginLook           // a process starts to catch up, as when it is woken
	stepLook            // the next step of that
	beginLoad           // a process loads the whole world
	deliverNote         // a notification arrives
	loseNote            // a notification is lost
	loseConnection      // the listening connection and its pending notifications are lost; it reconnects
	pruneLog            // old notes are deleted
	crashServer         // the database server stops and restarts
	resetStatistics     // the server seems to restart
	stepInstant         // the next step of an operation that reads at one instant
	actionKinds     int = iota
)

// weights are the relative frequencies of the kinds.
var weights = [actionKinds]int{
	beginTransaction: 12, changeSomething: 30, commitTransaction: 14, loseCommit: 2,
	endLostCommit: 3, abortTransaction: 2,
	publishCommit: 14, giveUp: 1, beginLook: 6, stepLook: 24, beginLoad: 1, deliverNote: 6,
	loseNote: 1, loseConnection: 1, pruneLog: 2,
	crashServer: 1, resetStatistics: 1, stepInstant: 20,
}

// action is one step of a schedule. Pick seeds its random choices.
type action struct {
	kind    actionKind
	process int
	pick    uint64
}

// modelProcesses is the number of processes.
const modelProcesses = 3

// schedule is the input of a run of the model.
type schedule struct {
	uuids   int
	writes  []writeKind
	actions []action
}

// newSchedule returns a random schedule. Each uses only some kinds of changes
// and actions, so that sequences of one kind happen, too.
func newSchedule(seed uint64, length int) schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := schedule{uuids: 2 + r.IntN(modelUUIDs-1), actions: make([]action, length)}
	for len(s.writes) == 0 {
		for kind := range writeKinds {
			s.writes = append(s.writes, slices.Repeat([]writeKind{writeKind(kind)}, r.IntN(2)*(1+r.IntN(3)))...)
		}
	}
	var kinds []actionKind
	for kind, weight := range weights {
		if weight < 5 {
			weight *= r.IntN(3) / 2 * 3
		}
		kinds = append(kinds, slices.Repeat([]actionKind{actionKind(kind)}, weight)...)
	}
	processes := 2 + r.IntN(modelProcesses-1)
	for i := range s.actions {
		s.actions[i] = action{kind: kinds[r.IntN(len(kinds))], process: r.IntN(processes), pick: r.Uint64()}
	}
	return s
}

// worldUnderTest is the world of one process in the model.
type worldUnderTest interface {
	world() *placement.World
	// publish adds a commit of the process to the world, and reports whether
	// that succeeded. If not, a look follows.
	publish(tx *modelTransaction) bool
	// resolve does the same for a transaction with an unknown outcome, and
	// reports whether the outcome is known now.
	resolve(tx *modelTransaction) bool
	// look starts to catch up, or to load everything.
	look(everything bool)
	// step runs the next step of a look. It returns the number of commits seen
	// when the look ends, otherwise -1.
	step() int
	// looking reports whether a look runs.
	looking() bool
	// instant runs the next step of an operation that reads at one instant. It
	// returns the error of the world read, or "".
	instant() string
}

// modelRun is a running schedule.
type modelRun struct {
	database *modelDatabase
	actions  []action
	servers  []*modelServer
	trace    []string
	wrong    string // an error found in an action
}

// modelServer is a process of the model.
type modelServer struct {
	worldUnderTest
	committed []*modelTransaction // to be published
	waiting   []*modelTransaction // waiting for a look to add them
	lost      []*modelTransaction // COMMIT got no answer
	notes     int                 // pending notifications
	wake      bool                // it must catch up
	poll      bool                // a notification was lost
	oracle    *oracle
	judged    *placement.World
}

// newModelRun returns a run at its start.
func newModelRun(s schedule, under func(d *modelDatabase, process int) worldUnderTest) *modelRun {
	run := &modelRun{database: newModelDatabase(s.uuids, s.writes), actions: s.actions}
	for process := range modelProcesses {
		run.servers = append(run.servers, &modelServer{worldUnderTest: under(run.database, process),
			oracle: newOracle(run.database.history, run.database.keys())})
	}
	return run
}

// wrongIn runs a schedule and returns the first error with the trace, or "".
func wrongIn(s schedule, under func(d *modelDatabase, process int) worldUnderTest) string {
	run := newModelRun(s, under)
	for i, a := range run.actions {
		run.do(a)
		if wrong := run.judge(); wrong != "" {
			return fmt.Sprintf("after action %d: %s\n%s", i, wrong, strings.Join(run.trace, "\n"))
		}
	}
	if wrong := run.settle(); wrong != "" {
		return fmt.Sprintf("in the end: %s\n%s", wrong, strings.Join(run.trace, "\n"))
	}
	return ""
}

// judge returns the error of a new world, or "".
func (run *modelRun) judge() string {
	if run.wrong != "" {
		return run.wrong
	}
	for process, server := range run.servers {
		if server.world() == server.judged {
			continue
		}
		if wrong := server.oracle.judge(server.world()); wrong != "" {
			return fmt.Sprintf("process %d: %s", process, wrong)
		}
		server.judged = server.world()
	}
	return ""
}

func (run *modelRun) note(format string, args ...any) {
	run.trace = append(run.trace, fmt.Sprintf(format, args...))
}

// do runs one action, if possible.
func (run *modelRun) do(a action) {
	r := rand.New(rand.NewPCG(a.pick, 2))
	if transact := transactions[a.kind]; transact != nil {
		if tx := run.transaction(a.kind == endLostCommit, r); tx != nil {
			transact(run, tx, r)
		}
		return
	}
	follows[a.kind](run, a.process, r)
}

// follows are the actions of a process, or of the database.
var follows = map[actionKind]func(run *modelRun, process int, r *rand.Rand){
	beginTransaction: func(run *modelRun, process int, _ *rand.Rand) {
		if len(run.database.open) < 4 {
			run.note("process %d begins %d", process, run.database.begin(process).Number)
		}
	},
	publishCommit: func(run *modelRun, process int, r *rand.Rand) {
		server := run.servers[process]
		if tx := take(&server.committed, r); tx != nil {
			run.publish(process, tx)
		} else if tx := take(&server.lost, r); tx != nil {
			run.resolve(process, tx)
		}
	},
	giveUp: func(run *modelRun, process int, r *rand.Rand) {
		if tx := take(&run.servers[process].waiting, r); tx != nil {
			run.servers[process].wake = true
			run.tell(process)
		}
	},
	beginLook: func(run *modelRun, process int, _ *rand.Rand) { run.look(process, false) },
	beginLoad: func(run *modelRun, process int, _ *rand.Rand) { run.look(process, true) },
	stepInstant: func(run *modelRun, process int, _ *rand.Rand) {
		run.note("process %d takes a step to an instant", process)
		if wrong := run.servers[process].instant(); wrong != "" {
			run.wrong = fmt.Sprintf("process %d, %s", process, wrong)
		}
	},
	stepLook:    func(run *modelRun, process int, _ *rand.Rand) { run.step(process) },
	deliverNote: func(run *modelRun, process int, _ *rand.Rand) { run.servers[process].arrives(true) },
	loseNote:    func(run *modelRun, process int, _ *rand.Rand) { run.servers[process].arrives(false) },
	loseConnection: func(run *modelRun, process int, _ *rand.Rand) {
		run.servers[process].notes, run.servers[process].wake = 0, true
	},
	pruneLog: func(run *modelRun, _ int, r *rand.Rand) {
		before := run.database.snapshot().Oldest - r.Int64N(3)
		run.note("prune before %d", before)
		run.database.prune(before)
	},
	crashServer: func(run *modelRun, _ int, r *rand.Rand) { run.crash(r) },
	resetStatistics: func(run *modelRun, _ int, _ *rand.Rand) {
		run.database.server++
		run.note("the statistics of the server begin again")
	},
}

// arrives removes a pending notification, and delivers it or loses it.
func (s *modelServer) arrives(told bool) {
	if s.notes == 0 {
		return
	}
	s.notes--
	s.wake, s.poll = s.wake || told, s.poll || !told
}

// take removes a random transaction from a list.
func take(list *[]*modelTransaction, r *rand.Rand) *modelTransaction {
	if len(*list) == 0 {
		return nil
	}
	i := r.IntN(len(*list))
	tx := (*list)[i]
	*list = slices.Delete(slices.Clone(*list), i, i+1)
	return tx
}

// transaction returns a running transaction: one with a lost COMMIT, or one of
// the others.
func (run *modelRun) transaction(lost bool, r *rand.Rand) *modelTransaction {
	var running []*modelTransaction
	for _, tx := range run.database.open {
		if tx.lost == lost {
			running = append(running, tx)
		}
	}
	return take(&running, r)
}

// transactions are the actions of a running transaction.
var transactions = map[actionKind]func(run *modelRun, tx *modelTransaction, r *rand.Rand){
	changeSomething: func(run *modelRun, tx *modelTransaction, r *rand.Rand) { run.database.change(tx, r) },
	commitTransaction: func(run *modelRun, tx *modelTransaction, _ *rand.Rand) {
		run.database.commitTransaction(tx)
		run.note("process %d commits %d %v", tx.process, tx.Number, tx.order)
		server := run.servers[tx.process]
		server.committed = append(server.committed, tx)
	},
	loseCommit: func(run *modelRun, tx *modelTransaction, _ *rand.Rand) {
		run.note("process %d loses the answer to COMMIT of %d %v", tx.process, tx.Number, tx.order)
		tx.lost = true
		server := run.servers[tx.process]
		server.lost = append(server.lost, tx)
	},
	endLostCommit: func(run *modelRun, tx *modelTransaction, r *rand.Rand) {
		if r.IntN(2) > 0 {
			run.abort(tx)
			return
		}
		run.database.commitTransaction(tx)
		run.note("%d of process %d commits", tx.Number, tx.process)
	},
	abortTransaction: func(run *modelRun, tx *modelTransaction, _ *rand.Rand) { run.abort(tx) },
}

func (run *modelRun) abort(tx *modelTransaction) {
	run.note("%d of process %d aborts", tx.Number, tx.process)
	run.database.end(tx)
}

// publish adds a process's own commit to its world.
func (run *modelRun) publish(process int, tx *modelTransaction) {
	server := run.servers[process]
	if !server.publish(tx) {
		run.note("process %d cannot publish %d yet", process, tx.Number)
		server.waiting = append(server.waiting, tx)
		return
	}
	run.note("process %d publishes %d", process, tx.Number)
	run.answer(process, tx)
}

// answer ends a write: its world must have it from now on, and others are
// notified.
func (run *modelRun) answer(process int, tx *modelTransaction) {
	run.servers[process].oracle.needs(tx.TransactionID, isAnswered)
	run.servers[process].judged = nil
	run.tell(process)
}

// tell notifies the other processes of a commit.
func (run *modelRun) tell(process int) {
	for other, server := range run.servers {
		if other != process {
			server.notes++
		}
	}
}

// resolve finds the outcome of a transaction whose COMMIT got no answer.
func (run *modelRun) resolve(process int, tx *modelTransaction) {
	server := run.servers[process]
	if !server.resolve(tx) {
		server.lost = append(server.lost, tx)
		return
	}
	run.note("process %d knows what became of %d", process, tx.Number)
	if slices.Contains(run.database.open, tx) {
		run.wrong = fmt.Sprintf("I8: process %d knows what became of %d, which still runs", process, tx.Number)
	}
	run.tell(process)
}

func (run *modelRun) look(process int, everything bool) {
	if server := run.servers[process]; !server.looking() {
		run.note("process %d looks, everything %t", process, everything)
		server.wake, server.poll = false, false
		server.look(everything)
	}
}

// step runs the next step of a process's look. At the end it publishes the
// waiting commits.
func (run *modelRun) step(process int) {
	server := run.servers[process]
	if !server.looking() {
		if len(server.waiting) > 0 {
			run.look(process, false)
		}
		return
	}
	commits := server.step()
	run.note("process %d takes a step: %d", process, commits)
	if commits < 0 {
		return
	}
	server.oracle.needsAll(commits, isRead)
	server.judged = nil
	waiting := server.waiting
	server.waiting = nil
	for _, tx := range waiting {
		run.publish(process, tx)
	}
}

// crash ends the running transactions. Their processes do not know the
// outcomes.
func (run *modelRun) crash(r *rand.Rand) {
	for _, tx := range run.database.crash(r) {
		if !tx.lost && len(tx.order) > 0 {
			run.servers[tx.process].lost = append(run.servers[tx.process].lost, tx)
		}
	}
	run.note("the server crashes; the next transaction is %d", run.database.next)
	for _, server := range run.servers {
		server.notes, server.wake = 0, true
	}
}

// settle ends all activity and checks that each process's world equals the
// database. Processes only look if something told them to.
func (run *modelRun) settle() string {
	for _, tx := range slices.Clone(run.database.open) {
		run.database.end(tx)
	}
	for process, server := range run.servers {
		for _, tx := range slices.Concat(server.committed) {
			run.publish(process, tx)
		}
		server.committed = nil
		for limit := 0; server.looking() || len(server.waiting)+len(server.lost) > 0; limit++ {
			for _, tx := range slices.Clone(server.lost) {
				server.lost = server.lost[1:]
				run.resolve(process, tx)
			}
			if len(server.lost) > 0 && !server.looking() {
				run.look(process, false)
			}
			run.step(process)
			if wrong := run.judge(); wrong != "" {
				return wrong
			}
			if limit > 100 {
				return fmt.Sprintf("I6: process %d comes to no end of looking", process)
			}
		}
	}
	return run.quiet()
}

// quiet delivers pending notifications and compares the worlds with the
// database.
func (run *modelRun) quiet() string {
	for process, server := range run.servers {
		if server.wake || server.poll || server.notes > 0 {
			run.look(process, false)
			for steps := 0; server.looking(); steps++ {
				if run.step(process); steps > 10 {
					return fmt.Sprintf("I6: process %d comes to no end of looking", process)
				}
			}
		}
		server.oracle.needsAll(run.database.commits, isTold)
		server.judged = nil
	}
	return run.judge()
}

// shrink returns a minimal failing schedule: without any of its actions it
// would pass.
func shrink(s schedule, under func(d *modelDatabase, process int) worldUnderTest) schedule {
	for again := true; again; {
		again = false
		for i := range s.actions {
			fewer := s
			fewer.actions = slices.Delete(slices.Clone(s.actions), i, i+1)
			if wrongIn(fewer, under) != "" {
				s, again = fewer, true
				break
			}
		}
	}
	return s
}
