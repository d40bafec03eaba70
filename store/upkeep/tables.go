package upkeep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// trees are the tables whose rows refer to a parent in the same table.
var trees = []string{"tags", "resources", "resource_providers"}

// columnType is the type of a column. Its values have the same JSON from both
// databases.
type columnType string

const (
	integer columnType = "bigint"
	decimal columnType = "double precision"
	boolean columnType = "boolean"
	instant columnType = "timestamptz" // in UTC, with microseconds
	words   columnType = "text"
)

// typeOf returns the type for a declared type of PostgreSQL or SQLite.
func typeOf(declared string) columnType {
	switch strings.ToLower(declared) {
	case "bigint", "integer":
		return integer
	case "double precision", "real":
		return decimal
	case "boolean", "bool":
		return boolean
	case "timestamp with time zone", "datetime":
		return instant
	}
	return words
}

type column struct {
	name string
	is   columnType
}

// table is a table of the database, with its columns sorted by name. The number
// of a transaction means nothing in another database, so columns leaves it out.
type table struct {
	name    string
	columns []column
}

const transactionColumn = "transaction"

// tablesOf returns the tables of a database, each after the tables that it refers
// to, or an error if one is missing.
func tablesOf(ctx context.Context, db *sqldb.DB, on sqldb.Conn) ([]table, error) {
	statement := `SELECT t.value, c.name, c.type FROM json_each($1) AS t, pragma_table_info(t.value) AS c ORDER BY 1, 2`
	if db.Postgres() {
		statement = `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema()
			AND table_name IN (SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY 1, column_name COLLATE "C"`
	}
	names := sqldb.TableNames()
	tables := make([]table, len(names))
	for i, name := range names {
		tables[i].name = name
	}
	err := db.Query(ctx, on, statement, func(rows *sql.Rows) error {
		var name, declared string
		var one column
		if err := rows.Scan(&name, &one.name, &declared); err != nil || one.name == transactionColumn {
			return err
		}
		one.is = typeOf(declared)
		of := &tables[slices.Index(names, name)]
		of.columns = append(of.columns, one)
		return nil
	}, sqldb.JSONOf(names))
	for _, of := range tables {
		if err == nil && len(of.columns) == 0 {
			err = fmt.Errorf("the database has no table %s: start a server with it first", of.name)
		}
	}
	return tables, err
}

// names returns the names of the columns.
func (t table) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// quoted returns the columns for a statement, each after a prefix.
func (t table) quoted(prefix string) string {
	return prefix + `"` + strings.Join(t.names(), `", `+prefix+`"`) + `"`
}

// read passes the rows to a function: a parent before its children, rows of a
// cycle at the end, otherwise by id. A change of kind Pruned is not among them: it
// is about transactions.
func (t table) read(ctx context.Context, db *sqldb.DB, on sqldb.Conn, row func(values []any) error) error {
	statement := "SELECT " + t.quoted("t.") + " FROM " + t.name + " AS t"
	switch {
	case slices.Contains(trees, t.name):
		statement = `WITH RECURSIVE placed (id, depth) AS (SELECT id, 0 FROM ` + t.name + ` WHERE parent_id IS NULL
			UNION ALL SELECT c.id, depth + 1 FROM ` + t.name + ` AS c JOIN placed AS p ON c.parent_id = p.id) ` +
			statement + " LEFT JOIN placed AS p ON p.id = t.id ORDER BY p.depth IS NULL, p.depth, t.id"
	case t.name == "changes":
		statement += " WHERE t.kind <> 'Pruned' ORDER BY t.id"
	default:
		statement += " ORDER BY t.id"
	}
	return db.Query(ctx, on, statement, func(rows *sql.Rows) error {
		values, err := t.scan(rows)
		if err != nil {
			return err
		}
		return row(values)
	})
}

// scan reads a row as values of JSON.
func (t table) scan(rows *sql.Rows) ([]any, error) {
	values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i, c := range t.columns {
		into[i] = scanned{c.is, &values[i]}
	}
	if err := rows.Scan(into...); err != nil {
		return nil, fmt.Errorf("read %s: %w", t.name, err)
	}
	return values, nil
}

// scanned reads a column as a value of JSON: nil, int64, float64, bool or string.
type scanned struct {
	is   columnType
	into *any
}

var _ sql.Scanner = scanned{}

// Scan implements sql.Scanner.
func (s scanned) Scan(from any) (err error) {
	if from == nil {
		return nil
	}
	switch s.is {
	case integer:
		err = assign[int64](s.into, from)
	case decimal:
		err = assign[float64](s.into, from)
	case boolean:
		err = assign[bool](s.into, from)
	case words:
		err = assign[string](s.into, from)
	case instant:
		var at sql.NullTime
		err = at.Scan(from)
		*s.into = at.Time.UTC().Format(time.RFC3339Nano)
	}
	return err
}

func assign[V any](into *any, from any) error {
	var value sql.Null[V]
	err := value.Scan(from)
	*into = value.V
	return err
}

// insert writes rows of JSON values.
func (t table) insert(ctx context.Context, db *sqldb.DB, on sqldb.Conn, rows [][]any) error {
	columns, values := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = "c" + strconv.Itoa(i)
		columns[i] = values[i] + " " + string(c.is)
	}
	into, from := t.quoted(""), strings.Join(values, ", ")
	if t.name == "changes" {
		into, from = into+`, "`+transactionColumn+`"`, from+", 1"
		if db.Postgres() {
			from = strings.TrimSuffix(from, "1") + "pg_current_xact_id()::text::bigint"
		}
	}
	statement := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s", t.name, into,
		from, db.Rows("$1", "r", columns...))
	return db.Execute(ctx, on, statement, sqldb.JSONOf(rows))
}

// Migrations returns the migrations of this program and whether the database has
// them. With apply it first applies the missing ones, as a start of the server
// does.
func Migrations(ctx context.Context, url string, apply bool) (all []sqldb.Migration, err error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: url, InUse: !apply, Connections: 1, StatementTime: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if apply {
		if err := db.Migrate(ctx); err != nil {
			return nil, err
		}
	}
	return db.Migrations(ctx)
}
