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

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/idempotencykey"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
)

// A request with an idempotency key is made once. Each transaction that it
// commits keeps, in itself, what Write returned: so the two are there together or
// not at all, whatever becomes of the answer to COMMIT. A request that is sent
// again finds that, and answers from it in place of writing.
//
// The row has Go values and not the bytes of the answer: most fields of an answer
// are read after COMMIT, at one instant. Bytes written then are lost where a server
// stops between the two, and writing the answer inside the transaction shows rows
// that others change before COMMIT. A retry writes its answer from the values.
//
// At any moment one request with a key is under way: within a process by a list,
// and among those of PostgreSQL by an advisory lock that each transaction takes
// first and holds until it has ended. It never waits for it, so there is no
// deadlock. Whoever gets the lock sees what the transaction before it committed.

const (
	// IdempotencyKeyHeader is the header of a request that holds its key.
	IdempotencyKeyHeader = "Idempotency-Key"
	// KeepKeys is how long a key is kept.
	KeepKeys = 24 * time.Hour
	// DefaultKeysPerProject is how many transactions a project keeps under keys.
	DefaultKeysPerProject = 1_000_000
	// keysDroppedEvery is how often a server deletes the keys that expired, and
	// keysAtOnce how many of them in one statement.
	keysDroppedEvery = 10 * time.Minute
	keysAtOnce       = 5000
	// runningAgain is when to ask again about a request that is under way.
	runningAgain = time.Second
)

// Once is a request that is made once.
type Once struct {
	request     string // names the viewer and the key
	fingerprint string // of what is asked for
	project     string
	kept        map[[2]string]bool // fields and steps that were done when it began
}

type onceKey struct{}

// oncePlace is a transaction of a request that is made once.
type oncePlace struct {
	*Once
	field string // the response name
	step  string // of several transactions of one field
}

// MakeOnce returns a context in which the viewer's request, which has a
// fingerprint, is made once under a key. It refuses a key that was used for
// another request (ErrInvalidInput), and one whose request is under way
// (ErrConcurrentUpdate). Done ends the request.
func (d *DB) MakeOnce(ctx context.Context, key, fingerprint string) (context.Context, func(), error) {
	viewer := access.ViewerFrom(ctx)
	name, err := json.Marshal([]string{viewer.UserID, viewer.ProjectID, key})
	if err != nil {
		return nil, nil, err
	}
	digest := sha256.Sum256(name)
	once := &Once{request: hex.EncodeToString(digest[:]), fingerprint: fingerprint, project: viewer.ProjectID, kept: map[[2]string]bool{}}
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

// readKept reads what was done of a request.
func (d *DB) readKept(ctx context.Context, once *Once) error {
	rows, err := d.Ent.IdempotencyKey.Query().Where(idempotencykey.Request(once.request), idempotencykey.CreatedAtGT(d.Now().Add(-KeepKeys))).
		Select(idempotencykey.FieldField, idempotencykey.FieldStep, idempotencykey.FieldFingerprint).All(ctx)
	if err != nil {
		return fmt.Errorf("look up an idempotency key: %w", err)
	}
	for _, row := range rows {
		if row.Fingerprint != once.fingerprint {
			return refuseReused()
		}
		once.kept[[2]string{row.Field, row.Step}] = true
	}
	return nil
}

func refuseRunning() error {
	return problem.Refuse(problem.ErrConcurrentUpdate, "%s: a request with this key is under way; ask again with the same key", IdempotencyKeyHeader).
		On(IdempotencyKeyHeader).After(runningAgain)
}

func refuseReused() error {
	return problem.Invalid(IdempotencyKeyHeader, "is that of another request of the last 24 hours; send the same document and variables, or another key")
}

// IsOfTheKey reports whether an error refuses the key of a request, rather than
// the request.
func IsOfTheKey(err error) bool {
	if refusal, ok := errors.AsType[*problem.Refusal](err); ok {
		return refusal.Field == IdempotencyKeyHeader
	}
	problems, _ := problem.Of(err)
	return problems.HasUnder(IdempotencyKeyHeader)
}

// placeOf returns the place of a context in a request that is made once, nil if
// it is of none.
func placeOf(ctx context.Context) *oncePlace {
	place, _ := ctx.Value(onceKey{}).(*oncePlace)
	return place
}

// AtField returns the context of a field of Mutation, by its response name.
func AtField(ctx context.Context, field string) context.Context {
	if place := placeOf(ctx); place != nil {
		return context.WithValue(ctx, onceKey{}, &oncePlace{place.Once, field, ""})
	}
	return ctx
}

// AtStep returns the context of one of the transactions of a field that has
// several, by a name that is the same whenever the request is sent.
func AtStep(ctx context.Context, step string) context.Context {
	if place := placeOf(ctx); place != nil {
		return context.WithValue(ctx, onceKey{}, &oncePlace{place.Once, place.field, step})
	}
	return ctx
}

// IsOnce reports whether a context is that of a request that is made once.
func IsOnce(ctx context.Context) bool { return placeOf(ctx) != nil }

// NotOnce returns a context whose transactions keep nothing by themselves: they
// serve several requests, for each of which Tx.Replay and Tx.Keep are called.
func NotOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, (*oncePlace)(nil))
}

// IsDone reports whether the transaction of a context had been committed when its
// request began: Write returns what it returned then. Whoever checks before Write
// what may have changed since then does not.
func (d *DB) IsDone(ctx context.Context) bool {
	place := placeOf(ctx)
	return place != nil && place.kept[[2]string{place.field, place.step}]
}

// WasDoneMeanwhile reports whether a transaction of the field of a context, which
// was not done when its request began, is now: by the same request, on another
// server.
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

// Replay sets what results point to as the request of a context left it, and
// reports whether it was committed before. A request under way is refused. Where
// it reports false, the transaction may write for the request, and ends with
// Keep.
func (tx *Tx) Replay(ctx context.Context, results ...any) (bool, error) {
	place := placeOf(ctx)
	if place == nil {
		return false, nil
	}
	if err := tx.lockKey(ctx, place); err != nil {
		return false, err
	}
	// Any transaction of the request has its fingerprint, that of the place its
	// outcome.
	var fingerprint string
	var outcome *string
	err := tx.db.Query(ctx, tx, `SELECT fingerprint, CASE WHEN field = $2 AND step = $3 THEN outcome END FROM idempotency_keys
		WHERE request = $1 AND created_at > $4 ORDER BY CASE WHEN field = $2 AND step = $3 THEN 0 ELSE 1 END LIMIT 1`,
		func(rows *sql.Rows) error { return rows.Scan(&fingerprint, &outcome) },
		place.request, place.field, place.step, tx.db.Now().Add(-KeepKeys))
	switch {
	case err != nil:
		return false, fmt.Errorf("look up an idempotency key: %w", err)
	case fingerprint != "" && fingerprint != place.fingerprint:
		return false, refuseReused()
	case outcome == nil:
		return false, tx.db.keys.check(ctx, tx, place.project)
	}
	tx.db.wroteElsewhere(ctx)
	tx.db.Committed(ctx)
	return true, setResults(*outcome, results)
}

// setResults sets what results point to from what Keep kept.
func setResults(outcome string, results []any) error {
	var kept []json.RawMessage
	err := json.Unmarshal([]byte(outcome), &kept)
	if err == nil && len(kept) != len(results) {
		err = fmt.Errorf("there are %d results, not %d", len(kept), len(results))
	}
	for i := 0; i < len(results) && err == nil; i++ {
		err = json.Unmarshal(kept[i], results[i])
	}
	if err != nil {
		return fmt.Errorf("read what is kept under an idempotency key: %w", err)
	}
	return nil
}

// lockKey makes sure that no other transaction runs for the request.
func (tx *Tx) lockKey(ctx context.Context, place *oncePlace) error {
	if !tx.db.Postgres() {
		return nil // one transaction writes at a time
	}
	digest, err := hex.DecodeString(place.request)
	if err != nil {
		return err
	}
	free := false
	err = tx.db.Query(ctx, tx, `SELECT pg_try_advisory_xact_lock($1)`, func(rows *sql.Rows) error { return rows.Scan(&free) },
		int64(binary.BigEndian.Uint64(digest)))
	if err == nil && !free {
		err = refuseRunning()
	}
	return err
}

// Keep keeps what results point to for the request of a context, together with
// what the transaction writes.
func (tx *Tx) Keep(ctx context.Context, results ...any) error {
	place := placeOf(ctx)
	if place == nil {
		return nil
	}
	var outcome bytes.Buffer
	encoder := json.NewEncoder(&outcome)
	encoder.SetEscapeHTML(false) // JSON that is a part of it stays as it came
	if err := encoder.Encode(append([]any{}, results...)); err != nil {
		return fmt.Errorf("keep what %q did: %w", tx.Mutation, err)
	}
	tx.kept = append(tx.kept, tx.IdempotencyKey.Create().SetRequest(place.request).SetField(place.field).SetStep(place.step).
		SetFingerprint(place.fingerprint).SetProjectID(place.project).SetOutcome(outcome.String()).SetCreatedAt(tx.db.Now()))
	tx.keptOf = append(tx.keptOf, place.project)
	return nil
}

// writeKept writes what is to be kept. What is there already has expired.
func (tx *Tx) writeKept(ctx context.Context) error {
	if len(tx.kept) == 0 {
		return nil
	}
	err := tx.IdempotencyKey.CreateBulk(tx.kept...).
		OnConflict(entsql.ConflictColumns(idempotencykey.FieldRequest, idempotencykey.FieldField, idempotencykey.FieldStep), entsql.ResolveWith(func(u *entsql.UpdateSet) {
			for _, column := range []string{idempotencykey.FieldFingerprint, idempotencykey.FieldProjectID, idempotencykey.FieldOutcome, idempotencykey.FieldCreatedAt} {
				u.SetExcluded(column)
			}
		})).Exec(Uncounted(ctx))
	if err != nil {
		return fmt.Errorf("keep what %q did: %w", tx.Mutation, err)
	}
	return nil
}

// keys are the idempotency keys that a process knows of.
type keys struct {
	db         *DB
	perProject int
	running    sync.Map // the requests under way
	mu         sync.Mutex
	counts     map[string]*keyCount // by project
}

// keyCount is about how many keys a project has: as they were counted, and what
// this process added since.
type keyCount struct {
	kept    int
	counted time.Time
}

const (
	// countedFor is how long the keys of a project are not counted anew.
	countedFor = time.Minute
	// maxKeyCounts bounds the projects whose counts are held.
	maxKeyCounts = 10_000
)

// check refuses another key of a project that has as many as it may.
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
	err := k.db.Query(ctx, tx, `SELECT count(*) FROM (SELECT 1 FROM idempotency_keys WHERE project_id = $1 AND created_at > $2 LIMIT $3) AS kept`,
		func(rows *sql.Rows) error { return rows.Scan(&kept) }, project, now.Add(-KeepKeys), k.perProject)
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
		return problem.Refuse(problem.ErrQuotaExceeded, "%s: the project keeps %d changes under keys, at most %d are allowed; they expire after 24 hours",
			IdempotencyKeyHeader, kept, k.perProject).On(IdempotencyKeyHeader)
	}
	return nil
}

// added counts keys that were kept for projects.
func (k *keys) added(projects []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, project := range projects {
		if count := k.counts[project]; count != nil {
			count.kept++
		}
	}
}

// DropKeys deletes the idempotency keys that expired.
func (d *DB) DropKeys(ctx context.Context) error {
	for {
		rows, err := d.Ent.IdempotencyKey.Query().Where(idempotencykey.CreatedAtLTE(d.Now().Add(-KeepKeys))).
			Order(idempotencykey.ByCreatedAt()).Limit(keysAtOnce).Select(idempotencykey.FieldID).All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := lists.Map(rows, func(row *ent.IdempotencyKey) int64 { return row.ID })
		// One that was used anew meanwhile stays.
		if _, err := d.Ent.IdempotencyKey.Delete().
			Where(Among(idempotencykey.FieldID, ids), idempotencykey.CreatedAtLTE(d.Now().Add(-KeepKeys))).Exec(ctx); err != nil {
			return err
		}
		if len(rows) < keysAtOnce {
			return nil
		}
	}
}
