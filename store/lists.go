package store

import (
	"encoding/json"

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
		b.WriteString(" IN (SELECT value FROM json_each(").Arg(jsonList(values)).WriteString("))")
	})
}

func jsonList[V int64 | string](values []V) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // numbers and texts always have JSON
	}
	return string(text)
}
