package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// ChangeMetadata changes the metadata of one resource, as a whole or not at
// all, and returns the resource as it is then and the items that a replacement
// kept.
func (s *ResourceStore) ChangeMetadata(ctx context.Context, change resource.MetadataChange) (*resource.Resource, []*resource.MetadataItem, error) {
	actions := map[resource.MetadataMode]string{
		resource.MergeMetadata: "setMetadata", resource.ReplaceMetadata: "replaceMetadata", resource.DeleteMetadata: "deleteMetadata",
	}
	resources, retained, err := s.writeMetadataChanges(ctx, actions[change.Mode], []resource.MetadataChange{change}, func(int) string { return "input" })
	if err != nil {
		return nil, nil, err
	}
	return resources[0], retained, nil
}

// ChangeMetadataOfMany changes the metadata of several resources in one
// transaction, and returns them in the order of the changes.
func (s *ResourceStore) ChangeMetadataOfMany(ctx context.Context, changes []resource.MetadataChange) ([]*resource.Resource, error) {
	resources, _, err := s.writeMetadataChanges(ctx, "setMetadataOnResources", changes, func(i int) string { return fmt.Sprintf("input.items[%d]", i) })
	return resources, err
}

func (s *ResourceStore) writeMetadataChanges(ctx context.Context, mutation string, changes []resource.MetadataChange, path func(int) string) (resources []*resource.Resource, retained []*resource.MetadataItem, err error) {
	if err := s.mayChangeMetadata(ctx, changes, path); err != nil {
		return nil, nil, err
	}
	err = s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		resources, retained, err = s.applyMetadata(ctx, tx, changes, path)
		return err
	}, &resources, &retained)
	if err != nil {
		return nil, nil, fmt.Errorf("change metadata: %w", err)
	}
	return resources, retained, nil
}

// mayChangeMetadata refuses what can be refused without the resources: by role,
// then by input, then by rate.
func (s *ResourceStore) mayChangeMetadata(ctx context.Context, changes []resource.MetadataChange, path func(int) string) error {
	viewer := access.ViewerFrom(ctx)
	var problems problem.Problems
	seen := map[string]bool{}
	for i, change := range changes {
		for _, decides := range []struct {
			field string
			given bool
		}{{"userModifiable", change.UserModifiable != nil}, {"includeServiceOwned", change.IncludeServiceOwned}} {
			if !decides.given {
				continue
			}
			if err := viewer.Require(access.RuleServiceMetadata, "deciding who may change metadata"); err != nil {
				return problem.Under(err, problem.Join(path(i), decides.field))
			}
		}
		change.Check(&problems, path(i))
		text.CheckUnique(&problems, path(i)+".resource", change.Resource, seen)
	}
	text.CheckCount(&problems, "input.items", len(changes), resource.MaxMetadataChanges)
	if len(problems) > 0 {
		more, err := s.refusedBesides(ctx, changes, path)
		if err != nil {
			return err
		}
		return problems.With(more).Err()
	}
	return s.mayWriteNow(ctx)
}

func (s *ResourceStore) applyMetadata(ctx context.Context, tx *sqldb.Tx, changes []resource.MetadataChange, path func(int) string) ([]*resource.Resource, []*resource.MetadataItem, error) {
	uuids := lists.Map(changes, func(change resource.MetadataChange) string { return change.Resource })
	rows, err := s.lockResources(ctx, tx, uuids, func(i int) string { return path(i) + ".resource" })
	if err != nil {
		return nil, nil, err
	}
	ids := lists.Map(rows, func(row *ent.Resource) int64 { return row.ID })
	there, err := s.itemsOf(ctx, tx.Client(), ids)
	if err != nil {
		return nil, nil, err
	}
	total, touched, err := s.planMetadata(ctx, tx, changes, path, rows, there)
	if err != nil {
		return nil, nil, err
	}
	now := s.Now()
	if err := writeMetadata(ctx, tx, total, now); err != nil {
		return nil, nil, err
	}
	after, err := s.recordMetadata(ctx, tx, changes, ids, there)
	if err != nil {
		return nil, nil, err
	}
	resources, err := touchResources(ctx, tx, rows, touched, now)
	for _, changed := range resources {
		changed.Items = resource.ItemsOf(changed.UUID, append([]*resource.MetadataItem{}, after[changed.ID]...))
	}
	return resources, pointersTo(total.Retained), err
}

// planMetadata returns what changes of resources come to together, and which of
// the resources they change. A stale revision is refused first, then everything
// that is wrong with the changes at once, then too many items.
func (s *ResourceStore) planMetadata(ctx context.Context, tx *sqldb.Tx, changes []resource.MetadataChange, path func(int) string, rows []*ent.Resource, there map[int64][]*resource.MetadataItem) (total resource.MetadataPlan, touched []int64, err error) {
	for i, change := range changes {
		if err := resource.CheckRevision(change.Resource, change.Revision, rows[i].Revision); err != nil {
			return total, nil, problem.Under(err, path(i))
		}
	}
	viewer, rules := access.ViewerFrom(ctx), s.metadataRules()
	plans, writes := make([]resource.MetadataPlan, len(changes)), make([]judgedWrite, len(changes))
	for i, change := range changes {
		plans[i] = change.Plan(rules, there[rows[i].ID])
		writes[i] = s.judgedChange(viewer, change, path(i), rows[i], there[rows[i].ID], plans[i])
	}
	problems, err := s.refusedWrites(ctx, tx.Client(), writes)
	if err = cmp.Or(err, problems.Err()); err != nil {
		return total, nil, err
	}
	for i, plan := range plans {
		if err := changes[i].Fits(plan, rules, there[rows[i].ID]); err != nil {
			return total, nil, problem.Under(err, path(i))
		}
		for j := range plan.Set {
			plan.Set[j].ResourceID = rows[i].ID
		}
		if !plan.Empty() {
			touched = append(touched, rows[i].ID)
		}
		total.Set = append(total.Set, plan.Set...)
		total.Delete = append(total.Delete, plan.Delete...)
		for _, item := range plan.Retained {
			item.Resource = rows[i].UUID
			total.Retained = append(total.Retained, item)
		}
	}
	return total, touched, nil
}

// recordMetadata puts the metadata of each resource, before and after, into the
// audit log, and returns what is there after.
func (s *ResourceStore) recordMetadata(ctx context.Context, tx *sqldb.Tx, changes []resource.MetadataChange, ids []int64, before map[int64][]*resource.MetadataItem) (map[int64][]*resource.MetadataItem, error) {
	after, err := s.itemsOf(ctx, tx.Client(), ids)
	if err != nil {
		return nil, err
	}
	for i, of := range changes {
		tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: of.Resource,
			Before: sqldb.Fields{"metadata": metadataFields(before[ids[i]])}, After: sqldb.Fields{"metadata": metadataFields(after[ids[i]])}})
	}
	if len(changes) == 0 {
		tx.Record(ctx, sqldb.Event{Kind: "Resource"})
	}
	return after, nil
}

func pointersTo[T any](values []T) []*T {
	pointers := make([]*T, len(values))
	for i := range values {
		pointers[i] = &values[i]
	}
	return pointers
}

// metadataFields returns metadata for the audit log.
func metadataFields(items []*resource.MetadataItem) []sqldb.Fields {
	return lists.Map(items, func(item *resource.MetadataItem) sqldb.Fields {
		return sqldb.Fields{"key": item.Key, "value": item.Value, "userModifiable": item.UserModifiable}
	})
}

// writeMetadata writes a plan. The resources are locked.
func writeMetadata(ctx context.Context, tx *sqldb.Tx, plan resource.MetadataPlan, now time.Time) error {
	if len(plan.Delete) > 0 {
		ids := lists.Map(plan.Delete, func(item resource.MetadataItem) int64 { return item.ID })
		if _, err := tx.MetadataItem.Delete().Where(sqldb.Among(metadataitem.FieldID, ids)).Exec(ctx); err != nil {
			return err
		}
	}
	for items := range slices.Chunk(plan.Set, sqldb.RowsAtOnce) {
		creates := lists.Map(items, func(item resource.MetadataItem) *ent.MetadataItemCreate { return newMetadataItem(tx, item, now) })
		err := tx.MetadataItem.CreateBulk(creates...).
			OnConflict(entsql.ConflictColumns(metadataitem.FieldResourceID, metadataitem.FieldKey), entsql.ResolveWith(func(u *entsql.UpdateSet) {
				for _, column := range []string{metadataitem.FieldValue, metadataitem.FieldValueHash, metadataitem.FieldValuePrefix, metadataitem.FieldValueKey, metadataitem.FieldUserModifiable, metadataitem.FieldUpdatedAt} {
					u.SetExcluded(column)
				}
			})).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

func newMetadataItem(tx *sqldb.Tx, item resource.MetadataItem, now time.Time) *ent.MetadataItemCreate {
	return tx.MetadataItem.Create().SetResourceID(item.ResourceID).SetKey(item.Key).SetValue(item.Value).
		SetValueHash(sqldb.HashOf(item.Value)).SetValuePrefix(sqldb.PrefixOf(item.Value)).SetNillableValueKey(sqldb.FoldedOrNil(item.Value)).SetUserModifiable(item.UserModifiable).
		SetCreatedAt(now).SetUpdatedAt(now)
}

// MayChangeItem reports whether a viewer who may write a resource may change an
// item of it.
func (s *ResourceStore) MayChangeItem(viewer access.Viewer, item resource.MetadataItem) bool {
	return s.metadataRules().MayChange(viewer, item)
}

func (s *ResourceStore) metadataRules() resource.MetadataRules {
	return resource.MetadataRules{MaxItems: s.limits.MetadataItems, ProtectedKeys: s.options.ProtectedMetadataKeys}
}
