package store

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
)

// CreateTrait creates a custom trait, for administrators and services.
func (s *Store) CreateTrait(ctx context.Context, name string) (*placement.Trait, error) {
	err := s.createName(ctx, "trait", name, func(tx *ent.Tx, t *touched) error {
		t.added.Traits = []string{name}
		now := s.now()
		return tx.Trait.Create().SetName(name).SetStandard(false).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &placement.Trait{Name: name, Custom: true}, nil
}

// CreateResourceClass creates a custom resource class, for administrators and
// services.
func (s *Store) CreateResourceClass(ctx context.Context, name string) (*placement.ResourceClass, error) {
	err := s.createName(ctx, "resource class", name, func(tx *ent.Tx, t *touched) error {
		t.added.ResourceClasses = []string{name}
		now := s.now()
		return tx.ResourceClass.Create().SetName(name).SetStandard(false).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &placement.ResourceClass{Name: name, Custom: true}, nil
}

// createName creates a custom name of a kind.
func (s *Store) createName(ctx context.Context, kind, name string, insert func(tx *ent.Tx, t *touched) error) error {
	if err := catalog.MayWritePlacement(catalog.ViewerFrom(ctx), "create a "+kind); err != nil {
		return err
	}
	if err := problemsOf(placement.ValidateCustomName("input.name", name)).Err(); err != nil {
		return err
	}
	s.resident.naming.Lock()
	defer s.resident.naming.Unlock()
	_, err := s.changePlacement(ctx, insert)
	if isDuplicate(err) {
		return catalog.Refuse(catalog.ErrAlreadyExists, "a %s %s exists already", kind, name).On("input.name").Because(err)
	}
	if err != nil {
		return fmt.Errorf("create a %s: %w", kind, err)
	}
	return nil
}
