package metadefdb

import (
	"cmp"
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// MembersOf returns the memberships of each namespace by row id, sorted by
// project. Administrators and the owning project see all of them. Other
// projects see only their own membership and the one of all projects.
func (s *MetadefStore) MembersOf(ctx context.Context,
	namespaces []int64) (map[int64][]*metadef.NamespaceMember, error) {
	rows, err := s.Ent.NamespaceMember.Query().
		Where(paging.Among(namespacemember.FieldNamespaceID, namespaces), visibleMembers(ctx)).
		Order(namespacemember.ByProjectID(), namespacemember.ByID()).All(ctx)
	return paging.ByParent(rows, err, "members", memberNoun, func(row *ent.NamespaceMember) int64 {
		return row.NamespaceID
	})
}

func visibleMembers(ctx context.Context) func(*entsql.Selector) {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		if viewer.IsAdmin() {
			return
		}
		build := entsql.Dialect(s.Dialect())
		owned := build.Table(namespace.Table)
		s.Where(entsql.Or(
			entsql.In(s.C(namespacemember.FieldProjectID), viewer.ProjectID, metadef.EveryProject),
			entsql.In(s.C(namespacemember.FieldNamespaceID), build.Select(owned.C(namespace.FieldID)).From(owned).
				Where(entsql.And(entsql.EQ(owned.C(namespace.FieldOwner), viewer.ProjectID),
					entsql.NEQ(owned.C(namespace.FieldOwner), "")))),
		))
	}
}

// Standing returns the viewer's standing in a namespace. members are its
// memberships as MembersOf returns them.
func (s *MetadefStore) Standing(ctx context.Context, of *metadef.Namespace,
	members []*metadef.NamespaceMember) metadef.NamespaceStanding {
	standing := metadef.NamespaceStanding{Viewer: access.ViewerFrom(ctx), Owner: of.Owner,
		OwnerWrites: s.options.OwnerWrites, Protected: of.Protected}
	for _, member := range members {
		if member.ProjectID == standing.Viewer.ProjectID || member.ProjectID == metadef.EveryProject {
			standing.Role = metadef.StrongerRole(standing.Role, member.Role)
		}
	}
	return standing
}

// Standings returns the viewer's standing in each visible namespace by row id.
func (s *MetadefStore) Standings(ctx context.Context, namespaces []int64) (map[int64]metadef.NamespaceStanding, error) {
	viewer := access.ViewerFrom(ctx)
	build := entsql.Dialect(s.Pool.Dialect())
	all, members := build.Table(namespace.Table), build.Table(namespacemember.Table)
	selector := build.Select().From(all).LeftJoin(members).OnP(entsql.And(
		entsql.ColumnsEQ(members.C(namespacemember.FieldNamespaceID), all.C(namespace.FieldID)),
		entsql.In(members.C(namespacemember.FieldProjectID), viewer.ProjectID, metadef.EveryProject)))
	selector.Select(all.C(namespace.FieldID), all.C(namespace.FieldOwner), all.C(namespace.FieldProtected),
		members.C(namespacemember.FieldRole)).
		Where(entsql.And(paging.IsAmong(selector, all.C(namespace.FieldID), namespaces),
			visible.NamespaceCondition(viewer, all.C)))
	standings := map[int64]metadef.NamespaceStanding{}
	err := s.Select(ctx, selector, func(rows *entsql.Rows) error {
		standing := metadef.NamespaceStanding{Viewer: viewer, OwnerWrites: s.options.OwnerWrites}
		var id int64
		var role *string
		if err := rows.Scan(&id, &standing.Owner, &standing.Protected, &role); err != nil {
			return err
		}
		standing.Role = metadef.StrongerRole(standings[id].Role, metadef.MemberRole(text.OrEmpty(role)))
		standings[id] = standing
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up who may change namespaces: %w", err)
	}
	return standings, nil
}

// OwnersWrite reports whether members of a project may write the project's
// namespaces.
func (s *MetadefStore) OwnersWrite() bool { return s.options.OwnerWrites }

// ShareNamespace shares a namespace with a project, or with all ("*"), or
// changes the role of a project that has it already.
func (s *MetadefStore) ShareNamespace(ctx context.Context, name, project string, role metadef.MemberRole,
	revision *int) (member *metadef.NamespaceMember, in *metadef.Namespace, err error) {
	e := edit{mutation: "shareNamespace", namespace: name, revision: revision, manages: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		var problems problem.Problems
		text.Check(&problems, "input.projectId", project, 1, metadef.MaxOwner)
		if err := cmp.Or(problems.Err(), e.admit(row)); err != nil {
			return nil, err
		}
		event := &sqldb.Event{Kind: "Namespace", Key: row.Name, After: sqldb.Fields{"projectId": project, "role": role}}
		current, err := findMember(ctx, tx, row.ID, project)
		switch {
		case err != nil:
			return nil, err
		case current == nil:
			now := s.Now()
			current, err = tx.NamespaceMember.Create().SetNamespaceID(row.ID).
				SetProjectID(project).SetRole(string(role)).
				SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		default:
			event.Before = sqldb.Fields{"projectId": project, "role": current.Role}
			current.Role = string(role)
			err = tx.NamespaceMember.Update().Where(namespacemember.ID(current.ID)).
				SetRole(current.Role).SetUpdatedAt(s.Now()).Exec(ctx)
		}
		if err != nil {
			return nil, err
		}
		member = memberNoun(current)
		return event, nil
	}, &member)
	return member, in, err
}

// UnshareNamespace stops sharing a namespace with a project.
func (s *MetadefStore) UnshareNamespace(ctx context.Context, name, project string,
	revision *int) (member *metadef.NamespaceMember, in *metadef.Namespace, err error) {
	e := edit{mutation: "unshareNamespace", namespace: name, revision: revision, manages: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		if err := text.CheckAny("input.projectId", project); err != nil {
			return nil, err
		}
		current, err := findMember(ctx, tx, row.ID, project)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return nil, problem.Refuse(problem.ErrNotFound, "namespace %q is not shared with project %q",
				row.Name, project).On("input.projectId")
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		member = memberNoun(current)
		_, err = tx.NamespaceMember.Delete().Where(namespacemember.ID(current.ID)).Exec(ctx)
		return &sqldb.Event{Kind: "Namespace", Key: row.Name,
			Before: sqldb.Fields{"projectId": project, "role": current.Role}}, err
	}, &member)
	return member, in, err
}

// findMember returns the membership of a project, or nil.
func findMember(ctx context.Context, tx *sqldb.Tx, namespaceID int64, project string) (*ent.NamespaceMember, error) {
	row, err := tx.NamespaceMember.Query().
		Where(namespacemember.NamespaceID(namespaceID), namespacemember.ProjectID(project)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, err
}

func memberNoun(row *ent.NamespaceMember) *metadef.NamespaceMember {
	return &metadef.NamespaceMember{
		NamespaceID: row.NamespaceID, ProjectID: row.ProjectID,
		Role: metadef.MemberRole(row.Role), CreatedAt: row.CreatedAt.UTC(),
	}
}
