package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent/resourceclass"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/trait"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

// Content is initial content for an empty database. Things refer to each other
// by name and uuid, and only to things in the same or an earlier field, since
// the fields are written in their order.
type Content struct {
	Definitions     []string // definition documents
	ResourceTypes   []string // in addition to the built-in ones
	Capabilities    []CapabilityRecord
	Resources       []ResourceRecord
	Traits          []string // custom ones
	ResourceClasses []string // custom ones
	Providers       []placement.Provider
	Claims          []placement.Claim
}

// FillEmpty fills an empty database in one transaction, so an interrupted call
// leaves nothing. It does not change a database that has any namespace,
// resource or provider, or from which shipped namespaces were unloaded.
func (s *Store) FillEmpty(ctx context.Context, content Content) error {
	err := s.Fill(ctx, func(tx *sqldb.Tx) error {
		empty, err := isEmpty(ctx, tx)
		if err != nil || !empty {
			return err
		}
		s.PublishAll(tx)
		return s.insertContent(access.WithViewer(ctx, access.ViewerFrom(ctx).Operator()), tx, content)
	})
	if err != nil {
		return fmt.Errorf("fill an empty database: %w", err)
	}
	return nil
}

func isEmpty(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	for _, held := range []func(context.Context) (bool, error){
		tx.Namespace.Query().Exist, tx.UnloadedNamespace.Query().Exist,
		tx.Resource.Query().Exist, tx.ResourceProvider.Query().Exist,
	} {
		if some, err := held(ctx); err != nil || some {
			return false, err
		}
	}
	return true, nil
}

// insertContent writes the content in an order in which each part refers only
// to earlier ones.
func (s *Store) insertContent(ctx context.Context, tx *sqldb.Tx, content Content) error {
	for _, text := range content.Definitions {
		document, _, problems := metadef.ParseDocument(text)
		if err := problems.Err(); err != nil {
			return err
		}
		row, err := s.InsertDocument(ctx, tx, document)
		if err != nil {
			return err
		}
		if err := metadefdb.SetOrigin(ctx, tx, row, metadef.OwnOrigin, document); err != nil {
			return err
		}
	}
	if err := s.InsertResourceTypes(ctx, tx, content.ResourceTypes, metadefdb.DeclaredType); err != nil {
		return err
	}
	if err := s.InsertRegistry(ctx, tx, content.Capabilities); err != nil {
		return err
	}
	if err := s.InsertResources(ctx, tx, content.Resources); err != nil {
		return err
	}
	if err := s.InsertTraits(ctx, tx, content.Traits, false); err != nil {
		return err
	}
	if err := s.InsertResourceClasses(ctx, tx, content.ResourceClasses, false); err != nil {
		return err
	}
	if err := s.InsertProviders(ctx, tx, content.Providers); err != nil {
		return err
	}
	return s.InsertClaims(ctx, tx, content.Claims)
}

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
