package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Placement's statements are written by hand, once for both databases: with
// $1, $2, ... for parameters, and lists and tables as one JSON parameter each,
// so that a statement stays the same however long they are.

// Conn is what a statement runs on: the database or a transaction.
type Conn interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

var (
	_ Conn = (*Tx)(nil)
	_ Conn = (*Database)(nil)
	_ Conn = (*transaction)(nil)
)

// statement spells a statement for the database.
func (d *DB) statement(query string) string {
	if d.Postgres() {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

// Listed returns the condition that a column holds one of the values of a
// parameter, a JSON array. Of says the type: bigint or text. PostgreSQL takes
// the values out first: else it guesses that they are many, and reads the whole
// table.
func (d *DB) Listed(column, parameter, of string) string {
	if d.Postgres() {
		return fmt.Sprintf("%s = ANY (ARRAY (SELECT value::%s FROM jsonb_array_elements_text(%s::jsonb)))", column, of, parameter)
	}
	return fmt.Sprintf("%s IN (SELECT value FROM json_each(%s))", column, parameter)
}

// Rows returns a table made of a parameter, a JSON array of rows, which are
// arrays. Columns are names with types: "id bigint", "name text".
func (d *DB) Rows(parameter, alias string, columns ...string) string {
	fields := make([]string, len(columns))
	for i, column := range columns {
		name, of, _ := strings.Cut(column, " ")
		if d.Postgres() {
			fields[i] = fmt.Sprintf("(value ->> %d)::%s AS %s", i, of, name)
		} else {
			fields[i] = fmt.Sprintf("value ->> %d AS %s", i, name)
		}
	}
	from := "json_each(" + parameter + ")"
	if d.Postgres() {
		from = "jsonb_array_elements(" + parameter + "::jsonb)"
	}
	return fmt.Sprintf("(SELECT %s FROM %s) AS %s", strings.Join(fields, ", "), from, alias)
}

// IsRow returns the condition that a column holds the first value of a row of the
// table that Rows made of a parameter. PostgreSQL takes the values out first, as
// in Listed.
func (d *DB) IsRow(column, parameter, alias, name string) string {
	condition := column + " = " + alias + "." + name
	if d.Postgres() {
		condition += fmt.Sprintf(" AND %s = ANY (ARRAY (SELECT (value ->> 0)::bigint FROM jsonb_array_elements(%s::jsonb)))", column, parameter)
	}
	return condition
}

// valuesOf returns the rows of a VALUES clause, each with a prefix, whose
// values are added to the parameters.
func valuesOf(args *[]any, prefix string, rows [][]any) string {
	var text strings.Builder
	for i, row := range rows {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString("(" + prefix)
		for k, value := range row {
			if k > 0 {
				text.WriteString(", ")
			}
			*args = append(*args, value)
			text.WriteString("$" + strconv.Itoa(len(*args)))
		}
		text.WriteString(")")
	}
	return text.String()
}

// Time returns a parameter that holds a time.
func (d *DB) Time(parameter string) string {
	if d.Postgres() {
		return parameter + "::timestamptz"
	}
	return parameter
}

// Locking returns what a SELECT ends in so that the rows it finds stay as they
// are. On SQLite there is one writer anyway.
func (d *DB) Locking(how string) string {
	if d.Postgres() {
		return " FOR " + how
	}
	return ""
}

// Query runs a statement and hands each row to scan.
func (d *DB) Query(ctx context.Context, on Conn, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := on.QueryContext(Prepared(ctx), d.statement(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		CountRow(ctx)
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Column returns the one column of the rows that a statement finds.
func Column[V any](ctx context.Context, d *DB, on Conn, query string, args ...any) (values []V, err error) {
	err = d.Query(ctx, on, query, func(rows *sql.Rows) error {
		var value V
		err := rows.Scan(&value)
		values = append(values, value)
		return err
	}, args...)
	return values, err
}

// Pairs returns the second column of the rows that a statement finds, by the
// first.
func Pairs[K comparable, V any](ctx context.Context, d *DB, on Conn, query string, args ...any) (map[K]V, error) {
	values := map[K]V{}
	err := d.Query(ctx, on, query, func(rows *sql.Rows) error {
		var key K
		var value V
		err := rows.Scan(&key, &value)
		values[key] = value
		return err
	}, args...)
	return values, err
}

// Execute runs a statement that answers nothing.
func (d *DB) Execute(ctx context.Context, on Conn, query string, args ...any) error {
	_, err := on.ExecContext(ctx, d.statement(query), args...)
	return err
}

// JSONOf returns a list or a table as a parameter.
func JSONOf(list any) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // numbers and texts always have JSON
	}
	if string(text) == "null" {
		return "[]"
	}
	return string(text)
}
