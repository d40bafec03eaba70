package auditdb

import "context"

// Internals for the tests of the audit log.

// PruneAudit deletes expired events.
func (s *AuditStore) PruneAudit(ctx context.Context) error {
	return s.pruneAudit(ctx, s.Ent.AuditEvent)
}

// AuditRows returns the ids of all events in the database, including expired
// ones.
func (s *AuditStore) AuditRows(ctx context.Context) []int64 {
	return s.Ent.AuditEvent.Query().IDsX(ctx)
}
