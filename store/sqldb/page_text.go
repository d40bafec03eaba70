package sqldb

import (
	entsql "entgo.io/ent/dialect/sql"
)

// ComparePart returns a comparison of row values within a part of FirstOfEach:
// the columns with the arguments, which an index on the column of the part's key
// and these columns serves.
func ComparePart(s *entsql.Selector, part, operator string, columns []string, args ...any) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		bounded := boundsParts(s)
		b.WriteString("(")
		if bounded {
			b.Ident(s.C(part)).Comma()
		}
		for i, column := range columns {
			if i > 0 {
				b.Comma()
			}
			b.Ident(s.C(column))
		}
		b.WriteString(") " + operator + " (")
		if bounded {
			b.WriteString(partKey(s)).Comma()
		}
		b.Args(args...).WriteString(")")
	})
}
