package upkeep

import (
	"cmp"
	"context"
	"errors"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Trees returns the tables whose rows refer to the same table.
func Trees() []string { return trees }

// Owner returns the table that a column refers to.
func Owner(table, column string) string { return cmp.Or(owners[column], table) }

// errPlanted ends the transaction of Planted.
var errPlanted = errors.New("planted")

// Planted returns the findings in a database after statements, and rolls them
// back.
func Planted(ctx context.Context, db *sqldb.DB, statements ...string) (found []Finding, err error) {
	err = db.Load(ctx, func(on sqldb.Conn) error {
		for _, statement := range statements {
			if err := db.Execute(ctx, on, statement); err != nil {
				return err
			}
		}
		_, err := checkOn(ctx, db, on, func(one Finding) error {
			found = append(found, one)
			return nil
		})
		return errors.Join(err, errPlanted)
	})
	if errors.Is(err, errPlanted) {
		err = nil
	}
	return found, err
}
