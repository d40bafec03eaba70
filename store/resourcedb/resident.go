package resourcedb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource/resident"
	copies "github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// The store keeps resources in memory (store/resident), as sets by their
// values, once there are many metadata items and memory could answer a request.
// It loads them in the background. Every reader reads at one instant and
// updates memory to that instant, so memory is as exact as the database,
// regardless of the server that wrote, and no write waits for it. The database
// answers until resources are loaded, if they need too much memory, and if more
// has changed than a request may read. Memory and the database must return the
// same answers.

const (
	// DefaultResidentBytes is the default maximum memory for resources, in
	// bytes.
	DefaultResidentBytes = 256 << 20
	// defaultResidentFrom is the default number of metadata items from which
	// resources are kept in memory. The database counts fewer in a few
	// milliseconds.
	defaultResidentFrom = 20_000
	// maxFollowed is the maximum number of changed resources that a request
	// reads to update memory.
	maxFollowed = 2000
)

// The kinds of changes that memory follows.
const (
	resourceKind = string(change.Resource)
	typeKind     = string(change.ResourceType)
)

// heldResources are resources and the names of their types. They never change.
type heldResources struct {
	*resident.Resources
	types map[int64]string
}

// keepResources has memory follow the database, once resources are loaded.
func (s *ResourceStore) keepResources() {
	s.memory = copies.New(s.DB, copies.Domain[heldResources]{
		Name:   "resources",
		Kinds:  []string{resourceKind, typeKind},
		Load:   s.readAllResources,
		Next:   s.readChanged,
		Size:   func(held *heldResources) int64 { return held.Bytes() },
		Most:   cmp.Or(s.options.ResidentBytes, DefaultResidentBytes),
		Beside: maxFollowed,
	})
}

// LoadResources loads the resources into memory, unless they need more than the
// maximum. The options must not turn memory off.
func (s *ResourceStore) LoadResources(ctx context.Context) error { return s.memory.Load(ctx) }

// resourcesAt returns the resources at the instant that the context reads, or
// nil if the database must answer. If memory has none, it starts to load them,
// except in a trial.
func (s *ResourceStore) resourcesAt(ctx context.Context) (*heldResources, error) {
	if s.memory == nil {
		return nil, nil
	}
	if s.memory.Held() == nil && !s.IsTrial(ctx) {
		s.loadSoon()
	}
	return s.memory.At(ctx)
}

// readChanged returns a copy of held with the resources that notes name read
// again, and all type names if a type changed.
func (s *ResourceStore) readChanged(ctx context.Context, on sqldb.Conn, held *heldResources,
	notes []changelog.Note) (*heldResources, error) {
	next := *held
	var uuids []string
	isRenamed := false
	for _, note := range notes {
		if note.Kind == typeKind {
			isRenamed = true
		} else {
			uuids = append(uuids, note.Key)
		}
	}
	if isRenamed {
		var err error
		if next.types, err = s.readTypeNames(ctx, on); err != nil {
			return nil, err
		}
	}
	for some := range slices.Chunk(lists.Distinct(uuids), maxFollowed) {
		changed, err := s.readResources(ctx, on, some)
		if err != nil {
			return nil, err
		}
		next.Resources = next.With(some, changed)
	}
	return &next, nil
}

// loadSoon starts loading resources in the background if there are many items.
func (s *ResourceStore) loadSoon() {
	if from := cmp.Or(s.options.ResidentFrom, defaultResidentFrom); from > 0 && s.Sizes()["metadata_items"] >= from {
		s.memory.Soon()
	}
}

// itemsAtOnce is the maximum number of tags or items that a statement reads.
const itemsAtOnce = 50_000

// readAllResources reads all resources that a transaction sees, regardless of
// visibility. It fails if they need more than most bytes of memory.
func (s *ResourceStore) readAllResources(ctx context.Context, on sqldb.Conn, most int64) (*heldResources, error) {
	types, err := s.readTypeNames(ctx, on)
	if err != nil {
		return nil, err
	}
	reader := &resourceReader{store: s, on: on, built: resident.NewBuilder(), numbers: map[int64]uint32{}, most: most}
	if err := reader.read(ctx, nil); err != nil {
		return nil, err
	}
	if bytes := reader.built.Bytes(); bytes > most {
		return nil, copies.TooBig(bytes)
	}
	return &heldResources{reader.built.Resources(), types}, nil
}

// readResources reads the resources with the uuids, regardless of visibility.
func (s *ResourceStore) readResources(ctx context.Context, on sqldb.Conn, uuids []string) (*resident.Resources, error) {
	reader := &resourceReader{store: s, on: on, built: resident.NewBuilder(), numbers: map[int64]uint32{}}
	if err := reader.read(ctx, uuids); err != nil {
		return nil, err
	}
	return reader.built.Resources(), nil
}

// readTypeNames reads the names of all resource types by their row ids.
func (s *ResourceStore) readTypeNames(ctx context.Context, on sqldb.Conn) (map[int64]string, error) {
	names, err := sqldb.Pairs[int64, string](ctx, s.DB, on, `SELECT id, name FROM resource_types`)
	if err != nil {
		return nil, fmt.Errorf("read the names of resource types: %w", err)
	}
	return names, nil
}

// resourceReader reads resources with their tags and metadata.
type resourceReader struct {
	store   *ResourceStore
	on      sqldb.Conn
	built   *resident.Builder
	numbers map[int64]uint32 // by row id
	most    int64            // bytes, 0 for no maximum
}

// read reads the resources with the uuids, or all if uuids is nil.
func (r *resourceReader) read(ctx context.Context, uuids []string) error {
	var args []any
	among, last := "", ""
	if uuids != nil {
		among, args = ` WHERE `+r.store.Listed("uuid", "$1", "text"), []any{sqldb.JSONOf(uuids)}
	}
	err := r.store.Query(ctx, r.on,
		`SELECT id, uuid, resource_type_id, project_id, visibility, name, created_at, updated_at FROM resources`+among+
			` ORDER BY uuid`, func(rows *sql.Rows) error {
			var id, of int64
			var uuid, project, visibility, name string
			var created, updated time.Time
			if err := rows.Scan(&id, &uuid, &of, &project, &visibility, &name, &created, &updated); err != nil {
				return err
			}
			if uuid <= last {
				return fmt.Errorf("resources are not sorted: %s comes after %s", uuid, last)
			}
			last = uuid
			number := r.built.Resource(uuid, id, created.UnixNano(), updated.UnixNano())
			r.numbers[id] = number
			r.built.Value(number, resident.Column{Kind: resident.OfType}, typeValue(of))
			r.built.Value(number, resident.Column{Kind: resident.OfProject}, project)
			r.built.Value(number, resident.Column{Kind: resident.OfVisibility}, visibility)
			r.built.Value(number, resident.Column{Kind: resident.OfName}, name)
			return nil
		}, args...)
	if err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	err = r.each(ctx, "resource_tags", "name_key, name", uuids != nil, func(number uint32, folded, name string) {
		r.built.Value(number, resident.Column{Kind: resident.OfTag}, resident.TagValue(folded, name))
	})
	if err != nil {
		return fmt.Errorf("read tags of resources: %w", err)
	}
	err = r.each(ctx, "metadata_items", "key, value", uuids != nil, func(number uint32, key, value string) {
		r.built.Value(number, resident.Column{Kind: resident.OfItem, Key: key}, value)
	})
	if err != nil {
		return fmt.Errorf("read metadata of resources: %w", err)
	}
	return nil
}

// each calls each for the rows of a table about the resources that were read.
// isSome means that not all resources were read. It reads many rows per
// statement, and stops when memory exceeds the maximum.
func (r *resourceReader) each(ctx context.Context, table, columns string, isSome bool,
	each func(number uint32, first, second string)) error {
	among, args := "", []any{int64(0)}
	if isSome {
		among, args = ` AND `+r.store.Listed("resource_id", "$2", "bigint"),
			append(args, sqldb.JSONOf(slices.Sorted(maps.Keys(r.numbers))))
	}
	for {
		count := 0
		err := r.store.Query(ctx, r.on,
			fmt.Sprintf(`SELECT id, resource_id, %s FROM %s WHERE id > $1%s ORDER BY id LIMIT %d`, columns, table,
				among, itemsAtOnce), func(rows *sql.Rows) error {
				var id, of int64
				var first, second string
				if err := rows.Scan(&id, &of, &first, &second); err != nil {
					return err
				}
				number, found := r.numbers[of]
				if !found {
					return fmt.Errorf("row %d of %s belongs to no resource", id, table)
				}
				each(number, first, second)
				args[0] = id
				count++
				return nil
			}, args...)
		if err != nil || count < itemsAtOnce || r.most > 0 && r.built.Bytes() > r.most {
			return err
		}
	}
}
