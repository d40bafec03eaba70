package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
)

// Content is what an empty database can be filled with at once. Things refer to
// each other by name and uuid; what is referred to comes first.
type Content struct {
	Definitions     []string // texts of definition files
	ResourceTypes   []string // beyond the built-in ones
	Capabilities    []CapabilityRecord
	Resources       []ResourceRecord
	Traits          []string // custom ones
	ResourceClasses []string // custom ones
	Providers       []placement.Provider
	Claims          []placement.Claim
}

// CapabilityRecord is an entry of the capability registry, with its resource
// type by name.
type CapabilityRecord struct {
	ResourceType string
	Name         string
	Private      bool
}

// FillEmpty fills an empty database, in one transaction: one that was ended
// meanwhile leaves nothing. A database that holds any namespace, resource or
// provider stays as it is.
func (s *Store) FillEmpty(ctx context.Context, content Content) error {
	err := s.Fill(ctx, func(tx *Tx) error {
		empty, err := isEmpty(ctx, tx)
		if err != nil || !empty {
			return err
		}
		return s.insertContent(ctx, tx, content)
	})
	if err != nil {
		return fmt.Errorf("fill an empty database: %w", err)
	}
	return s.reloadWorld(ctx)
}

func isEmpty(ctx context.Context, tx *Tx) (bool, error) {
	for _, held := range []func(context.Context) (bool, error){
		tx.Namespace.Query().Exist, tx.Resource.Query().Exist, tx.ResourceProvider.Query().Exist,
	} {
		if some, err := held(ctx); err != nil || some {
			return false, err
		}
	}
	return true, nil
}

// insertContent writes the content, whose rows refer to each other in this
// order.
func (s *Store) insertContent(ctx context.Context, tx *Tx, content Content) error {
	for _, text := range content.Definitions {
		document, _, problems := metadef.ParseDocument(text)
		if err := problems.Err(); err != nil {
			return err
		}
		row, err := s.insertDocument(ctx, tx, document)
		if err != nil {
			return err
		}
		if err := setOrigin(ctx, tx, row, metadef.OwnOrigin, document); err != nil {
			return err
		}
	}
	if err := s.insertResourceTypes(ctx, tx, content.ResourceTypes, declaredType); err != nil {
		return err
	}
	if err := s.insertRegistry(ctx, tx, content.Capabilities); err != nil {
		return err
	}
	if err := s.insertResources(ctx, tx, content.Resources); err != nil {
		return err
	}
	if err := s.insertTraits(ctx, tx, content.Traits, false); err != nil {
		return err
	}
	if err := s.insertResourceClasses(ctx, tx, content.ResourceClasses, false); err != nil {
		return err
	}
	if err := s.insertProviders(ctx, tx, content.Providers); err != nil {
		return err
	}
	return s.insertClaims(ctx, tx, content.Claims)
}

// insertRegistry registers capabilities of types that exist.
func (s *Store) insertRegistry(ctx context.Context, tx *Tx, records []CapabilityRecord) error {
	names := make([]string, len(records))
	for i, record := range records {
		names[i] = record.ResourceType
	}
	types, err := s.ensureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	private := make(map[capabilityKey]bool, len(records))
	for _, record := range records {
		private[capabilityKey{types[record.ResourceType], record.Name}] = record.Private
	}
	return s.insertCapabilityRegistry(ctx, tx, private)
}
