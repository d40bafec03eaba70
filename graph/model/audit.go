package model

import (
	"github.com/cadastre-dev/cadastre/catalog"
)

// AuditEventConnection is a page of the audit log.
type AuditEventConnection struct {
	*Connection[catalog.AuditEvent]
}

// AuditEventEdge is an audit event in a page.
type AuditEventEdge struct{ Edge[catalog.AuditEvent] }

// Edges are the events with their cursors.
func (c *AuditEventConnection) Edges() []AuditEventEdge { return edges[AuditEventEdge](c.Connection) }
