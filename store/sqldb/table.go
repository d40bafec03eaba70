package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
)

// Table reads rows of a table faster than ent, which allocates an object for
// each value of each row. The allocations took longer than the rest of a list
// query. Row types and predicates are ent's.
type Table[Row any] struct {
	Name    string // in the database
	columns []string
	fields  []int // of Row, by column
	// short is the table without its time columns; nil to always read them.
	short *Table[Row]
}

// Timeless returns a copy of the table that omits its time columns in contexts
// of WithoutTimes.
func (t Table[Row]) Timeless() Table[Row] {
	short := Table[Row]{Name: t.Name}
	for i, column := range t.columns {
		if column != "created_at" && column != "updated_at" {
			short.columns, short.fields = append(short.columns, column), append(short.fields, t.fields[i])
		}
	}
	t.short = &short
	return t
}

type timelessKey struct{}

// WithoutTimes returns a context that omits the time columns of timeless
// tables.
func WithoutTimes(ctx context.Context) context.Context {
	return context.WithValue(ctx, timelessKey{}, true)
}

// NewTable returns a Table for the given columns, except those in without. Row
// is ent's struct for the table; NewTable panics if it has no field for a column.
func NewTable[Row any](name string, columns []string, without ...string) Table[Row] {
	t := Table[Row]{Name: name}
	row := reflect.TypeFor[Row]()
	for _, column := range columns {
		if slices.Contains(without, column) {
			continue
		}
		found := false
		for i := range row.NumField() {
			if named, _, _ := strings.Cut(row.Field(i).Tag.Get("json"), ","); named == column {
				t.columns, t.fields, found = append(t.columns, column), append(t.fields, i), true
			}
		}
		if !found {
			panic(fmt.Sprintf("%s has no field for the column %q", row, column))
		}
	}
	return t
}

// Condition is a predicate or an order of ent: a function that modifies a
// SELECT.
type Condition interface{ ~func(*entsql.Selector) }

// Where combines predicates or orders of ent into one condition.
func Where[C Condition](conditions ...C) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		for _, condition := range conditions {
			condition(s)
		}
	}
}

// All returns the rows that meet the conditions, in the order they set.
func (t Table[Row]) All(ctx context.Context, d *DB, conditions ...func(*entsql.Selector)) ([]*Row, error) {
	if t.short != nil && ctx.Value(timelessKey{}) != nil {
		t = *t.short
	}
	selector := t.where(d, conditions)
	selector.Select(selector.Columns(t.columns...)...)
	var rows []*Row
	var slab []Row
	into := make([]any, len(t.fields))
	err := d.Select(prepared(ctx), selector, func(found *entsql.Rows) error {
		if len(slab) == 0 {
			slab = make([]Row, min(max(8, len(rows)), 128))
		}
		row := &slab[0]
		slab = slab[1:]
		t.fill(into, row)
		rows = append(rows, row)
		return found.Scan(into...)
	})
	return rows, err
}

// where returns a SELECT without columns, under the conditions.
func (t Table[Row]) where(d *DB, conditions []func(*entsql.Selector)) *entsql.Selector {
	selector := entsql.Dialect(d.Pool.dialectName).Select().From(entsql.Table(t.Name))
	for _, condition := range conditions {
		condition(selector)
	}
	return selector
}

// Select runs a SELECT and passes each row to a function.
func (d *DB) Select(ctx context.Context, selector *entsql.Selector, each func(*entsql.Rows) error) error {
	query, args := selector.Query()
	if err := selector.Err(); err != nil {
		return err
	}
	var found entsql.Rows
	if err := d.Driver.Query(ctx, query, args, &found); err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := each(&found); err != nil {
			return Refused(err)
		}
	}
	return Refused(found.Err())
}

// Count returns the number of rows that meet the conditions.
func (t Table[Row]) Count(ctx context.Context, d *DB, conditions ...func(*entsql.Selector)) (n int, err error) {
	err = d.Select(ctx, t.where(d, conditions).Count(), func(rows *entsql.Rows) error { return rows.Scan(&n) })
	if err != nil {
		return 0, fmt.Errorf("count the rows of %s: %w", t.Name, err)
	}
	return n, nil
}

// CountBy returns the number of rows that meet the conditions, by the value of
// a foreign key column.
func (t Table[Row]) CountBy(ctx context.Context, d *DB, column string,
	conditions ...func(*entsql.Selector)) (map[int64]int, error) {
	selector := t.where(d, conditions)
	counts, err := d.CountEach(ctx, selector.Select(selector.C(column), entsql.Count("*")).GroupBy(selector.C(column)))
	if err != nil {
		return nil, fmt.Errorf("count the rows of %s: %w", t.Name, err)
	}
	return counts, nil
}

// CountEach returns the second column of a SELECT, a count, keyed by the first,
// an id.
func (d *DB) CountEach(ctx context.Context, selector *entsql.Selector) (map[int64]int, error) {
	counts := map[int64]int{}
	err := d.Select(ctx, selector, func(rows *entsql.Rows) error {
		var id int64
		var n int
		err := rows.Scan(&id, &n)
		counts[id] = n
		return err
	})
	return counts, err
}

// fill sets the arguments of Scan for a row.
func (t Table[Row]) fill(into []any, row *Row) {
	value := reflect.ValueOf(row).Elem()
	for i, field := range t.fields {
		into[i] = value.Field(field).Addr().Interface()
		switch to := into[i].(type) {
		case *string:
			into[i] = orZero[string]{to}
		case *bool:
			into[i] = orZero[bool]{to}
		}
	}
}

// orZero scans NULL as the zero value, as ent does.
type orZero[V any] struct{ to *V }

func (o orZero[V]) Scan(value any) error {
	if value, ok := value.(V); ok {
		*o.to = value
		return nil
	}
	var other sql.Null[V]
	err := other.Scan(value)
	*o.to = other.V
	return err
}
