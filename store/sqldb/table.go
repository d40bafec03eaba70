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

// Table is a table whose rows are read without ent's machinery, which makes an
// object for each value of each row and takes longer than all else of a list. The
// rows are ent's, and so are the predicates.
type Table[Row any] struct {
	name    string
	columns []string
	fields  []int // of Row, by column
}

// NewTable returns the table of a name with some of its columns. Row is the
// struct of ent.
func NewTable[Row any](name string, columns []string, without ...string) Table[Row] {
	t := Table[Row]{name: name}
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

// Condition is what a predicate or an order of ent is: a change of a SELECT.
type Condition interface{ ~func(*entsql.Selector) }

// Where returns predicates or orders of ent as one condition.
func Where[C Condition](conditions ...C) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		for _, condition := range conditions {
			condition(s)
		}
	}
}

// All returns the rows under conditions, in their order.
func (t Table[Row]) All(ctx context.Context, d *DB, conditions ...func(*entsql.Selector)) ([]*Row, error) {
	selector := entsql.Dialect(d.Pool.dialectName).Select().From(entsql.Table(t.name))
	selector.Select(selector.Columns(t.columns...)...)
	for _, condition := range conditions {
		condition(selector)
	}
	query, args := selector.Query()
	var found entsql.Rows
	if err := d.Driver.Query(Prepared(ctx), query, args, &found); err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []*Row
	var slab []Row
	into := make([]any, len(t.fields))
	for found.Next() {
		if len(slab) == 0 {
			slab = make([]Row, min(max(8, len(rows)), 128))
		}
		row := &slab[0]
		slab = slab[1:]
		t.fill(into, row)
		if err := found.Scan(into...); err != nil {
			return nil, refused(err)
		}
		rows = append(rows, row)
	}
	return rows, refused(found.Err())
}

// fill makes what Scan takes to fill a row.
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

// orZero reads a value that may be null as zero, as ent does.
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
