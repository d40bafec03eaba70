package metadefdb

import (
	"context"
	"database/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// Kinds of entries in the change log.
const (
	namespaceKind = string(change.Namespace)
	typeKind      = string(change.ResourceType)
)

// namespaceAudiences returns the audience of each namespace by name, by the
// rule of visible.Namespaces.
func (s *MetadefStore) namespaceAudiences(ctx context.Context, tx *sqldb.Tx,
	names []string) (map[string]*change.Audience, error) {
	audiences := map[string]*change.Audience{}
	err := s.Query(ctx, tx, `SELECT n.name, n.visibility, n.owner, m.project_id FROM namespaces n
		LEFT JOIN namespace_members m ON m.namespace_id = n.id AND n.visibility <> '`+string(access.Public)+`'
		WHERE `+s.Listed("n.name", "$1", "text"), func(rows *sql.Rows) error {
		var name, visibility, owner string
		var member *string
		err := rows.Scan(&name, &visibility, &owner, &member)
		audience := audiences[name]
		if audience == nil {
			audience = visible.AudienceOf(access.Visibility(visibility), owner)
			audiences[name] = audience
		}
		addMember(audience, member)
		return err
	}, sqldb.JSONOf(names))
	return audiences, err
}

// addMember adds a project to an audience, or everyone for EveryProject. It
// ignores a nil project.
func addMember(audience *change.Audience, project *string) {
	switch {
	case project == nil:
	case *project == metadef.EveryProject:
		audience.Everyone = true
	default:
		audience.Projects = append(audience.Projects, *project)
	}
}

// TypeAudiences returns the audience of each resource type by name, by the rule
// of visible.ResourceTypes for members of projects.
func (s *MetadefStore) TypeAudiences(ctx context.Context, tx *sqldb.Tx,
	names []string) (map[string]*change.Audience, error) {
	audiences, restricted := map[string]*change.Audience{}, []string{}
	err := s.Query(ctx, tx, `SELECT t.name, t.protected OR t.implied IS NULL
		OR EXISTS (SELECT 1 FROM resource_type_associations a JOIN namespaces n ON n.id = a.namespace_id
			WHERE a.resource_type_id = t.id AND n.visibility = '`+string(access.Public)+`')
		OR EXISTS (SELECT 1 FROM resources r WHERE r.resource_type_id = t.id AND r.visibility = '`+string(access.Public)+`')
		FROM resource_types t WHERE `+s.Listed("t.name", "$1", "text"), func(rows *sql.Rows) error {
		var name string
		audience := new(change.Audience)
		err := rows.Scan(&name, &audience.Everyone)
		if audiences[name] = audience; !audience.Everyone {
			restricted = append(restricted, name)
		}
		return err
	}, sqldb.JSONOf(names))
	if err != nil || len(restricted) == 0 {
		return audiences, err
	}
	of := s.Listed("t.name", "$1", "text")
	within := ` FROM resource_types t JOIN resource_type_associations a ON a.resource_type_id = t.id JOIN namespaces n ON n.id = a.namespace_id`
	err = s.Query(ctx, tx, `SELECT t.name, n.owner`+within+` WHERE n.owner <> '' AND `+of+`
		UNION SELECT t.name, m.project_id`+within+` JOIN namespace_members m ON m.namespace_id = n.id WHERE `+of+`
		UNION SELECT t.name, r.project_id FROM resource_types t JOIN resources r ON r.resource_type_id = t.id
			WHERE r.project_id <> '' AND `+of+` ORDER BY 1, 2`, func(rows *sql.Rows) error {
		var name string
		var project *string
		err := rows.Scan(&name, &project)
		addMember(audiences[name], project)
		return err
	}, sqldb.JSONOf(restricted))
	return audiences, err
}

// sawNamespaces notes the viewers of namespaces and of their associated
// resource types, before a change of them.
func (s *MetadefStore) sawNamespaces(ctx context.Context, tx *sqldb.Tx, rows ...*ent.Namespace) error {
	var private []string
	for _, row := range rows {
		if row.Visibility == string(access.Public) {
			tx.SawBefore(namespaceKind, row.Name, change.ToEveryone())
		} else {
			private = append(private, row.Name)
		}
	}
	if err := tx.Was(ctx, namespaceKind, private...); err != nil {
		return err
	}
	ids := lists.Map(rows, func(row *ent.Namespace) int64 { return row.ID })
	types, err := sqldb.Column[string](ctx, s.DB, tx, `SELECT DISTINCT t.name FROM resource_types t
		JOIN resource_type_associations a ON a.resource_type_id = t.id WHERE `+s.Listed("a.namespace_id", "$1",
		"bigint")+` ORDER BY t.name`, sqldb.JSONOf(ids))
	if err != nil {
		return err
	}
	return tx.Affects(ctx, typeKind, types...)
}

// seesNamespace notes the viewers of a changed public namespace. The
// transaction reads the viewers of a private one when it ends.
func seesNamespace(tx *sqldb.Tx, row *ent.Namespace) {
	if row.Visibility == string(access.Public) {
		tx.SeenBy(namespaceKind, row.Name, change.ToEveryone())
	}
}
