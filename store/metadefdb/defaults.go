package metadefdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// SetDefaults replaces the default rules of a namespace.
func (s *MetadefStore) SetDefaults(ctx context.Context, input metadef.DefaultsChange) (*metadef.Namespace, error) {
	e := edit{mutation: "setDefaults", namespace: input.Namespace, revision: input.Revision}
	return s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		if err := input.Check().Err(); err != nil {
			return nil, err
		}
		rules, err := withTypes(ctx, tx, input.Rules)
		if err != nil {
			return nil, err
		}
		before, after := row.DefaultRules, sqldb.JSONOf(rules)
		if err := e.admit(row); err != nil || before == after {
			return nil, err
		}
		return &sqldb.Event{Kind: "Namespace", Key: row.Name, Before: rulesFields(before), After: rulesFields(after)},
			tx.Namespace.Update().Where(namespace.ID(row.ID)).SetDefaultRules(after).Exec(ctx)
	})
}

func rulesFields(rules string) sqldb.Fields { return sqldb.Fields{"defaults": json.RawMessage(rules)} }

// withTypes returns rules with the row ids of their types, or ErrNotFound for
// an unknown type.
func withTypes(ctx context.Context, tx *sqldb.Tx, rules []metadef.DefaultRule) ([]metadef.DefaultRule, error) {
	names := lists.Distinct(lists.Map(rules, func(rule metadef.DefaultRule) string { return rule.ResourceType }))
	types, err := tx.ResourceType.Query().
		Where(visible.ResourceTypes(ctx), paging.Among(resourcetype.FieldName, names)).All(ctx)
	ids := lists.Index(types, func(of *ent.ResourceType) (string, int64) { return of.Name, of.ID })
	rules = slices.Clone(rules)
	for i := range rules {
		of := &rules[i]
		if of.TypeID = ids[of.ResourceType]; of.TypeID == 0 && err == nil {
			err = RefuseUnknownType(of.ResourceType).On(problem.Join(problem.Index("input.rules", i), "resourceType"))
		}
	}
	return rules, err
}

// LockDefaults locks a visible namespace, and returns it with its default rules,
// or ErrNotFound.
func (s *MetadefStore) LockDefaults(ctx context.Context, tx *sqldb.Tx,
	name string) (*metadef.Namespace, []metadef.DefaultRule, error) {
	if err := text.CheckAny("input.namespace", name); err != nil {
		return nil, nil, err
	}
	row, err := s.lockNamespace(ctx, tx, edit{namespace: name})
	if err != nil {
		return nil, nil, err
	}
	var rules []metadef.DefaultRule
	err = json.Unmarshal([]byte(row.DefaultRules), &rules)
	return namespaceNoun(row), rules, err
}

// DefaultsOf returns the default rules of namespaces, in order, without rules
// for types that are deleted or not visible. A viewer who may not use
// setDefaults gets none.
func (s *MetadefStore) DefaultsOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.DefaultRule, error) {
	if _, err := access.ViewerFrom(ctx).Authorize("setDefaults"); err != nil {
		return nil, nil
	}
	rows, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), paging.Among(namespace.FieldID, namespaces)).
		Select(namespace.FieldID, namespace.FieldDefaultRules).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list default rules: %w", err)
	}
	of := make(map[int64][]*metadef.DefaultRule, len(rows))
	var ids []int64
	for _, row := range rows {
		rules := []*metadef.DefaultRule{}
		if err := json.Unmarshal([]byte(row.DefaultRules), &rules); err != nil {
			return nil, fmt.Errorf("read default rules: %w", err)
		}
		ids = append(ids, lists.Map(rules, func(rule *metadef.DefaultRule) int64 { return rule.TypeID })...)
		of[row.ID] = rules
	}
	types, err := s.ResourceTypesByID(ctx, lists.Distinct(ids))
	for id, rules := range of {
		of[id] = slices.DeleteFunc(rules, func(rule *metadef.DefaultRule) bool {
			if is := types[rule.TypeID]; is != nil {
				rule.ResourceType = is.Name
			}
			return types[rule.TypeID] == nil
		})
	}
	return of, err
}
