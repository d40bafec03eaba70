package metadefdb

import (
	"context"
	"fmt"
	"math"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// RulesKey identifies the rules for the resources of a type and a project. An
// empty project means the definitions that every project sees.
type RulesKey struct {
	TypeID    int64
	ProjectID string
}

// RulesFor returns the rules of each key, made from the namespaces that its
// project sees. It hides definitions that the viewer does not see. If target is
// not nil, only associations with that properties target count; "" means
// without one. It uses the definitions in memory if there are some and client
// is not a transaction. Otherwise it sends five statements for any number of
// keys.
func (s *MetadefStore) RulesFor(ctx context.Context, client *ent.Client, keys []RulesKey,
	target *string) (map[RulesKey]*metadef.Rules, error) {
	if client == s.Ent {
		held, err := s.memory.Of(ctx)
		if err != nil {
			return nil, err
		}
		if held != nil {
			if rules := held.rulesFor(access.ViewerFrom(ctx), keys, target); rules != nil {
				return rules, nil
			}
		}
	}
	strict, err := strictAmong(ctx, client, keys)
	if err != nil {
		return nil, err
	}
	return s.rulesIn(ctx, client, keys, strict, target)
}

// StrictRulesFor is RulesFor for the keys with strict types, to check a write
// in the transaction of a client. It sends one statement if the transaction
// sees the same definitions as memory.
func (s *MetadefStore) StrictRulesFor(ctx context.Context, client *ent.Client,
	keys []RulesKey) (map[RulesKey]*metadef.Rules, error) {
	held, err := s.memory.Unchanged(ctx, client)
	if err != nil {
		return nil, err
	}
	if held != nil {
		strict := slices.DeleteFunc(slices.Clone(keys), func(key RulesKey) bool {
			of, found := held.types[key.TypeID]
			return found && !of.Strict
		})
		if rules := held.rulesFor(access.ViewerFrom(ctx), strict, nil); rules != nil {
			return rules, nil
		}
	}
	strict, err := strictAmong(ctx, client, keys)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(key RulesKey) bool {
		return !slices.Contains(strict, key.TypeID)
	})
	if len(keys) == 0 {
		return nil, nil
	}
	return s.rulesIn(ctx, client, keys, strict, nil)
}

// strictAmong returns the row ids of the strict types of keys.
func strictAmong(ctx context.Context, client *ent.Client, keys []RulesKey) ([]int64, error) {
	strict, err := client.ResourceType.Query().
		Where(paging.Among(resourcetype.FieldID, typesOf(keys)), resourcetype.Strict(true)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up strict resource types: %w", err)
	}
	return strict, nil
}

// typesOf returns the row ids of the types of keys, without duplicates.
func typesOf(keys []RulesKey) []int64 {
	return lists.Distinct(lists.Map(keys, func(key RulesKey) int64 { return key.TypeID }))
}

// rulesIn reads the rules of RulesFor with a client. strict has the row ids of
// the strict types.
func (s *MetadefStore) rulesIn(ctx context.Context, client *ent.Client, keys []RulesKey, strict []int64,
	target *string) (map[RulesKey]*metadef.Rules, error) {
	projects := lists.Without(lists.Distinct(lists.Map(keys, func(key RulesKey) string { return key.ProjectID })),
		[]string{""})
	read := rulesRead{viewer: access.ViewerFrom(ctx)}
	if err := read.links(ctx, client, typesOf(keys), projects, target); err != nil {
		return nil, err
	}
	if err := read.Content.ReadDefinitions(ctx, client, read.namespaces, s.PropertyNoun); err != nil {
		return nil, fmt.Errorf("read definitions for resource types: %w", err)
	}
	links := map[int64][]definedLink{}
	for _, row := range read.rows {
		in := &metadef.Namespace{ID: row.NamespaceID, Name: read.names[row.NamespaceID]}
		links[row.ResourceTypeID] = append(links[row.ResourceTypeID],
			definedLink{AssociationNoun(row), in, read.audiences[in.ID],
				read.Properties[in.ID], read.Objects[in.ID], false})
	}
	rules, same := make(map[RulesKey]*metadef.Rules, len(keys)), lru.New[*metadef.Rules](math.MaxInt64)
	for _, key := range keys {
		if rules[key] == nil {
			rules[key] = rulesOf(read.viewer, key, slices.Contains(strict, key.TypeID), links[key.TypeID], same)
		}
	}
	return rules, nil
}

// rulesRead has the definitions that rules are made from.
type rulesRead struct {
	Content
	viewer     access.Viewer
	rows       []*ent.ResourceTypeAssociation
	namespaces []int64
	names      map[int64]string // of namespaces
	audiences  map[int64]metadef.Audience
}

// Aliases of the namespace columns that are read with associations.
const (
	visibilityColumn = "namespace_visibility"
	ownerColumn      = "namespace_owner"
	nameColumn       = "namespace_name"
)

// links reads the associations of types with namespaces that are public or that
// any of the projects sees. It also reads the audiences of these namespaces, as
// far as they concern the projects and the viewer.
func (r *rulesRead) links(ctx context.Context, client *ent.Client, types []int64,
	projects []string, target *string) error {
	query := client.ResourceTypeAssociation.Query().Where(
		paging.Among(resourcetypeassociation.FieldResourceTypeID, types),
		visible.InNamespacesSeenBy(func(s *entsql.Selector, column string) *entsql.Predicate {
			return paging.IsAmong(s, column, projects)
		}),
		func(s *entsql.Selector) {
			if target != nil {
				s.Where(entsql.EQ(s.C(resourcetypeassociation.FieldPropertiesTarget), *target))
			}
		})
	query.Modify(func(s *entsql.Selector) {
		in := entsql.Dialect(s.Dialect()).Table(namespace.Table)
		s.Join(in).On(s.C(resourcetypeassociation.FieldNamespaceID), in.C(namespace.FieldID))
		s.AppendSelectAs(in.C(namespace.FieldVisibility), visibilityColumn)
		s.AppendSelectAs(in.C(namespace.FieldOwner), ownerColumn)
		s.AppendSelectAs(in.C(namespace.FieldName), nameColumn)
		s.OrderBy(s.C(resourcetypeassociation.FieldNamespaceID), s.C(resourcetypeassociation.FieldID))
	})
	rows, err := query.All(ctx)
	if err != nil {
		return fmt.Errorf("list associations of resource types: %w", err)
	}
	r.rows, r.audiences, r.names = rows, map[int64]metadef.Audience{}, map[int64]string{}
	for _, row := range rows {
		visibility, _ := row.Value(visibilityColumn)
		owner, _ := row.Value(ownerColumn)
		name, _ := row.Value(nameColumn)
		r.names[row.NamespaceID] = sqldb.TextOf(name)
		r.audiences[row.NamespaceID] = metadef.Audience{
			Visibility: access.Visibility(sqldb.TextOf(visibility)),
			Owner:      sqldb.TextOf(owner), Members: map[string]bool{}}
		r.namespaces = append(r.namespaces, row.NamespaceID)
	}
	r.namespaces = lists.Distinct(r.namespaces)
	members, err := client.NamespaceMember.Query().Where(
		paging.Among(namespacemember.FieldNamespaceID, r.namespaces),
		paging.Among(namespacemember.FieldProjectID,
			append([]string{metadef.EveryProject, r.viewer.ProjectID}, projects...))).All(ctx)
	if err != nil {
		return fmt.Errorf("list members of namespaces: %w", err)
	}
	for _, member := range members {
		r.audiences[member.NamespaceID].Members[member.ProjectID] = true
	}
	return nil
}

// TypesConcerned returns the row ids of the named resource types, and of the
// types that are associated with the named namespaces that the viewer sees.
func (s *MetadefStore) TypesConcerned(ctx context.Context, client *ent.Client, types,
	namespaces []string) ([]int64, error) {
	ids, err := client.ResourceType.Query().Where(func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		links, in := build.Table(resourcetypeassociation.Table), build.Table(namespace.Table)
		linked := build.Select(links.C(resourcetypeassociation.FieldResourceTypeID)).From(links).
			Join(in).On(links.C(resourcetypeassociation.FieldNamespaceID), in.C(namespace.FieldID)).
			Where(entsql.And(paging.IsAmong(s, in.C(namespace.FieldName), namespaces),
				visible.NamespaceCondition(access.ViewerFrom(ctx), in.C)))
		s.Where(entsql.Or(paging.IsAmong(s, s.C(resourcetype.FieldName), types),
			entsql.In(s.C(resourcetype.FieldID), linked)))
	}).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the types that a change concerns: %w", err)
	}
	return ids, nil
}

// TypeNamed returns the row id of the visible resource type with a name, or
// ErrNotFound at a field. It sends a statement unless definitions in memory
// show that the viewer knows the type.
func (s *MetadefStore) TypeNamed(ctx context.Context, name, field string) (int64, error) {
	if err := text.CheckAny(field, name); err != nil {
		return 0, err
	}
	if id, ok, err := s.knownType(ctx, name); err != nil || ok {
		return id, err
	}
	id, err := s.Ent.ResourceType.Query().Where(visible.ResourceTypes(ctx), resourcetype.Name(name)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return 0, RefuseUnknownType(name).On(field)
	}
	if err != nil {
		return 0, fmt.Errorf("look up a resource type: %w", err)
	}
	return id, nil
}

// Definitions returns the visible namespaces that apply to a resource type, one
// for each association, sorted by display name. If target is not nil, only
// associations with that properties target count; "" means without one. search
// selects as AppliedNamespace.Matching does; "" keeps everything. If the
// definitions in memory show that the viewer knows the type, Definitions does
// not ask the database for it.
func (s *MetadefStore) Definitions(ctx context.Context, resourceType string, target *string,
	search string) ([]*metadef.AppliedNamespace, error) {
	var problems problem.Problems
	text.Check(&problems, "search", search, 0, metadef.MaxSearch)
	text.CheckOptional(&problems, "target", target, 0, math.MaxInt)
	_, known, err := s.knownType(ctx, resourceType)
	if err != nil {
		return nil, err
	}
	if !known || len(problems) > 0 {
		s.ReadAtOnce(ctx)
		if err := s.CheckResourceType(ctx, problems.Err(), &resourceType); err != nil {
			return nil, err
		}
	}
	applied, err := s.appliedTo(ctx, resourceType, target)
	if err != nil {
		return nil, err
	}
	found := []*metadef.AppliedNamespace{}
	for _, of := range applied {
		if kept, ok := of.Matching(search); ok || search == "" {
			kept.Search = search
			found = append(found, &kept)
		}
	}
	return found, nil
}

// appliedTo returns the namespaces that apply to a resource type. Callers must
// not modify them. It sends four statements if definitions are not in memory.
func (s *MetadefStore) appliedTo(ctx context.Context, resourceType string,
	target *string) ([]metadef.AppliedNamespace, error) {
	if err := text.CheckAny("resourceType", resourceType, "target", text.OrEmpty(target)); err != nil {
		return nil, err
	}
	held, err := s.memory.Of(ctx)
	if err != nil {
		return nil, err
	}
	if held != nil {
		return held.appliedTo(access.ViewerFrom(ctx), resourceType, target), nil
	}
	rows, err := associations(ctx, s.Ent).Where(func(selector *entsql.Selector) {
		selector.Where(IsOfType(selector, selector.C(resourcetypeassociation.FieldResourceTypeID),
			[]string{resourceType}))
		if target != nil {
			selector.Where(entsql.EQ(selector.C(resourcetypeassociation.FieldPropertiesTarget), *target))
		}
	}).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list associations of a resource type: %w", err)
	}
	ids := lists.Map(rows, func(row *ent.ResourceTypeAssociation) int64 { return row.NamespaceID })
	within, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), paging.Among(namespace.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list namespaces that apply to a resource type: %w", err)
	}
	var content Content
	if err := content.ReadDefinitions(ctx, s.Ent, ids, s.PropertyNoun); err != nil {
		return nil, err
	}
	namespaces := lists.Index(within, func(row *ent.Namespace) (int64, *metadef.Namespace) {
		return row.ID, namespaceNoun(row)
	})
	var links []definedLink
	for _, row := range rows {
		if in := namespaces[row.NamespaceID]; in != nil {
			links = append(links, definedLink{ResourceTypeAssociation: AssociationNoun(row), in: in,
				properties: content.Properties[in.ID], objects: content.Objects[in.ID], isWhole: true})
		}
	}
	return applyInOrder(links), nil
}
