package sqldb

import (
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/text"
)

// SearchedText is a text of each row of a table that is searched for parts of
// it, without regard to case. An index of its trigrams, which are three
// characters in a row, serves searches for three characters and more; others,
// and those where PostgreSQL has no such index, look at every row.
type SearchedText struct {
	table string
	// folded is the column with the text as text.Fold makes it. Where plain is
	// another one, it has the text as it is, and folded is null where both would be
	// the same.
	folded, plain string
	// unless is a column that is true for rows that are not searched.
	unless string
}

// The texts that are searched.
var (
	MetadataValues       = SearchedText{table: "metadata_items", folded: "value_key", plain: "value"}
	CapabilityValues     = SearchedText{table: "capability_members", folded: "value_key", plain: "value", unless: "in_list"}
	ResourceNames        = SearchedText{table: "resources", folded: "name_key"}
	ResourceDescriptions = SearchedText{table: "resources", folded: "description_key", plain: "description"}
	TextsOfNamespaces    = SearchedText{table: "namespaces", folded: "search_key"}
	TextsOfProperties    = SearchedText{table: "property_definitions", folded: "search_key"}
	TextsOfObjects       = SearchedText{table: "object_definitions", folded: "search_key"}
	NamesOfTags          = SearchedText{table: "tags", folded: "name_key"}
)

// searchedTexts returns all texts that are searched: each has an index of its
// own, see makeTextIndexes.
func searchedTexts() []SearchedText {
	return []SearchedText{MetadataValues, CapabilityValues, ResourceNames, ResourceDescriptions, TextsOfNamespaces, TextsOfProperties, TextsOfObjects, NamesOfTags}
}

// maxTrigrams is how many trigrams of a text are looked for on SQLite.
const maxTrigrams = 16

// index returns the name of the index: of the table of trigrams on SQLite.
func (t SearchedText) index() string {
	column := t.plain
	if column == "" {
		column = t.folded
	}
	return t.table + "_" + column + "_trigrams"
}

// of returns the folded text of a row, as SQL; column spells a column.
func (t SearchedText) of(column func(string) string) string {
	if t.plain == "" {
		return column(t.folded)
	}
	return "COALESCE(" + column(t.folded) + ", " + column(t.plain) + ")"
}

// Contains holds for the rows whose text, folded, has a folded text somewhere;
// column spells a column of the table.
func (t SearchedText) Contains(column func(string) string, folded string) *entsql.Predicate {
	has, id := t.Has(column, folded), column("id") // with the name that the table has now: a statement around it may give it another
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() != dialect.Postgres && IsIndexed(folded) {
			b.WriteString(id + " IN (SELECT rowid FROM " + t.index() + " WHERE " + t.index() + " MATCH ").Arg(matchOf(trigramsOf(folded))).WriteString(") AND ")
		}
		b.Join(has)
	})
}

// Has holds for a row whose text, folded, has a folded text somewhere, as
// Contains does, and looks at the row alone.
func (t SearchedText) Has(column func(string) string, folded string) *entsql.Predicate {
	of := t.of(column)
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() == dialect.Postgres {
			b.WriteString(of).WriteString(" LIKE ").Arg(patternOf(folded))
			return
		}
		b.WriteString("instr(" + of).Comma().Arg(folded).WriteString(") > 0")
	})
}

// HasExactly is Has code point by code point.
func (t SearchedText) HasExactly(column func(string) string, part string) *entsql.Predicate {
	return containsText(column(t.plain), part)
}

// Found returns a SELECT of a column of the rows that Contains holds for. Rows
// are found as they are asked for: whoever asks for a few does not look at all.
func (t SearchedText) Found(selected, folded string) entsql.Querier {
	return t.foundBy(selected, folded, func(column func(string) string) *entsql.Predicate { return t.Has(column, folded) })
}

// FoundExactly is Found for the rows that ContainsExactly and another condition
// hold for.
func (t SearchedText) FoundExactly(selected, part string, and func(column func(string) string) *entsql.Predicate) entsql.Querier {
	return t.foundBy(selected, text.Fold(part), func(column func(string) string) *entsql.Predicate {
		return entsql.And(and(column), t.HasExactly(column, part))
	})
}

func (t SearchedText) foundBy(selected, folded string, holds func(column func(string) string) *entsql.Predicate) entsql.Querier {
	return entsql.P(func(b *entsql.Builder) {
		column := entsql.Dialect(b.Dialect()).Table(t.table).As("searched").C
		b.WriteString("SELECT ").Ident(column(selected)).WriteString(" FROM ")
		trigrams := trigramsOf(folded)
		if b.Dialect() == dialect.Postgres || len(trigrams) == 0 {
			b.Ident(t.table).WriteString(" AS searched WHERE ").Join(holds(column))
			return
		}
		b.WriteString(t.index() + " CROSS JOIN ").Ident(t.table).WriteString(" AS searched ON ").Ident(column("id")).WriteString(" = " + t.index() + ".rowid WHERE " + t.index() + " MATCH ").
			Arg(matchOf(trigrams)).WriteString(" AND ").Join(holds(column))
	})
}

// FoundIn holds where a column has one of the ids that a SELECT finds, which is
// run once: PostgreSQL, where it supposes that few rows are left, would run it for
// each of them.
func FoundIn(column string, ids *entsql.Selector) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() == dialect.Postgres {
			b.Ident(column).WriteString(" IN (WITH found (id) AS MATERIALIZED (").Join(ids).WriteString(") SELECT id FROM found)")
			return
		}
		b.Ident(column).WriteString(" IN (").Join(ids).WriteString(")")
	})
}

// Beside returns a column that is compared beside a search for a part of a text.
// SQLite, which knows nothing of how rare values are, would use its index in
// place of that of the texts.
func Beside(s *entsql.Selector, column, part string) string {
	if s.Dialect() == dialect.Postgres || !IsIndexed(text.Fold(part)) {
		return column
	}
	return "+" + column
}

// IsIndexed reports whether an index can serve searches for a folded text.
func IsIndexed(folded string) bool { return len(trigramsOf(folded)) > 0 }

// ContainsExactly holds for the rows whose text has a text somewhere, code point
// by code point. The index finds where it is in any case.
func (t SearchedText) ContainsExactly(column func(string) string, part string) *entsql.Predicate {
	exactly := containsText(column(t.plain), part)
	if folded := text.Fold(part); IsIndexed(folded) {
		return entsql.And(t.Contains(column, folded), exactly)
	}
	return exactly
}

// containsText holds where a column has a text somewhere, code point by code
// point.
func containsText(column, text string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		function := "instr("
		if b.Dialect() == dialect.Postgres {
			function = "strpos("
		}
		b.WriteString(function).Ident(column).Comma().Arg(text).WriteString(") > 0")
	})
}

// patternOf returns the pattern of LIKE for texts that have a text somewhere.
func patternOf(part string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(part) + "%"
}

// trigramsOf returns trigrams of a text, a limited number from all over it.
func trigramsOf(folded string) []string {
	runes := []rune(folded)
	count := len(runes) - 2
	var trigrams []string
	seen := map[string]bool{}
	for i := range min(count, maxTrigrams) {
		at := i * max(count-1, 1) / max(min(count, maxTrigrams)-1, 1)
		if trigram := string(runes[at : at+3]); !seen[trigram] {
			seen[trigram] = true
			trigrams = append(trigrams, trigram)
		}
	}
	return trigrams
}

// matchOf returns the query of FTS5 for rows with all trigrams.
func matchOf(trigrams []string) string {
	quoted := make([]string, len(trigrams))
	for i, trigram := range trigrams {
		quoted[i] = `"` + strings.ReplaceAll(trigram, `"`, `""`) + `"`
	}
	return strings.Join(quoted, " AND ")
}

// createTrigrams returns the statements that make the table of trigrams of
// SQLite and keep it with the table that is searched, in every transaction. It
// keeps no text, only the trigrams of rows.
func (t SearchedText) createTrigrams() []string {
	name := t.index()
	of := func(row string) string {
		return t.of(func(column string) string { return row + column })
	}
	columns := t.folded
	if t.plain != "" {
		columns += ", " + t.plain
	}
	insert := fmt.Sprintf("INSERT INTO %s (rowid, part) SELECT new.id, %s WHERE %s", name, of("new."), t.isSearched("new."))
	remove := fmt.Sprintf("DELETE FROM %s WHERE rowid = old.id", name)
	return []string{
		fmt.Sprintf("CREATE VIRTUAL TABLE %s USING fts5(part, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')", name),
		fmt.Sprintf("CREATE TRIGGER %s_insert AFTER INSERT ON %s WHEN %s BEGIN %s; END", name, t.table, t.isSearched("new."), insert),
		fmt.Sprintf("CREATE TRIGGER %s_delete AFTER DELETE ON %s WHEN %s BEGIN %s; END", name, t.table, t.isSearched("old."), remove),
		fmt.Sprintf("CREATE TRIGGER %s_update AFTER UPDATE OF %s ON %s WHEN %s IS NOT %s BEGIN %s; %s; END", name, columns, t.table, of("new."), of("old."), remove, insert),
	}
}

// mergedTrigrams is how many parts of a table of trigrams, one for each
// transaction that wrote, are merged into one. FTS5's own 4 took a third of the
// time of a write of 8 metadata items; more would slow searches.
const mergedTrigrams = 16

// mergeTrigrams returns the statement that has so many parts merged, where it is
// not so already.
func (t SearchedText) mergeTrigrams() string {
	return fmt.Sprintf("INSERT INTO %[1]s (%[1]s, rank) SELECT 'automerge', %[2]d WHERE NOT EXISTS (SELECT 1 FROM %[1]s_config WHERE k = 'automerge' AND v = %[2]d)",
		t.index(), mergedTrigrams)
}

// fillTrigrams returns the statement that puts all rows there are into the table
// of trigrams.
func (t SearchedText) fillTrigrams() string {
	of := t.of(func(column string) string { return column })
	return fmt.Sprintf("INSERT INTO %s (rowid, part) SELECT id, %s FROM %s WHERE %s", t.index(), of, t.table, t.isSearched(""))
}

// isSearched is the condition on a row, of which the columns are spelled so, that
// has trigrams.
func (t SearchedText) isSearched(row string) string {
	condition := "length(" + t.of(func(column string) string { return row + column }) + ") > 2"
	if t.unless != "" {
		condition += " AND NOT " + row + t.unless
	}
	return condition
}

// pendingKiB is how much of what was written PostgreSQL keeps before it goes into
// an index: searches look through it, and a write that finds it full waits.
const pendingKiB = 1024

// createIndex returns what follows CREATE INDEX on PostgreSQL, where the
// extension is in a schema.
func (t SearchedText) createIndex(schema string) string {
	statement := fmt.Sprintf(`"%s" ON "%s" USING gin ((%s) "%s".gin_trgm_ops) WITH (gin_pending_list_limit = %d)`,
		t.index(), t.table, t.of(func(column string) string { return column }), schema, pendingKiB)
	if t.unless != "" {
		statement += " WHERE NOT " + t.unless
	}
	return statement
}
