package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Namespace holds definitions.
type Namespace struct{ ent.Schema }

func (Namespace) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (Namespace) Annotations() []schema.Annotation {
	return []schema.Annotation{table("namespaces")}
}

func (Namespace) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(varchar(80)).Unique(),
		field.String("title").SchemaType(varchar(80)).Optional().Comment("the display name as given"),
		field.String("display_name").SchemaType(varchar(80)).Comment("the title, or the name without one"),
		field.Text("description").Optional().Nillable(),
		field.String("visibility").SchemaType(varchar(16)),
		field.Bool("protected"),
		field.String("owner").SchemaType(varchar(255)),
		field.String("origin").SchemaType(varchar(255)).Optional().Nillable(),
		field.Text("origin_document").Optional().Nillable().
			Comment("the definitions of the last import; the base of a three-way upgrade"),
		field.Text("default_rules").Default("[]").Comment("the rules that fill in values, as JSON"),
		field.Int("revision").Default(1),
		field.Text("search_key").Comment("name, title and description, folded"),
	}
}

func (Namespace) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("properties", PropertyDefinition.Type).Annotations(cascade()),
		edge.To("objects", ObjectDefinition.Type).Annotations(cascade()),
		edge.To("tags", Tag.Type).Annotations(cascade()),
		edge.To("associations", ResourceTypeAssociation.Type).Annotations(cascade()),
		edge.To("members", NamespaceMember.Type).Annotations(cascade()),
	}
}

func (Namespace) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("display_name", "uuid"),
		index.Fields("created_at", "uuid"),
		index.Fields("updated_at", "uuid"),
		index.Fields("owner"),
		index.Fields("visibility"),
		index.Fields("origin"),
	}
}

// UnloadedNamespace is a namespace of the product's own bundle that a viewer
// has deleted. An import of the bundle does not create it again, unless the
// request includes unloaded namespaces.
type UnloadedNamespace struct{ ent.Schema }

func (UnloadedNamespace) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (UnloadedNamespace) Annotations() []schema.Annotation {
	return []schema.Annotation{table("unloaded_namespaces")}
}

func (UnloadedNamespace) Fields() []ent.Field {
	return []ent.Field{
		field.String("origin").SchemaType(varchar(255)).Immutable(),
		field.String("name").SchemaType(varchar(80)).Immutable(),
		field.Time("created_at").Immutable(),
	}
}

func (UnloadedNamespace) Indexes() []ent.Index {
	return []ent.Index{index.Fields("origin", "name").Unique()}
}

// PropertyDefinition defines a property of a namespace, or of an object in it.
type PropertyDefinition struct{ ent.Schema }

func (PropertyDefinition) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (PropertyDefinition) Annotations() []schema.Annotation {
	return []schema.Annotation{table("property_definitions")}
}

func (PropertyDefinition) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("namespace_id").Immutable(),
		field.Int64("object_id").Optional().Nillable().Immutable(),
		field.String("name").SchemaType(varchar(80)),
		field.Int("position").Comment("order within the namespace or object"),
		field.Text("keywords").Comment("the definition: one JSON object, verbatim"),
		field.Text("search_key").Comment("name, title and description, folded"),
	}
}

func (PropertyDefinition) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("namespace", Namespace.Type).Ref("properties").Field("namespace_id").Unique().Required().Immutable(),
		edge.From("object", ObjectDefinition.Type).Ref("properties").Field("object_id").Unique().Immutable(),
	}
}

func (PropertyDefinition) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("namespace_id", "name").Unique().Annotations(entsql.IndexWhere("object_id IS NULL")),
		index.Fields("object_id", "name").Unique(),
		index.Fields("namespace_id"),
		index.Fields("name"),
	}
}

// ObjectDefinition defines a group of properties.
type ObjectDefinition struct{ ent.Schema }

func (ObjectDefinition) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (ObjectDefinition) Annotations() []schema.Annotation {
	return []schema.Annotation{table("object_definitions")}
}

func (ObjectDefinition) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("namespace_id").Immutable(),
		field.String("name").SchemaType(varchar(80)),
		field.Text("description").Optional().Nillable(),
		field.Text("required").Comment("names of required properties, a JSON array of strings"),
		field.Int("position").Comment("order within the namespace"),
		field.Text("search_key").Comment("name and description, folded"),
	}
}

func (ObjectDefinition) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("namespace", Namespace.Type).Ref("objects").Field("namespace_id").Unique().Required().Immutable(),
		edge.To("properties", PropertyDefinition.Type).Annotations(cascade()),
	}
}

func (ObjectDefinition) Indexes() []ent.Index {
	return []ent.Index{index.Fields("namespace_id", "name").Unique()}
}

// Tag is a name that resources can be tagged with.
type Tag struct{ ent.Schema }

func (Tag) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (Tag) Annotations() []schema.Annotation { return []schema.Annotation{table("tags")} }

func (Tag) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("namespace_id").Immutable(),
		field.Int64("parent_id").Optional().Nillable(),
		field.String("name").SchemaType(varchar(80)),
		field.String("name_key").SchemaType(varchar(80)).Comment("the name, folded"),
	}
}

func (Tag) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("namespace", Namespace.Type).Ref("tags").Field("namespace_id").Unique().Required().Immutable(),
		edge.To("children", Tag.Type).Annotations(entsql.Annotation{OnDelete: entsql.SetNull}).
			From("parent").Field("parent_id").Unique(),
	}
}

func (Tag) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("namespace_id", "name_key").Unique(),
		index.Fields("name_key"),
		index.Fields("parent_id"),
	}
}

// ResourceType is a kind of resource.
type ResourceType struct{ ent.Schema }

func (ResourceType) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, named{}, timed{}} }

func (ResourceType) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_types")}
}

func (ResourceType) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(varchar(80)).Unique(),
		field.Bool("protected"),
		field.Bool("strict"),
		// True if no viewer created the type: it exists because an association
		// names it. The namespace of the association may be private.
		field.Bool("implied").Optional(),
	}
}

func (ResourceType) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("associations", ResourceTypeAssociation.Type).Annotations(restrict()),
		edge.To("resources", Resource.Type).Annotations(restrict()),
		edge.To("capabilities", Capability.Type).Annotations(restrict()),
	}
}

func (ResourceType) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at", "uuid"),
		index.Fields("updated_at", "uuid"),
	}
}

// ResourceTypeAssociation makes a namespace applicable to a resource type. A
// missing prefix or target is the empty string, because a unique key treats
// nulls as distinct.
type ResourceTypeAssociation struct{ ent.Schema }

func (ResourceTypeAssociation) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{}, named{}, timed{}}
}

func (ResourceTypeAssociation) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_type_associations")}
}

func (ResourceTypeAssociation) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("namespace_id").Immutable(),
		field.Int64("resource_type_id").Immutable(),
		field.String("prefix").SchemaType(varchar(80)).Default(""),
		field.String("properties_target").SchemaType(varchar(80)).Default(""),
	}
}

func (ResourceTypeAssociation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("namespace", Namespace.Type).Ref("associations").
			Field("namespace_id").Unique().Required().Immutable(),
		edge.From("resource_type", ResourceType.Type).Ref("associations").
			Field("resource_type_id").Unique().Required().Immutable(),
	}
}

func (ResourceTypeAssociation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("namespace_id", "resource_type_id", "prefix", "properties_target").Unique().
			StorageKey("resourcetypeassociation_key"),
		index.Fields("resource_type_id"),
		index.Fields("properties_target"),
	}
}

// NamespaceMember shares a namespace with a project, or with all projects
// ("*").
type NamespaceMember struct{ ent.Schema }

func (NamespaceMember) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (NamespaceMember) Annotations() []schema.Annotation {
	return []schema.Annotation{table("namespace_members")}
}

func (NamespaceMember) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("namespace_id").Immutable(),
		field.String("project_id").SchemaType(varchar(255)).Immutable(),
		field.String("role").SchemaType(varchar(16)),
	}
}

func (NamespaceMember) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("namespace", Namespace.Type).Ref("members").Field("namespace_id").Unique().Required().Immutable(),
	}
}

func (NamespaceMember) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("namespace_id", "project_id").Unique(),
		index.Fields("project_id"),
	}
}
