package store

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
)

var associationOrders = map[string]sortKey{"CREATED_AT": {column: resourcetypeassociation.FieldCreatedAt, isTime: true}}

func associationPaging(request page.Request) (paging, error) {
	return newPaging("associations", associationOrders, page.Order{Field: "CREATED_AT"}, request)
}

// AssociationsOfTypes is a page of the associations of each resource type, the
// oldest first.
func (s *Store) AssociationsOfTypes(ctx context.Context, types []int64, request page.Request) (map[int64]page.Page[*metadef.ResourceTypeAssociation], error) {
	paging, err := associationPaging(request)
	if err != nil {
		return nil, err
	}
	rows, err := s.ent.ResourceTypeAssociation.Query().
		Where(paging.ofEach(resourcetypeassociation.Table, resourcetypeassociation.FieldResourceTypeID, types,
			visibleNamespaceOf(ctx))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list associations of resource types: %w", err)
	}
	return pagesOf(paging, types, rows, typeOfAssociation, associationNoun,
		func(row *ent.ResourceTypeAssociation) (any, int64) { return row.CreatedAt, row.ID }), nil
}

func typeOfAssociation(row *ent.ResourceTypeAssociation) int64 { return row.ResourceTypeID }

// AssociationsOfTypesBehind tells which types have associations on the side where
// the page of AssociationsOfTypes begins.
func (s *Store) AssociationsOfTypesBehind(ctx context.Context, types []int64, request page.Request) (map[int64]bool, error) {
	paging, err := associationPaging(request)
	if err != nil {
		return nil, err
	}
	rows, err := s.ent.ResourceTypeAssociation.Query().
		Where(paging.behindEach(resourcetypeassociation.Table, resourcetypeassociation.FieldResourceTypeID, types,
			visibleNamespaceOf(ctx))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for associations of resource types: %w", err)
	}
	return keysOf(rows, typeOfAssociation), nil
}

// CountAssociationsOfTypes is how many associations each resource type has.
func (s *Store) CountAssociationsOfTypes(ctx context.Context, types []int64) (map[int64]int, error) {
	build := entsql.Dialect(s.db.dialect)
	links := build.Select().From(build.Table(resourcetypeassociation.Table))
	of := links.C(resourcetypeassociation.FieldResourceTypeID)
	links.Select(entsql.As(of, "type_id"), entsql.As(entsql.Count("*"), "number")).GroupBy(of)
	visibleNamespaceOf(ctx)(links)
	among(resourcetypeassociation.FieldResourceTypeID, types)(links)
	return s.countedByType(ctx, links)
}

// NamespacesOfTypes is a page of the namespaces that are associated with each
// resource type, once each.
func (s *Store) NamespacesOfTypes(ctx context.Context, types []int64, order page.Order, request page.Request) (map[int64]page.Page[*metadef.Namespace], error) {
	paging, err := newPaging("namespaces", namespaceOrders, order, request)
	if err != nil {
		return nil, err
	}
	build := entsql.Dialect(s.db.dialect)
	pairs, of := typesWithNamespaces(ctx, s.db.dialect, types)
	paging.within(pairs)
	id, key := pairs.C(namespace.FieldID), pairs.C(paging.key.column)
	pairs.Select(entsql.As(of, "type_id"), entsql.As(id, "namespace_id")).GroupBy(of, id, key)
	pairs.AppendSelectExprAs(entsql.RowNumber().PartitionBy(of).OrderBy(paging.direction()(key), paging.direction()(id)), "place")
	pairs.As("pairs")
	ranked := build.Select(pairs.C("type_id"), pairs.C("namespace_id")).From(pairs).
		Where(entsql.LTE(pairs.C("place"), paging.limit())).OrderBy(pairs.C("type_id"), pairs.C("place"))
	var found []struct {
		TypeID      int64 `sql:"type_id"`
		NamespaceID int64 `sql:"namespace_id"`
	}
	if err := s.scan(ctx, ranked, &found); err != nil {
		return nil, fmt.Errorf("list namespaces of resource types: %w", err)
	}
	ids := []int64{}
	for _, pair := range found {
		ids = append(ids, pair.NamespaceID)
	}
	rows, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), among(namespace.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read namespaces of resource types: %w", err)
	}
	there := make(map[int64]*ent.Namespace, len(rows))
	for _, row := range rows {
		there[row.ID] = row
	}
	parts := map[int64][]*ent.Namespace{}
	for _, pair := range found {
		if row := there[pair.NamespaceID]; row != nil {
			parts[pair.TypeID] = append(parts[pair.TypeID], row)
		}
	}
	pages := make(map[int64]page.Page[*metadef.Namespace], len(types))
	for _, of := range types {
		pages[of] = newPage(paging, parts[of], namespaceNoun, namespacePlace(order))
	}
	return pages, nil
}

// NamespacesOfTypesBehind tells which types have namespaces on the side where the
// page of NamespacesOfTypes begins.
func (s *Store) NamespacesOfTypesBehind(ctx context.Context, types []int64, order page.Order, request page.Request) (map[int64]bool, error) {
	paging, err := newPaging("namespaces", namespaceOrders, order, request)
	if err != nil {
		return nil, err
	}
	counts, err := s.countNamespacesOfTypes(ctx, types, paging.behind)
	return areThere(counts), err
}

// CountNamespacesOfTypes is how many namespaces are associated with each resource
// type.
func (s *Store) CountNamespacesOfTypes(ctx context.Context, types []int64) (map[int64]int, error) {
	return s.countNamespacesOfTypes(ctx, types)
}

func (s *Store) countNamespacesOfTypes(ctx context.Context, types []int64, conditions ...func(*entsql.Selector)) (map[int64]int, error) {
	pairs, of := typesWithNamespaces(ctx, s.db.dialect, types)
	pairs.Select(entsql.As(of, "type_id"), entsql.As(entsql.Count(entsql.Distinct(pairs.C(namespace.FieldID))), "number")).GroupBy(of)
	for _, condition := range conditions {
		condition(pairs)
	}
	return s.countedByType(ctx, pairs)
}

// typesWithNamespaces joins the visible namespaces with their associations of the
// types, and gives the column of the type.
func typesWithNamespaces(ctx context.Context, dialect string, types []int64) (*entsql.Selector, string) {
	build := entsql.Dialect(dialect)
	links := build.Table(resourcetypeassociation.Table)
	pairs := build.Select().From(build.Table(namespace.Table))
	pairs.Join(links).On(links.C(resourcetypeassociation.FieldNamespaceID), pairs.C(namespace.FieldID))
	of := links.C(resourcetypeassociation.FieldResourceTypeID)
	visibleNamespaces(ctx)(pairs)
	pairs.Where(isAmong(pairs, of, types))
	return pairs, of
}

func (s *Store) countedByType(ctx context.Context, selector *entsql.Selector) (map[int64]int, error) {
	var rows []struct {
		TypeID int64 `sql:"type_id"`
		Number int   `sql:"number"`
	}
	if err := s.scan(ctx, selector, &rows); err != nil {
		return nil, fmt.Errorf("count what resource types have: %w", err)
	}
	counts := make(map[int64]int, len(rows))
	for _, row := range rows {
		counts[row.TypeID] = row.Number
	}
	return counts, nil
}

// scan runs a query that is not about whole rows of one table.
func (s *Store) scan(ctx context.Context, selector *entsql.Selector, into any) error {
	query, args := selector.Query()
	if err := selector.Err(); err != nil {
		return err
	}
	rows := &entsql.Rows{}
	if err := s.db.Query(ctx, query, args, rows); err != nil {
		return err
	}
	defer rows.Close()
	return entsql.ScanSlice(rows, into)
}

func areThere(counts map[int64]int) map[int64]bool {
	there := make(map[int64]bool, len(counts))
	for key := range counts {
		there[key] = true
	}
	return there
}
