package resourcedb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// ApplyDefaults gives a page of resources the values of the default rules of a
// namespace (resource.DefaultsOf). It refuses a resource for the reasons of
// setMetadata. A dry run returns the same, and writes nothing.
func (s *ResourceStore) ApplyDefaults(ctx context.Context,
	run resource.DefaultsRun) (applied resource.AppliedDefaults, err error) {
	err = checkInput(run.Check)
	switch {
	case err != nil:
	case run.DryRun:
		err = s.Try(ctx, func(ctx context.Context, _ *sqldb.Trial) (err error) {
			applied, err = s.applyRules(ctx, run)
			return err
		})
	default:
		applied, err = s.applyRules(ctx, run)
	}
	if err != nil {
		return resource.AppliedDefaults{}, fmt.Errorf("apply defaults: %w", err)
	}
	return applied, nil
}

func (s *ResourceStore) applyRules(ctx context.Context,
	run resource.DefaultsRun) (applied resource.AppliedDefaults, err error) {
	err = s.Write(ctx, "applyDefaults", func(tx *sqldb.Tx) error {
		applied = resource.AppliedDefaults{Results: []*resource.DefaultsResult{}}
		in, rules, err := s.metadefs.LockDefaults(ctx, tx, run.Namespace)
		if err != nil {
			return err
		}
		var uuids []string
		if uuids, applied.Next, err = pageOfDefaults(ctx, tx, in.ID, rules, run); err != nil {
			return err
		}
		drafts, err := s.defaultDrafts(ctx, tx, uuids,
			func(row *ent.Resource, items []*resource.MetadataItem) resource.MetadataChange {
				return resource.DefaultsOf(in.ID, rules, resourceNoun(row), items)
			})
		if err != nil {
			return err
		}
		if err := s.judgeChanges(ctx, tx, drafts); err != nil {
			return err
		}
		for _, d := range drafts {
			applied.Add(d.change, d.there, d.refused)
		}
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: in.Name, After: sqldb.Fields{
			"added": applied.Added, "changed": applied.Changed,
			"removed": applied.Removed, "refused": applied.Refused}})
		_, err = s.writeChanges(ctx, tx, drafts)
		return err
	}, &applied)
	return applied, err
}

// pageOfDefaults returns the next uuids of resources that rules may concern and
// of resources with values from a namespace, and the last one if more follow.
func pageOfDefaults(ctx context.Context, tx *sqldb.Tx, namespace int64, rules []metadef.DefaultRule,
	run resource.DefaultsRun) (uuids []string, next *string, err error) {
	types := lists.Distinct(lists.Map(rules, func(rule metadef.DefaultRule) int64 { return rule.TypeID }))
	uuids, err = tx.Resource.Query().
		Where(visible.Resources(ctx), entresource.UUIDGT(text.OrEmpty(run.After)), func(s *entsql.Selector) {
			items := entsql.Dialect(s.Dialect()).Table(metadataitem.Table)
			derived := entsql.Dialect(s.Dialect()).Select(items.C(metadataitem.FieldResourceID)).From(items).
				// derived_from <> 0 is the condition of the partial index
				Where(entsql.EQ(items.C(metadataitem.FieldDerivedFrom), namespace)).
				Where(entsql.ExprP("derived_from <> 0"))
			s.Where(entsql.Or(paging.IsAmong(s, s.C(entresource.FieldResourceTypeID), types),
				entsql.In(s.C(entresource.FieldID), derived)))
		}).Order(entresource.ByUUID()).Limit(run.First + 1).Select(entresource.FieldUUID).Strings(ctx)
	if len(uuids) > run.First {
		uuids = uuids[:run.First]
		next = &uuids[run.First-1]
	}
	return uuids, next, err
}

// defaultDrafts locks resources and returns their changes, without the empty
// ones.
func (s *ResourceStore) defaultDrafts(ctx context.Context, tx *sqldb.Tx, uuids []string,
	changeOf func(*ent.Resource, []*resource.MetadataItem) resource.MetadataChange) ([]*metadataDraft, error) {
	rows, err := s.lockVisible(ctx, tx, uuids)
	if err != nil {
		return nil, err
	}
	uuids = slices.DeleteFunc(uuids, func(uuid string) bool { return rows[uuid] == nil }) // deleted meanwhile
	items, err := s.itemsOf(ctx, tx.Client(), lists.Map(uuids, func(uuid string) int64 { return rows[uuid].ID }))
	var drafts []*metadataDraft
	for _, uuid := range uuids {
		there := items[rows[uuid].ID]
		change := changeOf(rows[uuid], there)
		if len(change.Items)+len(change.Keys) > 0 {
			drafts = append(drafts, &metadataDraft{change: change, there: there})
		}
	}
	return drafts, err
}
