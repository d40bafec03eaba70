package visible

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/metadef"
)

// What a viewer may see is decided here and nowhere else: each predicate goes
// into every read of its kind, so that what is not visible does not exist, by
// any path.

// Namespaces keeps the public namespaces, those of the viewer's project
// and those shared with it; for an administrator all.
func Namespaces(ctx context.Context) predicate.Namespace {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) { s.Where(Namespace(viewer, s.C)) }
}

// NamespaceOf is visibleNamespaces for a table that refers to its
// namespace.
func NamespaceOf(ctx context.Context) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if EveryNamespace(viewer) {
			return
		}
		namespaces := entsql.Dialect(s.Dialect()).Table("namespaces")
		s.Where(entsql.In(s.C("namespace_id"), entsql.Dialect(s.Dialect()).Select(namespaces.C("id")).From(namespaces).
			Where(Namespace(viewer, namespaces.C))))
	}
}

// Namespace returns what holds for the namespaces that the viewer may see, of a
// table whose columns column names.
func Namespace(viewer access.Viewer, column func(string) string) *entsql.Predicate {
	if !viewer.May(access.RuleDefinitionsRead) {
		return entsql.ExprP("1 = 0")
	}
	if viewer.IsAdmin() {
		return entsql.ExprP("1 = 1")
	}
	members := entsql.Table("namespace_members")
	return entsql.Or(
		entsql.EQ(column("visibility"), string(access.Public)),
		entsql.And(entsql.EQ(column("owner"), viewer.ProjectID), entsql.NEQ(column("owner"), "")),
		entsql.Exists(entsql.Select(members.C("id")).From(members).Where(entsql.And(
			entsql.ColumnsEQ(members.C("namespace_id"), column("id")),
			entsql.In(members.C("project_id"), viewer.ProjectID, metadef.EveryProject),
		))),
	)
}

// ResourceTypes returns all but those that are associated with
// namespaces which the viewer may not see, or were so when they came about, and
// with no other, and that no resource which the viewer may see has: their names
// would tell of what is private.
func ResourceTypes(ctx context.Context) predicate.ResourceType {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if EveryNamespace(viewer) {
			return
		}
		build := entsql.Dialect(s.Dialect())
		every, visible := build.Table("resource_type_associations"), build.Table("resource_type_associations")
		namespaces, resources := build.Table("namespaces"), build.Table("resources")
		s.Where(entsql.Or(
			entsql.EQ(s.C("protected"), true),
			entsql.And(entsql.IsNull(s.C("implied")), entsql.Not(entsql.Exists(build.Select(every.C("id")).From(every).
				Where(entsql.ColumnsEQ(every.C("resource_type_id"), s.C("id")))))),
			entsql.Exists(build.Select(visible.C("id")).From(visible).
				Join(namespaces).On(visible.C("namespace_id"), namespaces.C("id")).
				Where(entsql.And(
					entsql.ColumnsEQ(visible.C("resource_type_id"), s.C("id")),
					Namespace(viewer, namespaces.C)))),
			entsql.Exists(build.Select(resources.C("id")).From(resources).
				Where(entsql.And(
					entsql.ColumnsEQ(resources.C("resource_type_id"), s.C("id")),
					Resource(viewer, resources.C)))),
		))
	}
}

// ResourceTypeOf is visibleResourceTypes for a table that refers to its
// resource type.
func ResourceTypeOf(ctx context.Context) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if EveryNamespace(viewer) {
			return
		}
		types := entsql.Dialect(s.Dialect()).Select().From(entsql.Dialect(s.Dialect()).Table("resource_types"))
		ResourceTypes(ctx)(types)
		s.Where(entsql.In(s.C("resource_type_id"), types.Select(types.C("id"))))
	}
}

// Resources keeps the public resources and those of the viewer's
// project; for an administrator or a service all.
func Resources(ctx context.Context) predicate.Resource {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) { s.Where(Resource(viewer, s.C)) }
}

// ResourceOf is visibleResources for a table that refers to its resource.
func ResourceOf(ctx context.Context) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if EveryResource(viewer) {
			return
		}
		resources := entsql.Dialect(s.Dialect()).Table("resources")
		s.Where(entsql.In(s.C("resource_id"), entsql.Dialect(s.Dialect()).Select(resources.C("id")).From(resources).
			Where(Resource(viewer, resources.C))))
	}
}

// SeesPlacement refuses a viewer who sees nothing of placement: who sees any of
// it sees all.
func SeesPlacement(ctx context.Context) error {
	return access.ViewerFrom(ctx).Require(access.RulePlacementRead, "reading placement")
}

// VisibleEvents keeps all audit events for a viewer who may read the audit log,
// and none for others.
func VisibleEvents(ctx context.Context) predicate.AuditEvent {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if !viewer.May(access.RuleAuditRead) {
			s.Where(entsql.ExprP("1 = 0"))
		}
	}
}

// EveryNamespace reports whether the viewer may see all namespaces.
func EveryNamespace(viewer access.Viewer) bool {
	return viewer.IsAdmin() && viewer.May(access.RuleDefinitionsRead)
}

// EveryResource reports whether the viewer may see all resources.
func EveryResource(viewer access.Viewer) bool {
	return (viewer.IsAdmin() || viewer.IsService()) && viewer.May(access.RuleResourcesRead)
}

// Resource returns what holds for the resources that the viewer may see, of a
// table whose columns column names.
func Resource(viewer access.Viewer, column func(string) string) *entsql.Predicate {
	if !viewer.May(access.RuleResourcesRead) {
		return entsql.ExprP("1 = 0")
	}
	if EveryResource(viewer) {
		return entsql.ExprP("1 = 1")
	}
	return entsql.Or(
		entsql.EQ(column("visibility"), string(access.Public)),
		entsql.And(entsql.EQ(column("project_id"), viewer.ProjectID), entsql.NEQ(column("project_id"), "")),
	)
}
