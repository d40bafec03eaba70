package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// Placement's statements are written by hand, once for both databases: with
// $1, $2, ... for parameters, and lists and tables as one JSON parameter each,
// so that a statement stays the same however long they are.

// conn is what a statement runs on: the database or a transaction.
type conn interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

var (
	_ conn = (*Tx)(nil)
	_ conn = (*database)(nil)
	_ conn = (*transaction)(nil)
)

// statement spells a statement for the database.
func (d *DB) statement(query string) string {
	if d.postgres() {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

// listed is the condition that a column holds one of the values of a parameter,
// a JSON array. Of says the type: bigint or text. PostgreSQL takes the values out
// first: else it guesses that they are many, and reads the whole table.
func (d *DB) listed(column, parameter, of string) string {
	if d.postgres() {
		return fmt.Sprintf("%s = ANY (ARRAY (SELECT value::%s FROM jsonb_array_elements_text(%s::jsonb)))", column, of, parameter)
	}
	return fmt.Sprintf("%s IN (SELECT value FROM json_each(%s))", column, parameter)
}

// given is a table made of a parameter, a JSON array of rows, which are arrays.
// Columns are names with types: "id bigint", "name text".
func (d *DB) given(parameter, alias string, columns ...string) string {
	fields := make([]string, len(columns))
	for i, column := range columns {
		name, of, _ := strings.Cut(column, " ")
		if d.postgres() {
			fields[i] = fmt.Sprintf("(value ->> %d)::%s AS %s", i, of, name)
		} else {
			fields[i] = fmt.Sprintf("value ->> %d AS %s", i, name)
		}
	}
	from := "json_each(" + parameter + ")"
	if d.postgres() {
		from = "jsonb_array_elements(" + parameter + "::jsonb)"
	}
	return fmt.Sprintf("(SELECT %s FROM %s) AS %s", strings.Join(fields, ", "), from, alias)
}

// at is a parameter that holds a time.
func (d *DB) at(parameter string) string {
	if d.postgres() {
		return parameter + "::timestamptz"
	}
	return parameter
}

// locking is what a SELECT ends in so that the rows it finds stay as they are.
// On SQLite there is one writer anyway.
func (d *DB) locking(how string) string {
	if d.postgres() {
		return " FOR " + how
	}
	return ""
}

// query runs a statement and hands each row to scan.
func (d *DB) query(ctx context.Context, on conn, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := on.QueryContext(ctx, d.statement(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// execute runs a statement that answers nothing.
func (d *DB) execute(ctx context.Context, on conn, query string, args ...any) error {
	_, err := on.ExecContext(ctx, d.statement(query), args...)
	return err
}

// jsonOf is a list or a table as a parameter.
func jsonOf(list any) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // numbers and texts always have JSON
	}
	if string(text) == "null" {
		return "[]"
	}
	return string(text)
}
