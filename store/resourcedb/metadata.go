package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// MetadataOf returns the metadata items of the visible resources, sorted by
// key. If keys is not nil, it returns only items with these keys.
func (s *ResourceStore) MetadataOf(ctx context.Context, resources []int64,
	keys []string) (map[int64][]*resource.MetadataItem, error) {
	rows, err := metadataItems.All(ctx, s.DB, paging.Among(metadataitem.FieldResourceID, resources),
		visible.OfResources(ctx),
		func(s *entsql.Selector) {
			if keys != nil {
				s.Where(paging.IsAmong(s, s.C(metadataitem.FieldKey), keys))
			}
		}, sqldb.Where(metadataitem.ByResourceID(), metadataitem.ByKey()))
	return paging.ByParent(rows, err, "metadata", metadataNoun, func(row *ent.MetadataItem) int64 {
		return row.ResourceID
	})
}

var metadataItems = sqldb.NewTable[ent.MetadataItem](metadataitem.Table, metadataitem.Columns,
	metadataitem.FieldValueHash, metadataitem.FieldValuePrefix, metadataitem.FieldValueKey).Timeless()

// MetadataByKey returns the metadata items with the keys on resources that the
// viewer may see. It may also return items of these resources with the metadata
// key of another ItemKey.
func (s *ResourceStore) MetadataByKey(ctx context.Context,
	keys []resource.ItemKey) (map[resource.ItemKey]*resource.MetadataItem, error) {
	query := s.Ent.MetadataItem.Query().Where(visible.OfResources(ctx),
		paging.Among(metadataitem.FieldKey,
			lists.Distinct(lists.Map(keys, func(key resource.ItemKey) string { return key.Key }))))
	query.Modify(func(selector *entsql.Selector) {
		resources := entsql.Dialect(selector.Dialect()).Table(entresource.Table)
		selector.Join(resources).On(selector.C(metadataitem.FieldResourceID), resources.C(entresource.FieldID)).
			Where(paging.IsAmong(selector, resources.C(entresource.FieldUUID),
				lists.Distinct(lists.Map(keys, func(key resource.ItemKey) string { return key.Resource }))))
		selector.AppendSelectAs(resources.C(entresource.FieldUUID), resourceUUIDColumn)
	})
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up metadata: %w", err)
	}
	return lists.Index(rows, func(row *ent.MetadataItem) (resource.ItemKey, *resource.MetadataItem) {
		item := metadataNoun(row)
		if uuid, err := row.GetValue(resourceUUIDColumn); err == nil {
			item.Resource = sqldb.TextOf(uuid)
		}
		return resource.ItemKey{Resource: item.Resource, Key: item.Key}, item
	}), nil
}

// resourceUUIDColumn is the alias of the selected uuid of an item's resource.
const resourceUUIDColumn = "resource_uuid"

func metadataNoun(row *ent.MetadataItem) *resource.MetadataItem {
	return &resource.MetadataItem{
		ID: row.ID, ResourceID: row.ResourceID, Key: row.Key, Value: row.Value,
		UserModifiable: row.UserModifiable, ByOperator: row.ByOperator,
		DerivedFrom: row.DerivedFrom, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

// definitionsSeen returns the definitions that apply to resource types, from
// the namespaces that the viewer sees.
func (s *ResourceStore) definitionsSeen(ctx context.Context, types []int64) (map[int64]*metadef.Rules, error) {
	links, err := s.Ent.ResourceTypeAssociation.Query().
		Where(paging.Among(resourcetypeassociation.FieldResourceTypeID, types), visible.InNamespaces(ctx)).
		Order(resourcetypeassociation.ByNamespaceID(), resourcetypeassociation.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list associations of resource types: %w", err)
	}
	namespaces := lists.Map(links, func(link *ent.ResourceTypeAssociation) int64 { return link.NamespaceID })
	var held metadefdb.Content
	if err := held.ReadDefinitions(ctx, s.Ent, namespaces, s.metadefs.PropertyNoun); err != nil {
		return nil, err
	}
	applied := lists.Group(links, func(link *ent.ResourceTypeAssociation) (int64, metadef.AppliedNamespace) {
		return link.ResourceTypeID, metadef.Apply(&metadef.Namespace{ID: link.NamespaceID},
			metadefdb.AssociationNoun(link), held.Properties[link.NamespaceID], held.Objects[link.NamespaceID])
	})
	return lists.Index(types, func(id int64) (int64, *metadef.Rules) {
		return id, metadef.NewRules(false, applied[id], nil)
	}), nil
}

// DefinitionsOfItems returns, for each metadata item, the definitions of its
// key on the type of its resource.
func (s *ResourceStore) DefinitionsOfItems(ctx context.Context,
	items []int64) (map[int64][]*metadef.PropertyDefinition, error) {
	rows, err := s.Ent.MetadataItem.Query().
		Where(paging.Among(metadataitem.FieldID, items), visible.OfResources(ctx)).
		WithResource(func(query *ent.ResourceQuery) {
			query.Select(entresource.FieldID, entresource.FieldResourceTypeID)
		}).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up metadata: %w", err)
	}
	// Other transactions may have deleted resources meanwhile.
	rows = slices.DeleteFunc(rows, func(row *ent.MetadataItem) bool { return row.Edges.Resource == nil })
	types := lists.Map(rows, func(row *ent.MetadataItem) int64 { return row.Edges.Resource.ResourceTypeID })
	definitions, err := s.definitionsSeen(ctx, lists.Distinct(types))
	if err != nil {
		return nil, err
	}
	return lists.Index(rows, func(row *ent.MetadataItem) (int64, []*metadef.PropertyDefinition) {
		return row.ID, definitions[row.Edges.Resource.ResourceTypeID].Definitions(row.Key)
	}), nil
}

// MetadataReports returns reports on the metadata of resources in projects that
// the viewer knows: the answer to writing the metadata again unchanged. A
// resource that was deleted meanwhile, or that the viewer does not see, gets a
// report without problems.
func (s *ResourceStore) MetadataReports(ctx context.Context,
	resources []int64) (map[int64]*metadef.MetadataReport, error) {
	of, err := s.ResourcesByID(ctx, resources)
	if err != nil {
		return nil, err
	}
	items, err := s.MetadataOf(ctx, resources, nil)
	if err != nil {
		return nil, err
	}
	viewer := access.ViewerFrom(ctx)
	var there []*resource.Resource
	for _, id := range resources {
		if of[id] != nil && resource.SeesProject(viewer, of[id].ProjectID) {
			there = append(there, of[id])
		}
	}
	reports, err := s.reportsOn(ctx, s.Ent, there, items)
	if err != nil {
		return nil, err
	}
	for _, id := range resources {
		if of[id] == nil {
			reports[id] = &metadef.MetadataReport{Valid: true, Accepted: true}
		}
	}
	return reports, nil
}

// reportsOn returns reports on the metadata of resources, from the database or
// within a transaction.
func (s *ResourceStore) reportsOn(ctx context.Context, client *ent.Client, resources []*resource.Resource,
	items map[int64][]*resource.MetadataItem) (map[int64]*metadef.MetadataReport, error) {
	keys := lists.Map(resources, func(of *resource.Resource) metadefdb.RulesKey {
		return metadefdb.RulesKey{TypeID: of.TypeID, ProjectID: of.ProjectID}
	})
	rules, err := s.metadefs.RulesFor(ctx, client, keys, nil)
	if err != nil {
		return nil, err
	}
	reports := make(map[int64]*metadef.MetadataReport, len(resources))
	for i, of := range resources {
		there := resource.Pairs(items[of.ID])
		verdict := rules[keys[i]].Judge(metadef.MetadataWrite{Before: there, Items: there})
		reports[of.ID] = &verdict.MetadataReport
	}
	return reports, nil
}

// judged returns the verdict of rules on a write of the viewer. Without rules for
// the type and the project, definitions refuse nothing.
func (s *ResourceStore) judged(viewer access.Viewer, rules map[metadefdb.RulesKey]*metadef.Rules, of metadefdb.RulesKey,
	write resource.MetadataWrite) metadef.MetadataVerdict {
	return s.metadataRules().Judge(viewer, cmp.Or(rules[of], metadef.NewRules(false, nil, nil)), write)
}

// ValidateMetadata reports what setMetadata on a resource, or createResource of
// a type for a project, would answer to the values.
func (s *ResourceStore) ValidateMetadata(ctx context.Context,
	validation resource.Validation) (*metadef.MetadataReport, error) {
	var problems problem.Problems
	validation.Check(&problems)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	viewer := access.ViewerFrom(ctx)
	of := metadefdb.RulesKey{ProjectID: viewer.ProjectID}
	if validation.Project != nil {
		if of.ProjectID = *validation.Project; !resource.SeesProject(viewer, of.ProjectID) {
			return nil, problem.Refuse(problem.ErrNotFound, "project %q does not exist", metadef.Shorten(of.ProjectID)).
				On("project")
		}
	}
	var err error
	var current []*resource.MetadataItem
	if validation.ResourceType != nil {
		if of.TypeID, err = s.metadefs.TypeNamed(ctx, *validation.ResourceType, "resourceType"); err != nil {
			return nil, err
		}
	}
	if validation.Resource != nil {
		if of, current, err = s.validated(ctx, validation, of.TypeID); err != nil {
			return nil, err
		}
	}
	rules, err := s.metadefs.RulesFor(ctx, s.Ent, []metadefdb.RulesKey{of}, validation.Target)
	if err != nil {
		return nil, err
	}
	report := s.metadataRules().
		Judge(viewer, rules[of], resource.MetadataWrite{Current: current, Items: validation.Values}).MetadataReport
	for i := range report.Items {
		report.Items[i].Path = new(problem.Index("values", i))
	}
	return &report, nil
}

// validated returns the key of the rules for the resource of a validation, and
// its items. If typeID is not 0, the resource must be of that type.
func (s *ResourceStore) validated(ctx context.Context, validation resource.Validation,
	typeID int64) (of metadefdb.RulesKey, current []*resource.MetadataItem, err error) {
	noun, err := s.ResourceByUUID(ctx, *validation.Resource)
	if err != nil {
		return of, nil, problem.Under(err, "resource")
	}
	if !resource.SeesProject(access.ViewerFrom(ctx), noun.ProjectID) {
		return of, nil, problem.Under(resource.RefuseForeign("resource "+noun.UUID), "resource")
	}
	if typeID != 0 && typeID != noun.TypeID {
		return of, nil, problem.Invalid("resourceType", "resource %s has another type; omit resourceType", noun.UUID)
	}
	items, err := s.MetadataOf(ctx, []int64{noun.ID}, nil)
	return metadefdb.RulesKey{TypeID: noun.TypeID, ProjectID: noun.ProjectID}, items[noun.ID], err
}

// itemsOf returns the metadata of resources by row id, each sorted by key.
func (s *ResourceStore) itemsOf(ctx context.Context, client *ent.Client,
	ids []int64) (map[int64][]*resource.MetadataItem, error) {
	rows, err := client.MetadataItem.Query().Where(paging.Among(metadataitem.FieldResourceID, ids)).
		Order(metadataitem.ByResourceID(), metadataitem.ByKey()).All(ctx)
	return paging.ByParent(rows, err, "metadata", metadataNoun, func(row *ent.MetadataItem) int64 {
		return row.ResourceID
	})
}
