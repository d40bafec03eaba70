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
// place: whoever is slower than the memory is long reads the log.
type follower struct {
	store *ChangeStore
	woken chan struct{}

	mu       sync.Mutex
	follow   int // how many do
	stop     context.CancelFunc
	running  sync.WaitGroup
	window   atomic.Pointer[window]
	isActive atomic.Bool
}

// window is what a follower holds: all rows of the log after one id, up to another
// one. It never changes.
type window struct {
	rows       []logRow
	from, upTo int64
	next       chan struct{} // closed when there is another window
}

func newFollower(s *ChangeStore) *follower {
	f := &follower{store: s, woken: make(chan struct{}, 1)}
	f.window.Store(&window{next: make(chan struct{})})
	return f
}

// Following is one who follows the log, with a place of its own in it. It is not
// for concurrent use.
type Following struct {
	of     *follower
	filter change.Filter
	after  *change.Position // until it was looked at
	seen   int64            // the id up to which Next went through the log
	once   sync.Once
}

// Follow begins to follow the log after a position. Stop ends it.
func (s *ChangeStore) Follow(filter change.Filter, after change.Position) *Following {
	s.follower.join()
	return &Following{of: s.follower, filter: filter, after: &after, seen: after.ID}
}

// Stop ends following.
func (f *Following) Stop() { f.once.Do(f.of.leave) }

// Next returns the next changes that the viewer of the context may see, at most
// limit of them, and none where there are none yet. A position that is older than
// what is kept is ErrInvalidInput.
func (f *Following) Next(ctx context.Context, limit int) ([]*change.Change, error) {
	if f.after != nil {
		if err := f.of.store.checkKept(*f.after); err != nil {
			return nil, err
		}
		f.after = nil
	}
	held, reader := f.of.window.Load(), f.of.store.reader(ctx)
	if held.upTo < f.seen { // another server, which made the position, is ahead
		return nil, nil
	}
	if f.seen < held.from {
		return f.readOn(ctx, reader, held.upTo, limit)
	}
	var changes []*change.Change
	changes, f.seen = held.page(page{reader: reader, filter: f.filter, after: f.seen, limit: limit})
	return changes, nil
}

// readOn reads from the log what memory does not have any more.
func (f *Following) readOn(ctx context.Context, reader change.Reader, upTo int64, limit int) ([]*change.Change, error) {
	changes, more, err := f.of.store.read(ctx, page{reader: reader, filter: f.filter, after: f.seen, upTo: upTo, limit: limit})
	switch {
	case err != nil:
	case more:
		f.seen = changes[len(changes)-1].ID
	default:
		f.seen = upTo
	}
	return changes, err
}

// Wait returns nil when there is something that Next has not gone through, for
// whomever it is, or the error of the context.
func (f *Following) Wait(ctx context.Context) error {
	for {
		held := f.of.window.Load()
		if f.seen < held.upTo {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-held.next:
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
	next := &window{rows: append(w.rows, rows...), from: w.from, upTo: upTo, next: make(chan struct{})}
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
	f.publish(&window{next: make(chan struct{})})
}

func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follow > 0 {
		f.follow = 0
		f.end()
	}
}

// publish shows another window.
func (f *follower) publish(next *window) {
	before := f.window.Swap(next)
	close(before.next)
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
	upTo, open, err := f.settled(ctx)
	held := f.window.Load()
	switch {
	case err != nil:
	case !began || upTo < held.upTo:
		f.publish(&window{from: upTo, upTo: upTo, next: make(chan struct{})})
	case upTo > held.upTo:
		rows, err := f.read(ctx, held.upTo, upTo)
		if err != nil {
			return open, err
		}
		f.publish(held.with(rows, upTo, len(rows) < ringRows))
	}
	return open, err
}

// settled returns the id up to which the log is settled.
func (f *follower) settled(ctx context.Context) (upTo int64, open bool, err error) {
	s := f.store
	if s.Postgres() {
		open, err = s.horizon.advance(ctx)
		return s.horizon.upTo(), open, err
	}
	err = s.Query(ctx, s.Pool.FollowerPool(), `SELECT COALESCE(max(id), 0) FROM changes`, func(rows *sql.Rows) error { return rows.Scan(&upTo) })
	return upTo, false, err
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
