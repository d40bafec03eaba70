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
	// followPoll is how often a server that somebody follows looks for what others
	// committed; its own commits wake it.
	followPoll = 100 * time.Millisecond
	// followPause is how long it gathers commits before it reads them.
	followPause = 15 * time.Millisecond
	// followRetry is how long it waits when the database does not answer.
	followRetry = 500 * time.Millisecond
	// ringRows is how many rows of the log it keeps in memory at least, once it has
	// read so many.
	ringRows = 10_000
)

// follower keeps the newest rows of the log in memory while somebody follows it.
// They are read once for all that follow, and each of these has nothing but a
// place: whoever is slower than the memory is long reads the log. Who waits is
// woken by rows that may be for them alone: a commit that matters to nobody wakes
// nobody.
type follower struct {
	store *ChangeStore
	woken chan struct{}

	mu       sync.Mutex
	follow   int // how many do
	stop     context.CancelFunc
	running  sync.WaitGroup
	window   atomic.Pointer[window]
	isActive atomic.Bool

	waits   sync.Mutex // of who waits for what, taken after mu
	waiting map[interest]map[*Following]struct{}
}

// window is what a follower holds: all rows of the log after one id, up to another
// one. It never changes.
type window struct {
	rows       []logRow
	from, upTo int64
}

// interest is what rows somebody waits for: those about the things of a kind that
// speak to some readers, and only about the thing of a key where it has one.
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

// Following is one who follows the log, with a place of its own in it. It is of one
// viewer, and not for concurrent use.
type Following struct {
	of     *follower
	filter change.Filter
	reader change.Reader    // once it was looked at
	after  *change.Position // until then
	// seen is the id up to which Next went through the log, and isThrough whether
	// that was all there was.
	seen      int64
	isThrough bool
	woken     chan struct{}
	once      sync.Once

	// Guarded by of.waits: whether there is something for it that it has not gone
	// through since Wait last told it so, and an id up to which there was not.
	isBehind bool
	idle     int64
}

// Follow begins to follow the log after a position. Stop ends it.
func (s *ChangeStore) Follow(filter change.Filter, after change.Position) *Following {
	s.follower.join()
	return &Following{of: s.follower, filter: filter, after: &after, seen: after.ID, isBehind: true, woken: make(chan struct{}, 1)}
}

// Stop ends following.
func (f *Following) Stop() {
	f.once.Do(func() {
		f.of.ignore(f)
		f.of.leave()
	})
}

// Next returns the next changes that the viewer of the context may see, at most
// limit of them, and none where there are none yet. A position that is older than
// what is kept is ErrInvalidInput.
func (f *Following) Next(ctx context.Context, limit int) ([]*change.Change, error) {
	if f.after != nil {
		if err := f.of.store.checkKept(*f.after); err != nil {
			return nil, err
		}
		f.after, f.reader = nil, f.of.store.reader(ctx)
		f.of.await(f)
	}
	held := f.of.window.Load()
	if f.isThrough = held.upTo < f.seen; f.isThrough { // another server, which made the position, is ahead
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

// readOn reads from the log what memory does not have any more.
func (f *Following) readOn(ctx context.Context, upTo int64, limit int) ([]*change.Change, error) {
	changes, more, err := f.of.store.read(ctx, page{reader: f.reader, filter: f.filter, after: f.seen, upTo: upTo, limit: limit})
	switch {
	case err != nil:
	case more:
		f.seen = changes[len(changes)-1].ID
	default:
		f.seen, f.isThrough = upTo, true
	}
	return changes, err
}

// Wait returns nil when there may be something for the viewer that Next has not
// gone through, or the error of the context.
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

// interests returns what a viewer who follows waits for.
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

// await has one who follows woken by what they wait for, from now on.
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

// ignore ends await.
func (f *follower) ignore(who *Following) {
	f.waits.Lock()
	defer f.waits.Unlock()
	for _, what := range who.interests() {
		if delete(f.waiting[what], who); len(f.waiting[what]) == 0 {
			delete(f.waiting, what)
		}
	}
}

// isBehind reports whether there may be something for one who went through all
// there was, since it last did so, and lets them go on where that begins.
func (f *follower) isBehind(who *Following) bool {
	f.waits.Lock()
	defer f.waits.Unlock()
	if !who.isBehind {
		return false
	}
	who.isBehind, who.seen = false, max(who.seen, who.idle)
	return true
}

// wakeFor wakes one who follows, unless they were woken before and have not looked
// since. There is nothing for them up to an id. The lock of who waits is held.
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

// publish shows another window, and wakes those whom its new rows may be for; all
// where these are not known.
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

// page returns the changes of a page, as read does, and the id up to which it went
// through the rows.
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

// with returns the window that has further rows, up to an id. It forgets the oldest
// where there are too many. The one before stays as it is: what they share is not
// written again.
func (w *window) with(rows []logRow, upTo int64, isWhole bool) *window {
	next := &window{rows: append(w.rows, rows...), from: w.from, upTo: upTo}
	if !isWhole { // there were more between
		next.rows, next.from = rows, rows[0].id-1
	}
	if len(next.rows) > 2*ringRows {
		old := len(next.rows) - ringRows
		next.from = next.rows[old-1].id
		next.rows = slices.Clone(next.rows[old:])
	}
	return next
}

// wake makes the follower look soon, where somebody follows.
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

// end ends the goroutine; the lock is held.
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

// run reads what is settled, again and again.
func (f *follower) run(ctx context.Context) {
	began := false
	for ctx.Err() == nil {
		open, err := f.forward(sqldb.Uncounted(ctx), began)
		began = began || err == nil
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "the log of changes cannot be followed at the moment", "error", err)
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

// forward reads what is settled and not held yet, and reports whether something
// was seen that is not settled. What was there before it began is not read: the
// log has it.
func (f *follower) forward(ctx context.Context, began bool) (open bool, err error) {
	open, err = f.store.horizon.advance(ctx)
	upTo, held := f.store.horizon.upTo(), f.window.Load()
	switch {
	case err != nil:
	case !began || upTo < held.upTo:
		f.publish(&window{from: upTo, upTo: upTo}, nil, false)
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

// read returns the rows of the log between two ids, in their order, and no more
// than the newest that memory takes.
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
