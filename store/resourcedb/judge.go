package resourcedb

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

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
