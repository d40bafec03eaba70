package upkeep

import (
	"context"
	"errors"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
