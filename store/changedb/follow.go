package changedb

import (
	"context"
	"database/sql"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

const (
	// followPoll is the interval at which a server with followers polls for
	// commits of other servers. Its own commits wake it.
	followPoll = 100 * time.Millisecond
	// followPause is how long commits are collected before they are read. It is
	// also the interval of polls while some rows are not settled.
	followPause = 15 * time.Millisecond
	// followRetry is the interval for retries if the database does not answer.
	followRetry = 500 * time.Millisecond
	// ringRows is the minimum number of rows that memory keeps, once that many
	// were read.
	ringRows = 10_000
)

// follower keeps the newest rows of the log in memory while anyone follows the
// log. Each row is read once for all Followings, which store only a position.
// If a Following falls behind the rows in memory, it reads the log instead. A
// new row wakes only those Followings that it may concern.
type follower struct {
	store *ChangeStore
	woken chan struct{}

	mu       sync.Mutex
	follow   int // the number of Followings
	stop     context.CancelFunc
	running  sync.WaitGroup
	window   atomic.Pointer[window]
	isActive atomic.Bool

	waits   sync.Mutex // guards waiting; taken after mu
	waiting map[interest]map[*Following]struct{}
}

// window is the immutable content of a follower: all rows of the log with an
// audience and from < id <= upTo.
type window struct {
	rows       []logRow
	from, upTo int64
	lost       int64 // horizon.lost before the rows were read
}

// interest describes the rows that a Following waits for: of a kind, for some
// readers, and optionally only of one key.
type interest struct {
	kind    change.Kind
	readers change.Readers
	key     string
}

func newFollower(s *ChangeStore) *follower {
	f := &follower{store: s, woken: make(chan struct{}, 1), waiting: map[interest]map[*Following]struct{}{}}
	f.window.Store(&window{})
	return f
}

// Following follows the log for one viewer, with its own position. It is not
// safe for concurrent use.
type Following struct {
	of     *follower
	filter change.Filter
	reader change.Reader    // set by the first Next
	after  *change.Position // the given position; nil after the first Next
	// last is the position of the last change that Next returned, at first the
	// given one. Reading starts there again if the database has lost changes.
	last change.Position
	lost int64
	// seen is the id up to which Next has read the log. isThrough reports
	// whether it has read everything available.
	seen      int64
	isThrough bool
	woken     chan struct{}
	once      sync.Once

	// Guarded by of.waits. isBehind is whether new rows may have come; Wait
	// clears it. Up to the id idle the log had nothing new for this Following.
	isBehind bool
	idle     int64
}

// Follow starts following the log after a position. Call Stop to end it.
func (s *ChangeStore) Follow(filter change.Filter, after change.Position) *Following {
	s.follower.join()
	return &Following{of: s.follower, filter: filter, after: &after, last: after, lost: -1, seen: after.ID,
		isBehind: true, woken: make(chan struct{}, 1)}
}

// Stop ends the Following.
func (f *Following) Stop() {
	f.once.Do(func() {
		f.of.ignore(f)
		f.of.leave()
	})
}

// Next returns the next changes that the viewer of the first call may see, at
// most limit, and none if there are none yet. It returns ErrInvalidInput for a
// position older than the retention, or of a change that the database lost.
func (f *Following) Next(ctx context.Context, limit int) ([]*change.Change, error) {
	if f.after != nil {
		if err := f.of.store.checkKept(*f.after); err != nil {
			return nil, err
		}
		f.after, f.reader = nil, f.of.store.reader(ctx)
		f.of.await(f)
	}
	held := f.of.window.Load()
	if f.lost != held.lost {
		if err := f.of.store.checkThere(ctx, f.last); err != nil {
			return nil, err
		}
		f.of.restart(f, held.lost)
	}
	changes, err := f.nextIn(ctx, held, limit)
	if len(changes) > 0 {
		f.last = changes[len(changes)-1].Position()
	}
	return changes, err
}

// restart moves a Following back to the last change that it returned.
func (f *follower) restart(who *Following, lost int64) {
	f.waits.Lock()
	defer f.waits.Unlock()
	who.seen, who.idle, who.lost = who.last.ID, 0, lost
}

// nextIn returns the next changes in a window, or from the log before it.
func (f *Following) nextIn(ctx context.Context, held *window, limit int) ([]*change.Change, error) {
	if f.isThrough = held.upTo < f.seen; f.isThrough { // another server made the position and is ahead
		return nil, nil
	}
	if f.seen < held.from {
		return f.readOn(ctx, held.upTo, limit)
	}
	var changes []*change.Change
	changes, f.seen = held.page(page{reader: f.reader, filter: f.filter, after: f.seen, limit: limit})
	f.isThrough = f.seen == held.upTo
	return changes, nil
}

// readOn reads from the log the changes that memory no longer has.
func (f *Following) readOn(ctx context.Context, upTo int64, limit int) ([]*change.Change, error) {
	changes, more, err := f.of.store.read(ctx,
		page{reader: f.reader, filter: f.filter, after: f.seen, upTo: upTo, limit: limit})
	switch {
	case err != nil:
	case more:
		f.seen = changes[len(changes)-1].ID
	default:
		f.seen, f.isThrough = upTo, true
	}
	return changes, err
}

// Wait returns nil when Next may find new changes for the viewer, or the error
// of the context.
func (f *Following) Wait(ctx context.Context) error {
	for f.isThrough && !f.of.isBehind(f) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.woken:
		}
	}
	return ctx.Err()
}

func (f *Following) interests() (all []interest) {
	keys := f.filter.Keys
	if len(keys) == 0 {
		keys = []string{""}
	}
	for _, kind := range change.Kinds() {
		if len(f.filter.Kinds) > 0 && !slices.Contains(f.filter.Kinds, kind) {
			continue
		}
		for _, readers := range f.reader.Of(kind) {
			for _, key := range keys {
				all = append(all, interest{kind, readers, key})
			}
		}
	}
	return all
}

// await registers a Following to be woken by its interests.
func (f *follower) await(who *Following) {
	f.waits.Lock()
	defer f.waits.Unlock()
	for _, what := range who.interests() {
		if f.waiting[what] == nil {
			f.waiting[what] = map[*Following]struct{}{}
		}
		f.waiting[what][who] = struct{}{}
	}
}

// ignore undoes await.
func (f *follower) ignore(who *Following) {
	f.waits.Lock()
	defer f.waits.Unlock()
	for _, what := range who.interests() {
		if delete(f.waiting[what], who); len(f.waiting[what]) == 0 {
			delete(f.waiting, what)
		}
	}
}

// isBehind reports whether new rows may have come since the Following last read
// everything. If so, it skips the rows up to idle.
func (f *follower) isBehind(who *Following) bool {
	f.waits.Lock()
	defer f.waits.Unlock()
	if !who.isBehind {
		return false
	}
	who.isBehind, who.seen = false, max(who.seen, who.idle)
	return true
}

// wakeFor wakes a Following, unless it is awake already. Up to the id idle
// there is nothing for it. The caller holds waits.
func (f *Following) wakeFor(idle int64) {
	if f.isBehind {
		return
	}
	f.isBehind, f.idle = true, idle
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// publish replaces the window and wakes the Followings that its new rows may
// concern. If the new rows are not known, it wakes all.
func (f *follower) publish(next *window, rows []logRow, known bool) {
	f.waits.Lock()
	defer f.waits.Unlock()
	before := f.window.Swap(next)
	if !known {
		for _, followers := range f.waiting {
			for who := range followers {
				who.wakeFor(0)
			}
		}
		return
	}
	for _, row := range rows {
		for _, key := range []string{row.key, ""} {
			for who := range f.waiting[interest{row.kind, row.Readers, key}] {
				who.wakeFor(before.upTo)
			}
		}
	}
}

// page returns the changes of a page, like read, and the id up to which it read
// the rows. It reads up to w.upTo, not to p.upTo.
func (w *window) page(p page) (changes []*change.Change, seen int64) {
	first := sort.Search(len(w.rows), func(i int) bool { return w.rows[i].id > p.after })
	for _, row := range w.rows[first:] {
		if of := row.seenBy(p.reader, p.filter); of != nil {
			if len(changes) == p.limit {
				return changes, changes[p.limit-1].ID
			}
			changes = append(changes, of)
		}
	}
	return changes, max(p.after, w.upTo)
}

// with returns a window with further rows, up to an id. Unless isWhole, rows
// between the old and the further ones are missing, and it drops the old ones.
// It also drops the oldest rows if there are too many. The old window stays
// valid, since the shared rows are never overwritten.
func (w *window) with(rows []logRow, upTo int64, isWhole bool) *window {
	next := &window{rows: append(w.rows, rows...), from: w.from, upTo: upTo, lost: w.lost}
	if !isWhole { // rows in between are missing
		next.rows, next.from = rows, rows[0].id-1
	}
	if len(next.rows) > 2*ringRows {
		old := len(next.rows) - ringRows
		next.from = next.rows[old-1].id
		next.rows = slices.Clone(next.rows[old:])
	}
	return next
}

// wake makes the follower read soon, if anyone follows.
func (f *follower) wake() {
	if !f.isActive.Load() {
		return
	}
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *follower) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follow++; f.follow > 1 {
		return
	}
	f.isActive.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.running.Go(func() { f.run(ctx) })
}

func (f *follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follow--; f.follow == 0 {
		f.end()
	}
}

// end stops the goroutine, and drops the rows in memory. The caller holds mu.
func (f *follower) end() {
	f.isActive.Store(false)
	f.stop()
	f.running.Wait()
	f.publish(&window{}, nil, false)
}

func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follow > 0 {
		f.follow = 0
		f.end()
	}
}

// run repeatedly reads the settled rows.
func (f *follower) run(ctx context.Context) {
	began := false
	for ctx.Err() == nil {
		open, err := f.forward(sqldb.Uncounted(ctx), began)
		began = began || err == nil
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "cannot follow the change log at the moment", "error", err)
		}
		wait := followPoll
		switch {
		case err != nil:
			wait = followRetry
		case open:
			wait = followPause
		}
		select {
		case <-ctx.Done():
		case <-f.woken:
			pause.For(ctx, followPause)
		case <-time.After(wait):
		}
	}
}

// forward reads the settled rows that memory lacks. open reports whether it saw
// rows that are not settled yet. It does not read rows from before its start,
// since readOn finds them in the log.
func (f *follower) forward(ctx context.Context, began bool) (open bool, err error) {
	open, err = f.store.horizon.advance(ctx)
	lost := f.store.horizon.lost.Load() // before upTo, which is lower after a loss
	upTo, held := f.store.horizon.upTo(), f.window.Load()
	switch {
	case err != nil:
	case !began || upTo < held.upTo || lost != held.lost:
		f.publish(&window{from: upTo, upTo: upTo, lost: lost}, nil, false)
	case upTo > held.upTo:
		rows, err := f.read(ctx, held.upTo, upTo)
		if err != nil {
			return open, err
		}
		isWhole := len(rows) < ringRows
		f.publish(held.with(rows, upTo, isWhole), rows, isWhole)
	}
	return open, err
}

// read returns the rows of the log with after < id <= upTo and an audience,
// oldest first. If there are more than ringRows, it returns the newest.
func (f *follower) read(ctx context.Context, after, upTo int64) (rows []logRow, err error) {
	err = f.store.Query(ctx, f.store.Pool.FollowerPool(), `SELECT `+rowColumns+` FROM changes
		WHERE id > $1 AND id <= $2 AND audience IS NOT NULL ORDER BY id DESC LIMIT $3`, func(found *sql.Rows) error {
		row, err := scanRow(found)
		rows = append(rows, row)
		return err
	}, after, upTo, ringRows)
	slices.Reverse(rows)
	return rows, err
}
