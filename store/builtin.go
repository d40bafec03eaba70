package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent/resourceclass"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/trait"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

// fillBuiltIns creates the missing built-in resource types, standard traits and
// standard resource classes. It skips rows that another server has created
// meanwhile, so several servers may run it concurrently.
func (s *Store) fillBuiltIns(ctx context.Context) error {
	types := lists.Map(defaults.ResourceTypes(), func(builtIn defaults.ResourceType) string { return builtIn.Name })
	missing, err := s.missingBuiltIns(ctx, types)
	if err != nil {
		return fmt.Errorf("read the built-in content: %w", err)
	}
	if missing.empty() {
		return nil
	}
	err = s.Fill(ctx, func(tx *sqldb.Tx) error {
		if err := s.InsertResourceTypes(ctx, tx, missing.types, metadefdb.BuiltInType); err != nil {
			return err
		}
		if err := s.InsertTraits(ctx, tx, missing.traits, true); err != nil {
			return err
		}
		return s.InsertResourceClasses(ctx, tx, missing.classes, true)
	})
	if err != nil {
		return fmt.Errorf("write the built-in content: %w", err)
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
			return s.Ent.ResourceType.Query().Where(paging.Among(resourcetype.FieldName, types)).
				Select(resourcetype.FieldName).Strings(ctx)
		}, &missing.types},
		{defaults.Traits(), func() ([]string, error) {
			return s.Ent.Trait.Query().Where(trait.Standard(true)).Select(trait.FieldName).Strings(ctx)
		}, &missing.traits},
		{defaults.ResourceClasses(), func() ([]string, error) {
			return s.Ent.ResourceClass.Query().Where(resourceclass.Standard(true)).
				Select(resourceclass.FieldName).Strings(ctx)
		}, &missing.classes},
	} {
		there, err := kind.read()
		if err != nil {
			return builtIns{}, err
		}
		*kind.into = lists.Without(kind.names, there)
	}
	return missing, nil
}
