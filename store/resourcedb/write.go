package resourcedb

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// newMetadata returns the metadata of a resource to create.
func newMetadata(rules resource.MetadataRules, input resource.Input) []resource.MetadataItem {
	items := resource.MetadataChange{Items: input.Metadata}.Plan(rules, nil).Set
	for _, item := range input.ServiceMetadata {
		items = append(items, resource.MetadataItem{Key: item.Key, Value: item.Value})
	}
	return items
}

func mayCreateResource(viewer access.Viewer, input resource.Input) error {
	if len(input.ServiceMetadata) > 0 {
		if err := viewer.Require(access.RuleServiceMetadata, "writing metadata that users cannot change"); err != nil {
			return problem.Under(err, "input.serviceMetadata")
		}
	}
	if len(input.Capabilities) > 0 {
		if err := viewer.Require(access.RuleCapabilitiesWrite, "writing capabilities"); err != nil {
			return problem.Under(err, "input.capabilities")
		}
	}
	if input.ProjectID != nil {
		return problem.Under(resource.MayWriteForProject(viewer, *input.ProjectID, "the resource to create"),
			"input.projectId")
	}
	return nil
}

// recordOf returns the record of an input, with defaults for the viewer and
// without metadata.
func recordOf(viewer access.Viewer, input resource.Input) ResourceRecord {
	return ResourceRecord{
		UUID: text.OrEmpty(input.UUID), Type: input.Type, Parent: text.OrEmpty(input.Parent), Name: input.Name,
		Description: text.OrEmpty(input.Description), ProjectID: *cmp.Or(input.ProjectID, &viewer.ProjectID),
		Visibility:   *cmp.Or(input.Visibility, new(access.Private)),
		Capabilities: input.Capabilities, Tags: input.Tags,
	}
}

// recordFields returns a new resource for the audit log.
func recordFields(record ResourceRecord) sqldb.Fields {
	return sqldb.Fields{
		"type": record.Type, "name": record.Name, "description": sqldb.TextOrNil(record.Description),
		"projectId":  record.ProjectID,
		"visibility": record.Visibility, "parent": sqldb.TextOrNil(record.Parent),
		"metadata":     metadataFields(pointersTo(record.Metadata)),
		"capabilities": capabilityFields(record.Capabilities), "tags": append([]string{}, record.Tags...),
	}
}

// lockVisible locks the resources that the viewer sees and returns them by
// uuid. It locks in the order of row ids, so that two writers never deadlock.
func (s *ResourceStore) lockVisible(ctx context.Context, tx *sqldb.Tx,
	uuids []string) (map[string]*ent.Resource, error) {
	found, err := tx.Resource.Query().
		Where(visible.Resources(ctx), paging.Among(entresource.FieldUUID, uuids), s.Locked()).Order(entresource.ByID()).
		All(ctx)
	return lists.ByKey(found, func(row *ent.Resource) string { return row.UUID }), err
}

// mayWrite refuses a resource that the viewer does not see (a nil row) or may
// not write. The problem is at the given field.
func mayWrite(viewer access.Viewer, uuid string, row *ent.Resource, field string) error {
	if row == nil {
		return refuseUnknownResource(uuid).On(field)
	}
	return problem.Under(resource.MayWriteForProject(viewer, row.ProjectID, "resource "+uuid), field)
}

// touchResources increments the revision of the touched resources, and returns
// all of rows in their new state.
func touchResources(ctx context.Context, tx *sqldb.Tx, rows []*ent.Resource, touched []int64,
	now time.Time) ([]*resource.Resource, error) {
	if len(touched) > 0 {
		err := tx.Resource.Update().Where(paging.Among(entresource.FieldID, touched)).
			AddRevision(1).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return nil, err
		}
	}
	resources := make([]*resource.Resource, len(rows))
	changed := lists.Set(touched, lists.Itself)
	for i, row := range rows {
		if changed[row.ID] {
			noteResource(tx, row, row)
			row.Revision++
			row.UpdatedAt = now
		}
		resources[i] = resourceNoun(row)
	}
	return resources, nil
}

// lockResource locks the resource that a field of the input names. It refuses a
// resource that the viewer may not write, and any revision but the given one;
// nil allows any.
func (s *ResourceStore) lockResource(ctx context.Context, tx *sqldb.Tx, field, uuid string,
	revision *int) (*ent.Resource, error) {
	rows, err := s.lockVisible(ctx, tx, []string{uuid})
	if err != nil {
		return nil, err
	}
	if err := mayWrite(access.ViewerFrom(ctx), uuid, rows[uuid], field); err != nil {
		return nil, err
	}
	return rows[uuid], problem.Under(resource.CheckRevision(uuid, revision, rows[uuid].Revision), "input")
}

// parentRow is the parent of resources to be written.
type parentRow struct {
	id      int64 // 0 for one that is not written yet
	project string
	kind    string // the name of its type
}

// lockParents locks the visible parents of new or moved resources against
// deletion, and returns them by uuid.
func (s *ResourceStore) lockParents(ctx context.Context, tx *sqldb.Tx, uuids []string) (map[string]parentRow, error) {
	if len(uuids) == 0 {
		return map[string]parentRow{}, nil
	}
	found, err := s.lockVisible(ctx, tx, uuids)
	if err != nil || len(found) == 0 {
		return map[string]parentRow{}, err
	}
	rows := slices.Collect(maps.Values(found))
	names, err := typeNames(ctx, tx.Client(), rows)
	if err != nil {
		return nil, err
	}
	return lists.Index(rows, func(row *ent.Resource) (string, parentRow) {
		return row.UUID, parentRow{row.ID, row.ProjectID, names[row.ResourceTypeID]}
	}), nil
}

// checkParent refuses a parent that the viewer does not see, whose project the
// viewer may not write for, or that does not fit the type. Some types require a
// parent, and some allow parents of one type only. An empty parent means none.
func checkParent(viewer access.Viewer, parents map[string]parentRow, typeName, parent string) error {
	var natural defaults.ResourceType
	for _, builtIn := range defaults.ResourceTypes() {
		if builtIn.Name == typeName {
			natural = builtIn
		}
	}
	if parent == "" {
		if natural.ParentRequired {
			return problem.Invalid("input.parent", "a resource of the type %s needs a parent of the type %s", typeName,
				natural.Parent)
		}
		return nil
	}
	found, ok := parents[parent]
	if !ok {
		return problem.Invalid("input.parent", "resource %s does not exist", parent)
	}
	if err := resource.MayWriteForProject(viewer, found.project, "resource "+parent); err != nil {
		return problem.Under(err, "input.parent")
	}
	if natural.Parent != "" && found.kind != natural.Parent {
		return problem.Invalid("input.parent", "the parent of a resource of the type %s must be of the type %s, not %s",
			typeName, natural.Parent, found.kind)
	}
	return nil
}

// parentFor locks the parent of a resource of a type and returns its row id, 0
// for none. It refuses the parents that checkParent refuses.
func (s *ResourceStore) parentFor(ctx context.Context, tx *sqldb.Tx, typeName, parent string) (int64, error) {
	var uuids []string
	if parent != "" {
		uuids = []string{parent}
	}
	parents, err := s.lockParents(ctx, tx, uuids)
	if err != nil {
		return 0, err
	}
	return parents[parent].id, checkParent(access.ViewerFrom(ctx), parents, typeName, parent)
}

// noteResource notes that a resource was created, changed or deleted. before is
// nil for a created resource, after for a deleted one.
func noteResource(tx *sqldb.Tx, before, after *ent.Resource) {
	uuid := cmp.Or(before, after).UUID
	tx.SawBefore("Resource", uuid, audienceOf(before))
	tx.SeenBy("Resource", uuid, audienceOf(after))
	tx.Changed("Resource", uuid)
}

// audienceOf returns the audience of a resource, nil if row is nil.
func audienceOf(row *ent.Resource) *change.Audience {
	if row == nil {
		return nil
	}
	return visible.AudienceOf(access.Visibility(row.Visibility), row.ProjectID)
}

// resourceAudiences reads the viewers of resources.
func (s *ResourceStore) resourceAudiences(ctx context.Context, tx *sqldb.Tx,
	uuids []string) (map[string]*change.Audience, error) {
	audiences := map[string]*change.Audience{}
	err := s.Query(ctx, tx, `SELECT uuid, visibility, project_id FROM resources WHERE `+s.Listed("uuid", "$1", "text"),
		func(rows *sql.Rows) error {
			row := new(ent.Resource)
			err := rows.Scan(&row.UUID, &row.Visibility, &row.ProjectID)
			audiences[row.UUID] = audienceOf(row)
			return err
		}, sqldb.JSONOf(uuids))
	return audiences, err
}

// capabilityAudiences reads the viewers of capabilities, by resource type and
// name. A public capability has the viewers of its resource type. Only viewers
// who see all capabilities see a private one.
func (s *ResourceStore) capabilityAudiences(ctx context.Context, tx *sqldb.Tx,
	keys []string) (map[string]*change.Audience, error) {
	audiences, typeOf := map[string]*change.Audience{}, map[string]string{}
	err := s.Query(ctx, tx, `SELECT t.name, c.name, c.private FROM capabilities c JOIN resource_types t ON t.id = c.resource_type_id
		WHERE `+s.Listed("(t.name || '/' || c.name)", "$1", "text"), func(rows *sql.Rows) error {
		var of, name string
		var private bool
		err := rows.Scan(&of, &name, &private)
		if audiences[of+"/"+name] = change.ToProjects(); !private {
			typeOf[of+"/"+name] = of
		}
		return err
	}, sqldb.JSONOf(keys))
	if err != nil || len(typeOf) == 0 {
		return audiences, err
	}
	ofTypes, err := s.metadefs.TypeAudiences(ctx, tx, lists.Distinct(slices.Collect(maps.Values(typeOf))))
	for key, of := range typeOf {
		audiences[key] = ofTypes[of]
	}
	return audiences, err
}
