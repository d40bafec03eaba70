package metadefdb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Definitions returns the namespaces that apply to a resource type, as each of
// their associations makes them applicable, by display name: with a target only
// through associations that have it ("" is none). Search keeps what has the
// text in a name, title or description. Four statements, whatever there is.
func (s *MetadefStore) Definitions(ctx context.Context, resourceType string, target *string, search string) ([]*metadef.AppliedNamespace, error) {
	var problems problem.Problems
	text.Check(&problems, "search", search, 0, metadef.MaxSearch)
	text.CheckOptional(&problems, "target", target, 0, math.MaxInt)
	if err := s.CheckResourceType(ctx, problems.Err(), &resourceType); err != nil {
		return nil, err
	}
	applied, err := s.appliedTo(ctx, resourceType, target)
	if err != nil {
		return nil, err
	}
	metadef.NoteConflicts(applied)
	found := []*metadef.AppliedNamespace{}
	for _, of := range applied {
		if kept, ok := of.Matching(search); ok || search == "" {
			kept.Search = search
			found = append(found, &kept)
		}
	}
	return found, nil
}

// appliedTo reads the namespaces that apply to a resource type.
func (s *MetadefStore) appliedTo(ctx context.Context, resourceType string, target *string) ([]metadef.AppliedNamespace, error) {
	if err := text.CheckAny("resourceType", resourceType, "target", text.OrEmpty(target)); err != nil {
		return nil, err
	}
	links, err := associations(ctx, s.Ent).Where(func(selector *entsql.Selector) {
		selector.Where(IsOfType(selector, selector.C(resourcetypeassociation.FieldResourceTypeID), []string{resourceType}))
		if target != nil {
			selector.Where(entsql.EQ(selector.C(resourcetypeassociation.FieldPropertiesTarget), *target))
		}
	}).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what applies to a resource type: %w", err)
	}
	ids := lists.Map(links, func(link *ent.ResourceTypeAssociation) int64 { return link.NamespaceID })
	rows, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), sqldb.Among(namespace.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list namespaces that apply to a resource type: %w", err)
	}
	var held Content
	if err := held.ReadDefinitions(ctx, s.Ent, ids, s.PropertyNoun); err != nil {
		return nil, err
	}
	namespaces := lists.Index(rows, func(row *ent.Namespace) (int64, *metadef.Namespace) { return row.ID, namespaceNoun(row) })
	var applied []metadef.AppliedNamespace
	for _, link := range links {
		if in := namespaces[link.NamespaceID]; in != nil {
			applied = append(applied, metadef.Apply(in, AssociationNoun(link), held.Properties[in.ID], held.Objects[in.ID]))
		}
	}
	slices.SortStableFunc(applied, func(a, b metadef.AppliedNamespace) int {
		return cmp.Or(cmp.Compare(a.Namespace.DisplayName(), b.Namespace.DisplayName()), cmp.Compare(a.Namespace.Name, b.Namespace.Name))
	})
	return applied, nil
}
