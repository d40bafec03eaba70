package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// starts is the number of timed starts of a server.
const starts = 3

// The largest maxTables tables of a database are measured, if they have minStored
// bytes.
const (
	minStored = 128 << 10
	maxTables = 16
)

// footprint measures the start, memory and database of a server.
func (b *bench) footprint(ctx context.Context, t *target) ([]measured.Line, error) {
	line := measured.Line{Kind: measured.Footprint, Database: t.database,
		Server: t.name, Figures: map[string]float64{}}
	if err := b.restart(ctx, t, line.Figures); err != nil || t.cluster == nil {
		return []measured.Line{line}, err
	}
	tables, err := tablesOf(ctx, t)
	return append([]measured.Line{line}, tables...), err
}

// restart measures the start, memory and database of a server. For this it
// restarts the server, so the process changes.
func (b *bench) restart(ctx context.Context, t *target, of map[string]float64) (err error) {
	if of["startEmptyMs"], of["heapEmptyBytes"], err = b.startEmpty(ctx, t); err != nil {
		return err
	}
	var times []float64
	for range starts {
		if err := t.stop(); err != nil {
			return err
		}
		began := time.Now()
		if err := t.serve(ctx, t.server.Setup); err != nil {
			return err
		}
		times = append(times, time.Since(began).Seconds()*1000)
	}
	of["startMs"] = measured.Median(times)
	of["residentBytes"], _ = t.process.Memory()
	if of["heapBytes"], err = t.heap(ctx); err != nil {
		return err
	}
	pairs := 0
	for _, p := range t.world.providers {
		pairs += len(p.inventories)
	}
	of["bytesOfPair"] = (of["heapBytes"] - of["heapEmptyBytes"]) / float64(pairs)
	if t.cluster == nil {
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(strings.TrimPrefix(t.server.Database, "sqlite://") + suffix); err == nil {
				of["storedBytes"] += float64(info.Size())
			}
		}
		return nil
	}
	text, err := local.Text(ctx, t.cluster.URL(t.storage), "SELECT pg_database_size(current_database())")
	if err == nil {
		of["storedBytes"], err = strconv.ParseFloat(text, 64)
	}
	return err
}

// startEmpty starts a target's program twice on an empty database. The first
// start creates the tables. It returns the duration of the second start and the
// heap after it.
func (b *bench) startEmpty(ctx context.Context, t *target) (took, heap float64, err error) {
	empty, setup := *t, t.server.Setup
	setup.Name += "-empty"
	if setup.Database, err = b.NewDatabase(ctx, t.database, strings.ReplaceAll(setup.Name, "-", "_")); err != nil {
		return 0, 0, err
	}
	for range 2 {
		began := time.Now()
		if err := empty.serve(ctx, setup); err != nil {
			return 0, 0, err
		}
		took = time.Since(began).Seconds() * 1000
		heap, err = empty.heap(ctx)
		if err = errors.Join(err, empty.stop()); err != nil {
			return 0, 0, err
		}
	}
	return took, heap, nil
}

// heap returns the bytes of the server's heap in use after garbage collection.
func (t *target) heap(ctx context.Context) (float64, error) {
	profiles := local.NewClient(t.server.Profiles, "", "", 1, requestTime)
	defer profiles.Close()
	for range 2 { // the second one frees objects with finalizers
		if got := profiles.Send(ctx, local.Call{Path: "/debug/pprof/heap?gc=1"}, nil); got.Status != http.StatusOK {
			return 0, got
		}
	}
	all, err := t.operator.Metrics(ctx)
	return all["go_memstats_heap_alloc_bytes"], err
}

// largestTables returns the lines of the largest tables of a database.
const largestTables = `SELECT coalesce(json_agg(json_build_object('kind', 'table', 'work', relname, 'figures', json_build_object(
		'bytes', bytes, 'indexBytes', indexes, 'rows', rows, 'bytesOfRow', (bytes + indexes) / greatest(1, rows)))), '[]')
	FROM (
		SELECT relname, pg_table_size(oid)::float AS bytes, pg_indexes_size(oid)::float AS indexes,
			(xpath('/row/c/text()', query_to_xml(format('SELECT count(*) AS c FROM %I', relname), false, true, '')))[1]::text::float AS rows
		FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) >= $1
		ORDER BY pg_total_relation_size(oid) DESC, relname LIMIT $2
	) AS largest`

// tablesOf returns the largest tables of a target on PostgreSQL.
func tablesOf(ctx context.Context, t *target) (lines []measured.Line, err error) {
	text, err := local.Text(ctx, t.cluster.URL(t.storage), largestTables, minStored, maxTables)
	if err != nil {
		return nil, err
	}
	return lines, json.Unmarshal([]byte(text), &lines)
}
