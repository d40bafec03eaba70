package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Capability is the registry entry of a resource type's capability.
type Capability struct{ ent.Schema }

func (Capability) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (Capability) Annotations() []schema.Annotation {
	return []schema.Annotation{table("capabilities")}
}

func (Capability) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_type_id").Immutable(),
		field.String("name").SchemaType(varchar(255)).Immutable(),
		field.Bool("private"),
	}
}

func (Capability) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource_type", ResourceType.Type).Ref("capabilities").
			Field("resource_type_id").Unique().Required().Immutable(),
		edge.To("values", CapabilityValue.Type).Annotations(cascade()),
		edge.To("members", CapabilityMember.Type).Annotations(cascade()),
		edge.To("counts", CapabilityCount.Type).Annotations(cascade()),
	}
}

func (Capability) Indexes() []ent.Index {
	return []ent.Index{index.Fields("resource_type_id", "name").Unique()}
}

// CapabilityValue is the value of a capability on one resource.
type CapabilityValue struct{ ent.Schema }

func (CapabilityValue) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (CapabilityValue) Annotations() []schema.Annotation {
	return []schema.Annotation{table("capability_values")}
}

func (CapabilityValue) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_id").Immutable(),
		field.Int64("capability_id").Immutable(),
		field.Text("value"),
	}
}

func (CapabilityValue) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource", Resource.Type).Ref("capability_values").
			Field("resource_id").Unique().Required().Immutable(),
		edge.From("capability", Capability.Type).Ref("values").Field("capability_id").Unique().Required().Immutable(),
	}
}

func (CapabilityValue) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_id", "capability_id").Unique(),
		index.Fields("capability_id", "resource_id"),
	}
}

// CapabilityMember is one value of a capability on one resource. A list has a
// row for each of its members, any other value has one row. Conditions on
// capabilities read these rows. A value can be too long for an index entry, so
// the store finds rows by the hash of the value, and then compares the value.
type CapabilityMember struct{ ent.Schema }

func (CapabilityMember) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (CapabilityMember) Annotations() []schema.Annotation {
	return []schema.Annotation{table("capability_members")}
}

func (CapabilityMember) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_id").Immutable(),
		field.Int64("capability_id").Immutable(),
		field.Text("value").Immutable(),
		field.Int64("value_hash").Immutable().Comment("64 bits of a hash of the value"),
		field.String("number_key").SchemaType(varchar(80)).Optional().Nillable().Immutable().
			Comment("the value as a number, in a string with the order of numbers; null if it is not a number"),
		field.Text("value_key").Optional().Nillable().Immutable().
			Comment("the folded value; null if equal to the value"),
		field.Bool("in_list").Immutable().Comment("whether the value is a member of a list"),
	}
}

func (CapabilityMember) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource", Resource.Type).Ref("capability_members").
			Field("resource_id").Unique().Required().Immutable(),
		edge.From("capability", Capability.Type).Ref("members").Field("capability_id").Unique().Required().Immutable(),
	}
}

func (CapabilityMember) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_id", "capability_id"),
		index.Fields("capability_id", "value_hash", "resource_id"),
		index.Fields("capability_id", "number_key", "resource_id"),
	}
}

// CapabilityCount counts the resources that have a value. Each member of a list
// counts separately. The transaction that changes a value updates the count.
type CapabilityCount struct{ ent.Schema }

func (CapabilityCount) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (CapabilityCount) Annotations() []schema.Annotation {
	return []schema.Annotation{table("capability_counts")}
}

func (CapabilityCount) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("capability_id").Immutable(),
		field.Text("value").Immutable(),
		field.String("value_digest").SchemaType(varchar(64)).Immutable().Comment("SHA-256 of the value, in hex"),
		field.String("value_prefix").SchemaType(varchar(64)).Immutable().
			Comment("the first 64 characters of the value"),
		field.Int("resource_count"),
	}
}

func (CapabilityCount) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("capability", Capability.Type).Ref("counts").Field("capability_id").Unique().Required().Immutable(),
	}
}

func (CapabilityCount) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("capability_id", "value_digest").Unique(),
		index.Fields("capability_id", "value_prefix"),
	}
}
