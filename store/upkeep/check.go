package upkeep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Kind is how bad a finding is; a higher one is worse.
type Kind int

// The kinds of findings.
const (
	// Late is work that servers do later, such as the release of an ended hold.
	Late Kind = iota + 1
	// Derived are values that follow from others: sums, folded strings, hashes.
	Derived
	// Invalid are values that no mutation accepts.
	Invalid
	// Broken are rows that refer to a missing or a wrong row, and damage to ids,
	// indexes or the file.
	Broken
)

// String returns the kind in a report.
func (k Kind) String() string { return [...]string{"", "late", "derived", "invalid", "broken"}[k] }

// Finding is a row, or a table, index or file, that breaks an invariant.
type Finding struct {
	Kind  Kind
	Check string // the invariant
	Table string // "" if the finding is about an index or the file
	ID    int64  // of the row; 0 if the finding is not about a row
	Is    string // the values of the row
	Mend  string // a statement, or what to do
}

// Checked is the result of Check.
type Checked struct {
	Rows     int64 // of the tables
	Findings int
	Worst    Kind // 0 without a finding
}

// invariant is a rule that every row of a table keeps.
type invariant struct {
	kind  Kind
	holds string // the rule
	table string
	// where is the condition of a wrong row t.
	where string
	// columns are the arguments of wrong; a finding shows them.
	columns []string
	text    string // an SQL expression; wrong gets its value after the columns
	// wrong reports whether a row is wrong, and the value for mend. Nil means
	// that every row of where is wrong.
	wrong func(row []any) (mend string, wrong bool)
	mend  string // with {id} and {want}
	only  dialect
}

type dialect int

const (
	both dialect = iota
	postgres
	sqlite
)

// rowsPerCheck is the length of the range of ids that one statement reads.
const rowsPerCheck = 20_000

// Check reads every table by ranges of ids and reports the rows that break an
// invariant. Each statement sees one snapshot, and invariants of several rows
// are judged by one statement, so servers may use the database meanwhile. Check
// writes nothing.
func Check(ctx context.Context, url string, report func(Finding) error) (result Checked, err error) {
	db, err := open(ctx, url)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return checkOn(ctx, db, db.Pool, report)
}

// open opens a database that has exactly the migrations of this program.
func open(ctx context.Context, url string) (*sqldb.DB, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{URL: url, InUse: true, Connections: 1, StatementTime: -1})
	if err != nil {
		return nil, err
	}
	migrations, err := db.Migrations(ctx)
	for _, one := range migrations {
		if err == nil && !one.Applied {
			err = fmt.Errorf("the database lacks the migration %s: use its own program, or `cadastre migrate up`", one.Name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkOn is Check on a connection.
func checkOn(ctx context.Context, db *sqldb.DB, on sqldb.Conn, report func(Finding) error) (result Checked, err error) {
	c := checking{db: db, on: on, report: report, bounds: map[string][2]int64{}}
	if c.tables, err = tablesOf(ctx, db, on); err != nil {
		return result, err
	}
	for _, of := range c.tables {
		if err := c.measure(ctx, of.name); err != nil {
			return c.result, err
		}
	}
	for _, one := range append(ofRows(), references(c.tables)...) {
		if one.only == both || one.only == postgres == db.Postgres() {
			if err := c.run(ctx, one); err != nil {
				return c.result, fmt.Errorf("check that %s: %w", one.holds, err)
			}
		}
	}
	return c.result, c.wholes(ctx)
}

// checking is one run of Check.
type checking struct {
	db     *sqldb.DB
	on     sqldb.Conn
	report func(Finding) error
	tables []table
	bounds map[string][2]int64 // the lowest and highest id of each table
	result Checked
}

func (c *checking) measure(ctx context.Context, name string) error {
	return c.db.Query(ctx, c.on, "SELECT COUNT(*), COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) FROM "+name,
		func(rows *sql.Rows) error {
			var count int64
			var of [2]int64
			err := rows.Scan(&count, &of[0], &of[1])
			c.result.Rows += count
			c.bounds[name] = of
			return err
		})
}

// run checks an invariant. It reads the table by ranges of ids.
func (c *checking) run(ctx context.Context, one invariant) error {
	of := c.table(one)
	selected := of.quoted("t.")
	if one.text != "" {
		selected += ", " + one.text
		of.columns = append(of.columns, column{is: words})
	}
	statement := "SELECT " + selected + " FROM " + of.name + " AS t WHERE t.id >= $1 AND t.id < $2"
	if one.where != "" {
		statement += " AND (" + one.where + ")"
	}
	statement += " ORDER BY t.id"
	bounds := c.bounds[of.name]
	for from := bounds[0]; from <= bounds[1]; from += rowsPerCheck {
		err := c.db.Query(ctx, c.on, statement, func(rows *sql.Rows) error {
			return c.judge(one, of, rows)
		}, from, from+rowsPerCheck)
		if err != nil {
			return err
		}
	}
	return nil
}

// table returns the table of an invariant with its id and the columns that the
// invariant reads.
func (c *checking) table(one invariant) table {
	known := c.tables[slices.IndexFunc(c.tables, func(t table) bool { return t.name == one.table })]
	of := table{name: one.table}
	for _, name := range slices.Concat([]string{"id"}, one.columns) {
		i := slices.IndexFunc(known.columns, func(c column) bool { return c.name == name })
		of.columns = append(of.columns, known.columns[i])
	}
	return of
}

func (c *checking) judge(one invariant, of table, rows *sql.Rows) error {
	row, err := of.scan(rows)
	if err != nil {
		return err
	}
	id, values := row[0].(int64), row[1:]
	want, wrong := "", true
	if one.wrong != nil {
		want, wrong = one.wrong(values)
	}
	if !wrong {
		return nil
	}
	var is []string
	for i, name := range one.columns {
		is = append(is, fmt.Sprintf("%s %v", name, shown(values[i])))
	}
	mend := strings.NewReplacer("{id}", strconv.FormatInt(id, 10), "{want}", want).Replace(one.mend)
	return c.found(Finding{one.kind, one.holds, one.table, id, strings.Join(is, ", "), mend})
}

// mostShown is the number of characters of a value in a finding.
const mostShown = 80

func shown(value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	if runes := []rune(text); len(runes) > mostShown {
		text = string(runes[:mostShown]) + "..."
	}
	return strconv.Quote(text)
}

func (c *checking) found(one Finding) error {
	c.result.Findings++
	c.result.Worst = max(c.result.Worst, one.Kind)
	return c.report(one)
}

// wholes checks that new ids are free, that unique indexes exist, and that the
// indexes of PostgreSQL or the file of SQLite are intact.
func (c *checking) wholes(ctx context.Context) error {
	last, err := lastIDs(ctx, c.db, c.on)
	if err != nil {
		return err
	}
	for _, of := range c.tables {
		highest := c.bounds[of.name][1]
		if highest <= last[of.name] {
			continue
		}
		mend := fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', 'id'), %d)", of.name, highest)
		if !c.db.Postgres() {
			mend = fmt.Sprintf("UPDATE sqlite_sequence SET seq = %d WHERE name = '%s'", highest, of.name)
		}
		err := c.found(Finding{Broken, "new ids are higher than existing ids", of.name, 0,
			fmt.Sprintf("the next id %d, the highest id %d", last[of.name]+1, highest), mend})
		if err != nil {
			return err
		}
	}
	if err := c.checkUnique(ctx); err != nil {
		return err
	}
	holds, statement := "indexes are valid",
		`SELECT c.relname, 'REINDEX INDEX ' || quote_ident(c.relname) FROM pg_index AS i
		JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready)`
	if !c.db.Postgres() {
		holds, statement = "the file is intact",
			`SELECT integrity_check, 'restore a backup' FROM pragma_integrity_check WHERE integrity_check <> 'ok'`
	}
	return c.db.Query(ctx, c.on, statement, func(rows *sql.Rows) error {
		one := Finding{Kind: Broken, Check: holds}
		if err := rows.Scan(&one.Is, &one.Mend); err != nil {
			return err
		}
		return c.found(one)
	})
}

// checkUnique checks that the unique indexes of the migrations exist.
func (c *checking) checkUnique(ctx context.Context) error {
	statements, err := c.db.UniqueIndexes()
	if err != nil {
		return err
	}
	statement := `SELECT i.name FROM sqlite_master AS t, pragma_index_list(t.name) AS i WHERE t.type = 'table' AND i."unique"`
	if c.db.Postgres() {
		statement = `SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
			WHERE c.relnamespace = current_schema()::regnamespace AND i.indisunique`
	}
	present, err := sqldb.Column[string](ctx, c.db, c.on, statement)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if !slices.Contains(present, name) {
			err := c.found(Finding{Kind: Broken, Check: "unique indexes exist", Is: name, Mend: statements[name]})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
