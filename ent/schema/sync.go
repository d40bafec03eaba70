package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ResourceOrigin is the origin of a resource that a sync wrote: the four parts
// of its identity there, and the names of the metadata keys and capabilities
// that the sync owns.
type ResourceOrigin struct{ ent.Schema }

func (ResourceOrigin) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (ResourceOrigin) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_origins")}
}

func (ResourceOrigin) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_id").Unique().Immutable(),
		field.String("origin").SchemaType(varchar(255)).Immutable(),
		field.String("region").SchemaType(varchar(255)).Immutable(),
		field.String("kind").SchemaType(varchar(64)).Immutable(),
		field.String("foreign_id").SchemaType(varchar(255)).Immutable(),
		field.Text("owned_keys").Comment("the keys of metadata that the origin has, as JSON"),
		field.Text("owned_capabilities").Default("[]").
			Comment("the names of capabilities that the origin has, as JSON"),
		field.Time("observed_at").Comment("when it was last written or began to be absent"),
		field.Int("absent").Default(0).Comment("complete passes in a row without it; 2 is enough"),
		field.String("missed_by").SchemaType(varchar(36)).Optional().Nillable().Comment("the last of these passes"),
		field.Time("gone_at").Optional().Nillable(),
	}
}

func (ResourceOrigin) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource", Resource.Type).Ref("origin").Field("resource_id").Unique().Required().Immutable(),
	}
}

func (ResourceOrigin) Indexes() []ent.Index {
	return []ent.Index{index.Fields("origin", "region", "kind", "foreign_id").Unique()}
}

// SyncScope is the state of the passes over one kind of objects in a region of
// an origin.
type SyncScope struct{ ent.Schema }

func (SyncScope) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (SyncScope) Annotations() []schema.Annotation { return []schema.Annotation{table("syncs")} }

func (SyncScope) Fields() []ent.Field {
	return []ent.Field{
		field.String("origin").SchemaType(varchar(255)).Immutable(),
		field.String("region").SchemaType(varchar(255)).Immutable(),
		field.String("kind").SchemaType(varchar(64)).Immutable(),
		field.String("pass").SchemaType(varchar(36)).Optional().Nillable().
			Comment("the pass that writes; null between passes"),
		field.Time("held_until").Optional().Nillable().Comment("until then no other pass may write"),
		field.Time("completed_at").Optional().Nillable().Comment("the end of the last complete pass"),
		field.Time("failed_at").Optional().Nillable().
			Comment("the end of a pass that was not complete, if it is the last"),
		field.String("failure").SchemaType(varchar(1023)).Optional().Nillable(),
		field.Int("failures").Default(0).Comment("passes in a row that were not complete"),
		field.Int("refused").Default(0).Comment("deletions that the last complete pass refused"),
	}
}

func (SyncScope) Indexes() []ent.Index {
	return []ent.Index{index.Fields("origin", "region", "kind").Unique()}
}
