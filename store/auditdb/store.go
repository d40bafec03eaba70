// Package auditdb reads the audit log, and deletes what is kept no longer. The
// events are written by the transactions that they record (sqldb.Tx).
package auditdb

import (
	"context"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// AuditStore reads the audit log.
type AuditStore struct {
	*sqldb.DB
	auditRetention time.Duration
	pruning        sync.WaitGroup
	stopPruning    context.CancelFunc
}

// Open returns the audit log of a database, and begins to delete what is older
// than retention; 0 is 90 days.
func Open(db *sqldb.DB, retention time.Duration) *AuditStore {
	if retention == 0 {
		retention = defaultAuditRetention
	}
	pruning, stop := context.WithCancel(context.Background())
	s := &AuditStore{DB: db, auditRetention: retention, stopPruning: stop}
	events := s.Ent.AuditEvent
	s.pruning.Go(func() { s.keepPruning(pruning, events) })
	return s
}

// Close ends the deletion.
func (s *AuditStore) Close() {
	s.stopPruning()
	s.pruning.Wait()
}
