package metadefdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateResourceType creates a resource type. By default only administrators
// may. It returns ErrAlreadyExists if the name is taken.
func (s *MetadefStore) CreateResourceType(ctx context.Context, name string, strict,
	protected bool) (*metadef.ResourceType, error) {
	var problems problem.Problems
	if text.CheckName(&problems, "input.name", name); len(problems) > 0 {
		return nil, problems.Err()
	}
	var created *metadef.ResourceType
	err := s.Write(ctx, "createResourceType", func(tx *sqldb.Tx) error {
		now := s.Now()
		row, err := tx.ResourceType.Create().SetName(name).SetProtected(protected).SetStrict(strict).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		tx.Record(ctx, sqldb.Event{Kind: "ResourceType", Key: name, After: resourceTypeFields(row)})
		tx.Created("ResourceType", name)
		tx.SeenBy("ResourceType", name, change.ToEveryone())
		created = resourceTypeNoun(row)
		return nil
	}, &created)
	if sqldb.IsDuplicate(err) {
		return nil, refuseTypeTaken(name, "input.name").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a resource type: %w", err)
	}
	return created, nil
}

func refuseTypeTaken(name, field string) *problem.Refusal {
	return problem.Refuse(problem.ErrAlreadyExists, "resource type %q already exists", name).On(field)
}

func resourceTypeFields(row *ent.ResourceType) sqldb.Fields {
	return sqldb.Fields{"name": row.Name, "strict": row.Strict, "protected": row.Protected}
}

// UpdateResourceType changes a resource type. By default only administrators
// may. It returns ErrProtected if the name or the protection of a built-in type
// would change.
func (s *MetadefStore) UpdateResourceType(ctx context.Context,
	input metadef.ResourceTypeChange) (*metadef.ResourceType, error) {
	var changed *metadef.ResourceType
	err := s.Write(ctx, "updateResourceType", func(tx *sqldb.Tx) error {
		var within []*ent.Namespace
		if input.NewName.Set { // lock namespaces before resource types
			var err error
			if within, err = s.lockNamespacesOfType(ctx, tx, input.Name); err != nil {
				return err
			}
		}
		row, err := s.lockResourceType(ctx, tx, input.Name)
		if err != nil {
			return err
		}
		before := resourceTypeFields(row)
		name, protected, err := renamedType(row, input)
		if err != nil {
			return err
		}
		if err := tx.Was(ctx, "ResourceType", row.Name); err != nil {
			return err
		}
		var capabilities []string
		if name != row.Name {
			if capabilities, err = capabilitiesBefore(ctx, tx, row); err != nil {
				return err
			}
		}
		row.Name, row.Strict, row.Protected, row.UpdatedAt = name,
			valueAfter(row.Strict, input.Strict), protected, s.Now()
		if err := tx.ResourceType.Update().Where(resourcetype.ID(row.ID)).SetName(row.Name).SetStrict(row.Strict).
			SetProtected(row.Protected).SetUpdatedAt(row.UpdatedAt).Exec(ctx); err != nil {
			return err
		}
		changed = resourceTypeNoun(row)
		if row.Name != input.Name {
			noteRenamedType(tx, input.Name, row.Name, capabilities)
			if err := s.renamedWithin(ctx, tx, row, within); err != nil {
				return err
			}
		}
		tx.Record(ctx,
			sqldb.Event{Kind: "ResourceType", Key: input.Name, Before: before, After: resourceTypeFields(row)})
		tx.Changed("ResourceType", row.Name)
		return nil
	}, &changed)
	if sqldb.IsDuplicate(err) {
		return nil, refuseTypeTaken(*input.NewName.Value, "input.newName").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("change a resource type: %w", err)
	}
	return changed, nil
}

// renamedType returns the name and the protection of a resource type after a
// change. It refuses to rename a built-in type or to end its protection.
func renamedType(row *ent.ResourceType, input metadef.ResourceTypeChange) (name string, protected bool, err error) {
	var problems problem.Problems
	name, protected = metadef.RenamedAs(&problems, "input.newName", row.Name, input.NewName),
		valueAfter(row.Protected, input.Protected)
	if err := problems.Err(); err != nil {
		return "", false, err
	}
	if isBuiltInType(row.Name) && (name != row.Name || !protected) {
		return "", false, problem.Refuse(problem.ErrProtected,
			"resource type %q is built in: its name and protection cannot be changed", row.Name).On("input.name")
	}
	return name, protected, nil
}

// noteRenamedType notes that a resource type and its capabilities were deleted,
// and created under another name.
func noteRenamedType(tx *sqldb.Tx, from, to string, capabilities []string) {
	for _, capability := range capabilities {
		tx.Deleted("Capability", from+"/"+capability)
		tx.Created("Capability", to+"/"+capability)
	}
	tx.Deleted("ResourceType", from)
	tx.SawBefore("ResourceType", to, nil)
}

// lockNamespacesOfType locks the namespaces that are associated with a resource
// type, in the order of their names.
func (s *MetadefStore) lockNamespacesOfType(ctx context.Context, tx *sqldb.Tx, name string) ([]*ent.Namespace, error) {
	return tx.Namespace.Query().
		Where(namespace.HasAssociationsWith(resourcetypeassociation.HasResourceTypeWith(resourcetype.Name(name))),
			s.Locked()).
		Order(namespace.ByName()).All(ctx)
}

// renamedWithin increments the revisions of the locked namespaces that are
// associated with a renamed resource type, because their documents contain its
// name. It returns ErrRetry if other namespaces are associated with it now.
func (s *MetadefStore) renamedWithin(ctx context.Context, tx *sqldb.Tx,
	row *ent.ResourceType, within []*ent.Namespace) error {
	count, err := tx.Namespace.Query().
		Where(namespace.HasAssociationsWith(resourcetypeassociation.ResourceTypeID(row.ID))).Count(ctx)
	if err != nil {
		return err
	}
	if count != len(within) { // one was associated or deleted meanwhile and is not locked
		return sqldb.ErrRetry
	}
	for _, in := range within {
		if err := s.touchNamespace(ctx, tx, in); err != nil {
			return err
		}
		tx.Changed("Namespace", in.Name)
	}
	return nil
}

// capabilitiesBefore returns the names of the capabilities of a resource type
// that will be renamed, and notes their viewers. The type's name is part of
// their keys.
func capabilitiesBefore(ctx context.Context, tx *sqldb.Tx, row *ent.ResourceType) ([]string, error) {
	names, err := tx.Capability.Query().Where(capability.ResourceTypeID(row.ID)).Order(capability.ByName()).
		Select(capability.FieldName).Strings(ctx)
	if err != nil {
		return nil, err
	}
	return names, tx.Was(ctx, "Capability",
		lists.Map(names, func(name string) string { return row.Name + "/" + name })...)
}

func valueAfter(value bool, to metadef.Change[*bool]) bool {
	if !to.Set {
		return value
	}
	return to.Value != nil && *to.Value
}

func isBuiltInType(name string) bool {
	return slices.ContainsFunc(defaults.ResourceTypes(), func(builtIn defaults.ResourceType) bool {
		return builtIn.Name == name
	})
}

// DeleteResourceType deletes a resource type. By default only administrators
// may. It refuses a protected type, and returns ErrInUse if an association, a
// resource or a capability refers to the type.
func (s *MetadefStore) DeleteResourceType(ctx context.Context, name string) (*metadef.ResourceType, error) {
	var deleted *metadef.ResourceType
	err := s.Write(ctx, "deleteResourceType", func(tx *sqldb.Tx) error {
		row, err := s.lockResourceType(ctx, tx, name)
		if err != nil {
			return err
		}
		if row.Protected {
			return problem.Refuse(problem.ErrProtected, "resource type %q is protected", name).On("input.name")
		}
		deleted = resourceTypeNoun(row)
		if err := tx.Was(ctx, "ResourceType", name); err != nil {
			return err
		}
		if _, err := tx.ResourceType.Delete().Where(resourcetype.ID(row.ID)).Exec(ctx); sqldb.IsReferred(err) {
			return problem.Refuse(problem.ErrInUse,
				"resource type %q is in use by associations, resources or capabilities", name).On("input.name").
				Because(err)
		} else if err != nil {
			return err
		}
		tx.Record(ctx, sqldb.Event{Kind: "ResourceType", Key: name, Before: resourceTypeFields(row)})
		tx.Deleted("ResourceType", name)
		return nil
	}, &deleted)
	if err != nil {
		return nil, fmt.Errorf("delete a resource type: %w", err)
	}
	return deleted, nil
}

// lockResourceType reads and locks a resource type. It refuses an unknown type,
// and then a viewer who may not use the mutation.
func (s *MetadefStore) lockResourceType(ctx context.Context, tx *sqldb.Tx, name string) (*ent.ResourceType, error) {
	if err := text.CheckAny("input.name", name); err != nil {
		return nil, err
	}
	row, err := tx.ResourceType.Query().Where(visible.ResourceTypes(ctx), resourcetype.Name(name), s.Locked()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, RefuseUnknownType(name).On("input.name")
	}
	if err != nil {
		return nil, err
	}
	return row, access.ViewerFrom(ctx).RequireAt(tx.Mutation)
}

// typeOrigin is the origin of a resource type.
type typeOrigin int

// The origins of resource types.
const (
	BuiltInType  typeOrigin = iota // from the product, which protects it
	DeclaredType                   // declared explicitly
	impliedType                    // named by an association, resource or capability, perhaps a private one
)

// InsertResourceTypes creates the resource types that do not exist yet. It
// notes all names as created, even the existing ones.
func (s *MetadefStore) InsertResourceTypes(ctx context.Context, tx *sqldb.Tx, names []string, origin typeOrigin) error {
	if len(names) == 0 {
		return nil
	}
	protected, implied := origin == BuiltInType, "NULL"
	if origin == impliedType {
		implied = "TRUE"
	}
	rows := lists.Map(names, func(name string) []any { return []any{uuid.Must(uuid.NewV7()).String(), name} })
	tx.Created("ResourceType", names...)
	if origin != impliedType {
		for _, name := range names {
			tx.SeenBy("ResourceType", name, change.ToEveryone())
		}
	}
	return s.Execute(ctx, tx, fmt.Sprintf(`INSERT INTO resource_types (uuid, name, protected, strict, implied, created_at, updated_at)
		SELECT d.uuid, d.name, %t, FALSE, %s, %[3]s, %[3]s FROM %[4]s WHERE TRUE ON CONFLICT (name) DO NOTHING`,
		protected, implied, s.Time("$2"), s.Rows("$1", "d", "uuid text", "name text")), sqldb.JSONOf(rows), s.Now())
}
