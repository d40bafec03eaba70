package resourcedb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// ResourceRecord is a resource with everything that belongs to it, by names and
// uuids, as it is written into a new database.
type ResourceRecord struct {
	UUID        string
	Type        string // created where it does not exist
	Parent      string // a uuid that is there or comes before, "" for none
	Name        string
	Description string
	ProjectID   string
	Visibility  access.Visibility
	// Metadata has Key, Value and UserModifiable of each item.
	Metadata     []resource.MetadataItem
	Capabilities []metadef.KeyValue
	Tags         []string
}

// newResource is a record whose references are rows.
type newResource struct {
	ResourceRecord
	typeID   int64
	parentID int64
}

// InsertResources writes records that are valid in themselves, level by level:
// parents first.
func (s *ResourceStore) InsertResources(ctx context.Context, tx *sqldb.Tx, records []ResourceRecord) error {
	names, parents := make([]string, len(records)), make([]string, len(records))
	for i, record := range records {
		names[i], parents[i] = record.Type, record.Parent
	}
	types, err := s.metadefs.EnsureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	rows := map[string]int64{"": 0}
	there, err := tx.Resource.Query().Where(sqldb.Among(entresource.FieldUUID, parents)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range there {
		rows[row.UUID] = row.ID
	}
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
			return fmt.Errorf("resource %s has a parent that is nowhere", left[0].UUID)
		}
		created, err := s.insertResourceLevel(ctx, tx, level, now)
		if err != nil {
			return err
		}
		for _, row := range created {
			rows[row.UUID] = row.ID
		}
		left = later
	}
	return nil
}

// insertResourceLevel writes resources whose parents are there, with their
// children.
func (s *ResourceStore) insertResourceLevel(ctx context.Context, tx *sqldb.Tx, level []newResource, now time.Time) ([]*ent.Resource, error) {
	var rows []*ent.Resource
	for chunk := range slices.Chunk(level, sqldb.RowsAtOnce) {
		creates := make([]*ent.ResourceCreate, len(chunk))
		for i, r := range chunk {
			creates[i] = tx.Resource.Create().SetUUID(r.UUID).SetResourceTypeID(r.typeID).SetName(r.Name).
				SetNameKey(text.Fold(r.Name)).SetNillableDescription(sqldb.TextOrNil(r.Description)).SetNillableDescriptionKey(sqldb.FoldedOrNil(r.Description)).SetProjectID(r.ProjectID).
				SetVisibility(string(r.Visibility)).SetRevision(1).SetCreatedAt(now).SetUpdatedAt(now)
			if r.parentID != 0 {
				creates[i].SetParentID(r.parentID)
			}
		}
		created, err := tx.Resource.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, created...)
		for _, row := range created {
			noteResource(tx, nil, row)
		}
	}
	if err := s.insertMetadataAndTags(ctx, tx, level, rows, now); err != nil {
		return nil, err
	}
	return rows, s.insertCapabilitiesOf(ctx, tx, level, rows, now)
}

func (s *ResourceStore) insertMetadataAndTags(ctx context.Context, tx *sqldb.Tx, level []newResource, rows []*ent.Resource, now time.Time) error {
	var items []*ent.MetadataItemCreate
	var tags []*ent.ResourceTagCreate
	for i, r := range level {
		for _, item := range r.Metadata {
			item.ResourceID = rows[i].ID
			items = append(items, newMetadataItem(tx, item, now))
		}
		for _, tag := range r.Tags {
			tags = append(tags, newResourceTag(tx, rows[i].ID, tag))
		}
	}
	if err := sqldb.InsertAll(ctx, items, tx.MetadataItem.CreateBulk); err != nil {
		return err
	}
	return sqldb.InsertAll(ctx, tags, tx.ResourceTag.CreateBulk)
}

func newResourceTag(tx *sqldb.Tx, resourceID int64, tag string) *ent.ResourceTagCreate {
	return tx.ResourceTag.Create().SetResourceID(resourceID).SetName(tag).SetNameKey(text.Fold(tag))
}

func (s *ResourceStore) insertCapabilitiesOf(ctx context.Context, tx *sqldb.Tx, level []newResource, rows []*ent.Resource, now time.Time) error {
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
	var writes []capabilityWrite
	for i, r := range level {
		for _, c := range r.Capabilities {
			writes = append(writes, capabilityWrite{rows[i].ID, registry[capabilityKey{r.typeID, c.Key}], c.Value})
		}
	}
	changes := countChanges{}
	if err := insertCapabilityValues(ctx, tx, writes, changes, now); err != nil {
		return err
	}
	return changes.apply(ctx, tx)
}
