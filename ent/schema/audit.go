package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// AuditEvent is the change of one object by an accepted mutation. The
// mutation's own transaction writes the event.
type AuditEvent struct{ ent.Schema }

func (AuditEvent) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}} }

func (AuditEvent) Annotations() []schema.Annotation {
	return []schema.Annotation{table("audit_events")}
}

func (AuditEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Immutable(),
		field.String("user_id").SchemaType(varchar(255)).Immutable(),
		field.String("project_id").SchemaType(varchar(255)).Immutable(),
		field.String("action").SchemaType(varchar(64)).Immutable().Comment("the name of the mutation"),
		field.String("kind").SchemaType(varchar(64)).Immutable().Comment("the type of the changed object"),
		field.String("key").SchemaType(varchar(400)).Immutable().Comment("its name or uuid"),
		field.Text("before").Optional().Nillable().Immutable().Comment("the content before, as JSON"),
		field.Text("after").Optional().Nillable().Immutable().Comment("the content after, as JSON"),
	}
}

func (AuditEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at", "uuid"),
		index.Fields("user_id", "created_at", "uuid"),
		index.Fields("project_id", "created_at", "uuid"),
		index.Fields("action", "created_at", "uuid"),
		index.Fields("kind", "created_at", "uuid"),
		index.Fields("kind", "key", "created_at", "uuid"),
	}
}
