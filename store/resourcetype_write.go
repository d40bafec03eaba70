package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateResourceType creates a resource type, for administrators. A name that is
// taken is ErrAlreadyExists.
func (s *Store) CreateResourceType(ctx context.Context, name string, strict, protected bool) (*metadef.ResourceType, error) {
	if err := metadef.MayWriteResourceTypes(access.ViewerFrom(ctx), "create a resource type"); err != nil {
		return nil, err
	}
	var problems problem.Problems
	if text.CheckName(&problems, "input.name", name); len(problems) > 0 {
		return nil, problems.Err()
	}
	var created *ent.ResourceType
	err := s.Write(ctx, "createResourceType", func(tx *Tx) (err error) {
		now := s.now()
		created, err = tx.ResourceType.Create().SetName(name).SetProtected(protected).SetStrict(strict).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		tx.Record(ctx, Event{Kind: "ResourceType", Key: name, After: resourceTypeFields(created)})
		tx.Changed("ResourceType", name)
		return nil
	})
	if isDuplicate(err) {
		return nil, refuseTypeTaken(name, "input.name").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a resource type: %w", err)
	}
	return resourceTypeNoun(created), nil
}

func refuseTypeTaken(name, field string) *problem.Refusal {
	return problem.Refuse(problem.ErrAlreadyExists, "a resource type %q exists already", name).On(field)
}

func resourceTypeFields(row *ent.ResourceType) fields {
	return fields{"name": row.Name, "strict": row.Strict, "protected": row.Protected}
}

// UpdateResourceType changes a resource type, for administrators. The built-in
// ones keep their name and their protection: ErrProtected.
func (s *Store) UpdateResourceType(ctx context.Context, input metadef.ResourceTypeChange) (*metadef.ResourceType, error) {
	var changed *ent.ResourceType
	err := s.Write(ctx, "updateResourceType", func(tx *Tx) error {
		row, err := s.lockResourceType(ctx, tx, input.Name, "change a resource type")
		if err != nil {
			return err
		}
		before := resourceTypeFields(row)
		var problems problem.Problems
		name := metadef.RenamedAs(&problems, "input.newName", row.Name, input.NewName)
		if err := problems.Err(); err != nil {
			return err
		}
		protected := valueAfter(row.Protected, input.Protected)
		if isBuiltInType(row.Name) && (name != row.Name || !protected) {
			return problem.Refuse(problem.ErrProtected, "the resource type %q is built in: it keeps its name and its protection", row.Name)
		}
		row.Name, row.Strict, row.Protected, row.UpdatedAt = name, valueAfter(row.Strict, input.Strict), protected, s.now()
		if err := tx.ResourceType.Update().Where(resourcetype.ID(row.ID)).SetName(row.Name).SetStrict(row.Strict).
			SetProtected(row.Protected).SetUpdatedAt(row.UpdatedAt).Exec(ctx); err != nil {
			return err
		}
		changed = row
		tx.Record(ctx, Event{Kind: "ResourceType", Key: input.Name, Before: before, After: resourceTypeFields(row)})
		tx.Changed("ResourceType", input.Name, row.Name)
		return nil
	})
	if isDuplicate(err) {
		return nil, refuseTypeTaken(*input.NewName.Value, "input.newName").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("change a resource type: %w", err)
	}
	return resourceTypeNoun(changed), nil
}

func valueAfter(value bool, to metadef.Change[*bool]) bool {
	if !to.Set {
		return value
	}
	return to.Value != nil && *to.Value
}

func isBuiltInType(name string) bool {
	return slices.ContainsFunc(defaults.ResourceTypes(), func(builtIn defaults.ResourceType) bool { return builtIn.Name == name })
}

// DeleteResourceType deletes a resource type that is not protected and that no
// association, resource or capability refers to (ErrInUse), for administrators.
func (s *Store) DeleteResourceType(ctx context.Context, name string) (*metadef.ResourceType, error) {
	var deleted *ent.ResourceType
	err := s.Write(ctx, "deleteResourceType", func(tx *Tx) error {
		row, err := s.lockResourceType(ctx, tx, name, "delete a resource type")
		if err != nil {
			return err
		}
		if row.Protected {
			return problem.Refuse(problem.ErrProtected, "the resource type %q is protected", name)
		}
		deleted = row
		if _, err := tx.ResourceType.Delete().Where(resourcetype.ID(row.ID)).Exec(ctx); isReferred(err) {
			return problem.Refuse(problem.ErrInUse, "the resource type %q is in use by associations, resources or capabilities", name).Because(err)
		} else if err != nil {
			return err
		}
		tx.Record(ctx, Event{Kind: "ResourceType", Key: name, Before: resourceTypeFields(row)})
		tx.Changed("ResourceType", name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("delete a resource type: %w", err)
	}
	return resourceTypeNoun(deleted), nil
}

// lockResourceType reads a resource type that the viewer may know and change.
func (s *Store) lockResourceType(ctx context.Context, tx *Tx, name, what string) (*ent.ResourceType, error) {
	if err := soundTexts("input.name", name); err != nil {
		return nil, err
	}
	row, err := tx.ResourceType.Query().Where(visibleResourceTypes(ctx), resourcetype.Name(name), s.locked()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noResourceType(name)
	}
	if err != nil {
		return nil, err
	}
	return row, metadef.MayWriteResourceTypes(access.ViewerFrom(ctx), what)
}
