package resourcedb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// ChangeMetadata changes the metadata of one resource, entirely or not at all.
// It returns the resource after the change and the items that a replacement
// kept.
func (s *ResourceStore) ChangeMetadata(ctx context.Context,
	change resource.MetadataChange) (*resource.Resource, []*resource.MetadataItem, error) {
	actions := map[resource.MetadataMode]string{
		resource.MergeMetadata: "setMetadata", resource.ReplaceMetadata: "replaceMetadata",
		resource.DeleteMetadata: "deleteMetadata",
	}
	one := resource.MetadataChanges{Items: []resource.MetadataChange{change}, Atomic: true}
	outcomes, retained, err := s.applyChanges(ctx, actions[change.Mode], one, func(int) string { return "input" })
	if err != nil {
		return nil, nil, err
	}
	return outcomes[0].Row, retained, nil
}

// ChangeMetadataOfMany changes the metadata of several resources in one
// transaction and returns their outcomes in the order of the changes. An atomic
// input makes all changes or none; otherwise the valid ones are made.
func (s *ResourceStore) ChangeMetadataOfMany(ctx context.Context,
	changes resource.MetadataChanges) ([]ResourceOutcome, error) {
	var problems problem.Problems
	if !text.CheckCount(&problems, "input.items", len(changes.Items), resource.MaxMetadataChanges) {
		return nil, problems.Err()
	}
	outcomes, _, err := s.applyChanges(ctx, "setMetadataOnResources", changes, sqldb.RowPath)
	return outcomes, err
}

func (s *ResourceStore) applyChanges(ctx context.Context, mutation string, changes resource.MetadataChanges,
	path func(int) string) (outcomes []ResourceOutcome, retained []*resource.MetadataItem, err error) {
	drafts := draftsOf(access.ViewerFrom(ctx), changes.Items, path)
	if err := s.judgeMalformedChanges(ctx, drafts); err != nil {
		return nil, nil, err
	}
	formed := formedAmong(drafts)
	if len(formed) == 0 && len(drafts) > 0 {
		outcomes = changedBy(drafts)
		return outcomes, nil, sqldb.RefuseRows(changes.Atomic, outcomes)
	}
	err = s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		if len(drafts) == 0 {
			tx.Record(ctx, sqldb.Event{Kind: "Resource"})
		}
		if err := s.judgeChanges(ctx, tx, formed); err != nil {
			return err
		}
		if err := sqldb.RefuseRows(changes.Atomic, changedBy(drafts)); err != nil {
			return err
		}
		if retained, err = s.writeChanges(ctx, tx, formed); err != nil {
			return err
		}
		outcomes = changedBy(drafts)
		return nil
	}, &outcomes, &retained)
	if err != nil {
		return nil, nil, fmt.Errorf("change metadata: %w", err)
	}
	return outcomes, retained, nil
}

// metadataDraft is a change of the metadata of a resource to be made.
type metadataDraft struct {
	change   resource.MetadataChange
	path     string
	problems problem.Problems // of the change itself
	// malformed means that the change itself has problems. Definitions are
	// still checked, to report everything in one answer.
	malformed bool

	// The following fields are set in the transaction.
	refused problem.Problems
	row     *ent.Resource
	there   []*resource.MetadataItem
	plan    resource.MetadataPlan
	changed *resource.Resource
}

// draftsOf returns changes to be made, with the problems of the changes
// themselves. It checks the viewer's role first, then the input.
func draftsOf(viewer access.Viewer, changes []resource.MetadataChange, path func(int) string) []*metadataDraft {
	drafts, seen := make([]*metadataDraft, len(changes)), map[string]bool{}
	for i, change := range changes {
		d := &metadataDraft{change: change, path: path(i)}
		if drafts[i] = d; !d.mayDecide(viewer) {
			continue
		}
		change.Check(&d.problems, d.path)
		text.CheckUnique(&d.problems, problem.Join(d.path, "resource"), change.Resource, seen)
		d.malformed = len(d.problems) > 0
	}
	return drafts
}

// mayDecide reports whether the viewer's role allows the fields of the change
// that decide who may change metadata. If not, it sets the problem.
func (d *metadataDraft) mayDecide(viewer access.Viewer) bool {
	for _, decides := range []struct {
		field string
		given bool
	}{{"userModifiable", d.change.UserModifiable != nil}, {"includeServiceOwned", d.change.IncludeServiceOwned}} {
		if !decides.given {
			continue
		}
		if err := viewer.Require(access.RuleServiceMetadata, "deciding who may change metadata"); err != nil {
			d.problems = problem.InError(problem.Under(err, problem.Join(d.path, decides.field)))
			return false
		}
	}
	return true
}

// formedAmong returns the changes that have no problems so far.
func formedAmong(drafts []*metadataDraft) []*metadataDraft {
	return slices.DeleteFunc(slices.Clone(drafts), func(d *metadataDraft) bool { return len(d.problems) > 0 })
}

// changedBy returns the outcomes of changes.
func changedBy(drafts []*metadataDraft) []ResourceOutcome {
	return lists.Map(drafts, func(d *metadataDraft) ResourceOutcome {
		return ResourceOutcome{Row: d.changed, Problems: slices.Concat(d.problems, d.refused)}
	})
}

// judgeMalformedChanges checks malformed changes against definitions, too, and
// adds the problems, so that one answer has all of them. It skips resources
// that the viewer may not write or that are at another revision. The store
// reports those only once the input is well formed.
func (s *ResourceStore) judgeMalformedChanges(ctx context.Context, drafts []*metadataDraft) error {
	malformed := slices.DeleteFunc(slices.Clone(drafts), func(d *metadataDraft) bool { return !d.malformed })
	if len(malformed) == 0 {
		return nil
	}
	rows, err := s.Ent.Resource.Query().
		Where(visible.Resources(ctx), paging.Among(entresource.FieldUUID, uuidsOf(malformed))).All(ctx)
	if err != nil {
		return err
	}
	byUUID := lists.ByKey(rows, func(row *ent.Resource) string { return row.UUID })
	viewer := access.ViewerFrom(ctx)
	malformed = slices.DeleteFunc(malformed, func(d *metadataDraft) bool {
		d.row = byUUID[d.change.Resource]
		return mayWrite(viewer, d.change.Resource, d.row, "") != nil ||
			resource.CheckRevision(d.change.Resource, d.change.Revision, d.row.Revision) != nil
	})
	refused, err := s.refusedChanges(ctx, s.Ent, malformed)
	for i, d := range malformed {
		d.problems = d.problems.With(refused[i])
	}
	return err
}

func uuidsOf(drafts []*metadataDraft) []string {
	return lists.Map(drafts, func(d *metadataDraft) string { return d.change.Resource })
}

// refusedChanges plans changes whose rows are set, and returns the problems of
// each. Definitions refuse values only on resources of strict types, for every
// writer.
func (s *ResourceStore) refusedChanges(ctx context.Context, client *ent.Client,
	drafts []*metadataDraft) ([]problem.Problems, error) {
	refused := make([]problem.Problems, len(drafts))
	if len(drafts) == 0 {
		return refused, nil
	}
	there, err := s.itemsOf(ctx, client, lists.Map(drafts, func(d *metadataDraft) int64 { return d.row.ID }))
	if err != nil {
		return refused, err
	}
	viewer := access.ViewerFrom(ctx)
	of := lists.Set(drafts, (*metadataDraft).rulesKey)
	rules, err := s.metadefs.StrictRulesFor(ctx, client, slices.Collect(maps.Keys(of)))
	for i, d := range drafts {
		d.there = there[d.row.ID]
		d.plan = d.change.Plan(s.metadataRules(), d.there)
		verdict := s.judged(viewer, rules, d.rulesKey(), d.change.Write(d.there, d.plan))
		d.change.AddRefused(&refused[i], d.path, viewer, s.metadataRules(), d.there, verdict)
	}
	return refused, err
}

// rulesKey returns the key of the rules for a change whose row is set.
func (d *metadataDraft) rulesKey() metadefdb.RulesKey {
	return metadefdb.RulesKey{TypeID: d.row.ResourceTypeID, ProjectID: d.row.ProjectID}
}

// judgeChanges locks the resources of changes and checks each. It refuses in
// this order: a resource that the viewer does not see or may not write, a stale
// revision, all problems of the change together, too many items.
func (s *ResourceStore) judgeChanges(ctx context.Context, tx *sqldb.Tx, drafts []*metadataDraft) error {
	rows, err := s.lockVisible(ctx, tx, uuidsOf(drafts))
	if err != nil {
		return err
	}
	var judged []*metadataDraft
	viewer := access.ViewerFrom(ctx)
	for _, d := range drafts {
		d.row, d.changed, d.refused = rows[d.change.Resource], nil, nil
		err := mayWrite(viewer, d.change.Resource, d.row, problem.Join(d.path, "resource"))
		if err == nil {
			err = problem.Under(resource.CheckRevision(d.change.Resource, d.change.Revision, d.row.Revision), d.path)
		}
		if err != nil {
			d.refused = problem.InError(err)
			continue
		}
		judged = append(judged, d)
	}
	refused, err := s.refusedChanges(ctx, tx.Client(), judged)
	for i, d := range judged {
		if d.refused = refused[i]; len(d.refused) == 0 {
			d.refused = problem.InError(problem.Under(d.change.Fits(d.plan, s.metadataRules(), d.there), d.path))
		}
	}
	return err
}

// writeChanges writes the changes without problems, and returns the items that
// replacements kept.
func (s *ResourceStore) writeChanges(ctx context.Context, tx *sqldb.Tx,
	drafts []*metadataDraft) (retained []*resource.MetadataItem, err error) {
	if drafts = slices.DeleteFunc(slices.Clone(drafts), func(d *metadataDraft) bool {
		return len(d.refused) > 0
	}); len(drafts) == 0 {
		return nil, nil
	}
	var total resource.MetadataPlan
	var touched []int64
	for _, d := range drafts {
		for j := range d.plan.Set {
			d.plan.Set[j].ResourceID = d.row.ID
		}
		if !d.plan.Empty() {
			touched = append(touched, d.row.ID)
		}
		total.Set = append(total.Set, d.plan.Set...)
		total.Delete = append(total.Delete, d.plan.Delete...)
		for _, item := range d.plan.Retained {
			item.Resource = d.row.UUID
			total.Retained = append(total.Retained, item)
		}
	}
	now := s.Now()
	if err := s.writeMetadata(ctx, tx, total, now); err != nil {
		return nil, err
	}
	after, err := s.recordMetadata(ctx, tx, drafts)
	if err != nil {
		return nil, err
	}
	resources, err := touchResources(ctx, tx, lists.Map(drafts, func(d *metadataDraft) *ent.Resource { return d.row }),
		touched, now)
	for i, changed := range resources {
		changed.Items = resource.ItemsOf(changed.UUID, append([]*resource.MetadataItem{}, after[changed.ID]...))
		drafts[i].changed = changed
	}
	return pointersTo(total.Retained), err
}

// recordMetadata records the metadata of each resource, before and after, in
// the audit log, and returns the metadata after the changes.
func (s *ResourceStore) recordMetadata(ctx context.Context, tx *sqldb.Tx,
	drafts []*metadataDraft) (map[int64][]*resource.MetadataItem, error) {
	after, err := s.itemsOf(ctx, tx.Client(), lists.Map(drafts, func(d *metadataDraft) int64 { return d.row.ID }))
	if err != nil {
		return nil, err
	}
	for _, d := range drafts {
		tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: d.row.UUID,
			Before: sqldb.Fields{"metadata": metadataFields(d.there)},
			After:  sqldb.Fields{"metadata": metadataFields(after[d.row.ID])}})
	}
	return after, nil
}

func pointersTo[T any](values []T) []*T { return lists.Map(values, func(value T) *T { return &value }) }

// metadataFields returns metadata for the audit log.
func metadataFields(items []*resource.MetadataItem) []sqldb.Fields {
	return lists.Map(items, func(item *resource.MetadataItem) sqldb.Fields {
		return sqldb.Fields{"key": item.Key, "value": item.Value, "userModifiable": item.UserModifiable}
	})
}

// writeMetadata writes a plan. The caller holds the locks of the resources.
func (s *ResourceStore) writeMetadata(ctx context.Context, tx *sqldb.Tx,
	plan resource.MetadataPlan, now time.Time) error {
	if len(plan.Delete) > 0 {
		ids := lists.Map(plan.Delete, func(item resource.MetadataItem) int64 { return item.ID })
		if err := s.Execute(ctx, tx, `DELETE FROM metadata_items WHERE `+s.Listed("id", "$1", "bigint"),
			sqldb.JSONOf(ids)); err != nil {
			return err
		}
	}
	if len(plan.Set) == 0 {
		return nil
	}
	rows := lists.Map(plan.Set, func(item resource.MetadataItem) []any { return itemRow(ctx, item.ResourceID, item) })
	return s.Execute(ctx, tx, s.insertItems()+` WHERE true ON CONFLICT (resource_id, key) DO UPDATE SET value = excluded.value, value_hash = excluded.value_hash,
		value_prefix = excluded.value_prefix, value_key = excluded.value_key, user_modifiable = excluded.user_modifiable,
		by_operator = excluded.by_operator, derived_from = excluded.derived_from, updated_at = excluded.updated_at`,
		sqldb.JSONOf(rows), now)
}

// insertItems returns the statement that inserts metadata items. Its parameters
// are rows and a time.
func (s *ResourceStore) insertItems() string {
	return `INSERT INTO metadata_items
		(resource_id, key, value, value_hash, value_prefix, value_key, user_modifiable, by_operator, derived_from, created_at, updated_at)
		SELECT d.resource_id, d.key, d.value, d.hash, d.prefix, d.value_key, d.user_modifiable, d.by_operator, d.derived_from, ` + s.Time("$2") + `, ` + s.Time("$2") + `
		FROM ` + s.Rows("$1", "d", "resource_id bigint", "key text", "value text", "hash bigint", "prefix text",
		"value_key text", "user_modifiable boolean", "by_operator boolean", "derived_from bigint")
}

// itemRow returns a row of insertItems, written by the viewer of the context.
func itemRow(ctx context.Context, resourceID int64, item resource.MetadataItem) []any {
	return []any{
		resourceID, item.Key, item.Value, sqldb.HashOf(item.Value), sqldb.PrefixOf(item.Value),
		sqldb.FoldedOrNil(item.Value), item.UserModifiable,
		access.ViewerFrom(ctx).May(access.RuleCapabilitiesPrivate) && !item.ByMembers, item.DerivedFrom,
	}
}

// MayChangeItem reports whether a viewer who may write a resource may change
// one of its items.
func (s *ResourceStore) MayChangeItem(viewer access.Viewer, item resource.MetadataItem) bool {
	return s.metadataRules().MayChange(viewer, item)
}

func (s *ResourceStore) metadataRules() resource.MetadataRules {
	return resource.MetadataRules{MaxItems: s.limits.MetadataItems, ProtectedKeys: s.options.ProtectedMetadataKeys}
}
