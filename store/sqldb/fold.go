package sqldb

import (
	"unicode/utf8"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/text"
)

// ContainsFolded holds where a column, folded as text.Fold does, has a folded
// text somewhere. The column is folded as the rows are looked through, as far as
// the text makes a difference.
func ContainsFolded(column, folded string) *entsql.Predicate {
	from, to := text.FoldingTo(folded)
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() == dialect.Postgres {
			b.WriteString("strpos(translate(").Ident(column).Comma().Arg(string(from)).Comma().Arg(string(to)).
				WriteString("), ").Arg(folded).WriteString(") > 0")
			return
		}
		b.WriteString("instr(")
		var replaced []int
		for i, r := range from {
			if r >= utf8.RuneSelf { // lower does the others
				b.WriteString("replace(")
				replaced = append(replaced, i)
			}
		}
		b.WriteString("lower(").Ident(column).WriteString(")")
		for _, i := range replaced {
			b.Comma().Arg(string(from[i])).Comma().Arg(string(to[i])).WriteString(")")
		}
		b.Comma().Arg(folded).WriteString(") > 0")
	})
}
