package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// footprintName is what -works chooses this part by.
const footprintName = "footprint"

// footprint is what a server of the large world takes when it starts, in memory,
// and in its database.
type footprint struct {
	Database string `json:"database"`
	Server   string `json:"server"`
	// Pairs is how many inventories there are: pairs of a provider and a class.
	Pairs int `json:"providerClassPairs"`
	// Start is how long it takes from the start of the process until the server is
	// ready, in milliseconds: the median of Starts. StartEmpty is the same without
	// the world.
	Start      float64   `json:"startMs"`
	Starts     []float64 `json:"startsMs"`
	StartEmpty float64   `json:"startEmptyMs"`
	// Heap is what is in use after garbage was collected, in bytes, and HeapEmpty the
	// same without the world.
	Heap      float64 `json:"heapBytes"`
	HeapEmpty float64 `json:"heapEmptyBytes"`
	// Resident is what the process holds just after the start, in bytes.
	Resident float64 `json:"residentBytes"`
	// Stored is how large the database is, in bytes, of which Tables are the largest
	// parts; of SQLite, the file alone.
	Stored int64   `json:"storedBytes"`
	Tables []table `json:"tables,omitempty"`
}

// table is how large a table is.
type table struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
	Indexes int64  `json:"indexBytes"`
}

// perPair returns how many bytes of the heap each pair of a provider and a class
// takes, all that belongs to providers included.
func (f footprint) perPair() float64 { return (f.Heap - f.HeapEmpty) / float64(f.Pairs) }

// starts is how often a server is started to time it.
const starts = 3

// leastStored is how many bytes a table of the report has at least, and mostTables
// how many tables there are.
const (
	leastStored = 128 << 10
	mostTables  = 16
)

// footprints measures every server of the large world.
func (b *bench) footprints(ctx context.Context) ([]footprint, error) {
	if !b.isChosen(footprintName) {
		return nil, nil
	}
	var all []footprint
	for _, t := range b.targets {
		if t.server == nil || t.world != b.large {
			continue
		}
		one, err := b.footprint(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t, footprintName, err)
		}
		all = append(all, *one)
		if _, err := fmt.Fprintf(b.progress, "%s: starts in %.0f ms\n", t, one.Start); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// footprint measures a server, which is another process afterwards.
func (b *bench) footprint(ctx context.Context, t *target) (*footprint, error) {
	one := &footprint{Database: t.database, Server: t.name}
	for _, p := range t.world.providers {
		one.Pairs += len(p.inventories)
	}
	var err error
	if one.StartEmpty, one.HeapEmpty, err = b.startEmpty(ctx, t); err != nil {
		return nil, err
	}
	for range starts {
		took, err := b.restart(ctx, t)
		if err != nil {
			return nil, err
		}
		one.Starts = append(one.Starts, milliseconds(took))
	}
	one.Start = median(one.Starts)
	if one.Resident, err = t.server.metric(ctx, "process_resident_memory_bytes"); err != nil {
		return nil, err
	}
	if one.Heap, err = t.server.heap(ctx); err != nil {
		return nil, err
	}
	if t.cluster == nil {
		one.Stored, err = sizeOfFiles(t.url[len("sqlite://"):])
		return one, err
	}
	one.Stored, one.Tables, err = storedIn(ctx, t)
	return one, err
}

// restart ends the server of a target and starts it again, and returns how long
// the start took.
func (b *bench) restart(ctx context.Context, t *target) (time.Duration, error) {
	if err := t.server.stop(); err != nil {
		return 0, err
	}
	began := time.Now()
	s, err := startServer(ctx, b.folder, t.file, t.program, t.url)
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	t.serve(s)
	return took, nil
}

// startEmpty starts a server like that of a target, on a database without a world,
// twice, for the first time makes the tables. It returns how long the second start
// took, and the heap after it.
func (b *bench) startEmpty(ctx context.Context, t *target) (took, heap float64, err error) {
	url, file := "sqlite://"+filepath.Join(b.folder, t.file+"-empty.db"), t.file+"-empty"
	if t.cluster != nil {
		if err := t.cluster.CreateDatabase(ctx, t.storage+"_empty"); err != nil {
			return 0, 0, err
		}
		url = t.cluster.URL(t.storage + "_empty")
	}
	for range 2 {
		began := time.Now()
		s, err := startServer(ctx, b.folder, file, t.program, url)
		if err != nil {
			return 0, 0, err
		}
		took = milliseconds(time.Since(began))
		heap, err = s.heap(ctx)
		if err = errors.Join(err, s.stop()); err != nil {
			return 0, 0, err
		}
	}
	return took, heap, nil
}

// metric returns one of the metrics of the server.
func (s *server) metric(ctx context.Context, name string) (float64, error) {
	all, err := s.metrics(ctx)
	return all[name], err
}

// heap returns what of the server's heap is in use after garbage was collected; 0
// for one that cannot be told to collect it.
func (s *server) heap(ctx context.Context) (float64, error) {
	for range 2 { // what has a finalizer goes the second time
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/heap?gc=1", s.profiles), nil)
		if err != nil {
			return 0, err
		}
		response, err := s.http.Do(r)
		if err != nil {
			return 0, err
		}
		if err := response.Body.Close(); err != nil {
			return 0, err
		}
	}
	return s.metric(ctx, "go_memstats_heap_alloc_bytes")
}

// sizeOfFiles returns how large a file of SQLite is with the log beside it.
func sizeOfFiles(path string) (sum int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		switch {
		case err == nil:
			sum += info.Size()
		case suffix == "" || !errors.Is(err, os.ErrNotExist):
			return 0, err
		}
	}
	return sum, nil
}

// storedIn returns how large the database of a target on PostgreSQL is, and its
// largest tables.
func storedIn(ctx context.Context, t *target) (stored int64, tables []table, err error) {
	db, err := sql.Open("postgres", t.cluster.URL(t.storage))
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&stored); err != nil {
		return 0, nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) >= $1`, leastStored)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one table
		if err := rows.Scan(&one.Name, &one.Bytes, &one.Indexes); err != nil {
			return 0, nil, err
		}
		tables = append(tables, one)
	}
	if err := rows.Err(); err != nil {
		return 0, nil, err
	}
	slices.SortFunc(tables, func(a, b table) int {
		return cmp.Or(cmp.Compare(b.Bytes+b.Indexes, a.Bytes+a.Indexes), cmp.Compare(a.Name, b.Name))
	})
	tables = tables[:min(len(tables), mostTables)]
	for i := range tables {
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM "`+tables[i].Name+`"`).Scan(&tables[i].Rows); err != nil {
			return 0, nil, err
		}
	}
	return stored, tables, nil
}
