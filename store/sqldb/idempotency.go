package sqldb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// A request with an idempotency key takes effect once. Each of its transactions
// stores the result of Write in the same transaction. So changes and result are
// committed together, even if the client never gets the answer to COMMIT. A
// retry finds the stored result and returns it instead of writing again.
//
// The stored row has Go values instead of the bytes of the response. Most
// fields of a response are read after COMMIT, at one instant. Bytes stored
// after COMMIT would be lost if the server stopped in between. Bytes written
// inside the transaction would show rows that others may change before COMMIT.
// A retry builds its response from the stored values.
//
// At most one request with a given key runs at a time. Within a process a map
// ensures that. Between processes on PostgreSQL an advisory lock does: each
// transaction takes it first and holds it until it ends. Transactions only try
// the lock and never wait, so there is no deadlock. The next holder sees what
// the previous one committed.

const (
	// IdempotencyKeyHeader is the name of the HTTP header with the key.
	IdempotencyKeyHeader = "Idempotency-Key"
	// keepKeys is the lifetime of a key.
	keepKeys = 24 * time.Hour
	// defaultKeysPerProject is the default of Options.KeysPerProject.
	defaultKeysPerProject = 1_000_000
	// keysDroppedEvery is the interval for deleting expired keys. keysAtOnce
	// bounds the keys that one statement deletes.
	keysDroppedEvery = 10 * time.Minute
	keysAtOnce       = 5000
	// runningAgain is how long a client should wait before it retries a request
	// that still runs.
	runningAgain = time.Second
)

// Once is a request with an idempotency key.
type Once struct {
	request     string // hash of the viewer and the key
	fingerprint string // of the request's content
	project     string
	kept        map[[2]string]bool // field and step of each transaction committed before this attempt
}

type onceKey struct{}

// oncePlace identifies a transaction of a request with an idempotency key.
type oncePlace struct {
	*Once
	field string // the response name
	step  string // distinguishes several transactions of one field
}

// MakeOnce returns a context for a request of the viewer with an idempotency
// key. The fingerprint identifies the content of the request. MakeOnce refuses
// a key that belongs to another request (ErrInvalidInput) or to one that runs
// in this process (ErrConcurrentUpdate). The caller calls the returned function
// when the request ends.
func (d *DB) MakeOnce(ctx context.Context, key, fingerprint string) (context.Context, func(), error) {
	viewer := access.ViewerFrom(ctx)
	name, err := json.Marshal([]string{viewer.UserID, viewer.ProjectID, key})
	if err != nil {
		return nil, nil, err
	}
	digest := sha256.Sum256(name)
	once := &Once{request: hex.EncodeToString(digest[:]), fingerprint: fingerprint,
		project: viewer.ProjectID, kept: map[[2]string]bool{}}
	if _, running := d.keys.running.LoadOrStore(once.request, true); running {
		return nil, nil, refuseRunning()
	}
	done := func() { d.keys.running.Delete(once.request) }
	if err := d.readKept(Apart(ctx), once); err != nil {
		done()
		return nil, nil, err
	}
	return context.WithValue(ctx, onceKey{}, &oncePlace{Once: once}), done, nil
}

// readKept adds the committed transactions of a request to once.kept. It refuses
// a key that belongs to another request.
func (d *DB) readKept(ctx context.Context, once *Once) error {
	since, ago := d.ago(keepKeys, "$2")
	isReused := false
	err := d.Query(ctx, d.Pool, `SELECT field, step, fingerprint FROM idempotency_keys
		WHERE request = $1 AND created_at > `+since, func(rows *sql.Rows) error {
		var field, step, fingerprint string
		err := rows.Scan(&field, &step, &fingerprint)
		isReused = isReused || fingerprint != once.fingerprint
		once.kept[[2]string{field, step}] = true
		return err
	}, once.request, ago)
	if err != nil {
		return fmt.Errorf("look up an idempotency key: %w", err)
	}
	if isReused {
		return refuseReused()
	}
	return nil
}

// ago returns the SQL for a time before now, and the argument of its parameter.
// Now is the time of PostgreSQL, which all its servers share, or DB.Now on
// SQLite.
func (d *DB) ago(age time.Duration, parameter string) (statement string, argument any) {
	if d.Postgres() {
		return "(SELECT clock_timestamp() - make_interval(secs => " + parameter + "))", age.Seconds()
	}
	return parameter, d.Now().Add(-age)
}

func refuseRunning() error {
	return problem.Refuse(problem.ErrConcurrentUpdate,
		"%s: a request with this key is still running; send it again with the same key", IdempotencyKeyHeader).
		On(IdempotencyKeyHeader).After(runningAgain)
}

func refuseReused() error {
	return problem.Invalid(IdempotencyKeyHeader,
		"belongs to a different request of the last 24 hours; send the same document and variables, or use another key")
}

// IsOfTheKey reports whether err concerns the idempotency key rather than the
// request.
func IsOfTheKey(err error) bool {
	if refusal, ok := errors.AsType[*problem.Refusal](err); ok {
		return refusal.Field == IdempotencyKeyHeader
	}
	problems, _ := problem.Of(err)
	return problems.HasUnder(IdempotencyKeyHeader)
}

// placeOf returns the oncePlace of a context, nil if the request has no
// idempotency key.
func placeOf(ctx context.Context) *oncePlace {
	place, _ := ctx.Value(onceKey{}).(*oncePlace)
	return place
}

// AtField returns the context for a field of Mutation with the given response
// name.
func AtField(ctx context.Context, field string) context.Context {
	if place := placeOf(ctx); place != nil {
		return context.WithValue(ctx, onceKey{}, &oncePlace{place.Once, field, ""})
	}
	return ctx
}

// AtStep returns the context for one of several transactions of a field. The
// name of the step must be the same in a retry.
func AtStep(ctx context.Context, step string) context.Context {
	if place := placeOf(ctx); place != nil {
		return context.WithValue(ctx, onceKey{}, &oncePlace{place.Once, place.field, step})
	}
	return ctx
}

// IsOnce reports whether the request of a context has an idempotency key.
func IsOnce(ctx context.Context) bool { return placeOf(ctx) != nil }

// NotOnce returns a context without an idempotency key: for a dry run, or for a
// transaction that serves several requests. The owner of such a transaction
// calls Tx.Replay and Tx.Keep with the context of each request, and Committed
// for each whose change it made.
func NotOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, (*oncePlace)(nil))
}

// isOfSeveral reports whether NotOnce made the context.
func isOfSeveral(ctx context.Context) bool { return ctx.Value(onceKey{}) == (*oncePlace)(nil) }

// IsDone reports whether the transaction of a context was committed before its
// request began. Write then sets its results to the stored values, so callers
// skip checks against the current state.
func (d *DB) IsDone(ctx context.Context) bool {
	place := placeOf(ctx)
	return place != nil && place.kept[[2]string{place.field, place.step}]
}

// WasDoneMeanwhile reports whether the same request, on another server, has
// committed a transaction of the current field since this request began.
func (d *DB) WasDoneMeanwhile(ctx context.Context) (bool, error) {
	place := placeOf(ctx)
	if place == nil {
		return false, nil
	}
	now := &Once{request: place.request, fingerprint: place.fingerprint, kept: map[[2]string]bool{}}
	if err := d.readKept(Apart(ctx), now); err != nil {
		return false, err
	}
	for done := range now.kept {
		if done[0] == place.field && !place.kept[done] {
			return true, nil
		}
	}
	return false, nil
}

// Replay loads the stored values of the transaction of ctx through the pointers
// in results, and reports whether it found them. It refuses a request that is
// running elsewhere, a key of another request, and a new row of a project at its
// limit. If it returns false and no error, the caller may write for the request
// and then calls Keep. Without a key it returns false.
func (tx *Tx) Replay(ctx context.Context, results ...any) (bool, error) {
	place := placeOf(ctx)
	if place == nil {
		return false, nil
	}
	if err := tx.lockKey(ctx, place); err != nil {
		return false, err
	}
	// Any row of the request has its fingerprint, but only the row of this field
	// and step has the outcome.
	var fingerprint string
	var outcome *string
	since, ago := tx.db.ago(keepKeys, "$4")
	err := tx.db.Query(ctx, tx, `SELECT fingerprint, CASE WHEN field = $2 AND step = $3 THEN outcome END FROM idempotency_keys
		WHERE request = $1 AND created_at > `+since+` ORDER BY CASE WHEN field = $2 AND step = $3 THEN 0 ELSE 1 END LIMIT 1`,
		func(rows *sql.Rows) error { return rows.Scan(&fingerprint, &outcome) },
		place.request, place.field, place.step, ago)
	switch {
	case err != nil:
		return false, fmt.Errorf("look up an idempotency key: %w", err)
	case fingerprint != "" && fingerprint != place.fingerprint:
		return false, refuseReused()
	case outcome == nil:
		return false, tx.db.keys.check(ctx, tx, place.project)
	}
	if err := tx.db.ShowsAll(ctx, tx); err != nil { // another server may have made the change
		return false, err
	}
	tx.db.wroteElsewhere(ctx)
	tx.db.Committed(ctx)
	return true, setResults(*outcome, results)
}

// setResults decodes a stored outcome through the pointers in results. It
// returns an error if their number differs.
func setResults(outcome string, results []any) error {
	var kept []json.RawMessage
	err := json.Unmarshal([]byte(outcome), &kept)
	if err == nil && len(kept) != len(results) {
		err = fmt.Errorf("the result of an idempotency key has %d values, not %d", len(kept), len(results))
	}
	for i := 0; i < len(results) && err == nil; i++ {
		err = json.Unmarshal(kept[i], results[i])
	}
	if err != nil {
		return fmt.Errorf("read the result of an idempotency key: %w", err)
	}
	return nil
}

// lockKey takes the lock of the request, or refuses if another transaction has
// it.
func (tx *Tx) lockKey(ctx context.Context, place *oncePlace) error {
	if !tx.db.Postgres() {
		return nil // one transaction writes at a time
	}
	digest, err := hex.DecodeString(place.request)
	if err != nil {
		return err
	}
	free := false
	err = tx.db.Query(ctx, tx, `SELECT pg_try_advisory_xact_lock($1)`, func(rows *sql.Rows) error {
		return rows.Scan(&free)
	},
		int64(binary.BigEndian.Uint64(digest)))
	if err == nil && !free {
		err = refuseRunning()
	}
	return err
}

// Keep encodes the values that results point to, for the request of a context.
// The transaction stores them before COMMIT. Without a key Keep does nothing.
func (tx *Tx) Keep(ctx context.Context, results ...any) error {
	place := placeOf(ctx)
	if place == nil {
		return nil
	}
	var outcome bytes.Buffer
	encoder := json.NewEncoder(&outcome)
	encoder.SetEscapeHTML(false) // embedded JSON stays unchanged
	if err := encoder.Encode(append([]any{}, results...)); err != nil {
		return fmt.Errorf("store the result of %q: %w", tx.Mutation, err)
	}
	tx.kept = append(tx.kept,
		[]any{place.request, place.field, place.step, place.fingerprint, place.project, outcome.String()})
	tx.keptOf = append(tx.keptOf, place.project)
	return nil
}

// writeKept writes the results that Keep queued. A conflicting row has expired,
// so it is overwritten.
func (tx *Tx) writeKept(ctx context.Context) error {
	if len(tx.kept) == 0 {
		return nil
	}
	now, ago := tx.db.ago(0, "$1")
	args := []any{ago}
	err := tx.db.Execute(Uncounted(ctx), tx,
		`INSERT INTO idempotency_keys (created_at, request, field, step, fingerprint, project_id, outcome)
		VALUES `+valuesOf(&args, now+", ", tx.kept)+` ON CONFLICT (request, field, step) DO UPDATE SET fingerprint = excluded.fingerprint,
		project_id = excluded.project_id, outcome = excluded.outcome, created_at = excluded.created_at`, args...)
	if err != nil {
		return fmt.Errorf("store the result of %q: %w", tx.Mutation, err)
	}
	return nil
}

// keys has the requests with an idempotency key that run in this process, and
// counts the stored keys of projects.
type keys struct {
	db         *DB
	perProject int
	running    sync.Map // running requests
	mu         sync.Mutex
	counts     map[string]*keyCount // by project
}

// keyCount is the approximate number of rows of a project in idempotency_keys,
// one for each transaction of a request: the last count, and the rows that this
// process added since.
type keyCount struct {
	kept    int
	counted time.Time
}

const (
	// countedFor is how long a count of keys is valid.
	countedFor = time.Minute
	// maxKeyCounts bounds the projects with a cached count.
	maxKeyCounts = 10_000
)

// check refuses another row for a project that has reached its limit
// (ErrQuotaExceeded). It counts the rows if the last count is old.
func (k *keys) check(ctx context.Context, tx *Tx, project string) error {
	now := k.db.Now()
	k.mu.Lock()
	count := k.counts[project]
	isNew := count != nil && now.Sub(count.counted) < countedFor && count.kept < k.perProject
	k.mu.Unlock()
	if isNew {
		return nil
	}
	kept := 0
	since, ago := k.db.ago(keepKeys, "$2")
	err := k.db.Query(ctx, tx,
		`SELECT count(*) FROM (SELECT 1 FROM idempotency_keys WHERE project_id = $1 AND created_at > `+since+
			` LIMIT $3) AS kept`,
		func(rows *sql.Rows) error { return rows.Scan(&kept) }, project, ago, k.perProject)
	if err != nil {
		return fmt.Errorf("count idempotency keys: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.counts) >= maxKeyCounts {
		k.counts = nil
	}
	if k.counts == nil {
		k.counts = map[string]*keyCount{}
	}
	k.counts[project] = &keyCount{kept, now}
	if kept >= k.perProject {
		return problem.Refuse(problem.ErrQuotaExceeded,
			"%s: the project has %d changes under idempotency keys, at most %d are allowed; they expire after 24 hours",
			IdempotencyKeyHeader, kept, k.perProject).On(IdempotencyKeyHeader)
	}
	return nil
}

// added counts new rows, given the project of each.
func (k *keys) added(projects []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, project := range projects {
		if count := k.counts[project]; count != nil {
			count.kept++
		}
	}
}

// DropKeys deletes expired idempotency keys.
func (d *DB) DropKeys(ctx context.Context) error {
	// The second condition keeps a key that was renewed meanwhile.
	since, ago := d.ago(keepKeys, "$1")
	statement := fmt.Sprintf(`DELETE FROM idempotency_keys
		WHERE id IN (SELECT id FROM idempotency_keys WHERE created_at <= %[1]s ORDER BY created_at LIMIT %[2]d) AND created_at <= %[1]s`, since, keysAtOnce)
	for {
		if deleted, err := d.delete(ctx, d.Pool, statement, ago); err != nil ||
			deleted < keysAtOnce {
			return err
		}
	}
}
