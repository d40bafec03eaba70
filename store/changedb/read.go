package changedb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/change"
)

// page is a part of the log for a reader: the changes with after < id <= upTo,
// at most limit.
type page struct {
	reader      change.Reader
	filter      change.Filter
	after, upTo int64
	row         time.Time // the time of the change with the id after, which must exist; zero if it need not
	limit       int
	newestFirst bool
}

type logRow struct {
	id   int64
	kind change.Kind
	key  string
	at   time.Time
	change.Row
}

// seenBy returns the row as a change, or nil if it is not for the reader or
// does not match the filter.
func (r logRow) seenBy(reader change.Reader, filter change.Filter) *change.Change {
	if !filter.Has(r.kind, r.key) || !reader.Reads(r.kind, r.Row) {
		return nil
	}
	return &change.Change{ID: r.id, Kind: r.kind, Key: r.key, What: r.What, At: r.at}
}

// read returns the changes of a page, and whether there are more. It reads one
// row more than the limit. Rows that the reader does not see do not count: if
// it skipped any, it reads on. It refuses a page whose change with the id after
// is lost.
func (s *ChangeStore) read(ctx context.Context, p page) (changes []*change.Change, more bool, err error) {
	for {
		statement, args := s.statementOf(p)
		if statement == "" {
			return nil, false, nil
		}
		read, isThere := 0, p.row.IsZero()
		err := s.Query(ctx, s.Pool, statement, func(rows *sql.Rows) error {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			if !isThere && row.id == p.after && row.at.Equal(p.row) {
				isThere = true
				return nil
			}
			read++
			if p.newestFirst {
				p.upTo = row.id - 1
			} else {
				p.after = row.id
			}
			if seen := row.seenBy(p.reader, p.filter); seen != nil {
				changes = append(changes, seen)
			}
			return nil
		}, args...)
		if err != nil {
			return nil, false, fmt.Errorf("read the change log: %w", err)
		}
		if p.row = (time.Time{}); !isThere {
			return nil, false, refuseLost()
		}
		if len(changes) > p.limit {
			return changes[:p.limit], true, nil
		}
		if read <= p.limit {
			return changes, false, nil
		}
	}
}

const rowColumns = `id, kind, key, created_at, audience, what, named`

func scanRow(rows *sql.Rows) (logRow, error) {
	var row logRow
	var named *string
	err := rows.Scan(&row.id, &row.kind, &row.key, &row.at, &row.Readers, &row.What, &named)
	row.at = row.at.UTC()
	if err == nil && named != nil {
		err = json.Unmarshal([]byte(*named), &row.Named)
	}
	return row, err
}

// statementOf returns the query for a page, or "" if the reader may see none of
// the wanted changes. The query merges lists that an index delivers in order,
// so its cost depends only on the page. There is one list for each kind and
// audience, or one for each key if the filter has keys. If p.row is set, the
// query also returns the row with the id after.
func (s *ChangeStore) statementOf(p page) (statement string, args []any) {
	args = []any{p.after, p.upTo, p.limit + 1}
	parameter := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	order := " ORDER BY id"
	if p.newestFirst {
		order += " DESC"
	}
	var wanted, within []string // conditions, of one kind and one audience each
	for _, kind := range change.Kinds() {
		if len(p.filter.Kinds) > 0 && !slices.Contains(p.filter.Kinds, kind) {
			continue
		}
		for _, readers := range p.reader.Of(kind) {
			audience := parameter(string(readers))
			wanted = append(wanted, fmt.Sprintf("audience = %s AND kind = '%s'", audience, kind))
			within = append(within, s.within(audience, kind)+s.orderWithin(order))
		}
	}
	if len(wanted) == 0 {
		return "", nil
	}
	if len(p.filter.Keys) > 0 {
		among := strings.Join(wanted, " OR ")
		within = nil
		for _, key := range p.filter.Keys {
			within = append(within, "key = "+parameter(key)+" AND id > $1 AND id <= $2 AND ("+among+")"+order)
		}
	}
	if !p.row.IsZero() {
		within, args[2] = append(within, "id = $1"), p.limit+2
	}
	lists := make([]string, len(within))
	for i, condition := range within {
		lists[i] = `SELECT * FROM (SELECT ` + rowColumns + ` FROM changes WHERE ` +
			condition + ` LIMIT $3) AS l` + strconv.Itoa(i)
	}
	return strings.Join(lists, " UNION ALL ") + order + ` LIMIT $3`, args
}

// within returns the condition for the rows of one audience and kind with $1 <
// id <= $2. On PostgreSQL it compares the kind and id as a row value. Otherwise
// the planner may walk the primary key and read the rows of all other
// audiences. The audience is a separate comparison: PostgreSQL ends the scan of
// an index by the first column of a row value only, so it would read on until
// the end of the audience.
func (s *ChangeStore) within(audience string, kind change.Kind) string {
	if s.Postgres() {
		return fmt.Sprintf("audience = %[1]s AND (kind, id) > ('%[2]s', $1::bigint) AND (kind, id) <= ('%[2]s', $2::bigint)",
			audience, kind)
	}
	return fmt.Sprintf("audience = %s AND kind = '%s' AND id > $1 AND id <= $2", audience, kind)
}

// orderWithin returns the order of a list for one audience and kind.
func (s *ChangeStore) orderWithin(order string) string {
	if !s.Postgres() {
		return order
	}
	if strings.HasSuffix(order, " DESC") {
		return " ORDER BY kind DESC, id DESC"
	}
	return " ORDER BY kind, id"
}
