package metadefdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// AssociateResourceType associates a resource type with a namespace, so that
// the namespace's definitions apply to it. It creates the type if there is none
// of that name.
func (s *MetadefStore) AssociateResourceType(ctx context.Context,
	input metadef.NewAssociation) (made *metadef.ResourceTypeAssociation, in *metadef.Namespace, err error) {
	e := edit{mutation: "associateResourceType", namespace: input.Namespace, revision: input.Revision, manages: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		wanted := input.DocumentAssociation
		if err := input.Check("input").Err(); err != nil {
			return nil, err
		}
		there, err := associations(ctx, tx.Client()).Where(resourcetypeassociation.NamespaceID(row.ID)).All(ctx)
		if err != nil {
			return nil, err
		}
		held := lists.Map(lists.Map(there, AssociationNoun), documentAssociation)
		err = cmp.Or(checkAssociationFree(there, 0, wanted, row.Name, "input.resourceType"),
			s.checkCount("resource type associations", len(there)+1),
			checkOfType(append(held, wanted)), e.admit(row))
		if err != nil {
			return nil, err
		}
		if err := s.insertAssociations(ctx, tx, row.ID, []metadef.DocumentAssociation{wanted}, s.Now()); err != nil {
			return nil, err
		}
		now, err := associations(ctx, tx.Client()).Where(resourcetypeassociation.NamespaceID(row.ID)).All(ctx)
		if err != nil {
			return nil, err
		}
		// The association with the highest id is the new one. Its type may have
		// been renamed meanwhile.
		made = AssociationNoun(slices.MaxFunc(now, func(a, b *ent.ResourceTypeAssociation) int {
			return cmp.Compare(a.ID, b.ID)
		}))
		return &sqldb.Event{Kind: "ResourceTypeAssociation", Key: row.Name + "/" + wanted.ResourceType,
			After: associationFields(documentAssociation(made))}, nil
	}, &made)
	return made, in, err
}

// documentAssociation returns an association as a document has it.
func documentAssociation(a *metadef.ResourceTypeAssociation) metadef.DocumentAssociation {
	return metadef.DocumentAssociation{ResourceType: a.ResourceTypeName, Prefix: a.Prefix,
		PropertiesTarget: a.PropertiesTarget}
}

// checkAssociationFree refuses an association with the same type, prefix and
// target as another one of the namespace. It ignores the row with the id except.
func checkAssociationFree(there []*ent.ResourceTypeAssociation, except int64,
	wanted metadef.DocumentAssociation, in, field string) error {
	if slices.ContainsFunc(there, func(row *ent.ResourceTypeAssociation) bool {
		noun := AssociationNoun(row)
		return row.ID != except && noun.ResourceTypeName == wanted.ResourceType &&
			row.Prefix == text.OrEmpty(wanted.Prefix) && row.PropertiesTarget == text.OrEmpty(wanted.PropertiesTarget)
	}) {
		return problem.Refuse(problem.ErrAlreadyExists,
			"namespace %q is already associated with %q, with the same prefix and properties target",
			in, wanted.ResourceType).On(field)
	}
	return nil
}

// UpdateAssociation changes the prefix or the properties target of an
// association. The association keeps its id.
func (s *MetadefStore) UpdateAssociation(ctx context.Context,
	input metadef.AssociationChange) (changed *metadef.ResourceTypeAssociation, in *metadef.Namespace, err error) {
	e := edit{mutation: "updateResourceTypeAssociation", revision: input.Revision, manages: true}
	if err := s.locate(ctx, &e, input.Ref); err != nil {
		return nil, nil, err
	}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		there, current, err := findAssociation(ctx, tx, row, input.Ref)
		if err != nil {
			return nil, err
		}
		before := AssociationNoun(current)
		wanted := documentAssociation(before)
		var problems problem.Problems
		if input.Prefix.Set {
			if wanted.Prefix = input.Prefix.Value; wanted.Prefix != nil {
				metadef.CheckPrefix(&problems, "input.newPrefix", *wanted.Prefix)
			}
		}
		if input.PropertiesTarget.Set {
			if wanted.PropertiesTarget = input.PropertiesTarget.Value; wanted.PropertiesTarget != nil {
				metadef.CheckTarget(&problems, "input.newPropertiesTarget", *wanted.PropertiesTarget)
			}
		}
		err = cmp.Or(problems.Err(),
			checkAssociationFree(there, current.ID, wanted, row.Name, "input.newPrefix"), e.admit(row))
		if err != nil {
			return nil, err
		}
		after := *before
		after.Prefix, after.PropertiesTarget, after.UpdatedAt = wanted.Prefix, wanted.PropertiesTarget, s.Now()
		err = tx.ResourceTypeAssociation.Update().Where(resourcetypeassociation.ID(current.ID)).
			SetPrefix(text.OrEmpty(wanted.Prefix)).
			SetPropertiesTarget(text.OrEmpty(wanted.PropertiesTarget)).SetUpdatedAt(after.UpdatedAt).Exec(ctx)
		changed = &after
		return &sqldb.Event{Kind: "ResourceTypeAssociation", Key: row.Name + "/" + after.ResourceTypeName,
			Before: associationFields(documentAssociation(before)),
			After:  associationFields(documentAssociation(&after))}, err
	}, &changed)
	return changed, in, err
}

// DisassociateResourceType deletes an association, but not the resource type.
func (s *MetadefStore) DisassociateResourceType(ctx context.Context, ref metadef.AssociationRef,
	revision *int) (deleted *metadef.ResourceTypeAssociation, in *metadef.Namespace, err error) {
	e := edit{mutation: "disassociateResourceType", revision: revision, manages: true, deletes: true}
	if err := s.locate(ctx, &e, ref); err != nil {
		return nil, nil, err
	}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		_, current, err := findAssociation(ctx, tx, row, ref)
		if err := cmp.Or(err, e.admit(row)); err != nil {
			return nil, err
		}
		deleted = AssociationNoun(current)
		_, err = tx.ResourceTypeAssociation.Delete().Where(resourcetypeassociation.ID(current.ID)).Exec(ctx)
		return &sqldb.Event{Kind: "ResourceTypeAssociation", Key: row.Name + "/" + deleted.ResourceTypeName,
			Before: associationFields(documentAssociation(deleted))}, err
	}, &deleted)
	return deleted, in, err
}

func refuseUnknownAssociation() error {
	return problem.Refuse(problem.ErrNotFound, "association does not exist").On("input.id")
}

// locate sets the namespace of an edit to the namespace of an association. If
// ref has a uuid, it returns ErrNotFound for an association that the viewer may
// not see.
func (s *MetadefStore) locate(ctx context.Context, e *edit, ref metadef.AssociationRef) error {
	if ref.Name != nil {
		e.namespace, e.named = ref.Name.Namespace, "input.association.namespace"
		return nil
	}
	e.named = "input.id"
	row, err := s.Ent.ResourceTypeAssociation.Query().
		Where(resourcetypeassociation.UUID(ref.UUID), visible.InNamespaces(ctx)).WithNamespace().Only(ctx)
	switch {
	case err == nil && row.Edges.Namespace != nil:
		e.namespace = row.Edges.Namespace.Name
	case s.IsDone(ctx): // the edit returns the answer that is kept
	case err == nil || ent.IsNotFound(err): // or deleted meanwhile
		return refuseUnknownAssociation()
	default:
		return fmt.Errorf("look up an association: %w", err)
	}
	return nil
}

// findAssociation returns all associations of a namespace, and the one that ref
// selects. It refuses a ref that selects no association or several.
func findAssociation(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace,
	ref metadef.AssociationRef) (there []*ent.ResourceTypeAssociation, found *ent.ResourceTypeAssociation, err error) {
	there, err = associations(ctx, tx.Client()).Where(resourcetypeassociation.NamespaceID(row.ID)).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	var matching []string
	for _, one := range there {
		if noun := AssociationNoun(one); ref.Matches(noun) {
			found = one
			matching = append(matching,
				fmt.Sprintf("prefix %q with propertiesTarget %q", one.Prefix, one.PropertiesTarget))
		}
	}
	switch {
	case len(matching) > 1:
		return nil, nil, problem.Invalid("input.association",
			"matches %d associations; select one by prefix and propertiesTarget: %s",
			len(matching), strings.Join(matching[:min(len(matching), maxListed)], ", "))
	case found == nil && ref.Name != nil:
		return nil, nil, problem.Refuse(problem.ErrNotFound, "namespace %q has no such association with %q", row.Name,
			ref.Name.ResourceType).On("input.association")
	case found == nil:
		return nil, nil, refuseUnknownAssociation()
	}
	return there, found, nil
}

// maxListed is the maximum number of associations in the error about a
// reference that several associations match.
const maxListed = 10
