package store

import "context"

// What the tests of the audit log reach into.

// PruneAudit deletes the events that are kept no longer.
func (s *Store) PruneAudit(ctx context.Context) error { return s.pruneAudit(ctx, s.ent.AuditEvent) }

// AuditRows are the ids of all events in the database, those that are kept no
// longer included.
func (s *Store) AuditRows(ctx context.Context) []int64 { return s.ent.AuditEvent.Query().IDsX(ctx) }
