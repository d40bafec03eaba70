package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Resource is an object of the cloud that users work with, such as a volume.
type Resource struct{ ent.Schema }

func (Resource) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (Resource) Annotations() []schema.Annotation { return []schema.Annotation{table("resources")} }

func (Resource) Fields() []ent.Field {
	return []ent.Field{
		field.String("uuid").SchemaType(varchar(36)).Unique().Immutable(),
		field.Int64("resource_type_id").Immutable(),
		field.Int64("parent_id").Optional().Nillable(),
		field.String("name").SchemaType(varchar(255)),
		field.String("name_key").SchemaType(varchar(255)).Comment("the name, folded"),
		field.Text("description").Optional().Nillable(),
		field.Text("description_key").Optional().Nillable().
			Comment("the folded description; null if equal to the description"),
		field.String("project_id").SchemaType(varchar(255)),
		field.String("visibility").SchemaType(varchar(16)),
		field.Int("revision").Default(1),
	}
}

func (Resource) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource_type", ResourceType.Type).Ref("resources").
			Field("resource_type_id").Unique().Required().Immutable(),
		edge.To("children", Resource.Type).Annotations(restrict()).From("parent").Field("parent_id").Unique(),
		edge.To("metadata", MetadataItem.Type).Annotations(cascade()),
		edge.To("capability_values", CapabilityValue.Type).Annotations(cascade()),
		edge.To("capability_members", CapabilityMember.Type).Annotations(cascade()),
		edge.To("tags", ResourceTag.Type).Annotations(cascade()),
		edge.To("providers", ResourceProvider.Type).Annotations(restrict()),
		edge.To("origin", ResourceOrigin.Type).Unique().Annotations(cascade()),
	}
}

func (Resource) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("name", "uuid"),
		index.Fields("created_at", "uuid"),
		index.Fields("updated_at", "uuid"),
		index.Fields("resource_type_id", "name", "uuid"),
		index.Fields("project_id", "name", "uuid"),
		index.Fields("parent_id", "name", "uuid"),
		index.Fields("visibility", "name", "uuid"),
		index.Fields("resource_type_id", "uuid"),
		index.Fields("project_id", "uuid"),
	}
}

// MetadataItem is one key and its value on a resource. A value can be too long
// for an index entry, so the store finds rows by the hash of the value, or by
// its first 64 characters, and then compares the value.
type MetadataItem struct{ ent.Schema }

func (MetadataItem) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (MetadataItem) Annotations() []schema.Annotation {
	return []schema.Annotation{table("metadata_items")}
}

func (MetadataItem) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_id").Immutable(),
		field.String("key").SchemaType(varchar(255)).Immutable(),
		field.Text("value").Comment("at most 1,023 characters, longer ones by syncs only"),
		field.Int64("value_hash").Comment("64 bits of a hash of the value"),
		field.String("value_prefix").SchemaType(varchar(64)).Comment("the first 64 characters of the value"),
		field.Text("value_key").Optional().Nillable().Comment("the folded value; null if equal to the value"),
		field.Bool("user_modifiable").Default(true),
		field.Bool("by_operator").Default(false).
			Comment("whether the writer of the value may see private capabilities"),
		field.Int64("derived_from").Default(0).
			Comment("the row id of the namespace whose rules gave the value; 0 if it was written"),
	}
}

func (MetadataItem) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource", Resource.Type).Ref("metadata").Field("resource_id").Unique().Required().Immutable(),
	}
}

func (MetadataItem) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_id", "key").Unique(),
		index.Fields("key", "value_hash", "resource_id"),
		index.Fields("key", "value_prefix", "resource_id"),
		index.Fields("derived_from", "resource_id").Annotations(entsql.IndexWhere("derived_from <> 0")),
	}
}

// ResourceTag is a tag on a resource, free or from the catalog.
type ResourceTag struct{ ent.Schema }

func (ResourceTag) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (ResourceTag) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_tags")}
}

func (ResourceTag) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("resource_id").Immutable(),
		field.String("name").SchemaType(varchar(80)),
		field.String("name_key").SchemaType(varchar(80)).Immutable().Comment("the name, folded"),
	}
}

func (ResourceTag) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("resource", Resource.Type).Ref("tags").Field("resource_id").Unique().Required().Immutable(),
	}
}

func (ResourceTag) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("resource_id", "name_key").Unique(),
		index.Fields("name_key", "resource_id"),
	}
}
