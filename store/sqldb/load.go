package sqldb

import (
	"context"
	"errors"
	"strings"
)

// TableNames returns the names of all tables.
func TableNames() []string { return strings.Fields(schemaTables) }

// Load runs one transaction that writes rows as they are. It notes no change, and
// is not repeated.
func (d *DB) Load(ctx context.Context, write func(on Conn) error) error {
	release, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	tx, err := d.Pool.writer.BeginTx(ctx, nil)
	if err != nil {
		return refusedToBegin(err)
	}
	if err := write(&transaction{Tx: tx, of: d.Pool}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
