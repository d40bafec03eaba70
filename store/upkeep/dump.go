// Package upkeep works on a database as a whole, for its operators. Dump writes
// all rows of one snapshot as lines of JSON, Restore loads them into an empty
// database of either kind, and Check finds rows that break an invariant.
package upkeep

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// A dump is lines of JSON: a head, for each table a line with its name and
// columns followed by an array for each row, and an end.
type (
	head struct {
		Cadastre string    `json:"cadastre"` // "dump"
		Format   int       `json:"format"`
		Program  string    `json:"program"`
		At       time.Time `json:"at"`
	}
	heading struct {
		Table   string   `json:"table"`
		Columns []string `json:"columns"`
	}
	end struct {
		Rows   int              `json:"rows"`
		LastID map[string]int64 `json:"lastIds"` // the highest ids ever assigned, by table
		SHA256 string           `json:"sha256"`  // of the lines of tables and rows
	}
)

const (
	dumpFormat = 1
	// An INSERT has at most rowsPerInsert rows. It ends at the row that exceeds
	// bytesPerInsert.
	rowsPerInsert, bytesPerInsert = 500, 4 << 20
)

// Result describes the content of a database: the number of its rows, and a
// digest that is the same for the same content in either kind of database.
type Result struct {
	Rows   int
	SHA256 string
}

// Dump writes all rows of one snapshot, except changes of kind Pruned. Servers
// may use the database meanwhile.
func Dump(ctx context.Context, url, program string, to io.Writer) (result Result, err error) {
	db, err := open(ctx, url)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out := bufio.NewWriterSize(to, 1<<20)
	err = db.ReadAt(ctx, func(on sqldb.Conn, _ changelog.Snapshot) error {
		if err := db.Bound(ctx, on, 0); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(head{"dump", dumpFormat, program, db.Now()}); err != nil {
			return err
		}
		tables, err := tablesOf(ctx, db, on)
		if err != nil {
			return err
		}
		last, err := lastIDs(ctx, db, on)
		if err != nil {
			return err
		}
		if result, err = write(ctx, db, on, tables, out); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(end{result.Rows, last, result.SHA256})
	})
	if err != nil {
		return result, fmt.Errorf("dump the database: %w", err)
	}
	return result, out.Flush()
}

// write writes the lines of tables and their rows. It returns the number of the
// rows and the digest of all these lines.
func write(ctx context.Context, db *sqldb.DB, on sqldb.Conn, tables []table, to io.Writer) (result Result, err error) {
	digest := sha256.New()
	lines := json.NewEncoder(io.MultiWriter(to, digest))
	lines.SetEscapeHTML(false)
	for _, of := range tables {
		if err := lines.Encode(heading{of.name, of.names()}); err != nil {
			return result, err
		}
		err := of.read(ctx, db, on, func(values []any) error {
			result.Rows++
			return lines.Encode(values)
		})
		if err != nil {
			return result, err
		}
	}
	result.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return result, nil
}

// Restore creates or migrates a database, and loads a dump into it in one
// transaction. It refuses a database with rows, and leaves that unchanged. Before
// it commits, it reads the rows again and compares them with the number and the
// digest in the dump.
func Restore(ctx context.Context, url string, from io.Reader) (result Result, err error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: url, StatementTime: -1})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err = refuseRows(ctx, db, db.Pool); err == nil {
		err = db.Migrate(ctx)
	}
	if err == nil {
		err = db.Load(ctx, func(on sqldb.Conn) error {
			lines := json.NewDecoder(bufio.NewReaderSize(from, 1<<20))
			r := restoring{db: db, on: on, lines: lines, digest: sha256.New()}
			result, err = r.run(ctx)
			return err
		})
	}
	if err != nil {
		return result, fmt.Errorf("restore the database: %w", err)
	}
	return result, nil
}

// refuseRows returns an error if a table has rows. An older database or an empty
// one lacks tables.
func refuseRows(ctx context.Context, db *sqldb.DB, on sqldb.Conn) error {
	statement := "SELECT name FROM sqlite_master WHERE name IN (SELECT value FROM json_each($1))"
	if db.Postgres() {
		statement = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()
			AND tablename IN (SELECT jsonb_array_elements_text($1::jsonb))`
	}
	names, err := sqldb.Column[string](ctx, db, on, statement, sqldb.JSONOf(sqldb.TableNames()))
	for _, name := range names {
		var used []int
		if used, err = sqldb.Column[int](ctx, db, on, "SELECT 1 FROM "+name+" LIMIT 1"); err == nil && len(used) > 0 {
			err = fmt.Errorf("the database is not empty: it has rows in %s", name)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// restoring is one run of Restore.
type restoring struct {
	db     *sqldb.DB
	on     sqldb.Conn
	lines  *json.Decoder
	digest hash.Hash
	tables []table
}

func (r *restoring) run(ctx context.Context) (result Result, err error) {
	if r.tables, err = tablesOf(ctx, r.db, r.on); err != nil {
		return result, err
	}
	if err := refuseRows(ctx, r.db, r.on); err != nil {
		return result, err
	}
	var first head
	if err := r.lines.Decode(&first); err != nil || first.Cadastre != "dump" {
		return result, errors.Join(errors.New("the input is not a dump"), err)
	}
	if first.Format != dumpFormat {
		return result, fmt.Errorf("the dump has format %d, this program reads format %d", first.Format, dumpFormat)
	}
	last, err := r.load(ctx)
	if err != nil {
		return result, err
	}
	if _, err := r.lines.Token(); !errors.Is(err, io.EOF) {
		return result, errors.Join(errors.New("the input continues after the end of the dump"), err)
	}
	if err := setLastIDs(ctx, r.db, r.on, last.LastID); err != nil {
		return result, err
	}
	if result, err = write(ctx, r.db, r.on, r.tables, io.Discard); err == nil &&
		result != (Result{last.Rows, last.SHA256}) {
		err = errors.New("the restored rows differ from those of the dump")
	}
	return result, err
}

// load inserts the rows of the dump, and returns its end.
func (r *restoring) load(ctx context.Context) (last end, err error) {
	var of *table
	var rows [][]any
	bytes := 0
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		defer func() { rows, bytes = rows[:0], 0 }()
		return of.insert(ctx, r.db, r.on, rows)
	}
	for begun := 0; ; {
		var line json.RawMessage
		if err := r.lines.Decode(&line); err != nil {
			return last, errors.Join(errors.New("the dump cannot be read to its end"), err)
		}
		if line[0] == '[' && of != nil {
			row, err := of.rowOf(line)
			if err != nil {
				return last, err
			}
			r.note(line)
			bytes += len(line)
			if rows = append(rows, row); len(rows) == rowsPerInsert || bytes > bytesPerInsert {
				err = flush()
			}
			if err != nil {
				return last, err
			}
			continue
		}
		if err := flush(); err != nil {
			return last, err
		}
		if begun == len(r.tables) {
			return r.ended(line)
		}
		of = &r.tables[begun]
		if err := of.matches(line); err != nil {
			return last, err
		}
		r.note(line)
		begun++
	}
}

// note adds a line to the digest.
func (r *restoring) note(line []byte) {
	r.digest.Write(line)
	r.digest.Write([]byte{'\n'})
}

// ended reads the end of a dump and compares its digest.
func (r *restoring) ended(line []byte) (last end, err error) {
	if err := json.Unmarshal(line, &last); err != nil {
		return last, fmt.Errorf("read the end of the dump: %w", err)
	}
	if found := hex.EncodeToString(r.digest.Sum(nil)); found != last.SHA256 {
		return last, fmt.Errorf("the dump was changed: its digest is %s, its lines have %s", last.SHA256, found)
	}
	return last, nil
}

// matches compares the line of a table with the table of this database.
func (t table) matches(line []byte) error {
	var found heading
	if err := json.Unmarshal(line, &found); err != nil {
		return fmt.Errorf("read a table of the dump: %w", err)
	}
	if found.Table != t.name || !slices.Equal(found.Columns, t.names()) {
		return fmt.Errorf("the dump has table %q with columns %q, this program has %q with %q: restore with the program that dumped, then upgrade",
			found.Table, found.Columns, t.name, t.names())
	}
	return nil
}

// rowOf returns the values of a line, for insert.
func (t table) rowOf(line []byte) ([]any, error) {
	var row []any
	numbers := json.NewDecoder(bytes.NewReader(line))
	numbers.UseNumber()
	if err := numbers.Decode(&row); err != nil || len(row) != len(t.columns) {
		return nil, errors.Join(fmt.Errorf("a row of %s has %d values, want %d", t.name, len(row), len(t.columns)), err)
	}
	for i, c := range t.columns {
		text, ok := row[i].(string)
		if c.is != instant || !ok {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, fmt.Errorf("read %s of a row of %s: %w", c.name, t.name, err)
		}
		row[i] = at.Format(sqldb.TimeLayout)
	}
	return row, nil
}

// lastIDs returns the highest id that each table ever assigned. A cursor of the
// feed has an id of the log of changes, so ids must not be assigned again.
func lastIDs(ctx context.Context, db *sqldb.DB, on sqldb.Conn) (map[string]int64, error) {
	if !db.Postgres() {
		return sqldb.Pairs[string, int64](ctx, db, on, `SELECT name, seq FROM sqlite_sequence
			WHERE name IN (SELECT value FROM json_each($1))`, sqldb.JSONOf(sqldb.TableNames()))
	}
	return sqldb.Pairs[string, int64](ctx, db, on, `SELECT name, last FROM (
			SELECT t.name, pg_sequence_last_value(pg_get_serial_sequence(quote_ident(t.name), 'id')::regclass) AS last
			FROM jsonb_array_elements_text($1::jsonb) AS t (name)) AS l
		WHERE last IS NOT NULL`, sqldb.JSONOf(sqldb.TableNames()))
}

func setLastIDs(ctx context.Context, db *sqldb.DB, on sqldb.Conn, last map[string]int64) error {
	for _, name := range sqldb.TableNames() {
		id, ok := last[name]
		if !ok {
			continue
		}
		if db.Postgres() {
			if err := db.Execute(ctx, on, `SELECT setval(pg_get_serial_sequence(quote_ident($1), 'id'), $2)`, name,
				id); err != nil {
				return err
			}
			continue
		}
		for _, statement := range []string{
			`INSERT INTO sqlite_sequence (name, seq) SELECT $1, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)`,
			`UPDATE sqlite_sequence SET seq = max(seq, $2) WHERE name = $1`,
		} {
			if err := db.Execute(ctx, on, statement, name, id); err != nil {
				return err
			}
		}
	}
	return nil
}
