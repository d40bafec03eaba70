package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The statements of placement are handwritten, once for both databases.
// Parameters are $1, $2, ... A list or a table is one JSON parameter, so that
// the text of a statement does not depend on its length.

// Conn is the database or a transaction.
type Conn interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

var (
	_ Conn = (*Tx)(nil)
	_ Conn = (*Database)(nil)
	_ Conn = (*transaction)(nil)
)

// statement adapts the placeholders of a statement to the database. On SQLite
// it replaces every $, so the statement must not have $ for anything else.
func (d *DB) statement(query string) string {
	if d.Postgres() {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

// Listed returns the condition that a column has one of the values of a JSON
// array parameter of the given type, bigint or text. On PostgreSQL a subquery
// unpacks the values first. Otherwise the planner expects many values and scans
// the whole table.
func (d *DB) Listed(column, parameter, of string) string {
	if d.Postgres() {
		return fmt.Sprintf("%s = ANY (ARRAY (SELECT value::%s FROM jsonb_array_elements_text(%s::jsonb)))", column, of,
			parameter)
	}
	return fmt.Sprintf("%s IN (SELECT value FROM json_each(%s))", column, parameter)
}

// Rows returns a table expression for a parameter with a JSON array of rows,
// which are arrays. Each column is a name and a type: "id bigint", "name text".
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

// IsRow returns the condition that a column equals the first column of the table
// that Rows made of parameter: a bigint with the given name. On PostgreSQL a
// subquery unpacks the values first, as in Listed.
func (d *DB) IsRow(column, parameter, alias, name string) string {
	condition := column + " = " + alias + "." + name
	if d.Postgres() {
		condition += fmt.Sprintf(" AND %s = ANY (ARRAY (SELECT (value ->> 0)::bigint FROM jsonb_array_elements(%s::jsonb)))", column, parameter)
	}
	return condition
}

// valuesOf returns the rows of a VALUES clause, each with a prefix. It appends
// the values to args.
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

// TimeLayout is the form of times in a JSON parameter. SQLite stores it as it is.
const TimeLayout = "2006-01-02 15:04:05.999999999-07:00"

// Time returns the SQL for a time parameter.
func (d *DB) Time(parameter string) string {
	if d.Postgres() {
		return parameter + "::timestamptz"
	}
	return parameter
}

// Locking returns the suffix of a SELECT that locks its rows. It is empty on
// SQLite, which has one writer.
func (d *DB) Locking(how string) string {
	if d.Postgres() {
		return " FOR " + how
	}
	return ""
}

// Query runs a query and passes each row to scan.
func (d *DB) Query(ctx context.Context, on Conn, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := on.QueryContext(prepared(ctx), d.statement(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		countRow(ctx)
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Column returns the single column of a query.
func Column[V any](ctx context.Context, d *DB, on Conn, query string, args ...any) (values []V, err error) {
	err = d.Query(ctx, on, query, func(rows *sql.Rows) error {
		var value V
		err := rows.Scan(&value)
		values = append(values, value)
		return err
	}, args...)
	return values, err
}

// Pairs returns the second column of a query, keyed by the first.
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

// Execute runs a statement without a result.
func (d *DB) Execute(ctx context.Context, on Conn, query string, args ...any) error {
	_, err := on.ExecContext(ctx, d.statement(query), args...)
	return err
}

// JSONOf returns a list or a table as a JSON parameter, "[]" for nil.
func JSONOf(list any) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // numbers and strings always have JSON
	}
	if string(text) == "null" {
		return "[]"
	}
	return string(text)
}

// prefixLength is the number of characters of a long string that an indexed
// column keeps.
const prefixLength = 64

// HashOf returns 64 bits of a hash of a string, for an index on strings of any
// length. Hashes can collide, so queries compare the string, too.
func HashOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// DigestOf returns the SHA-256 hash of a string in hex.
func DigestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// PrefixOf returns the first characters of a string, at most prefixLength.
func PrefixOf(text string) string {
	count := 0
	for i := range text {
		if count == prefixLength {
			return text[:i]
		}
		count++
	}
	return text
}

// IsWholePrefix reports whether the prefix column alone identifies a string: it
// is shorter than prefixLength, so no longer string has the same prefix.
func IsWholePrefix(text string) bool { return utf8.RuneCountInString(text) < prefixLength }

// TextOf converts a string or bytes from a driver to a string, for a column
// unknown to ent. It returns "" for any other value.
func TextOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// IDOf returns a row id that may be absent, 0 for nil.
func IDOf(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// TextOrNil returns nil for the empty string.
func TextOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TextList parses a JSON array of strings. It is empty for anything else.
func TextList(column string) []string {
	list := []string{}
	if err := json.Unmarshal([]byte(column), &list); err != nil {
		return []string{}
	}
	return list
}
