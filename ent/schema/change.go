package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Change records that a transaction created, updated or deleted an object of
// the API. Its audience is the viewers who see the object before or after the
// transaction. A transaction adds at least one change for each object that it
// writes. Servers update their memory from changes, and clients read them. Ids
// grow in the order of writing, which can differ from the order of commits.
type Change struct{ ent.Schema }

func (Change) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (Change) Annotations() []schema.Annotation {
	return []schema.Annotation{table("changes")}
}

func (Change) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("transaction").Immutable().
			Comment("pg_current_xact_id(); on SQLite a number that grows with each commit"),
		field.String("kind").SchemaType(varchar(64)).Immutable().Comment("the name of the object's type in the API"),
		field.String("key").SchemaType(varchar(400)).Immutable().Comment("its uuid or name"),
		field.Time("created_at").Immutable(),
		field.String("audience").SchemaType(varchar(256)).Optional().Nillable().Immutable().
			Comment("the audience: * is everyone, empty is all who see every object of the kind, = and a project is its members; null is no one"),
		field.String("what").SchemaType(varchar(8)).Optional().Nillable().Immutable().
			Comment("the change from the view of the audience"),
		field.Text("named").Optional().Nillable().Immutable().
			Comment("the projects excluded from *, a JSON array of strings; null for none"),
	}
}

func (Change) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("transaction"),
		index.Fields("audience", "kind", "id"),
		index.Fields("key", "id"),
	}
}

// SealingKey is a random key that all servers of the database share. They seal
// cursors for clients with it.
type SealingKey struct{ ent.Schema }

func (SealingKey) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (SealingKey) Annotations() []schema.Annotation {
	return []schema.Annotation{table("sealing_keys")}
}

func (SealingKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(varchar(64)).Immutable().Comment("the purpose of the key"),
		field.String("value").SchemaType(varchar(64)).Immutable().Comment("32 bytes in hex"),
		field.Time("created_at").Immutable(),
	}
}

func (SealingKey) Indexes() []ent.Index { return []ent.Index{index.Fields("name").Unique()} }
