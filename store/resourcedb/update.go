package resourcedb

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceprovider"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// movesKey is the advisory lock that moves of resources take on PostgreSQL.
// Without it, two concurrent moves could each be valid and make a cycle
// together.
const movesKey = 7_261_002

// UpdateResource changes a resource's own fields and keeps the fields that the
// patch does not name. A patch without effect keeps the revision. It returns
// ErrInvalidInput for a parent that is a descendant of the resource.
func (s *ResourceStore) UpdateResource(ctx context.Context, patch resource.Patch) (*resource.Resource, error) {
	err := checkInput(func(problems *problem.Problems) { patch.Check(problems, "input") })
	if err != nil {
		return nil, err
	}
	var changed *resource.Resource
	err = s.Write(ctx, "updateResource", func(tx *sqldb.Tx) error {
		row, err := s.applyPatch(ctx, tx, patch)
		if err == nil {
			changed = resourceNoun(row)
		}
		return err
	}, &changed)
	if err != nil {
		return nil, fmt.Errorf("change a resource: %w", err)
	}
	return changed, nil
}

// checkInput returns the problems that a check finds, as an error.
func checkInput(check func(*problem.Problems)) error {
	var problems problem.Problems
	check(&problems)
	return problems.Err()
}

func (s *ResourceStore) applyPatch(ctx context.Context, tx *sqldb.Tx, patch resource.Patch) (*ent.Resource, error) {
	if patch.Parent.Set && s.Postgres() {
		if _, err := tx.ExecContext(sqldb.Uncounted(ctx), "SELECT pg_advisory_xact_lock($1)", movesKey); err != nil {
			return nil, err
		}
	}
	row, err := s.lockResource(ctx, tx, "input.uuid", patch.UUID, patch.Revision)
	if err != nil {
		return nil, err
	}
	wanted := patched(*row, patch)
	if patch.Parent.Set {
		parent, err := s.newParent(ctx, tx, row, text.OrEmpty(patch.Parent.Value))
		if err != nil {
			return nil, err
		}
		if wanted.ParentID = &parent; parent == 0 {
			wanted.ParentID = nil
		}
	}
	changed := row
	before, after, err := fieldsOf(ctx, tx, row, &wanted)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(before, after) {
		after["revision"] = row.Revision + 1
		update := tx.Resource.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(s.Now()).
			SetName(wanted.Name).SetNameKey(text.Fold(wanted.Name)).
			SetNillableDescription(wanted.Description).SetVisibility(wanted.Visibility).ClearParentID().
			SetNillableParentID(wanted.ParentID)
		if wanted.Description == nil {
			update.ClearDescription()
		}
		key := sqldb.FoldedOrNil(text.OrEmpty(wanted.Description))
		if update.SetNillableDescriptionKey(key); key == nil {
			update.ClearDescriptionKey()
		}
		if changed, err = update.Save(ctx); err != nil {
			return nil, err
		}
		noteResource(tx, row, changed)
	}
	tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: row.UUID, Before: before, After: after})
	return changed, nil
}

// patched returns a resource with the fields that a patch sets, except the
// parent.
func patched(wanted ent.Resource, patch resource.Patch) ent.Resource {
	if patch.NewName.Set {
		wanted.Name = *patch.NewName.Value
	}
	if patch.Description.Set {
		if wanted.Description = patch.Description.Value; text.OrEmpty(wanted.Description) == "" {
			wanted.Description = nil
		}
	}
	if patch.Visibility.Set {
		wanted.Visibility = string(access.Private)
		if patch.Visibility.Value != nil {
			wanted.Visibility = string(*patch.Visibility.Value)
		}
	}
	return wanted
}

// newParent returns the row id of the new parent of a resource, 0 for none. It
// refuses the resource itself and its descendants.
func (s *ResourceStore) newParent(ctx context.Context, tx *sqldb.Tx, row *ent.Resource, parent string) (int64, error) {
	kind, err := tx.ResourceType.Get(ctx, row.ResourceTypeID)
	if err != nil {
		return 0, err
	}
	id, err := s.parentFor(ctx, tx, kind.Name, parent)
	if err != nil || id == 0 {
		return 0, err
	}
	above, err := tx.Resource.Query().Where(func(s *entsql.Selector) {
		s.Where(entsql.EQ(s.C(entresource.FieldID), row.ID))
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C(entresource.FieldID)).
				WriteString(" IN (WITH RECURSIVE above (id, parent_id) AS (SELECT id, parent_id FROM resources WHERE id = ").Arg(id).
				WriteString(" UNION SELECT r.id, r.parent_id FROM resources AS r JOIN above ON r.id = above.parent_id) SELECT id FROM above)")
		}))
	}).Exist(ctx)
	if err != nil {
		return 0, err
	}
	if above {
		return 0, problem.Invalid("input.parent", "must not be the resource itself or a descendant of it")
	}
	return id, nil
}

// DeleteResource deletes a resource with its metadata, capabilities and tags,
// and returns the deleted resource. It returns ErrInUse if the resource has
// children or a resource provider is linked to it.
func (s *ResourceStore) DeleteResource(ctx context.Context, uuid string, revision *int) (*resource.Resource, error) {
	var deleted *resource.Resource
	err := s.Write(ctx, "deleteResource", func(tx *sqldb.Tx) error {
		row, err := s.lockResource(ctx, tx, "input.uuid", uuid, revision)
		if err != nil {
			return err
		}
		deleted = resourceNoun(row)
		err = s.removeResource(ctx, tx, row)
		if sqldb.IsReferred(err) {
			return problem.Refuse(problem.ErrInUse, "resource %s is in use", uuid).On("input.uuid").Because(err)
		}
		return err
	}, &deleted)
	if err != nil {
		return nil, fmt.Errorf("delete a resource: %w", err)
	}
	return deleted, nil
}

func (s *ResourceStore) removeResource(ctx context.Context, tx *sqldb.Tx, row *ent.Resource) error {
	children, err := tx.Resource.Query().Where(entresource.ParentID(row.ID)).Exist(ctx)
	if err != nil {
		return err
	}
	if children {
		return problem.Refuse(problem.ErrInUse, "resource %s has children", row.UUID).On("input.uuid")
	}
	provided, err := tx.ResourceProvider.Query().Where(resourceprovider.ResourceID(row.ID)).Exist(ctx)
	if err != nil {
		return err
	}
	if provided {
		return problem.Refuse(problem.ErrInUse, "resource %s is in use: a resource provider is linked to it", row.UUID).
			On("input.uuid")
	}
	values, err := tx.CapabilityValue.Query().Where(capabilityvalue.ResourceID(row.ID)).All(ctx)
	if err != nil {
		return err
	}
	if err := s.writeCapabilities(ctx, tx, capabilityPlan{gone: values}, s.Now()); err != nil {
		return err
	}
	before, _, err := fieldsOf(ctx, tx, row, row)
	if err != nil {
		return err
	}
	if err := tx.Resource.DeleteOneID(row.ID).Exec(ctx); err != nil {
		return err
	}
	tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: row.UUID, Before: before})
	noteResource(tx, row, nil)
	return nil
}

// ResourcesInUse returns the resources that have children or are linked to a
// resource provider. DeleteResource refuses them.
func (s *ResourceStore) ResourcesInUse(ctx context.Context, ids []int64) (map[int64]bool, error) {
	used, err := sqldb.Column[int64](ctx, s.DB, s.Pool, `SELECT r.id FROM resources r WHERE `+s.Listed("r.id", "$1", "bigint")+` AND (
		EXISTS (SELECT 1 FROM resources c WHERE c.parent_id = r.id) OR
		EXISTS (SELECT 1 FROM resource_providers p WHERE p.resource_id = r.id))`, sqldb.JSONOf(ids))
	if err != nil {
		return nil, fmt.Errorf("look up which resources are in use: %w", err)
	}
	return lists.Set(used, lists.Itself[int64]), nil
}

// SetResourceTags replaces the tags of a resource.
func (s *ResourceStore) SetResourceTags(ctx context.Context, uuid string, tags []string,
	revision *int) (*resource.Resource, error) {
	err := checkInput(func(problems *problem.Problems) {
		resource.CheckTags(problems, "input.tags", tags)
	})
	if err != nil {
		return nil, err
	}
	var resources []*resource.Resource
	err = s.Write(ctx, "setResourceTags", func(tx *sqldb.Tx) error {
		row, err := s.lockResource(ctx, tx, "input.resource", uuid, revision)
		if err != nil {
			return err
		}
		before, err := tx.ResourceTag.Query().Where(resourcetag.ResourceID(row.ID)).
			Order(resourcetag.ByNameKey()).All(ctx)
		if err != nil {
			return err
		}
		had := lists.Map(before, func(tag *ent.ResourceTag) string { return tag.Name })
		tags = slices.SortedFunc(slices.Values(tags), func(a, b string) int {
			return strings.Compare(text.Fold(a), text.Fold(b))
		})
		var touched []int64
		if !slices.Equal(had, tags) {
			touched = []int64{row.ID}
			if err := replaceResourceTags(ctx, tx, row.ID, tags); err != nil {
				return err
			}
		}
		if resources, err = touchResources(ctx, tx, []*ent.Resource{row}, touched, s.Now()); err != nil {
			return err
		}
		resources[0].Tags = append([]string{}, tags...)
		tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: uuid, Before: sqldb.Fields{"tags": had},
			After: sqldb.Fields{"tags": resources[0].Tags}})
		return nil
	}, &resources)
	if err != nil {
		return nil, fmt.Errorf("tag a resource: %w", err)
	}
	return resources[0], nil
}

// replaceResourceTags replaces the tags of a locked resource.
func replaceResourceTags(ctx context.Context, tx *sqldb.Tx, resource int64, tags []string) error {
	if _, err := tx.ResourceTag.Delete().Where(resourcetag.ResourceID(resource)).Exec(ctx); err != nil {
		return err
	}
	creates := lists.Map(tags, func(tag string) *ent.ResourceTagCreate {
		return tx.ResourceTag.Create().SetResourceID(resource).SetName(tag).SetNameKey(text.Fold(tag))
	})
	return tx.ResourceTag.CreateBulk(creates...).Exec(ctx)
}

// fieldsOf returns a resource before and after a change for the audit log, with
// the uuids of its parents.
func fieldsOf(ctx context.Context, tx *sqldb.Tx, before, after *ent.Resource) (sqldb.Fields, sqldb.Fields, error) {
	var ids []int64
	for _, row := range []*ent.Resource{before, after} {
		if row.ParentID != nil {
			ids = append(ids, *row.ParentID)
		}
	}
	uuids := map[int64]string{}
	if len(ids) > 0 {
		parents, err := tx.Resource.Query().Where(paging.Among(entresource.FieldID, lists.Distinct(ids))).All(ctx)
		if err != nil {
			return nil, nil, err
		}
		uuids = lists.Index(parents, func(row *ent.Resource) (int64, string) { return row.ID, row.UUID })
	}
	return resourceFields(before, uuids), resourceFields(after, uuids), nil
}

// resourceFields returns a resource for the audit log. uuids has the uuid of
// its parent.
func resourceFields(row *ent.Resource, uuids map[int64]string) sqldb.Fields {
	out := sqldb.Fields{"name": row.Name, "description": row.Description,
		"projectId": row.ProjectID, "visibility": row.Visibility,
		"revision": row.Revision, "parent": nil}
	if row.ParentID != nil {
		out["parent"] = uuids[*row.ParentID]
	}
	return out
}
