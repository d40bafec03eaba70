package resourcedb

import (
	"context"
	"fmt"
	"reflect"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capabilitycount"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// scopeColumns are the columns in which resources refer to their scope.
var scopeColumns = map[resource.Scope]string{
	resource.ChildrenOfResource: entresource.FieldParentID,
	resource.ResourcesOfType:    entresource.FieldResourceTypeID,
}

// The tables that lists read.
var (
	resourceTable = sqldb.NewTable[ent.Resource](entresource.Table, entresource.Columns, entresource.FieldNameKey,
		entresource.FieldDescriptionKey).Timeless()
	countTable   = sqldb.NewTable[ent.CapabilityCount](capabilitycount.Table, capabilitycount.Columns)
	resourceTags = sqldb.NewTable[ent.ResourceTag](resourcetag.Table, resourcetag.Columns)
)

// Resources returns a page of the resources that match a filter and that the
// viewer may see.
func (s *ResourceStore) Resources(ctx context.Context, filter resource.Filter, order page.Order,
	request page.Request) (page.Page[*resource.Resource], error) {
	pages, err := paging.New("resources", resourceOrders(), order, request)
	if err != nil {
		return page.Page[*resource.Resource]{}, err
	}
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return page.Page[*resource.Resource]{}, err
	}
	if request.IsEmpty() {
		return page.Page[*resource.Resource]{Unread: true}, nil
	}
	found, err := s.answerOf(ctx, query.Question{Use: query.Page}, clauses)
	if err != nil {
		return page.Page[*resource.Resource]{}, err
	}
	rows, err := s.pageOf(ctx, found, filter, order, pages)
	if err != nil {
		return page.Page[*resource.Resource]{}, fmt.Errorf("list resources: %w", err)
	}
	position, err := s.positions(ctx, order, rows)
	return paging.NewPage(pages, rows, resourceNoun, position), err
}

// pageOf returns the rows of a page of resources, and one more.
func (s *ResourceStore) pageOf(ctx context.Context, found answer, filter resource.Filter, order page.Order,
	pages paging.Paging) ([]*ent.Resource, error) {
	if found.bySets() {
		ids := found.page(order, pages)
		if len(ids) == 0 {
			return nil, nil
		}
		return resourceTable.All(ctx, s.DB, paging.Among(entresource.FieldID, ids), pages.Sort)
	}
	wanted := s.searched(pages, found.clauses, visible.Resources(ctx))
	if order.Field == string(resource.OrderByType) {
		wanted = firstOfTypes(pages, wanted)
	} else if parts := s.partsOf(ctx, filter, found.clauses); len(parts) > 0 {
		wanted = firstOfParts(pages, parts)
	}
	return resourceTable.All(filtered(ctx, filter), s.DB, wanted, pages.Take)
}

// filtered returns the context of a list under a filter. Unless the filter is
// empty, the statement is not prepared, because the best plan depends on how
// frequent the filter's values are.
func filtered(ctx context.Context, filter resource.Filter) context.Context {
	if reflect.ValueOf(filter).IsZero() {
		return ctx
	}
	return sqldb.Unprepared(ctx)
}

// CountResources returns the total number of resources in Resources.
func (s *ResourceStore) CountResources(ctx context.Context, filter resource.Filter) (int, error) {
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return 0, err
	}
	found, err := s.answerOf(ctx, query.Question{Use: query.Count}, clauses)
	if err != nil {
		return 0, err
	}
	if found.bySets() {
		return found.held.CountMatching(found.sets), nil
	}
	return resourceTable.Count(ctx, s.DB, matchingAll(ctx, found.clauses))
}

// ResourcesWithin returns a page of the resources of each scope: the children
// of a resource, or the resources of a type.
func (s *ResourceStore) ResourcesWithin(ctx context.Context, scope resource.Scope, keys []int64, filter resource.Filter,
	order page.Order, request page.Request) (map[int64]page.Page[*resource.Resource], error) {
	pages, wanted, err := s.pagingOf(ctx, string(scope), filter, order, request)
	if err != nil {
		return nil, err
	}
	rows, err := resourceTable.All(filtered(ctx, filter), s.DB,
		pages.OfEach(entresource.Table, scopeColumns[scope], keys, wanted))
	if err != nil {
		return nil, fmt.Errorf("list resources within others: %w", err)
	}
	position, err := s.positions(ctx, order, rows)
	return paging.PagesOf(pages, keys, rows, scopeKey(scope), resourceNoun, position), err
}

// ResourcesBehind reports, for each key, whether there are resources behind the
// page of ResourcesWithin: before a page that is read forward, after a page
// that is read backward.
func (s *ResourceStore) ResourcesBehind(ctx context.Context, scope resource.Scope, keys []int64, filter resource.Filter,
	order page.Order, request page.Request) (map[int64]bool, error) {
	pages, wanted, err := s.pagingOf(ctx, string(scope), filter, order, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.Resource.Query().Where(pages.BehindEach(entresource.Table, scopeColumns[scope], keys, wanted)).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for resources within others: %w", err)
	}
	return lists.Set(rows, scopeKey(scope)), nil
}

func (s *ResourceStore) pagingOf(ctx context.Context, list string, filter resource.Filter, order page.Order,
	request page.Request) (paging.Paging, predicate.Resource, error) {
	pages, err := paging.New(list, resourceOrders(), order, request)
	if err != nil {
		return pages, nil, err
	}
	wanted, err := s.resourcesMatching(ctx, filter)
	return pages, wanted, err
}

// CountResourcesWithin returns the total number of resources of each scope in
// ResourcesWithin.
func (s *ResourceStore) CountResourcesWithin(ctx context.Context, scope resource.Scope, keys []int64,
	filter resource.Filter) (map[int64]int, error) {
	wanted, err := s.resourcesMatching(ctx, filter)
	if err != nil {
		return nil, err
	}
	return resourceTable.CountBy(ctx, s.DB, scopeColumns[scope], paging.Among(scopeColumns[scope], keys), wanted)
}

// ResourceByUUID returns the resource with a uuid, or ErrNotFound if the viewer
// sees none.
func (s *ResourceStore) ResourceByUUID(ctx context.Context, uuid string) (*resource.Resource, error) {
	row, err := s.Ent.Resource.Query().Where(visible.Resources(ctx), entresource.UUID(uuid)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, refuseUnknownResource(uuid)
	}
	if err != nil {
		return nil, fmt.Errorf("look up a resource: %w", err)
	}
	return resourceNoun(row), nil
}

func refuseUnknownResource(uuid string) *problem.Refusal {
	return problem.Refuse(problem.ErrNotFound, "resource %s does not exist", uuid)
}

// ResourcesByID returns the visible resources with the row ids.
func (s *ResourceStore) ResourcesByID(ctx context.Context, ids []int64) (map[int64]*resource.Resource, error) {
	rows, err := resourceTable.All(ctx, s.DB, visible.Resources(ctx), paging.Among(entresource.FieldID, ids))
	return paging.ByID(rows, err, "resources", resourceNoun, func(row *ent.Resource) int64 { return row.ID })
}

// TagsOfResources returns the tags of the visible resources, sorted by name,
// ignoring case.
func (s *ResourceStore) TagsOfResources(ctx context.Context, resources []int64) (map[int64][]string, error) {
	rows, err := resourceTags.All(ctx, s.DB, paging.Among(resourcetag.FieldResourceID, resources),
		visible.OfResources(ctx), sqldb.Where(resourcetag.ByResourceID(), resourcetag.ByNameKey(), resourcetag.ByID()))
	return paging.ByParent(rows, err, "tags of resources",
		func(row *ent.ResourceTag) string { return row.Name },
		func(row *ent.ResourceTag) int64 { return row.ResourceID })
}

func scopeKey(scope resource.Scope) func(*ent.Resource) int64 {
	if scope == resource.ChildrenOfResource {
		return func(row *ent.Resource) int64 { return *row.ParentID }
	}
	return func(row *ent.Resource) int64 { return row.ResourceTypeID }
}

func resourceNoun(row *ent.Resource) *resource.Resource {
	return &resource.Resource{
		ID: row.ID, UUID: row.UUID, TypeID: row.ResourceTypeID, ParentID: sqldb.IDOf(row.ParentID), Name: row.Name,
		Description: row.Description,
		ProjectID:   row.ProjectID, Visibility: access.Visibility(row.Visibility), Revision: row.Revision,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

// ResourcesByUUID returns the visible resources with the uuids.
func (s *ResourceStore) ResourcesByUUID(ctx context.Context, uuids []string) (map[string]*resource.Resource, error) {
	rows, err := s.Ent.Resource.Query().Where(visible.Resources(ctx), paging.Among(entresource.FieldUUID, uuids)).
		All(ctx)
	return paging.ByID(rows, err, "resources", resourceNoun, func(row *ent.Resource) string { return row.UUID })
}

// FirstNamed returns, by name, the visible resources of a type that have one of
// the names. If several have a name, it returns the oldest: members may reuse
// the name of another project's resource.
func (s *ResourceStore) FirstNamed(ctx context.Context, resourceType string,
	names []string) (map[string]*resource.Resource, error) {
	type named struct {
		Name string
		ID   int64
	}
	var first []named
	isOfType := func(s *entsql.Selector) {
		s.Where(metadefdb.IsOfOneType(s, s.C(entresource.FieldResourceTypeID), resourceType))
	}
	err := s.Ent.Resource.Query().Where(visible.Resources(ctx), isOfType, paging.Among(entresource.FieldName, names)).
		GroupBy(entresource.FieldName).Aggregate(ent.As(ent.Min(entresource.FieldID), entresource.FieldID)).
		Scan(ctx, &first)
	if err != nil {
		return nil, fmt.Errorf("look up resources by name: %w", err)
	}
	ids := lists.Map(first, func(named named) int64 { return named.ID })
	rows, err := s.Ent.Resource.Query().Where(visible.Resources(ctx), paging.Among(entresource.FieldID, ids)).All(ctx)
	return paging.ByID(rows, err, "resources", resourceNoun, func(row *ent.Resource) string { return row.Name })
}
