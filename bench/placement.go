package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// loadPlacement writes the providers of the world into the tables of the
// reference placement, as its API would: row by row over HTTP would take longer
// than everything else.
func (w *world) loadPlacement(ctx context.Context, t *target) (err error) {
	db, err := sql.Open("postgres", t.cluster.URL(t.storage))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	l := &placementLoad{ctx: ctx, tx: tx, now: time.Now().UTC()}
	l.world(w)
	if l.err != nil {
		return errors.Join(l.err, tx.Rollback())
	}
	return tx.Commit()
}

// placementLoad writes rows until one fails.
type placementLoad struct {
	ctx context.Context
	tx  *sql.Tx
	now time.Time
	err error
}

func (l *placementLoad) world(w *world) {
	var traits [][]any
	for _, trait := range w.traits {
		traits = append(traits, []any{l.now, trait["name"]})
	}
	l.copy("traits", []string{"created_at", "name"}, traits)
	traitIDs, classIDs := l.ids("traits"), l.ids("resource_classes")
	l.copy("projects", []string{"id", "created_at", "external_id"}, [][]any{{1, l.now, "bench"}})
	l.copy("users", []string{"id", "created_at", "external_id"}, [][]any{{1, l.now, "bench"}})
	l.copy("consumer_types", []string{"id", "created_at", "name"}, [][]any{{1, l.now, "INSTANCE"}})
	var providers, inventories, consumers, allocations, traitsOf, aggregates, aggregatesOf [][]any
	aggregateIDs := map[string]int{}
	ids, roots := map[string]int{}, map[string]int{} // a parent comes before its children
	for i, p := range w.providers {
		id, root, parent := i+1, i+1, any(nil)
		if p.parent != "" {
			root, parent = roots[p.parent], ids[p.parent]
		}
		ids[p.uuid], roots[p.uuid] = id, root
		providers = append(providers, []any{id, l.now, p.uuid, p.name, 1, root, parent})
		for _, inventory := range p.inventories {
			total := inventory["total"].(int)
			reserved, _ := inventory["reserved"].(int)
			ratio, ok := inventory["allocationRatio"].(int)
			if !ok {
				ratio = 1
			}
			inventories = append(inventories, []any{l.now, id, classIDs[inventory["resourceClass"].(string)], total, reserved, 1, total, 1, float64(ratio)})
		}
		for _, trait := range p.traits {
			traitsOf = append(traitsOf, []any{l.now, traitIDs[trait], id})
		}
		for _, aggregate := range p.aggregates {
			if aggregateIDs[aggregate] == 0 {
				aggregateIDs[aggregate] = len(aggregateIDs) + 1
				aggregates = append(aggregates, []any{aggregateIDs[aggregate], l.now, aggregate})
			}
			aggregatesOf = append(aggregatesOf, []any{l.now, id, aggregateIDs[aggregate]})
		}
		for _, consumer := range p.consumers {
			consumers = append(consumers, []any{l.now, consumer["uuid"], 1, 1, 1, 1})
			for _, from := range consumer["allocations"].([]object) {
				for _, amount := range from["resources"].([]object) {
					allocations = append(allocations, []any{l.now, id, consumer["uuid"], classIDs[amount["resourceClass"].(string)], amount["amount"]})
				}
			}
		}
	}
	l.copy("resource_providers", []string{"id", "created_at", "uuid", "name", "generation", "root_provider_id", "parent_provider_id"}, providers)
	l.copy("inventories", []string{"created_at", "resource_provider_id", "resource_class_id", "total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"}, inventories)
	l.copy("resource_provider_traits", []string{"created_at", "trait_id", "resource_provider_id"}, traitsOf)
	l.copy("placement_aggregates", []string{"id", "created_at", "uuid"}, aggregates)
	l.copy("resource_provider_aggregates", []string{"created_at", "resource_provider_id", "aggregate_id"}, aggregatesOf)
	l.copy("consumers", []string{"created_at", "uuid", "project_id", "user_id", "generation", "consumer_type_id"}, consumers)
	l.copy("allocations", []string{"created_at", "resource_provider_id", "consumer_id", "resource_class_id", "used"}, allocations)
}

// copy writes rows into a table.
func (l *placementLoad) copy(table string, columns []string, rows [][]any) {
	if l.err != nil || len(rows) == 0 {
		return
	}
	statement, err := l.tx.PrepareContext(l.ctx, fmt.Sprintf("COPY %s (%s) FROM STDIN", table, strings.Join(columns, ", ")))
	if err != nil {
		l.err = err
		return
	}
	for _, row := range rows {
		if _, err := statement.ExecContext(l.ctx, row...); err != nil {
			l.err = errors.Join(err, statement.Close())
			return
		}
	}
	_, err = statement.ExecContext(l.ctx)
	l.err = errors.Join(err, statement.Close())
}

// ids returns the row ids of a table with names.
func (l *placementLoad) ids(table string) map[string]int {
	ids := map[string]int{}
	if l.err != nil {
		return ids
	}
	rows, err := l.tx.QueryContext(l.ctx, "SELECT id, name FROM "+table)
	if err != nil {
		l.err = err
		return ids
	}
	defer func() { l.err = errors.Join(l.err, rows.Close()) }()
	for rows.Next() {
		var id int
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			l.err = err
			return ids
		}
		ids[name] = id
	}
	l.err = rows.Err()
	return ids
}
