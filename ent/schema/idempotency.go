package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// IdempotencyKey is the result of one transaction of a mutation field that a
// client sent with an idempotency key. That transaction writes the row.
type IdempotencyKey struct{ ent.Schema }

func (IdempotencyKey) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (IdempotencyKey) Annotations() []schema.Annotation {
	return []schema.Annotation{table("idempotency_keys")}
}

func (IdempotencyKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("request").SchemaType(varchar(64)).Comment("SHA-256 of the viewer and the key"),
		field.String("field").SchemaType(varchar(255)).Comment("the response name of the field of Mutation"),
		field.String("step").SchemaType(varchar(64)).Comment("the transaction of the field, if it has several"),
		field.String("fingerprint").SchemaType(varchar(64)).
			Comment("SHA-256 of the document, its operation and the variables"),
		field.String("project_id").SchemaType(varchar(255)),
		field.Text("outcome").Comment("what the transaction returned, as JSON"),
		field.Time("created_at"),
	}
}

func (IdempotencyKey) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("request", "field", "step").Unique(),
		index.Fields("project_id", "created_at"),
		index.Fields("created_at"),
	}
}
