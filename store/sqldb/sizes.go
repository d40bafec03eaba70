package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// sizesAge is the interval for reading table sizes, sizesTime the limit for one
// read.
const (
	sizesAge  = 30 * time.Second
	sizesTime = 10 * time.Second
)

// maxCounted bounds the rows that SQLite counts per table.
const maxCounted = 1_000_000

// tableSizes are the approximate row counts from the last read.
type tableSizes struct {
	mu    sync.Mutex
	rows  map[string]int64
	asked bool // since the last read
}

// Sizes returns the approximate row count of each table by name, as of the last
// read. The names of existing trigram indexes are keys, too, with the value 1.
// It never waits, and returns nil before the first read. The caller must not
// modify the map.
func (d *DB) Sizes() map[string]int64 {
	d.tableSizes.mu.Lock()
	defer d.tableSizes.mu.Unlock()
	d.tableSizes.asked = true
	return d.tableSizes.rows
}

// readSizesAgain reads the table sizes if Sizes was called since the last read.
func (d *DB) readSizesAgain(ctx context.Context) error {
	d.tableSizes.mu.Lock()
	asked := d.tableSizes.asked
	d.tableSizes.mu.Unlock()
	if !asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sizesTime)
	defer cancel()
	return d.ReadSizes(ctx)
}

// ReadSizes reads the table sizes. PostgreSQL has estimates. On SQLite it
// counts the rows of each table, up to maxCounted.
func (d *DB) ReadSizes(ctx context.Context) error {
	rows := map[string]int64{}
	read := func(query string) error {
		return d.Query(ctx, d.Pool, query, func(found *sql.Rows) error {
			var name string
			var size int64
			err := found.Scan(&name, &size)
			rows[name] = size
			return err
		})
	}
	var err error
	if d.Postgres() {
		err = read(`SELECT c.relname, CASE WHEN s.n_live_tup > 0 THEN s.n_live_tup ELSE GREATEST(c.reltuples, 0)::bigint END
			FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
			WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
			UNION ALL SELECT c.relname, 1 FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
			WHERE i.indisvalid AND c.relname LIKE '%\_trigrams' AND c.relnamespace = current_schema()::regnamespace`)
	} else {
		err = read(`SELECT name, name LIKE '%\_trigrams' ESCAPE '\' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\_trigrams\__%' ESCAPE '\'`)
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			if err == nil && rows[name] == 0 {
				err = read(fmt.Sprintf(`SELECT '%s', COUNT(*) FROM (SELECT 1 FROM "%s" LIMIT %d)`, name, name,
					maxCounted))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("read the sizes of tables: %w", err)
	}
	d.tableSizes.mu.Lock()
	defer d.tableSizes.mu.Unlock()
	d.tableSizes.rows, d.tableSizes.asked = rows, false
	return nil
}
