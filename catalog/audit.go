package catalog

import "time"

// AuditEvent is one accepted mutation: when, who, what, on what, and what it was
// before and after.
type AuditEvent struct {
	ID        int64
	CreatedAt time.Time
	UserID    string
	ProjectID string
	Action    string // the name of the mutation
	Kind      string // the type of what was changed
	Key       string // its name or uuid
	Before    *JSON  // nil for what did not exist
	After     *JSON  // nil for what exists no more, and for claims, which are recorded by id only
}

// NodeID is the global id.
func (e *AuditEvent) NodeID() string { return nodeID(KindAuditEvent, e.ID, 0) }

// AuditFilter chooses audit events; every condition given must hold.
type AuditFilter struct {
	UserID    *string
	ProjectID *string
	Action    *string
	Kind      *string
	Key       *string
	Since     *time.Time // at this time or later
	Until     *time.Time // before this time
}

// MayAudit refuses whoever may not read the audit log: all but administrators.
func MayAudit(v Viewer) error {
	if v.May(RuleAuditRead) {
		return nil
	}
	return Refuse(ErrForbidden, "only an administrator may read the audit log")
}
