package metadefdb

import (
	"context"
	"fmt"
	"math"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Definitions returns the visible namespaces that apply to a resource type, one
// for each association, sorted by display name. If target is not nil, only
// associations with that properties target count; "" means without one. search
// selects as AppliedNamespace.Matching does; "" keeps everything. If the
// definitions in memory show that the viewer knows the type, Definitions does
// not ask the database for it.
func (s *MetadefStore) Definitions(ctx context.Context, resourceType string, target *string,
	search string) ([]*metadef.AppliedNamespace, error) {
	var problems problem.Problems
	text.Check(&problems, "search", search, 0, metadef.MaxSearch)
	text.CheckOptional(&problems, "target", target, 0, math.MaxInt)
	_, known, err := s.knownType(ctx, resourceType)
	if err != nil {
		return nil, err
	}
	if !known || len(problems) > 0 {
		s.ReadAtOnce(ctx)
		if err := s.CheckResourceType(ctx, problems.Err(), &resourceType); err != nil {
			return nil, err
		}
	}
	applied, err := s.appliedTo(ctx, resourceType, target)
	if err != nil {
		return nil, err
	}
	found := []*metadef.AppliedNamespace{}
	for _, of := range applied {
		if kept, ok := of.Matching(search); ok || search == "" {
			kept.Search = search
			found = append(found, &kept)
		}
	}
	return found, nil
}

// appliedTo returns the namespaces that apply to a resource type. Callers must
// not modify them. It sends four statements if definitions are not in memory.
func (s *MetadefStore) appliedTo(ctx context.Context, resourceType string,
	target *string) ([]metadef.AppliedNamespace, error) {
	if err := text.CheckAny("resourceType", resourceType, "target", text.OrEmpty(target)); err != nil {
		return nil, err
	}
	held, err := s.definitionsOf(ctx)
	if err != nil {
		return nil, err
	}
	if held != nil {
		return held.appliedTo(access.ViewerFrom(ctx), resourceType, target), nil
	}
	rows, err := associations(ctx, s.Ent).Where(func(selector *entsql.Selector) {
		selector.Where(IsOfType(selector, selector.C(resourcetypeassociation.FieldResourceTypeID),
			[]string{resourceType}))
		if target != nil {
			selector.Where(entsql.EQ(selector.C(resourcetypeassociation.FieldPropertiesTarget), *target))
		}
	}).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list associations of a resource type: %w", err)
	}
	ids := lists.Map(rows, func(row *ent.ResourceTypeAssociation) int64 { return row.NamespaceID })
	within, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), paging.Among(namespace.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list namespaces that apply to a resource type: %w", err)
	}
	var content Content
	if err := content.ReadDefinitions(ctx, s.Ent, ids, s.PropertyNoun); err != nil {
		return nil, err
	}
	namespaces := lists.Index(within, func(row *ent.Namespace) (int64, *metadef.Namespace) {
		return row.ID, namespaceNoun(row)
	})
	var links []definedLink
	for _, row := range rows {
		if in := namespaces[row.NamespaceID]; in != nil {
			links = append(links, definedLink{ResourceTypeAssociation: AssociationNoun(row), in: in,
				properties: content.Properties[in.ID], objects: content.Objects[in.ID], isWhole: true})
		}
	}
	return applyInOrder(links), nil
}
