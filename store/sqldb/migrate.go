package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/cadastre-dev/cadastre/ent/migrate"
)

// migrations holds the versioned SQL of both dialects, each file with a way up
// and a way down.
//
//go:embed migrations
var migrations embed.FS

// migrator walks the migrations of the database's dialect; it is to be closed.
// On PostgreSQL it holds an advisory lock meanwhile, so that several servers may
// start at once. A SQLite file is locked by its server; its foreign keys are off
// meanwhile, as SQLite wants it for changes of tables that refer to each other.
func (d *Database) migrator() (*goose.Provider, error) {
	if d.dialectName == dialect.Postgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		return newMigrator(goose.DialectPostgres, d.writer, "migrations/postgres", goose.WithSessionLocker(locker))
	}
	pool, err := openSQLitePool(d.path, 1, "foreign_keys(0)")
	if err != nil {
		return nil, err
	}
	return newMigrator(goose.DialectSQLite3, pool, "migrations/sqlite")
}

func newMigrator(of goose.Dialect, pool *sql.DB, folder string, options ...goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(of, pool, files, append(options, goose.WithTableName("schema_migrations"))...)
}

// migrate brings the database to the newest migration.
func (d *Database) migrate(ctx context.Context) error {
	migrator, err := d.migrator()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	_, err = migrator.Up(ctx)
	if d.dialectName == dialect.SQLite {
		err = errors.Join(err, migrator.Close())
	}
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// tables returns the ent schema as it is meant on a dialect: on PostgreSQL
// every text compares by code point, as it does on SQLite, whatever the locale
// of the database. It is a copy: ent changes what it is given.
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
