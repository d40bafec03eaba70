// Package textindex searches strings of rows for substrings. It creates the
// trigram indexes of both databases, and builds the conditions that use them.
package textindex

import (
	"cmp"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/text"
)

// SearchedText is a string of each row of a table, searchable by substring
// without regard to case. A trigram index (three consecutive characters) serves
// searches for three characters or more. Shorter searches scan all rows, and so
// do all searches on PostgreSQL without that index.
type SearchedText struct {
	table string
	// folded is the column with the string folded by text.Fold. If plain is
	// set, that column has the original string, and folded is null if both
	// would be equal.
	folded, plain string
	// unless is a boolean column. The index lacks the rows where it is true, so
	// searches must exclude them.
	unless string
}

// The searchable strings.
var (
	MetadataValues   = SearchedText{table: "metadata_items", folded: "value_key", plain: "value"}
	CapabilityValues = SearchedText{table: "capability_members",
		folded: "value_key", plain: "value", unless: "in_list"}
	ResourceNames        = SearchedText{table: "resources", folded: "name_key"}
	ResourceDescriptions = SearchedText{table: "resources", folded: "description_key", plain: "description"}
	TextsOfNamespaces    = SearchedText{table: "namespaces", folded: "search_key"}
	TextsOfProperties    = SearchedText{table: "property_definitions", folded: "search_key"}
	TextsOfObjects       = SearchedText{table: "object_definitions", folded: "search_key"}
	NamesOfTags          = SearchedText{table: "tags", folded: "name_key"}
)

// searchedTexts returns all searchable strings. Each has its own index, see
// Create.
func searchedTexts() []SearchedText {
	return []SearchedText{MetadataValues, CapabilityValues, ResourceNames, ResourceDescriptions, TextsOfNamespaces,
		TextsOfProperties, TextsOfObjects, NamesOfTags}
}

// maxTrigrams bounds the trigrams of a search on SQLite.
const maxTrigrams = 16

// index returns the name of the index; on SQLite it is a trigram table.
func (t SearchedText) index() string {
	return t.table + "_" + cmp.Or(t.plain, t.folded) + "_trigrams"
}

// of returns the SQL expression for the folded string of a row. column
// qualifies a column name.
func (t SearchedText) of(column func(string) string) string {
	if t.plain == "" {
		return column(t.folded)
	}
	return "COALESCE(" + column(t.folded) + ", " + column(t.plain) + ")"
}

// Contains returns the condition for rows whose folded string contains the
// folded search string. column qualifies a column name.
func (t SearchedText) Contains(column func(string) string, folded string) *entsql.Predicate {
	// evaluated now: an enclosing statement may change the alias of the table
	has, id := t.Has(column, folded), column("id")
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() != dialect.Postgres && IsIndexed(folded) {
			b.WriteString(id + " IN (SELECT rowid FROM " + t.index() + " WHERE " + t.index() + " MATCH ").
				Arg(matchOf(trigramsOf(folded))).WriteString(") AND ")
		}
		b.Join(has)
	})
}

// Has is Contains without SQLite's trigram table, for rows that another condition
// finds. On PostgreSQL both are the same.
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

// HasExactly is Has without case folding. t.plain must be set.
func (t SearchedText) HasExactly(column func(string) string, part string) *entsql.Predicate {
	return containsText(column(t.plain), part)
}

// Found returns a SELECT of one column of the rows that match Contains. The
// database finds rows on demand, so a LIMIT stops the search early.
func (t SearchedText) Found(selected, folded string) entsql.Querier {
	return t.foundBy(selected, folded, func(column func(string) string) *entsql.Predicate {
		return t.Has(column, folded)
	})
}

// FoundExactly is Found for the rows that match ContainsExactly and another
// condition.
func (t SearchedText) FoundExactly(selected, part string,
	and func(column func(string) string) *entsql.Predicate) entsql.Querier {
	return t.foundBy(selected, text.Fold(part), func(column func(string) string) *entsql.Predicate {
		return entsql.And(and(column), t.HasExactly(column, part))
	})
}

func (t SearchedText) foundBy(selected, folded string,
	holds func(column func(string) string) *entsql.Predicate) entsql.Querier {
	return entsql.P(func(b *entsql.Builder) {
		column := entsql.Dialect(b.Dialect()).Table(t.table).As("searched").C
		b.WriteString("SELECT ").Ident(column(selected)).WriteString(" FROM ")
		trigrams := trigramsOf(folded)
		if b.Dialect() == dialect.Postgres || len(trigrams) == 0 {
			b.Ident(t.table).WriteString(" AS searched WHERE ").Join(holds(column))
			return
		}
		b.WriteString(t.index() + " CROSS JOIN ").Ident(t.table).WriteString(" AS searched ON ").Ident(column("id")).
			WriteString(" = " + t.index() + ".rowid WHERE " + t.index() + " MATCH ").
			Arg(matchOf(trigrams)).WriteString(" AND ").Join(holds(column))
	})
}

// FoundIn returns the condition that a column has one of the ids of a SELECT. The
// SELECT runs once. Otherwise PostgreSQL would run it for each row if it expects
// few rows.
func FoundIn(column string, ids *entsql.Selector) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		if b.Dialect() == dialect.Postgres {
			b.Ident(column).WriteString(" IN (WITH found (id) AS MATERIALIZED (").Join(ids).
				WriteString(") SELECT id FROM found)")
			return
		}
		b.Ident(column).WriteString(" IN (").Join(ids).WriteString(")")
	})
}

// Beside returns a column for a comparison next to a substring search. It keeps
// SQLite from using an index on that column instead of the trigram index, since
// SQLite has no statistics about rare values.
func Beside(s *entsql.Selector, column, part string) string {
	if s.Dialect() == dialect.Postgres || !IsIndexed(text.Fold(part)) {
		return column
	}
	return "+" + column
}

// IsIndexed reports whether a trigram index can serve a search for folded.
func IsIndexed(folded string) bool { return len(trigramsOf(folded)) > 0 }

// ContainsExactly returns the condition for rows whose string contains part,
// without case folding. The index narrows the rows, ignoring case. t.plain must
// be set.
func (t SearchedText) ContainsExactly(column func(string) string, part string) *entsql.Predicate {
	exactly := containsText(column(t.plain), part)
	if folded := text.Fold(part); IsIndexed(folded) {
		return entsql.And(t.Contains(column, folded), exactly)
	}
	return exactly
}

// containsText returns the condition that a column contains a string, without
// case folding.
func containsText(column, text string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		function := "instr("
		if b.Dialect() == dialect.Postgres {
			function = "strpos("
		}
		b.WriteString(function).Ident(column).Comma().Arg(text).WriteString(") > 0")
	})
}

// patternOf returns the LIKE pattern for strings that contain part.
func patternOf(part string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(part) + "%"
}

// trigramsOf returns at most maxTrigrams distinct trigrams, spread over the
// string; nil for less than three characters.
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

// matchOf returns the FTS5 query for rows with all trigrams.
func matchOf(trigrams []string) string {
	quoted := make([]string, len(trigrams))
	for i, trigram := range trigrams {
		quoted[i] = `"` + strings.ReplaceAll(trigram, `"`, `""`) + `"`
	}
	return strings.Join(quoted, " AND ")
}

// createTrigrams returns the statements that create SQLite's trigram table and
// its triggers. The triggers update it in the transaction that writes the
// searched table. It stores only trigrams, not the strings.
func (t SearchedText) createTrigrams() []string {
	name := t.index()
	of := func(row string) string {
		return t.of(func(column string) string { return row + column })
	}
	columns := t.folded
	if t.plain != "" {
		columns += ", " + t.plain
	}
	insert := fmt.Sprintf("INSERT INTO %s (rowid, part) SELECT new.id, %s WHERE %s",
		name, of("new."), t.isSearched("new."))
	remove := fmt.Sprintf("DELETE FROM %s WHERE rowid = old.id", name)
	return []string{
		fmt.Sprintf("CREATE VIRTUAL TABLE %s USING fts5(part, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')", name),
		fmt.Sprintf("CREATE TRIGGER %s_insert AFTER INSERT ON %s WHEN %s BEGIN %s; END", name,
			t.table, t.isSearched("new."), insert),
		fmt.Sprintf("CREATE TRIGGER %s_delete AFTER DELETE ON %s WHEN %s BEGIN %s; END", name,
			t.table, t.isSearched("old."), remove),
		fmt.Sprintf("CREATE TRIGGER %s_update AFTER UPDATE OF %s ON %s WHEN %s IS NOT %s BEGIN %s; %s; END", name,
			columns, t.table, of("new."), of("old."), remove, insert),
	}
}

// mergedTrigrams is the number of segments that FTS5 merges together. Each
// write transaction adds a segment to a trigram table. With the default of 4,
// merging took a third of the time of a write of 8 metadata items. A larger
// value would slow down searches.
const mergedTrigrams = 16

// mergeTrigrams returns the statement that sets automerge to mergedTrigrams,
// unless it is set already.
func (t SearchedText) mergeTrigrams() string {
	return fmt.Sprintf("INSERT INTO %[1]s (%[1]s, rank) SELECT 'automerge', %[2]d WHERE NOT EXISTS (SELECT 1 FROM %[1]s_config WHERE k = 'automerge' AND v = %[2]d)",
		t.index(), mergedTrigrams)
}

// fillTrigrams returns the statement that adds the existing rows under
// isSearched to the trigram table.
func (t SearchedText) fillTrigrams() string {
	of := t.of(func(column string) string { return column })
	return fmt.Sprintf("INSERT INTO %s (rowid, part) SELECT id, %s FROM %s WHERE %s",
		t.index(), of, t.table, t.isSearched(""))
}

// isSearched returns the SQL condition for rows with trigrams. row is the
// qualifier of the columns.
func (t SearchedText) isSearched(row string) string {
	condition := "length(" + t.of(func(column string) string { return row + column }) + ") > 2"
	if t.unless != "" {
		condition += " AND NOT " + row + t.unless
	}
	return condition
}

// pendingKiB is the size of PostgreSQL's pending list for each index. Searches
// scan the list, and a write that fills it must flush it.
const pendingKiB = 1024

// createIndex returns the part after CREATE INDEX on PostgreSQL, for an
// extension in the given schema.
func (t SearchedText) createIndex(schema string) string {
	statement := fmt.Sprintf(`"%s" ON "%s" USING gin ((%s) "%s".gin_trgm_ops) WITH (gin_pending_list_limit = %d)`,
		t.index(), t.table, t.of(func(column string) string { return column }), schema, pendingKiB)
	if t.unless != "" {
		statement += " WHERE NOT " + t.unless
	}
	return statement
}

// Unindexed has the SQLite condition Where for the rows of Table, aliased t,
// that the trigram table Index lacks.
type Unindexed struct{ Table, Index, Where string }

// AllUnindexed returns the condition for each searchable string.
func AllUnindexed() (all []Unindexed) {
	for _, of := range searchedTexts() {
		where := of.isSearched("t.") + " AND NOT EXISTS (SELECT 1 FROM " +
			of.index() + "_docsize AS d WHERE d.id = t.id)"
		all = append(all, Unindexed{of.table, of.index(), where})
	}
	return all
}
