// Package visible has the access predicates of viewers as SQL. In memory,
// resource.ReachOf and metadef.Audience decide by the same rules. Each predicate
// is part of every read of its kind, so a viewer gets NOT_FOUND for anything that
// is not visible, by any path.
package visible

import (
	"context"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

// Namespaces keeps public namespaces, and namespaces owned by the viewer's
// project or shared with it. An administrator sees all. A viewer who may not
// read definitions sees none.
func Namespaces(ctx context.Context) predicate.Namespace {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) { s.Where(NamespaceCondition(viewer, s.C)) }
}

// InNamespaces is Namespaces for a table with a namespace_id.
func InNamespaces(ctx context.Context) func(*entsql.Selector) {
	return refersTo(ctx, "namespaces", "namespace_id", seesEveryNamespace, NamespaceCondition)
}

// refersTo keeps the rows whose column refers to a row that meets a condition.
// It keeps all rows for a viewer who sees every referenced row.
func refersTo(
	ctx context.Context, table, column string, seesEvery func(access.Viewer) bool,
	condition func(access.Viewer, func(string) string) *entsql.Predicate,
) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if seesEvery(viewer) {
			return
		}
		// On SQLite an IN list of all visible rows would be built for each
		// statement, even for a single row. So the condition is EXISTS.
		referred := entsql.Dialect(s.Dialect()).Table(table).As("seen")
		s.Where(entsql.Exists(entsql.Dialect(s.Dialect()).Select(referred.C("id")).From(referred).
			Where(entsql.And(entsql.ColumnsEQ(referred.C("id"), s.C(column)), condition(viewer, referred.C)))))
	}
}

// NamespaceCondition is the condition of Namespaces for a table with the
// columns of namespaces.
func NamespaceCondition(viewer access.Viewer, column func(string) string) *entsql.Predicate {
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

// InNamespacesSeenBy keeps the rows in namespaces that are public or that any
// of some projects may see. isAmong returns the condition that a column has one
// of these projects. The viewer does not matter.
func InNamespacesSeenBy(isAmong func(s *entsql.Selector, column string) *entsql.Predicate) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		referred, members := build.Table("namespaces"), build.Table("namespace_members")
		s.Where(entsql.In(s.C("namespace_id"), build.Select(referred.C("id")).From(referred).Where(entsql.Or(
			entsql.EQ(referred.C("visibility"), string(access.Public)),
			isAmong(s, referred.C("owner")),
			entsql.Exists(build.Select(members.C("id")).From(members).Where(entsql.And(
				entsql.ColumnsEQ(members.C("namespace_id"), referred.C("id")),
				entsql.Or(entsql.EQ(members.C("project_id"), metadef.EveryProject),
					isAmong(s, members.C("project_id")))))),
		))))
	}
}

// ResourceTypes keeps the resource types that the viewer may know. All viewers
// know protected types, and types that no association created. A type that an
// association created is known through a visible namespace or resource.
// Otherwise its name would disclose a private namespace.
func ResourceTypes(ctx context.Context) predicate.ResourceType {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if seesEveryNamespace(viewer) {
			return
		}
		build := entsql.Dialect(s.Dialect())
		visible, namespaces, resources := build.Table("resource_type_associations"),
			build.Table("namespaces"), build.Table("resources")
		s.Where(entsql.Or(
			entsql.EQ(s.C("protected"), true),
			entsql.IsNull(s.C("implied")),
			entsql.Exists(build.Select(visible.C("id")).From(visible).
				Join(namespaces).On(visible.C("namespace_id"), namespaces.C("id")).
				Where(entsql.And(
					entsql.ColumnsEQ(visible.C("resource_type_id"), s.C("id")),
					NamespaceCondition(viewer, namespaces.C)))),
			entsql.Exists(build.Select(resources.C("id")).From(resources).
				Where(entsql.And(
					entsql.ColumnsEQ(resources.C("resource_type_id"), s.C("id")),
					ResourceCondition(viewer, resources.C)))),
		))
	}
}

// OfResourceTypes is ResourceTypes for a table with a resource_type_id.
func OfResourceTypes(ctx context.Context) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if seesEveryNamespace(viewer) {
			return
		}
		types := entsql.Dialect(s.Dialect()).Select().From(entsql.Dialect(s.Dialect()).Table("resource_types"))
		ResourceTypes(ctx)(types)
		s.Where(entsql.In(s.C("resource_type_id"), types.Select(types.C("id"))))
	}
}

// Resources keeps public resources and resources of the viewer's project.
// Administrators and services see all. A viewer who may not read resources sees
// none.
func Resources(ctx context.Context) predicate.Resource {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) { s.Where(ResourceCondition(viewer, s.C)) }
}

// AreResourcesOpen reports whether the viewer sees all resources.
func AreResourcesOpen(ctx context.Context) bool { return seesEveryResource(access.ViewerFrom(ctx)) }

// OfKnownProjects keeps the resources in projects that the viewer knows, see
// resource.SeesProject. It hides which definitions apply to resources of other
// projects.
func OfKnownProjects(ctx context.Context) predicate.Resource {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if !viewer.May(access.RuleResourcesWriteAny) {
			s.Where(entsql.And(entsql.EQ(s.C("project_id"), viewer.ProjectID), entsql.NEQ(s.C("project_id"), "")))
		}
	}
}

// OfResources is Resources for a table with a resource_id.
func OfResources(ctx context.Context) func(*entsql.Selector) {
	return refersTo(ctx, "resources", "resource_id", seesEveryResource, ResourceCondition)
}

// SeesPlacement returns an error if the viewer may not read placement. A viewer
// who may read placement sees all of it, except consumers of other projects;
// see Consumers.
func SeesPlacement(ctx context.Context) error {
	return access.ViewerFrom(ctx).Require(access.RulePlacementRead, "reading placement")
}

// Consumers keeps the consumers of the viewer's project, or all if
// SeesEveryConsumer. A viewer who may not read placement sees none. Allocations
// and usages are visible with their consumer.
func Consumers(ctx context.Context) predicate.Consumer {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		switch {
		case !viewer.May(access.RulePlacementRead):
			s.Where(entsql.ExprP("1 = 0"))
		case !SeesEveryConsumer(ctx):
			s.Where(entsql.EQ(s.C("project_id"), viewer.ProjectID))
		}
	}
}

// ConsumerClause returns the condition of Consumers as SQL, for a column with
// the project of a consumer, and its parameters, numbered from next.
func ConsumerClause(ctx context.Context, project string, next int) (clause string, args []any) {
	viewer := access.ViewerFrom(ctx)
	switch {
	case !viewer.May(access.RulePlacementRead):
		return "1 = 0", nil
	case SeesEveryConsumer(ctx):
		return "1 = 1", nil
	}
	return project + " = $" + strconv.Itoa(next), []any{viewer.ProjectID}
}

// OfConsumersClause is ConsumerClause for a column with the row id of a
// consumer.
func OfConsumersClause(ctx context.Context, consumer string, next int) (clause string, args []any) {
	clause, args = ConsumerClause(ctx, "seen.project_id", next)
	if len(args) > 0 {
		clause = "EXISTS (SELECT seen.id FROM consumers AS seen WHERE seen.id = " + consumer + " AND " + clause + ")"
	}
	return clause, args
}

// SeesEveryConsumer reports whether the viewer sees the consumers of all
// projects. Writers of placement do, since a claim needs the generation of its
// consumer in any project. A policy that permits only a field, such as place, does
// not show them.
func SeesEveryConsumer(ctx context.Context) bool {
	viewer := access.ViewerFrom(ctx)
	return viewer.May(access.RulePlacementRead) &&
		(viewer.May(access.RuleConsumersReadAny) || viewer.At("").May(access.RulePlacementWrite))
}

// Events keeps all audit events for a viewer who may read the audit log,
// otherwise none.
func Events(ctx context.Context) predicate.AuditEvent {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if !viewer.May(access.RuleAuditRead) {
			s.Where(entsql.ExprP("1 = 0"))
		}
	}
}

func seesEveryNamespace(viewer access.Viewer) bool {
	return viewer.IsAdmin() && viewer.May(access.RuleDefinitionsRead)
}

func seesEveryResource(viewer access.Viewer) bool { return resource.ReachOf(viewer).All }

// SeesResource reports whether a viewer sees a resource of a project, like
// ResourceCondition.
func SeesResource(viewer access.Viewer, project string, visibility access.Visibility) bool {
	if !viewer.May(access.RuleResourcesRead) {
		return false
	}
	return seesEveryResource(viewer) || visibility == access.Public || project == viewer.ProjectID && project != ""
}

// ResourceCondition is the condition of Resources for a table with the columns
// of resources. It is resource.ReachOf as SQL.
func ResourceCondition(viewer access.Viewer, column func(string) string) *entsql.Predicate {
	switch reach := resource.ReachOf(viewer); {
	case reach.None:
		return entsql.ExprP("1 = 0")
	case reach.All:
		return entsql.ExprP("1 = 1")
	}
	holds := make([]*entsql.Predicate, 0, len(resourceParts))
	for _, part := range resourceParts {
		holds = append(holds, part(viewer, column))
	}
	return entsql.Or(holds...)
}

// resourceParts are the alternatives of ResourceCondition for a viewer who sees
// only some resources. Each compares a column for equality.
var resourceParts = []func(viewer access.Viewer, column func(string) string) *entsql.Predicate{
	func(viewer access.Viewer, column func(string) string) *entsql.Predicate {
		return entsql.EQ(column("visibility"), resource.ReachOf(viewer).Visibility)
	},
	func(viewer access.Viewer, column func(string) string) *entsql.Predicate {
		project := resource.ReachOf(viewer).Project
		return entsql.And(entsql.EQ(column("project_id"), project), entsql.NEQ(column("project_id"), ""))
	},
}

// PartsOfResources returns the alternatives of Resources, which is their union.
// The rows of each are adjacent in an index. The result is empty for a viewer
// who sees all resources, or none.
func PartsOfResources(ctx context.Context) []func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	if reach := resource.ReachOf(viewer); reach.None || reach.All {
		return nil
	}
	parts := make([]func(*entsql.Selector), len(resourceParts))
	for i, part := range resourceParts {
		parts[i] = func(s *entsql.Selector) { s.Where(part(viewer, s.C)) }
	}
	return parts
}

// AudienceOf returns the viewers of a namespace without members, or of a resource,
// by the rules of Namespaces and Resources.
func AudienceOf(visibility access.Visibility, owner string) *change.Audience {
	switch {
	case visibility == access.Public:
		return change.ToEveryone()
	case owner == "":
		return change.ToProjects()
	}
	return change.ToProjects(owner)
}

// Changes returns the viewer's access to the log of changes, by kind of thing.
// The rules are the same as for reads. discovers reports whether a viewer may
// read capabilities. If the operator's policy denies the viewer the field of
// Query that lists a kind, the viewer does not see changes of that kind.
func Changes(ctx context.Context, discovers func(access.Viewer) bool) change.Reader {
	viewer := access.ViewerFrom(ctx)
	reader := change.Reader{Project: viewer.ProjectID, Sees: map[change.Kind]change.Sight{}}
	for _, of := range []struct {
		kind  change.Kind
		field string
		all   func(at access.Viewer) bool
	}{
		{change.Namespace, "namespaces", seesEveryNamespace},
		{change.ResourceType, "resourceTypes", seesEveryNamespace},
		{change.Resource, "resources", seesEveryResource},
		{change.Capability, "resourceTypes", func(at access.Viewer) bool {
			return seesEveryResource(at) && at.May(access.RuleCapabilitiesPrivate)
		}},
		{change.ResourceProvider, "resourceProviders", func(access.Viewer) bool { return true }},
		{change.Trait, "traits", func(access.Viewer) bool { return true }},
		{change.ResourceClass, "resourceClasses", func(access.Viewer) bool { return true }},
		{change.Consumer, "consumers", func(at access.Viewer) bool {
			return SeesEveryConsumer(access.WithViewer(ctx, at))
		}},
	} {
		at, err := viewer.Authorize(of.field)
		switch {
		case err != nil || of.kind == change.Capability && !discovers(viewer):
			reader.Sees[of.kind] = change.Blind
		case of.all(at):
			reader.Sees[of.kind] = change.AllThings
		default:
			reader.Sees[of.kind] = change.OwnAndAll
		}
	}
	return reader
}
