package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Change says that a transaction created, changed or deleted a thing of the API.
// Every transaction that writes leaves one for each thing, so that what is kept
// in memory of the things can be brought up to date. Its id counts changes in the
// order in which they were written, which is not that of the commits.
type Change struct{ ent.Schema }

func (Change) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (Change) Annotations() []schema.Annotation {
	return []schema.Annotation{table("changes")}
}

func (Change) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("transaction").Immutable().Comment("pg_current_xact_id(); on SQLite a number that grows with each commit"),
		field.String("kind").SchemaType(varchar(64)).Immutable().Comment("the name of the thing's type in the API"),
		field.String("key").SchemaType(varchar(400)).Immutable().Comment("its uuid or name"),
		field.Time("created_at").Immutable(),
	}
}

func (Change) Indexes() []ent.Index {
	return []ent.Index{index.Fields("transaction")}
}
