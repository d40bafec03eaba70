package metadefdb

import (
	"context"
	"fmt"
	"math"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/namespacemember"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// DefinitionOptions are who writes definitions and how much. A limit of 0 is
// the default.
type DefinitionOptions struct {
	// OwnerWrites: members of the project that owns a namespace write it.
	OwnerWrites bool
	// NamespacesPerProject is how many namespaces one project owns; 1000.
	NamespacesPerProject int
	// PropertiesPerNamespace is how many properties a namespace has, those of
	// its objects included, and how many objects, tags and associations; 1000,
	// which is also the most.
	PropertiesPerNamespace int
	// DefinitionSize is how many bytes the definition of a property has; 64
	// KiB, which is also the most.
	DefinitionSize int
	// ResidentBytes is how much memory definitions take at most to be kept there;
	// DefaultResidentBytes. Less than 0 keeps none.
	ResidentBytes int64
}

func (o DefinitionOptions) withDefaults() DefinitionOptions {
	for _, limit := range []struct {
		value *int
		usual int
		most  int
	}{
		{&o.NamespacesPerProject, 1000, math.MaxInt},
		{&o.PropertiesPerNamespace, metadef.MaxDefinitions, metadef.MaxDefinitions},
		{&o.DefinitionSize, metadef.MaxDefinition, metadef.MaxDefinition},
	} {
		if *limit.value <= 0 {
			*limit.value = limit.usual
		}
		*limit.value = min(*limit.value, limit.most)
	}
	if o.ResidentBytes == 0 {
		o.ResidentBytes = DefaultResidentBytes
	}
	return o
}

// edit is a change of one namespace or of what it holds, as it is asked for.
type edit struct {
	mutation  string
	namespace string
	revision  *int   // what the caller has seen; nil for whatever it is
	manages   bool   // takes more than being an editor
	because   string // the field of the input for which it does so, empty where the whole mutation does
	deletes   bool   // is refused where the namespace is protected
}

// editNamespace changes a namespace or what it holds, in one transaction that
// other changes of the namespace wait for. It refuses in the order that all
// definitions keep: a namespace that is not visible, a role that does not
// suffice, what change finds wrong with the input, then what admit refuses,
// which change calls before it writes. Where change returns an event, the
// namespace's revision and time follow; nil is for an edit that changes
// nothing. Results are pointers to what change sets.
func (s *MetadefStore) editNamespace(ctx context.Context, e edit, change func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error), results ...any) (*metadef.Namespace, error) {
	if err := text.CheckAny("input.namespace", e.namespace); err != nil {
		return nil, err
	}
	var changed *metadef.Namespace
	err := s.Write(ctx, e.mutation, func(tx *sqldb.Tx) error {
		row, err := s.lockNamespace(ctx, tx, e.namespace)
		if err != nil {
			return err
		}
		if err := s.checkStanding(ctx, tx, row, e); err != nil {
			return err
		}
		if e.manages {
			if err := s.sawNamespaces(ctx, tx, row); err != nil {
				return err
			}
		}
		event, err := change(tx, row)
		if err != nil {
			return err
		}
		if event == nil {
			if tx.IsEmpty() {
				tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: e.namespace})
			}
			changed = namespaceNoun(row)
			return nil
		}
		tx.Record(ctx, *event)
		if row.Name != e.namespace {
			tx.Deleted("Namespace", e.namespace)
			tx.SawBefore("Namespace", row.Name, nil)
		}
		tx.Changed("Namespace", row.Name)
		seesNamespace(tx, row)
		err = s.touchNamespace(ctx, tx, row)
		changed = namespaceNoun(row)
		return err
	}, append(results, &changed)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.mutation, err)
	}
	return changed, nil
}

// admit refuses an edit where the namespace is protected against it, or is at
// another revision than its caller has seen.
func (e edit) admit(row *ent.Namespace) error {
	if e.deletes && row.Protected {
		return refuseProtected(row.Name).On(namespaceField(e.mutation))
	}
	if e.revision != nil && *e.revision != row.Revision {
		return problem.Refuse(problem.ErrConcurrentUpdate, "namespace %q is at revision %d, not %d", row.Name, row.Revision, *e.revision).On("input.revision")
	}
	return nil
}

func refuseProtected(name string) *problem.Refusal {
	return problem.Refuse(problem.ErrProtected, "namespace %q is protected: nothing in it can be deleted", name)
}

func refuseUnknownNamespace(name string) *problem.Refusal {
	return problem.Refuse(problem.ErrNotFound, "namespace %q does not exist", name)
}

// namespaceField returns the field by which the input of a mutation names its
// namespace.
func namespaceField(mutation string) string {
	switch mutation {
	case "updateNamespace", "deleteNamespace":
		return "input.name"
	case "updateResourceTypeAssociation", "disassociateResourceType":
		return "input.id"
	}
	return "input.namespace"
}

// lockNamespace reads a namespace that the viewer may see, and keeps others
// from changing it, or anything in it, until the transaction ends.
func (s *MetadefStore) lockNamespace(ctx context.Context, tx *sqldb.Tx, name string) (*ent.Namespace, error) {
	row, err := tx.Namespace.Query().Where(visible.Namespaces(ctx), namespace.Name(name), s.Locked()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, refuseUnknownNamespace(name).On(namespaceField(tx.Mutation))
	}
	return row, err
}

// touchNamespace moves the revision and the time of a namespace that changes.
func (s *MetadefStore) touchNamespace(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace) error {
	row.Revision, row.UpdatedAt = row.Revision+1, s.Now()
	return tx.Namespace.Update().Where(namespace.ID(row.ID)).
		SetRevision(row.Revision).SetUpdatedAt(row.UpdatedAt).Exec(ctx)
}

// checkStanding refuses whoever may not make an edit, which takes more than being
// an editor where it manages the namespace.
func (s *MetadefStore) checkStanding(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, e edit) error {
	standing, err := s.standingIn(ctx, tx, row)
	if err != nil {
		return err
	}
	switch {
	case !e.manages:
		return standing.CheckDefine(tx.Mutation)
	case e.because != "" && standing.MayDefine():
		return problem.Under(standing.CheckManage("changing "+e.because), "input."+e.because)
	}
	return standing.CheckManage(tx.Mutation)
}

// mayOwnNamespaces refuses whoever may not manage the namespaces of the
// viewer's own project, at a field of Mutation.
func (s *MetadefStore) mayOwnNamespaces(ctx context.Context, field string) error {
	viewer, err := access.ViewerFrom(ctx).Authorize(field)
	if err != nil {
		return err
	}
	return metadef.NamespaceStanding{Viewer: viewer, Owner: viewer.ProjectID, OwnerWrites: s.options.OwnerWrites}.CheckManage(field)
}

// standingIn returns what the viewer is to a namespace.
func (s *MetadefStore) standingIn(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace) (metadef.NamespaceStanding, error) {
	viewer, err := access.ViewerFrom(ctx).Authorize(tx.Mutation)
	if err != nil {
		return metadef.NamespaceStanding{}, err
	}
	standing := metadef.NamespaceStanding{Viewer: viewer, Owner: row.Owner, OwnerWrites: s.options.OwnerWrites, Protected: row.Protected}
	if standing.MayManage() {
		return standing, nil
	}
	roles, err := tx.NamespaceMember.Query().
		Where(namespacemember.NamespaceID(row.ID), namespacemember.ProjectIDIn(standing.Viewer.ProjectID, metadef.EveryProject)).
		Select(namespacemember.FieldRole).Strings(ctx)
	for _, role := range roles {
		standing.Role = metadef.StrongerRole(standing.Role, metadef.MemberRole(role))
	}
	return standing, err
}
