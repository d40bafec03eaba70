package metadefdb

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// RulesKey says what rules hold on: the resources of a type and a project.
// Without a project they are made of what every project sees.
type RulesKey struct {
	TypeID    int64
	ProjectID string
}

// RulesFor returns the rules that hold on resources, by the namespaces that
// their projects see; what the viewer does not see of them is hidden. With a
// target only associations that have it count ("" is none). Five statements,
// whatever there is.
func (s *MetadefStore) RulesFor(ctx context.Context, client *ent.Client, keys []RulesKey, target *string) (map[RulesKey]*metadef.Rules, error) {
	types := sqldb.Distinct(lists.Map(keys, func(key RulesKey) int64 { return key.TypeID }))
	strict, err := client.ResourceType.Query().Where(sqldb.Among(resourcetype.FieldID, types), resourcetype.Strict(true)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up strict resource types: %w", err)
	}
	projects := sqldb.Without(sqldb.Distinct(lists.Map(keys, func(key RulesKey) string { return key.ProjectID })), []string{""})
	read := rulesRead{strict: lists.Set(strict, lists.Itself), viewer: access.ViewerFrom(ctx)}
	if err := read.links(ctx, client, types, projects, target); err != nil {
		return nil, err
	}
	if err := read.Content.ReadDefinitions(ctx, client, read.namespaces, s.PropertyNoun); err != nil {
		return nil, fmt.Errorf("read what applies to resource types: %w", err)
	}
	rules, same := map[RulesKey]*metadef.Rules{}, map[string]*metadef.Rules{}
	for _, key := range keys {
		if rules[key] == nil {
			rules[key] = read.rules(key, same)
		}
	}
	return rules, nil
}

// rulesRead is what rules are made of.
type rulesRead struct {
	Content
	viewer     access.Viewer
	strict     map[int64]bool
	ofType     map[int64][]*ent.ResourceTypeAssociation
	namespaces []int64
	names      map[int64]string // of namespaces
	audiences  map[int64]metadef.Audience
}

// The aliases under which associations are read with their namespaces.
const (
	visibilityColumn = "namespace_visibility"
	ownerColumn      = "namespace_owner"
	nameColumn       = "namespace_name"
)

// links reads the associations of types with namespaces that any of the projects
// sees, and who sees those namespaces.
func (r *rulesRead) links(ctx context.Context, client *ent.Client, types []int64, projects []string, target *string) error {
	query := client.ResourceTypeAssociation.Query().Where(
		sqldb.Among(resourcetypeassociation.FieldResourceTypeID, types),
		visible.InNamespacesSeenBy(func(s *entsql.Selector, column string) *entsql.Predicate { return sqldb.IsAmong(s, column, projects) }),
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
		return fmt.Errorf("list what applies to resource types: %w", err)
	}
	r.ofType, r.audiences, r.names = map[int64][]*ent.ResourceTypeAssociation{}, map[int64]metadef.Audience{}, map[int64]string{}
	for _, row := range rows {
		r.ofType[row.ResourceTypeID] = append(r.ofType[row.ResourceTypeID], row)
		visibility, _ := row.Value(visibilityColumn)
		owner, _ := row.Value(ownerColumn)
		name, _ := row.Value(nameColumn)
		r.names[row.NamespaceID] = sqldb.TextOf(name)
		r.audiences[row.NamespaceID] = metadef.Audience{
			Visibility: access.Visibility(sqldb.TextOf(visibility)), Owner: sqldb.TextOf(owner), Members: map[string]bool{}}
		r.namespaces = append(r.namespaces, row.NamespaceID)
	}
	r.namespaces = sqldb.Distinct(r.namespaces)
	members, err := client.NamespaceMember.Query().Where(
		sqldb.Among(namespacemember.FieldNamespaceID, r.namespaces),
		sqldb.Among(namespacemember.FieldProjectID, append([]string{metadef.EveryProject, r.viewer.ProjectID}, projects...))).All(ctx)
	if err != nil {
		return fmt.Errorf("list who sees namespaces: %w", err)
	}
	for _, member := range members {
		r.audiences[member.NamespaceID].Members[member.ProjectID] = true
	}
	return nil
}

// rules returns the rules for a key: the same for all keys of which the same
// holds.
func (r *rulesRead) rules(key RulesKey, same map[string]*metadef.Rules) *metadef.Rules {
	var applied []metadef.AppliedNamespace
	hidden := map[int64]bool{}
	signature := fmt.Sprint(r.strict[key.TypeID])
	for _, link := range r.ofType[key.TypeID] {
		audience := r.audiences[link.NamespaceID]
		if !audience.Includes(key.ProjectID) {
			continue
		}
		signature += fmt.Sprint(" ", link.ID)
		if !audience.IncludesViewer(r.viewer) {
			hidden[link.NamespaceID] = true
		}
		applied = append(applied, metadef.Apply(&metadef.Namespace{ID: link.NamespaceID, Name: r.names[link.NamespaceID]}, AssociationNoun(link), r.Properties[link.NamespaceID], r.Objects[link.NamespaceID]))
	}
	if same[signature] == nil {
		same[signature] = metadef.NewRules(r.strict[key.TypeID], applied, hidden)
	}
	return same[signature]
}

// TypesConcerned returns the row ids of the resource types with some names, and of
// those that namespaces with others are associated with, whoever sees them.
func (s *MetadefStore) TypesConcerned(ctx context.Context, client *ent.Client, types, namespaces []string) ([]int64, error) {
	ids, err := client.ResourceType.Query().Where(func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		links, in := build.Table(resourcetypeassociation.Table), build.Table(namespace.Table)
		linked := build.Select(links.C(resourcetypeassociation.FieldResourceTypeID)).From(links).
			Join(in).On(links.C(resourcetypeassociation.FieldNamespaceID), in.C(namespace.FieldID)).
			Where(sqldb.IsAmong(s, in.C(namespace.FieldName), namespaces))
		s.Where(entsql.Or(sqldb.IsAmong(s, s.C(resourcetype.FieldName), types), entsql.In(s.C(resourcetype.FieldID), linked)))
	}).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the types that a change concerns: %w", err)
	}
	return ids, nil
}

// TypeNamed returns the row id of the resource type with a name, or ErrNotFound
// at a field.
func (s *MetadefStore) TypeNamed(ctx context.Context, client *ent.Client, name, field string) (int64, error) {
	if err := text.CheckAny(field, name); err != nil {
		return 0, err
	}
	id, err := client.ResourceType.Query().Where(visible.ResourceTypes(ctx), resourcetype.Name(name)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return 0, refuseUnknownResourceType(name).On(field)
	}
	if err != nil {
		return 0, fmt.Errorf("look up a resource type: %w", err)
	}
	return id, nil
}
