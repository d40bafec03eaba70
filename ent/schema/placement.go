package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ResourceProvider provides inventories; providers form trees.
type ResourceProvider struct{ ent.Schema }

func (ResourceProvider) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (ResourceProvider) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_providers")}
}

func (ResourceProvider) Fields() []ent.Field {
	return []ent.Field{
		field.String("uuid").SchemaType(varchar(36)).Unique().Immutable(),
		field.String("name").SchemaType(varchar(200)).Unique(),
		field.Int64("generation").Comment("shown to clients; see the table of generations"),
		field.Int64("version").Comment("grows with every write of the provider"),
		field.Int64("parent_id").Optional().Nillable(),
		field.Int64("resource_id").Optional().Nillable(),
	}
}

func (ResourceProvider) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("children", ResourceProvider.Type).Annotations(restrict()).From("parent").Field("parent_id").Unique(),
		edge.From("resource", Resource.Type).Ref("providers").Field("resource_id").Unique(),
		edge.To("inventories", Inventory.Type).Annotations(cascade()),
		edge.To("traits", ProviderTrait.Type).Annotations(cascade()),
		edge.To("aggregates", ProviderAggregate.Type).Annotations(cascade()),
		edge.To("allocations", Allocation.Type).Annotations(restrict()),
	}
}

func (ResourceProvider) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("parent_id"),
		index.Fields("resource_id").Unique(),
	}
}

// ResourceClass is a kind of inventory.
type ResourceClass struct{ ent.Schema }

func (ResourceClass) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (ResourceClass) Annotations() []schema.Annotation {
	return []schema.Annotation{table("resource_classes")}
}

func (ResourceClass) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(varchar(255)).Unique().Immutable(),
		field.Bool("standard").Immutable(),
	}
}

func (ResourceClass) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("inventories", Inventory.Type).Annotations(restrict()),
		edge.To("allocations", Allocation.Type).Annotations(restrict()),
	}
}

// Inventory is the amount of a resource class that a provider has. The
// transaction that changes an allocation updates used, so that the database
// itself refuses to exceed the capacity.
type Inventory struct{ ent.Schema }

func (Inventory) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (Inventory) Annotations() []schema.Annotation {
	return []schema.Annotation{table("inventories")}
}

func (Inventory) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("provider_id").Immutable(),
		field.Int64("resource_class_id").Immutable(),
		field.Int32("total"),
		field.Int32("reserved"),
		field.Int32("min_unit"),
		field.Int32("max_unit"),
		field.Int32("step_size"),
		field.Float("allocation_ratio"),
		field.Int64("capacity").Comment("(total - reserved) x ratio, truncated; computed once, in Go"),
		field.Int64("used").Default(0),
	}
}

func (Inventory) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("provider", ResourceProvider.Type).Ref("inventories").
			Field("provider_id").Unique().Required().Immutable(),
		edge.From("resource_class", ResourceClass.Type).Ref("inventories").
			Field("resource_class_id").Unique().Required().Immutable(),
	}
}

func (Inventory) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("provider_id", "resource_class_id").Unique(),
		index.Fields("resource_class_id"),
	}
}

// Trait is a quality that a provider may have.
type Trait struct{ ent.Schema }

func (Trait) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (Trait) Annotations() []schema.Annotation { return []schema.Annotation{table("traits")} }

func (Trait) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").SchemaType(varchar(255)).Unique().Immutable(),
		field.Bool("standard").Immutable(),
	}
}

func (Trait) Edges() []ent.Edge {
	return []ent.Edge{edge.To("providers", ProviderTrait.Type).Annotations(restrict())}
}

// ProviderTrait gives a provider a trait.
type ProviderTrait struct{ ent.Schema }

func (ProviderTrait) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (ProviderTrait) Annotations() []schema.Annotation {
	return []schema.Annotation{table("provider_traits")}
}

func (ProviderTrait) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("provider_id").Immutable(),
		field.Int64("trait_id").Immutable(),
	}
}

func (ProviderTrait) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("provider", ResourceProvider.Type).Ref("traits").Field("provider_id").Unique().Required().Immutable(),
		edge.From("trait", Trait.Type).Ref("providers").Field("trait_id").Unique().Required().Immutable(),
	}
}

func (ProviderTrait) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("provider_id", "trait_id").Unique(),
		index.Fields("trait_id"),
	}
}

// ProviderAggregate puts a provider into an aggregate. An aggregate is a bare
// uuid: it exists while it contains a provider.
type ProviderAggregate struct{ ent.Schema }

func (ProviderAggregate) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (ProviderAggregate) Annotations() []schema.Annotation {
	return []schema.Annotation{table("provider_aggregates")}
}

func (ProviderAggregate) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("provider_id").Immutable(),
		field.String("aggregate").SchemaType(varchar(36)).Immutable(),
	}
}

func (ProviderAggregate) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("provider", ResourceProvider.Type).Ref("aggregates").
			Field("provider_id").Unique().Required().Immutable(),
	}
}

func (ProviderAggregate) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("provider_id", "aggregate").Unique(),
		index.Fields("aggregate"),
	}
}

// Consumer owns allocations. It exists while it has at least one.
type Consumer struct{ ent.Schema }

func (Consumer) Mixin() []ent.Mixin { return []ent.Mixin{identified{}, timed{}} }

func (Consumer) Annotations() []schema.Annotation { return []schema.Annotation{table("consumers")} }

func (Consumer) Fields() []ent.Field {
	return []ent.Field{
		field.String("uuid").SchemaType(varchar(36)).Unique().Immutable(),
		field.String("project_id").SchemaType(varchar(255)),
		field.String("user_id").SchemaType(varchar(255)),
		field.String("consumer_type").SchemaType(varchar(255)).Optional().Nillable(),
		field.Int64("generation"),
		field.Text("mappings").Optional().Nillable().
			Comment("the providers of each group: a JSON object of lists of uuids, by suffix"),
		field.Time("expires_at").Optional().Nillable().
			Comment("the end of a hold, by the clock of the database; null for a confirmed consumer"),
	}
}

func (Consumer) Edges() []ent.Edge {
	return []ent.Edge{edge.To("allocations", Allocation.Type).Annotations(cascade())}
}

func (Consumer) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("project_id", "user_id"),
		index.Fields("project_id", "created_at", "uuid"),
		index.Fields("user_id", "created_at", "uuid"),
		index.Fields("consumer_type"),
		index.Fields("created_at", "uuid"),
		index.Fields("expires_at").Annotations(entsql.IndexWhere("expires_at IS NOT NULL")),
	}
}

// Allocation is the amount of a resource class that a consumer uses on a
// provider.
type Allocation struct{ ent.Schema }

func (Allocation) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (Allocation) Annotations() []schema.Annotation {
	return []schema.Annotation{table("allocations")}
}

func (Allocation) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("consumer_id").Immutable(),
		field.Int64("provider_id").Immutable(),
		field.Int64("resource_class_id").Immutable(),
		field.Int64("used"),
	}
}

func (Allocation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("consumer", Consumer.Type).Ref("allocations").Field("consumer_id").Unique().Required().Immutable(),
		edge.From("provider", ResourceProvider.Type).Ref("allocations").
			Field("provider_id").Unique().Required().Immutable(),
		edge.From("resource_class", ResourceClass.Type).Ref("allocations").
			Field("resource_class_id").Unique().Required().Immutable(),
	}
}

func (Allocation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("consumer_id", "provider_id", "resource_class_id").Unique(),
		index.Fields("provider_id", "resource_class_id"),
		index.Fields("resource_class_id"),
	}
}

// ProjectLimit is how much of a resource class the consumers of a project may
// use together. It refers to class and trait by name, so that they can be
// deleted.
type ProjectLimit struct{ ent.Schema }

func (ProjectLimit) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (ProjectLimit) Annotations() []schema.Annotation {
	return []schema.Annotation{table("project_limits")}
}

func (ProjectLimit) Fields() []ent.Field {
	return []ent.Field{
		field.String("project_id").SchemaType(varchar(255)).Immutable(),
		field.String("resource_class").SchemaType(varchar(255)).Immutable(),
		field.String("trait").SchemaType(varchar(255)).Immutable().
			Comment("only use of providers with this trait counts; empty for all providers"),
		field.Int64("amount").Immutable(),
	}
}

func (ProjectLimit) Indexes() []ent.Index {
	return []ent.Index{index.Fields("project_id", "resource_class", "trait").Unique()}
}

// PlaceRefusal is why the last mutation `place` for a consumer was refused. Its
// row is deleted when the consumer is placed, after a day, or earlier if there
// are too many rows.
type PlaceRefusal struct{ ent.Schema }

func (PlaceRefusal) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (PlaceRefusal) Annotations() []schema.Annotation {
	return []schema.Annotation{table("place_refusals")}
}

func (PlaceRefusal) Fields() []ent.Field {
	return []ent.Field{
		field.String("consumer").SchemaType(varchar(36)).Unique().Immutable().
			Comment("its uuid; it has no row of its own"),
		field.String("project_id").SchemaType(varchar(255)),
		field.Time("refused_at"),
		field.Text("refusal").Comment("the problems and the explanation, as JSON"),
	}
}

func (PlaceRefusal) Indexes() []ent.Index { return []ent.Index{index.Fields("refused_at")} }

// CapacityBucket has all series of one grouping of the capacity history, for
// one bucket of time. The unique index ensures that only one server writes each
// bucket of five minutes.
type CapacityBucket struct{ ent.Schema }

func (CapacityBucket) Mixin() []ent.Mixin { return []ent.Mixin{identified{}} }

func (CapacityBucket) Annotations() []schema.Annotation {
	return []schema.Annotation{table("capacity_buckets")}
}

func (CapacityBucket) Fields() []ent.Field {
	return []ent.Field{
		field.String("size").SchemaType(varchar(16)).Immutable().Comment("FIVE_MINUTES, HOUR or DAY"),
		field.Time("begins_at").Immutable(),
		field.String("series").SchemaType(varchar(16)).Immutable().
			Comment("RESOURCE_CLASS, AGGREGATE, PROJECT or FLAVOR"),
		field.Text("content").Comment("the series, as compressed JSON in base64"),
	}
}

func (CapacityBucket) Indexes() []ent.Index {
	return []ent.Index{index.Fields("size", "begins_at", "series").Unique()}
}
