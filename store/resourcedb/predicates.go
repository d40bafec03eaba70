package resourcedb

import (
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// mentions holds for the resources with a folded string in their name, their
// description or the value of a metadata item. Each of the three is a separate
// search where an index can serve it.
func mentions(s *entsql.Selector, folded string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	named, described, items := build.Table(entresource.Table).As("named"), build.Table(entresource.Table).
		As("described"), build.Table(metadataitem.Table)
	valued := build.Select(items.C(metadataitem.FieldResourceID)).From(items).
		Where(textindex.MetadataValues.Contains(items.C, folded))
	if s.Dialect() != dialect.Postgres && !textindex.IsIndexed(folded) { // tested resource by resource
		return entsql.Or(textindex.ResourceNames.Contains(s.C, folded),
			textindex.ResourceDescriptions.Contains(s.C, folded), entsql.In(s.C(entresource.FieldID), valued))
	}
	return textindex.FoundIn(s.C(entresource.FieldID), build.
		Select(named.C(entresource.FieldID)).From(named).Where(textindex.ResourceNames.Contains(named.C, folded)).
		UnionAll(build.Select(described.C(entresource.FieldID)).From(described).
			Where(textindex.ResourceDescriptions.Contains(described.C, folded))).
		UnionAll(valued))
}

// isBelow holds for the resources at any depth below the one with a uuid. Every
// resource on the way must be visible to the viewer.
func isBelow(s *entsql.Selector, viewer access.Viewer, uuid string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	top, child := build.Table(entresource.Table).As("top"), build.Table(entresource.Table).As("child")
	first := build.Select(top.C(entresource.FieldID)).From(top).
		Where(entsql.And(entsql.EQ(top.C(entresource.FieldUUID), uuid), visible.ResourceCondition(viewer, top.C)))
	seen, parent := visible.ResourceCondition(viewer, child.C), s.C(entresource.FieldParentID)
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(parent).WriteString(" IN (WITH RECURSIVE below (id) AS (").Join(first).
			WriteString(" UNION SELECT ").Ident(child.C(entresource.FieldID)).
			WriteString(" FROM resources AS child JOIN below ON ").Ident(child.C(entresource.FieldParentID)).
			WriteString(" = below.id WHERE ").Join(seen).
			WriteString(") SELECT id FROM below)")
	})
}

// hasValue holds for the items with one of the values. One index has the
// prefixes of values, which are the whole values if they are short. For long
// values, another index has the hashes, and the database then compares the
// values.
func hasValue(s *entsql.Selector, items *entsql.SelectTable, values []string) *entsql.Predicate {
	if !slices.ContainsFunc(values, func(value string) bool { return !sqldb.IsWholePrefix(value) }) {
		return among(s, items.C(metadataitem.FieldValuePrefix), values)
	}
	return entsql.And(among(s, items.C(metadataitem.FieldValueHash), lists.Map(values, sqldb.HashOf)),
		among(s, items.C(metadataitem.FieldValue), values))
}

// among holds where a column has one of the values.
func among[Value int64 | string](s *entsql.Selector, column string, values []Value) *entsql.Predicate {
	if len(values) == 1 {
		return entsql.EQ(column, values[0])
	}
	return paging.IsAmong(s, column, values)
}

// hasPrefix holds where a column begins with a string. prefixColumn has the
// first characters of the column, in an index. The database looks up a range
// there, and then compares a longer prefix.
func hasPrefix(column, prefixColumn, input string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		indexed := sqldb.PrefixOf(input)
		b.Ident(prefixColumn).WriteString(" >= ").Arg(indexed)
		if end, ok := text.PrefixEnd(indexed); ok {
			b.WriteString(" AND ").Ident(prefixColumn).WriteString(" < ").Arg(end)
		}
		if indexed != input {
			b.WriteString(" AND substr(").Ident(column).WriteString(", 1, ").
				Arg(text.Length(input)).WriteString(") = ").Arg(input)
		}
	})
}

// isBelowTag holds for the folded tags at or below a tag, by the definitions
// that the viewer may see.
func isBelowTag(s *entsql.Selector, viewer access.Viewer, nameKey, key string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	namespaces := build.Table(namespace.Table)
	visible := build.Select(namespaces.C(namespace.FieldID)).From(namespaces).
		Where(visible.NamespaceCondition(viewer, namespaces.C))
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(nameKey).
			WriteString(" IN (WITH RECURSIVE below (id, name_key) AS (SELECT id, name_key FROM tags WHERE name_key = ").
			Arg(key).
			WriteString(" AND namespace_id IN (").Join(visible).
			WriteString(") UNION SELECT tags.id, tags.name_key FROM tags JOIN below ON tags.parent_id = below.id) SELECT name_key FROM below)")
	})
}
