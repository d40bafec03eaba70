package model

import "github.com/cadastre-dev/cadastre/audit"

// AuditEventConnection is a page of the audit log.
type AuditEventConnection struct {
	*Connection[audit.Event]
}

// AuditEventEdge is an audit event with its cursor.
type AuditEventEdge struct{ Edge[audit.Event] }

// Edges returns the events with their cursors.
func (c *AuditEventConnection) Edges() []AuditEventEdge { return edges[AuditEventEdge](c.Connection) }
