package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
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
