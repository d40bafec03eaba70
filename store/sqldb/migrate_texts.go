package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"

	"github.com/cadastre-dev/cadastre/text"
)

// foldTextsAt returns the version of the migration that folds the strings of
// existing rows. SQL cannot do that.
func (d *Database) foldTextsAt() int64 {
	if d.dialectName == dialect.Postgres {
		return 14
	}
	return 13
}

func (d *Database) writtenInGo() []*goose.Migration {
	return []*goose.Migration{goose.NewGoMigration(d.foldTextsAt(), &goose.GoFunc{RunTx: d.foldTexts}, nil)}
}

// rowsFolded is the batch size for folding: descriptions are long.
const rowsFolded = 500

// foldTexts fills the columns for folded strings where folding changes the
// string.
func (d *Database) foldTexts(ctx context.Context, tx *sql.Tx) error {
	for _, of := range [][3]string{
		{"metadata_items", "value", "value_key"}, {"capability_members", "value", "value_key"},
		{"resources", "description", "description_key"},
	} {
		for last, more := int64(0), true; more; {
			var err error
			if last, more, err = d.foldRows(ctx, tx, of, last); err != nil {
				return fmt.Errorf("fold the strings of %s: %w", of[0], err)
			}
		}
	}
	return nil
}

// foldRows folds one batch of rows after an id. It returns the last id and
// whether more rows may follow.
func (d *Database) foldRows(ctx context.Context, tx *sql.Tx, of [3]string,
	after int64) (last int64, more bool, err error) {
	table, plain, key := of[0], of[1], of[2]
	rows, err := tx.QueryContext(ctx,
		fmt.Sprintf("SELECT id, COALESCE(%s, '') FROM %s WHERE id > $1 ORDER BY id LIMIT %d", plain, table, rowsFolded),
		after)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	count, folded := 0, [][]any{}
	for ; rows.Next(); count++ {
		var value string
		if err := rows.Scan(&last, &value); err != nil {
			return 0, false, err
		}
		if key := FoldedOrNil(value); key != nil {
			folded = append(folded, []any{last, *key})
		}
	}
	if err := rows.Err(); err != nil || len(folded) == 0 {
		return last, count == rowsFolded, err
	}
	those := "SELECT (value ->> 0)::bigint AS id, value ->> 1 AS folded FROM jsonb_array_elements($1::jsonb)"
	if d.dialectName != dialect.Postgres {
		those = "SELECT value ->> 0 AS id, value ->> 1 AS folded FROM json_each($1)"
	}
	_, err = tx.ExecContext(ctx,
		fmt.Sprintf("UPDATE %s SET %s = those.folded FROM (%s) AS those WHERE those.id = %s.id",
			table, key, those, table), JSONOf(folded))
	return last, count == rowsFolded, err
}

// FoldedOrNil returns the folded string, or nil if folding changes nothing.
func FoldedOrNil(value string) *string {
	if folded := text.Fold(value); folded != value {
		return &folded
	}
	return nil
}
