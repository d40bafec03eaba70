package metadefdb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/unloadednamespace"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// ExportNamespaces returns the definition files of the visible namespaces that
// meet every given condition, sorted by name. Unless resourceTypes is a
// condition, it returns ErrNotFound for an unknown name. It refuses more than
// MaxDocuments namespaces, and more than most bytes of definitions. Portable
// files name no owner.
func (s *MetadefStore) ExportNamespaces(ctx context.Context, names, resourceTypes []string,
	portable bool, most int) ([]string, error) {
	request := metadef.UnloadRequest{Names: names, ResourceTypes: resourceTypes,
		All: names == nil && resourceTypes == nil}
	if err := s.CheckNames(ctx, request.Check(""), request.Mentions("")...); err != nil {
		return nil, err
	}
	rows, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), chosenNamespaces(names, resourceTypes, nil)).
		Order(namespace.ByName()).Limit(metadef.MaxDocuments + 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list namespaces to export: %w", err)
	}
	if len(rows) > metadef.MaxDocuments {
		return nil, problem.Invalid("names", "must choose at most %d namespaces", metadef.MaxDocuments)
	}
	if resourceTypes == nil {
		for i, name := range names {
			if !slices.ContainsFunc(rows, func(row *ent.Namespace) bool { return row.Name == name }) {
				return nil, refuseUnknownNamespace(name).On(problem.Index("names", i))
			}
		}
	}
	if err := s.checkExport(ctx, rows, most); err != nil {
		return nil, err
	}
	held, err := documents(ctx, s.Ent, rows)
	if err != nil {
		return nil, err
	}
	return lists.Map(held, func(document *metadef.Document) string {
		if portable {
			document = document.Portable()
		}
		return document.Text()
	}), nil
}

// checkExport refuses namespaces with too many bytes of definitions for one
// answer, before reading them.
func (s *MetadefStore) checkExport(ctx context.Context, rows []*ent.Namespace, most int) error {
	ids := lists.Map(rows, func(row *ent.Namespace) int64 { return row.ID })
	length := func(column string) ent.AggregateFunc {
		return func(s *entsql.Selector) string {
			return "CAST(COALESCE(SUM(OCTET_LENGTH(" + s.C(column) + ")), 0) AS bigint)"
		}
	}
	properties, err := s.Ent.PropertyDefinition.Query().Where(paging.Among(propertydefinition.FieldNamespaceID, ids)).
		Aggregate(length(propertydefinition.FieldKeywords)).Int(ctx)
	if err != nil {
		return fmt.Errorf("measure namespaces to export: %w", err)
	}
	objects, err := s.Ent.ObjectDefinition.Query().Where(paging.Among(objectdefinition.FieldNamespaceID, ids)).
		Aggregate(length(objectdefinition.FieldDescription)).Int(ctx)
	if err != nil {
		return fmt.Errorf("measure namespaces to export: %w", err)
	}
	if size := properties + objects; size > most {
		return problem.Refuse(problem.ErrTooComplex,
			"the definitions have %d bytes, at most %d can be exported at once; choose fewer namespaces, or one by GET /export", size, most)
	}
	return nil
}

// chosenNamespaces returns the predicate that keeps the namespaces that meet
// every condition that is not nil.
func chosenNamespaces(names, resourceTypes []string, origin *string) predicate.Namespace {
	typed := namespacesMatching(metadef.NamespaceFilter{ResourceTypes: resourceTypes})
	return func(s *entsql.Selector) {
		typed(s)
		if names != nil {
			s.Where(paging.IsAmong(s, s.C(namespace.FieldName), names))
		}
		if origin != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldOrigin), *origin))
		}
	}
}

// unloadedAtOnce is the maximum number of namespaces whose contents
// UnloadNamespaces has in memory at a time.
const unloadedAtOnce = 50

// UnloadNamespaces deletes namespaces with their contents, in one transaction.
// It refuses to delete some, such as protected ones, and deletes the others. It
// returns a report on each chosen namespace, and on each name without one.
func (s *MetadefStore) UnloadNamespaces(ctx context.Context,
	request metadef.UnloadRequest) ([]*metadef.UnloadReport, error) {
	if err := s.checkOwn(ctx, "unloadNamespaces", metadef.NamespaceStanding.CheckManage); err != nil {
		return nil, err
	}
	if err := s.CheckNames(ctx, request.Check("input"), request.Mentions("input")...); err != nil && !s.IsDone(ctx) {
		return nil, err
	}
	var reports []*metadef.UnloadReport
	err := s.Write(ctx, "unloadNamespaces", func(tx *sqldb.Tx) error {
		reports = []*metadef.UnloadReport{}
		rows, err := tx.Namespace.Query().
			Where(visible.Namespaces(ctx), chosenNamespaces(request.Names, request.ResourceTypes, request.Origin),
				s.Locked()).
			Order(namespace.ByName()).All(ctx)
		if err != nil {
			return err
		}
		var unloaded []*ent.Namespace
		for _, row := range rows {
			refusal, err := s.refuseUnload(ctx, tx, row, request.IncludeProtected)
			if err != nil {
				return err
			}
			if refusal != nil {
				reports = append(reports, metadef.FailedUnload(row.Name, refusal))
				continue
			}
			unloaded = append(unloaded, row)
			reports = append(reports, &metadef.UnloadReport{Namespace: row.Name, Outcome: metadef.Unloaded,
				Errors: []string{}, Problems: []metadef.ReportProblem{}})
		}
		for _, name := range lists.Without(request.Names, namesOf(rows)) {
			refusal := problem.Refuse(problem.ErrNotFound,
				"namespace %q does not exist or is excluded by the other conditions", name)
			reports = append(reports, metadef.FailedUnload(name, refusal))
		}
		for chunk := range slices.Chunk(unloaded, unloadedAtOnce) {
			if err := tx.Flush(ctx); err != nil {
				return err
			}
			if err := s.removeNamespaces(ctx, tx, chunk); err != nil {
				return err
			}
		}
		if len(reports) == 0 {
			tx.Record(ctx, sqldb.Event{Kind: "Namespace"})
		}
		return nil
	}, &reports)
	if err != nil {
		return nil, fmt.Errorf("unload namespaces: %w", err)
	}
	return reports, nil
}

// refuseUnload returns the reason not to unload a namespace, or nil.
func (s *MetadefStore) refuseUnload(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace,
	includeProtected bool) (*problem.Refusal, error) {
	standing, err := s.standingIn(ctx, tx, row)
	switch {
	case err != nil:
		return nil, err
	case !standing.MayManage():
		return problem.Refuse(problem.ErrForbidden, "namespace %q belongs to another project", row.Name), nil
	case row.Protected && !includeProtected:
		return problem.Refuse(problem.ErrProtected, "namespace %q is protected; unloading it requires includeProtected",
			row.Name), nil
	}
	return nil, nil
}

func namesOf(rows []*ent.Namespace) []string {
	return lists.Map(rows, func(row *ent.Namespace) string { return row.Name })
}

// The store notes the names of deleted namespaces of the product's own bundle,
// so that the next import of the bundle does not create them again. It does not
// note namespaces of other bundles: their importers, who need not be
// administrators, would learn that others had deleted them.

// noteUnloaded notes the namespaces that came from the product's own bundle.
func (s *MetadefStore) noteUnloaded(ctx context.Context, tx *sqldb.Tx, rows []*ent.Namespace) error {
	var names []string
	for _, row := range rows {
		if row.Origin != nil && *row.Origin == metadef.OwnOrigin {
			names = append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if _, err := tx.UnloadedNamespace.Delete().Where(isUnloaded(metadef.OwnOrigin, names...)).Exec(ctx); err != nil {
		return err
	}
	now := s.Now()
	return paging.InsertAll(ctx, lists.Map(names, func(name string) *ent.UnloadedNamespaceCreate {
		return tx.UnloadedNamespace.Create().SetOrigin(metadef.OwnOrigin).SetName(name).SetCreatedAt(now)
	}), tx.UnloadedNamespace.CreateBulk)
}

// isUnloaded returns the predicate for the notes about namespaces of a bundle.
func isUnloaded(origin string, names ...string) predicate.UnloadedNamespace {
	return unloadednamespace.And(unloadednamespace.Origin(origin), paging.Among(unloadednamespace.FieldName, names))
}

// wasUnloaded reports whether the product's own bundle is imported and its
// namespace of this name was deleted before.
func wasUnloaded(ctx context.Context, tx *sqldb.Tx, name string, request metadef.ImportRequest) (bool, error) {
	if request.Origin == nil || *request.Origin != metadef.OwnOrigin {
		return false, nil
	}
	return tx.UnloadedNamespace.Query().Where(isUnloaded(*request.Origin, name)).Exist(ctx)
}

// forgetUnloaded deletes the note of a namespace that its bundle creates again.
func forgetUnloaded(ctx context.Context, tx *sqldb.Tx, name, origin string) error {
	_, err := tx.UnloadedNamespace.Delete().Where(isUnloaded(origin, name)).Exec(ctx)
	return err
}
