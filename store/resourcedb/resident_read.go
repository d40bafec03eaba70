package resourcedb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/resource/resident"
	copies "github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
