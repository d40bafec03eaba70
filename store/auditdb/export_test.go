package auditdb

import "context"

// What the tests of the audit log reach into.

// PruneAudit deletes the events that are kept no longer.
func (s *AuditStore) PruneAudit(ctx context.Context) error {
	return s.pruneAudit(ctx, s.Ent.AuditEvent)
}

// AuditRows are the ids of all events in the database, those that are kept no
// longer included.
func (s *AuditStore) AuditRows(ctx context.Context) []int64 {
	return s.Ent.AuditEvent.Query().IDsX(ctx)
}
