package resourcedb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// ResourceRecord is a resource to be written, with its metadata, capabilities
// and tags. It refers to others by name and uuid.
type ResourceRecord struct {
	UUID        string
	Type        string // InsertResources creates it if it does not exist
	Parent      string // uuid of a stored resource or of another record, "" for none
	Name        string
	Description string
	ProjectID   string
	Visibility  access.Visibility
	// Metadata has Key, Value and UserModifiable of each item.
	Metadata     []resource.MetadataItem
	Capabilities []metadef.KeyValue
	Tags         []string
}

// newResource is a record with its references resolved to row ids.
type newResource struct {
	ResourceRecord
	typeID   int64
	parentID int64
}

// InsertResources writes valid records, level by level: parents first. It
// creates missing resource types.
func (s *ResourceStore) InsertResources(ctx context.Context, tx *sqldb.Tx, records []ResourceRecord) error {
	names, parents := make([]string, len(records)), make([]string, len(records))
	for i, record := range records {
		names[i], parents[i] = record.Type, record.Parent
	}
	types, err := s.metadefs.EnsureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	there, err := tx.Resource.Query().Where(paging.Among(entresource.FieldUUID, lists.Distinct(parents))).All(ctx)
	if err != nil {
		return err
	}
	rows := lists.Index(there, func(row *ent.Resource) (string, int64) { return row.UUID, row.ID })
	rows[""] = 0
	now := s.Now()
	for left := records; len(left) > 0; {
		var level []newResource
		var later []ResourceRecord
		for _, record := range left {
			if parent, known := rows[record.Parent]; known {
				level = append(level, newResource{record, types[record.Type], parent})
			} else {
				later = append(later, record)
			}
		}
		if len(level) == 0 {
			return fmt.Errorf("the parent of resource %s does not exist", left[0].UUID)
		}
		for chunk := range slices.Chunk(level, paging.RowsAtOnce) {
			written, err := s.writeResources(ctx, tx, chunk, now)
			if err != nil {
				return err
			}
			for _, row := range written {
				rows[row.UUID] = row.ID
			}
		}
		left = later
	}
	return nil
}

// writeResources writes resources with their metadata, capabilities and tags,
// and returns their rows in the same order. A parent without a row id must be
// among the resources.
func (s *ResourceStore) writeResources(ctx context.Context, tx *sqldb.Tx, resources []newResource,
	now time.Time) ([]*ent.Resource, error) {
	rows := lists.Map(resources, func(r newResource) *ent.Resource { return r.entity(now) })
	fresh := lists.Map(rows, func(row *ent.Resource) []any {
		return []any{row.UUID, row.ResourceTypeID, row.ParentID, row.Name, row.NameKey, row.Description,
			row.DescriptionKey, row.ProjectID, row.Visibility}
	})
	ids, err := sqldb.Pairs[string, int64](ctx, s.DB, tx, `INSERT INTO resources
		(uuid, resource_type_id, parent_id, name, name_key, description, description_key, project_id, visibility, revision, created_at, updated_at)
		SELECT d.uuid, d.type_id, d.parent_id, d.name, d.name_key, d.description, d.description_key, d.project_id, d.visibility, 1, `+s.Time("$2")+`, `+s.Time("$2")+`
		FROM `+s.Rows("$1", "d", "uuid text", "type_id bigint", "parent_id bigint", "name text",
		"name_key text", "description text",
		"description_key text", "project_id text", "visibility text")+` WHERE true RETURNING uuid, id`,
		sqldb.JSONOf(fresh), now)
	if err != nil {
		return nil, err
	}
	var links [][2]int64
	for i, r := range resources {
		rows[i].ID = ids[r.UUID]
		if r.Parent == "" || r.parentID != 0 {
			continue
		}
		parent, ok := ids[r.Parent]
		if !ok {
			return nil, fmt.Errorf("the parent of resource %s does not exist", r.UUID)
		}
		rows[i].ParentID = &parent
		links = append(links, [2]int64{rows[i].ID, parent})
	}
	if len(links) > 0 {
		err := s.Execute(ctx, tx, `UPDATE resources SET parent_id = d.parent_id FROM `+s.Rows("$1", "d", "id bigint", "parent_id bigint")+`
			WHERE `+s.IsRow("resources.id", "$1", "d", "id"), sqldb.JSONOf(links))
		if err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		noteResource(tx, nil, row)
	}
	if err := s.insertMetadataAndTags(ctx, tx, resources, rows, now); err != nil {
		return nil, err
	}
	return rows, s.insertCapabilitiesOf(ctx, tx, resources, rows, now)
}

// entity returns the resource as a new row.
func (r newResource) entity(now time.Time) *ent.Resource {
	row := &ent.Resource{UUID: r.UUID, ResourceTypeID: r.typeID, Name: r.Name, NameKey: text.Fold(r.Name),
		Description: sqldb.TextOrNil(r.Description), DescriptionKey: sqldb.FoldedOrNil(r.Description),
		ProjectID:  r.ProjectID,
		Visibility: string(r.Visibility), Revision: 1, CreatedAt: now, UpdatedAt: now}
	if r.parentID != 0 {
		row.ParentID = &r.parentID
	}
	return row
}

func (s *ResourceStore) insertMetadataAndTags(ctx context.Context, tx *sqldb.Tx, resources []newResource,
	rows []*ent.Resource, now time.Time) error {
	var items, tags [][]any
	for i, r := range resources {
		for _, item := range r.Metadata {
			items = append(items, itemRow(ctx, rows[i].ID, item))
		}
		for _, tag := range r.Tags {
			tags = append(tags, []any{rows[i].ID, tag, text.Fold(tag)})
		}
	}
	if len(items) > 0 {
		if err := s.Execute(ctx, tx, s.insertItems(), sqldb.JSONOf(items), now); err != nil {
			return err
		}
	}
	if len(tags) == 0 {
		return nil
	}
	return s.Execute(ctx, tx, `INSERT INTO resource_tags (resource_id, name, name_key) SELECT d.resource_id, d.name, d.name_key
		FROM `+s.Rows("$1", "d", "resource_id bigint", "name text", "name_key text"), sqldb.JSONOf(tags))
}

func (s *ResourceStore) insertCapabilitiesOf(ctx context.Context, tx *sqldb.Tx, level []newResource,
	rows []*ent.Resource, now time.Time) error {
	var keys []capabilityKey
	for _, r := range level {
		for _, c := range r.Capabilities {
			keys = append(keys, capabilityKey{r.typeID, c.Key})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	registry, err := s.registered(ctx, tx, keys, "input.capabilities")
	if err != nil {
		return err
	}
	var plan capabilityPlan
	for i, r := range level {
		for _, c := range r.Capabilities {
			of := registry[capabilityKey{r.typeID, c.Key}]
			plan.writes = append(plan.writes, capabilityWrite{rows[i].ID, of, c.Value})
		}
	}
	return s.writeCapabilities(ctx, tx, plan, now)
}
