package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
)

// CreateTrait creates a custom trait, for administrators and services.
func (s *Store) CreateTrait(ctx context.Context, name string) (*placement.Trait, error) {
	err := s.createName(ctx, traitNames, name, func(tx *ent.Tx, t *touched) error {
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
	err := s.createName(ctx, classNames, name, func(tx *ent.Tx, t *touched) error {
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
func (s *Store) createName(ctx context.Context, kind nameKind, name string, insert func(tx *ent.Tx, t *touched) error) error {
	if err := access.MayWritePlacement(access.ViewerFrom(ctx), "create a "+kind.words); err != nil {
		return err
	}
	if err := problemsOf(placement.ValidateCustomName("input.name", name)).Err(); err != nil {
		return err
	}
	s.resident.naming.Lock()
	defer s.resident.naming.Unlock()
	_, err := s.changePlacement(ctx, func(tx *ent.Tx, t *touched) error {
		t.audit = append(t.audit, func(*placement.Provider) change {
			return change{action: "create" + kind.noun, kind: kind.noun, key: name, after: fields{"name": name}}
		})
		return insert(tx, t)
	})
	if isDuplicate(err) {
		return problem.Refuse(problem.ErrAlreadyExists, "a %s %s exists already", kind.words, name).On("input.name").Because(err)
	}
	if err != nil {
		return fmt.Errorf("create a %s: %w", kind.words, err)
	}
	return nil
}

// nameKind is a kind of names: traits or resource classes.
type nameKind struct{ noun, words, table string }

var (
	traitNames = nameKind{noun: "Trait", words: "trait", table: "traits"}
	classNames = nameKind{noun: "ResourceClass", words: "resource class", table: "resource_classes"}
)

// DeleteTrait deletes a custom trait that no provider has.
func (s *Store) DeleteTrait(ctx context.Context, name string) (*placement.Trait, error) {
	err := s.deleteName(ctx, traitNames, name, func(t *touched) { t.removed.Traits = []string{name} })
	if err != nil {
		return nil, err
	}
	return &placement.Trait{Name: name, Custom: true}, nil
}

// DeleteResourceClass deletes a custom resource class that no inventory is of.
func (s *Store) DeleteResourceClass(ctx context.Context, name string) (*placement.ResourceClass, error) {
	err := s.deleteName(ctx, classNames, name, func(t *touched) { t.removed.ResourceClasses = []string{name} })
	if err != nil {
		return nil, err
	}
	return &placement.ResourceClass{Name: name, Custom: true}, nil
}

// deleteName deletes a custom name of a kind. A foreign key refuses one in use.
func (s *Store) deleteName(ctx context.Context, kind nameKind, name string, note func(*touched)) error {
	if err := access.MayWritePlacement(access.ViewerFrom(ctx), "delete a "+kind.words); err != nil {
		return err
	}
	if err := problemsOf(placement.ValidateCustomName("input.name", name)).Err(); err != nil {
		return err
	}
	s.resident.naming.Lock()
	defer s.resident.naming.Unlock()
	_, err := s.changePlacement(ctx, func(tx *ent.Tx, t *touched) error {
		deleted := 0
		err := s.query(ctx, tx, `DELETE FROM `+kind.table+` WHERE name = $1 RETURNING id`, func(rows *sql.Rows) error {
			deleted++
			return rows.Scan(new(int64))
		}, name)
		if isReferred(err) {
			return problem.Refuse(problem.ErrInUse, "the %s %s is in use by a resource provider", kind.words, name).On("input.name").Because(err)
		}
		if err != nil {
			return err
		}
		if deleted == 0 {
			return problem.Refuse(problem.ErrNotFound, "there is no %s %s", kind.words, name).On("input.name")
		}
		note(t)
		t.audit = append(t.audit, func(*placement.Provider) change {
			return change{action: "delete" + kind.noun, kind: kind.noun, key: name, before: fields{"name": name}}
		})
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete a %s: %w", kind.words, err)
	}
	return nil
}
