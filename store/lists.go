package store

import (
	"cmp"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"
)

// among keeps the rows whose column holds one of the values: one parameter,
// however many values there are, so that the statement stays the same.
func among[V int64 | string](column string, values []V) func(*entsql.Selector) {
	return func(s *entsql.Selector) { s.Where(isAmong(s, s.C(column), values)) }
}

// isAmong is among as a predicate on a qualified column.
func isAmong[V int64 | string](s *entsql.Selector, column string, values []V) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(column)
		if s.Dialect() == dialect.Postgres {
			b.WriteString(" = ANY(").Arg(pq.Array(values)).WriteString(")")
			return
		}
		b.WriteString(" IN (SELECT value FROM json_each(").Arg(jsonOf(values)).WriteString("))")
	})
}

// byID gathers rows as nouns by their own id.
func byID[Row, Noun any](rows []Row, err error, what string, noun func(Row) Noun, id func(Row) int64) (map[int64]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", what, err)
	}
	out := make(map[int64]Noun, len(rows))
	for _, row := range rows {
		out[id(row)] = noun(row)
	}
	return out, nil
}

// byParent gathers rows as nouns by the id of what they belong to, in their
// order.
func byParent[Row, Noun any](rows []Row, err error, what string, noun func(Row) Noun, parent func(Row) int64) (map[int64][]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	out := map[int64][]Noun{}
	for _, row := range rows {
		out[parent(row)] = append(out[parent(row)], noun(row))
	}
	return out, nil
}

// without is the list without what the other holds, in its order.
func without[V comparable](list, other []V) []V {
	held := make(map[V]bool, len(other))
	for _, value := range other {
		held[value] = true
	}
	var left []V
	for _, value := range list {
		if !held[value] {
			left = append(left, value)
		}
	}
	return left
}

// distinct is the list without repetitions, sorted.
func distinct[V cmp.Ordered](list []V) []V {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
