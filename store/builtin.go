package store

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourceclass"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/trait"
)

// fillBuiltIns makes sure that the built-in resource types, the standard traits
// and the standard resource classes are there. It writes only what is missing,
// so that several servers may do it at once.
func (s *Store) fillBuiltIns(ctx context.Context) error {
	var types []string
	for _, builtIn := range defaults.ResourceTypes() {
		types = append(types, builtIn.Name)
	}
	missing, err := s.missingBuiltIns(ctx, types)
	if err != nil {
		return fmt.Errorf("read what is built in: %w", err)
	}
	if missing.empty() {
		return nil
	}
	err = s.Fill(ctx, func(tx *Tx) error {
		if err := s.insertResourceTypes(ctx, tx, missing.types, builtInType); err != nil {
			return err
		}
		if err := s.insertTraits(ctx, tx, missing.traits, true); err != nil {
			return err
		}
		return s.insertResourceClasses(ctx, tx, missing.classes, true)
	})
	if err != nil {
		return fmt.Errorf("write what is built in: %w", err)
	}
	return nil
}

type builtIns struct{ types, traits, classes []string }

func (b builtIns) empty() bool { return len(b.types)+len(b.traits)+len(b.classes) == 0 }

func (s *Store) missingBuiltIns(ctx context.Context, types []string) (builtIns, error) {
	var missing builtIns
	for _, kind := range []struct {
		names []string
		read  func() ([]string, error)
		into  *[]string
	}{
		{types, func() ([]string, error) {
			return s.ent.ResourceType.Query().Where(among(resourcetype.FieldName, types)).Select(resourcetype.FieldName).Strings(ctx)
		}, &missing.types},
		{defaults.Traits(), func() ([]string, error) {
			return s.ent.Trait.Query().Where(trait.Standard(true)).Select(trait.FieldName).Strings(ctx)
		}, &missing.traits},
		{defaults.ResourceClasses(), func() ([]string, error) {
			return s.ent.ResourceClass.Query().Where(resourceclass.Standard(true)).Select(resourceclass.FieldName).Strings(ctx)
		}, &missing.classes},
	} {
		there, err := kind.read()
		if err != nil {
			return builtIns{}, err
		}
		*kind.into = without(kind.names, there)
	}
	return missing, nil
}

// typeOrigin is what brings a resource type.
type typeOrigin int

const (
	builtInType  typeOrigin = iota // the product, which protects it
	declaredType                   // whoever declares it
	impliedType                    // an association, perhaps of a private namespace, that names it
)

// insertResourceTypes writes resource types that are not there yet.
func (s *Store) insertResourceTypes(ctx context.Context, tx *Tx, names []string, origin typeOrigin) error {
	if len(names) == 0 {
		return nil
	}
	now := s.now()
	creates := make([]*ent.ResourceTypeCreate, len(names))
	for i, name := range names {
		creates[i] = tx.ResourceType.Create().SetName(name).SetProtected(origin == builtInType).SetStrict(false).
			SetCreatedAt(now).SetUpdatedAt(now)
		if origin == impliedType {
			creates[i].SetImplied(true)
		}
	}
	tx.Changed("ResourceType", names...)
	return tx.ResourceType.CreateBulk(creates...).OnConflict(entsql.ConflictColumns(resourcetype.FieldName), entsql.DoNothing()).Exec(ctx)
}

// insertTraits writes traits that are not there yet.
func (s *Store) insertTraits(ctx context.Context, tx *Tx, names []string, standard bool) error {
	if len(names) == 0 {
		return nil
	}
	now := s.now()
	creates := make([]*ent.TraitCreate, len(names))
	for i, name := range names {
		creates[i] = tx.Trait.Create().SetName(name).SetStandard(standard).SetCreatedAt(now).SetUpdatedAt(now)
	}
	tx.Changed("Trait", names...)
	return tx.Trait.CreateBulk(creates...).OnConflict(entsql.ConflictColumns(trait.FieldName), entsql.DoNothing()).Exec(ctx)
}

// insertResourceClasses writes resource classes that are not there yet.
func (s *Store) insertResourceClasses(ctx context.Context, tx *Tx, names []string, standard bool) error {
	if len(names) == 0 {
		return nil
	}
	now := s.now()
	creates := make([]*ent.ResourceClassCreate, len(names))
	for i, name := range names {
		creates[i] = tx.ResourceClass.Create().SetName(name).SetStandard(standard).SetCreatedAt(now).SetUpdatedAt(now)
	}
	tx.Changed("ResourceClass", names...)
	return tx.ResourceClass.CreateBulk(creates...).OnConflict(entsql.ConflictColumns(resourceclass.FieldName), entsql.DoNothing()).Exec(ctx)
}
