package resourcedb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// MetadataProblems scans resources and returns the ones with metadata that
// breaks the current definitions, with the problems that MetadataReports finds.
// It scans only resources that the viewer may see, of projects that the viewer
// knows.
func (s *ResourceStore) MetadataProblems(ctx context.Context,
	scan resource.ProblemScan) (*resource.ProblemPage, error) {
	namespace := metadef.MentionOfOne(metadef.NameOfNamespace, "filter.namespace", scan.Filter.Namespace)
	wanted, err := s.scanned(ctx, "", scan, namespace)
	if err != nil {
		return nil, err
	}
	window, err := s.windowOf(filtered(ctx, scan.Filter.Resources), s.Ent, scan, wanted)
	if err != nil {
		return nil, err
	}
	reports, err := s.reportsOn(ctx, s.Ent, window.resources, window.items)
	if err != nil {
		return nil, err
	}
	found := scan.PageOf(window.resources, func(of *resource.Resource) []*resource.MetadataProblem {
		return window.problems(of, reports)
	}, window.more)
	found.CountUndefined(reports)
	return found, nil
}

// Change is a change of definitions that may break metadata. Namespaces and
// Types name the namespaces and resource types that it changes.
type Change struct {
	Namespaces, Types []string
	// Make makes the change in the transaction of its context.
	Make func(ctx context.Context) error
}

// WouldBreak makes a change in a trial, which stores nothing. It scans the
// resources of the types that the change concerns. It returns the resources
// with metadata that would break definitions in a new way. Problems of the scan
// are at paths below path. If the change fails in the trial, WouldBreak returns
// its error.
func (s *ResourceStore) WouldBreak(ctx context.Context, path string, scan resource.ProblemScan,
	change Change) (*resource.ProblemPage, error) {
	wanted, err := s.scanned(ctx, path, scan)
	if err != nil {
		return nil, err
	}
	var found *resource.ProblemPage
	err = s.Try(ctx, func(ctx context.Context, trial *sqldb.Trial) (err error) {
		found, err = s.brokenBy(ctx, trial, scan, wanted, change)
		return err
	})
	return found, err
}

func (s *ResourceStore) brokenBy(ctx context.Context, trial *sqldb.Trial, scan resource.ProblemScan,
	wanted predicate.Resource, change Change) (*resource.ProblemPage, error) {
	client := trial.Client()
	types, err := s.metadefs.TypesConcerned(ctx, client, change.Types, change.Namespaces)
	if err != nil {
		return nil, err
	}
	if err := change.Make(ctx); err != nil {
		return nil, err
	}
	more, err := s.metadefs.TypesConcerned(ctx, client, trial.Changed("ResourceType"),
		slices.Concat(change.Namespaces, trial.Changed("Namespace")))
	if err != nil {
		return nil, err
	}
	concerned := paging.Among(entresource.FieldResourceTypeID, lists.Distinct(slices.Concat(types, more)))
	window, err := s.windowOf(ctx, client, scan, func(s *entsql.Selector) { wanted(s); concerned(s) })
	if err != nil {
		return nil, err
	}
	after, err := s.reportsOn(ctx, client, window.resources, window.items)
	if err != nil {
		return nil, err
	}
	if err := trial.Undo(ctx); err != nil {
		return nil, err
	}
	before, err := s.reportsOn(ctx, client, window.resources, window.items)
	if err != nil {
		return nil, err
	}
	return scan.PageOf(window.resources, func(of *resource.Resource) []*resource.MetadataProblem {
		return resource.NewProblems(window.problems(of, before), window.problems(of, after))
	}, window.more), nil
}

// scanned checks a scan at a path and the names in it, and returns the
// condition on the resources to scan.
func (s *ResourceStore) scanned(ctx context.Context, path string, scan resource.ProblemScan,
	mentions ...metadef.Mention) (predicate.Resource, error) {
	var problems problem.Problems
	after := scan.Check(&problems, path)
	filter := scan.Filter
	inFilter := problem.Join(problem.Join(path, "filter"), "resources")
	filter.Resources.Check(&problems, inFilter)
	filter.Resources.Plan(&problems, inFilter)
	if err := s.metadefs.CheckNames(ctx, problems.Err(),
		append(mentions, filter.Resources.Mentions(inFilter)...)...); err != nil {
		return nil, err
	}
	clauses, err := s.clausesOf(ctx, inFilter, filter.Resources)
	if err != nil {
		return nil, err
	}
	matching, known, seen := matchingAll(ctx, clauses), visible.OfKnownProjects(ctx), visible.Namespaces(ctx)
	return func(s *entsql.Selector) {
		matching(s)
		known(s)
		s.Where(entsql.GT(s.C(entresource.FieldUUID), after))
		build := entsql.Dialect(s.Dialect())
		if filter.Key != nil {
			items := build.Table(metadataitem.Table)
			s.Where(resourcesWith(s, items, entsql.EQ(items.C(metadataitem.FieldKey), *filter.Key)))
		}
		if filter.Namespace != nil {
			links, in := build.Table(resourcetypeassociation.Table), build.Table(namespace.Table)
			named := build.Select(in.C(namespace.FieldID)).From(in).
				Where(entsql.EQ(in.C(namespace.FieldName), *filter.Namespace))
			seen(named)
			s.Where(entsql.In(s.C(entresource.FieldResourceTypeID),
				build.Select(links.C(resourcetypeassociation.FieldResourceTypeID)).From(links).
					Where(entsql.In(links.C(resourcetypeassociation.FieldNamespaceID), named))))
		}
	}, nil
}

// window is the resources that a scan reads, with their items.
type window struct {
	resources []*resource.Resource // by uuid
	items     map[int64][]*resource.MetadataItem
	more      bool // there are resources after them
}

// windowOf reads the resources of a scan and their items, in two statements.
func (s *ResourceStore) windowOf(ctx context.Context, client *ent.Client, scan resource.ProblemScan,
	wanted predicate.Resource) (window, error) {
	rows, err := client.Resource.Query().Where(wanted).Order(entresource.ByUUID()).Limit(scan.Scan + 1).All(ctx)
	if err != nil {
		return window{}, fmt.Errorf("scan resources: %w", err)
	}
	w := window{more: len(rows) > scan.Scan}
	w.resources = lists.Map(rows[:min(len(rows), scan.Scan)], resourceNoun)
	w.items, err = s.itemsOf(ctx, client, lists.Map(w.resources, func(of *resource.Resource) int64 { return of.ID }))
	return w, err
}

// problems returns the problems that the reports find with the metadata of a
// resource.
func (w window) problems(of *resource.Resource, reports map[int64]*metadef.MetadataReport) []*resource.MetadataProblem {
	return resource.ProblemsOf(resource.Pairs(w.items[of.ID]), reports[of.ID])
}
