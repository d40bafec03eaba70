package sqldb

import (
	"slices"
	"testing"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"

	"github.com/cadastre-dev/cadastre/ent/migrate"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// TestPrivilegesAreCheckedOnAllTables compares the names with ent's schema,
// which the server does not link.
func TestPrivilegesAreCheckedOnAllTables(t *testing.T) {
	t.Parallel()
	all := lists.Map(migrate.Tables, func(table *schema.Table) string { return table.Name })
	if !slices.Equal(lists.Distinct(TableNames()), lists.Distinct(all)) {
		t.Errorf("privileges are checked on %q, the tables are %q", TableNames(), all)
	}
}

// tables returns a copy of the ent schema for a dialect, since ent modifies its
// argument. On PostgreSQL every string column has the collation "C". It then
// compares by code point, as on SQLite, regardless of the locale of the
// database.
func tables(of string) []*schema.Table {
	collated := make([]*schema.Table, len(migrate.Tables))
	byName := make(map[string]*schema.Table, len(migrate.Tables))
	columns := map[*schema.Column]*schema.Column{}
	for i, original := range migrate.Tables {
		table := &schema.Table{
			Name: original.Name, Schema: original.Schema, Annotation: original.Annotation, Comment: original.Comment,
			Columns: slices.Clone(original.Columns), ForeignKeys: original.ForeignKeys,
		}
		replaced := make(map[*schema.Column]*schema.Column, len(table.Columns))
		for c, column := range original.Columns {
			copied := *column
			if of == dialect.Postgres && column.Type.String() == "string" {
				copied.Collation = "C"
			}
			table.Columns[c] = &copied
			replaced[column], columns[column] = &copied, &copied
		}
		table.PrimaryKey = replacedColumns(original.PrimaryKey, replaced)
		table.Indexes = make([]*schema.Index, len(original.Indexes))
		for x, index := range original.Indexes {
			copied := *index
			copied.Columns = replacedColumns(index.Columns, replaced)
			table.Indexes[x] = &copied
		}
		collated[i] = table
		byName[table.Name] = table
	}
	for _, table := range collated {
		keys := make([]*schema.ForeignKey, len(table.ForeignKeys))
		for i, original := range table.ForeignKeys {
			key := *original
			key.RefTable = byName[original.RefTable.Name]
			key.Columns = replacedColumns(original.Columns, columns)
			key.RefColumns = replacedColumns(original.RefColumns, columns)
			keys[i] = &key
		}
		table.ForeignKeys = keys
	}
	return collated
}

func replacedColumns(columns []*schema.Column, replaced map[*schema.Column]*schema.Column) []*schema.Column {
	out := make([]*schema.Column, len(columns))
	for i, column := range columns {
		out[i] = replaced[column]
	}
	return out
}
