package placementdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// CreateTrait creates a custom trait. By default only administrators and
// services may call it.
func (s *PlacementStore) CreateTrait(ctx context.Context, name string) (*placement.Trait, error) {
	return &placement.Trait{Name: name, Custom: true}, s.createName(ctx, traitNames, name)
}

// EnsureTraits creates the custom traits that are missing, all or none. It
// returns all traits and the names of the created ones, each once and sorted.
// By default only administrators and services may call it.
func (s *PlacementStore) EnsureTraits(ctx context.Context,
	names []string) (traits []*placement.Trait, created []string, err error) {
	err = s.Write(ctx, "ensureTraits", func(tx *sqldb.Tx) error {
		world := s.cache.World()
		if err := problemsIn(world, placement.ValidateEnsured(world, "input.names", names)).Err(); err != nil {
			return err
		}
		inserted, err := s.insertNames(ctx, tx, traitNames, lists.Distinct(names), false)
		if err != nil {
			return err
		}
		created = inserted
		for _, name := range created {
			tx.Record(ctx, sqldb.Event{Kind: traitNames.noun, Key: name, After: sqldb.Fields{"name": name}})
		}
		s.publish(tx, ownCommit{added: placement.Names{Traits: created}})
		return nil
	}, &created)
	if err != nil {
		return nil, nil, fmt.Errorf("ensure traits: %w", err)
	}
	return lists.Map(lists.Distinct(names), func(name string) *placement.Trait {
		return &placement.Trait{Name: name, Custom: placement.IsCustomName(name)}
	}), created, nil
}

// CreateResourceClass creates a custom resource class. By default only
// administrators and services may call it.
func (s *PlacementStore) CreateResourceClass(ctx context.Context, name string) (*placement.ResourceClass, error) {
	return &placement.ResourceClass{Name: name, Custom: true}, s.createName(ctx, classNames, name)
}

// DeleteTrait deletes a custom trait. It returns ErrInUse if a provider has it.
func (s *PlacementStore) DeleteTrait(ctx context.Context, name string) (*placement.Trait, error) {
	return &placement.Trait{Name: name, Custom: true}, s.deleteName(ctx, traitNames, name)
}

// DeleteResourceClass deletes a custom resource class. It returns ErrInUse if a
// provider has an inventory of it.
func (s *PlacementStore) DeleteResourceClass(ctx context.Context, name string) (*placement.ResourceClass, error) {
	return &placement.ResourceClass{Name: name, Custom: true}, s.deleteName(ctx, classNames, name)
}

// RenameResourceClass replaces a custom resource class by one with another
// name, also in the limits of projects. It returns ErrInUse if a provider has an
// inventory of the class. It needs the permission of createResourceClass.
func (s *PlacementStore) RenameResourceClass(ctx context.Context, name, to string) (*placement.ResourceClass, error) {
	problems := append(placement.ValidateCustomName("input.name", name),
		placement.ValidateCustomName("input.newName", to)...)
	if err := problemsOf(problems).Err(); err != nil {
		return nil, err
	}
	err := s.Write(ctx, "createResourceClass", func(tx *sqldb.Tx) error {
		if name == to {
			return nil
		}
		if err := s.removeName(ctx, tx, classNames, name); err != nil {
			return err
		}
		if err := s.renameInLimits(ctx, tx, name, to); err != nil {
			return err
		}
		return s.addName(ctx, tx, classNames, to,
			ownCommit{added: classNames.update(to), removed: classNames.update(name)})
	})
	if sqldb.IsDuplicate(err) {
		err = problem.Refuse(problem.ErrAlreadyExists, "resource class %q already exists", to).On("input.newName").
			Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("rename a resource class: %w", err)
	}
	return &placement.ResourceClass{Name: to, Custom: true}, nil
}

// nameKind describes traits or resource classes.
type nameKind struct {
	noun, words, table string
	update             func(name string) placement.Names
}

var (
	traitNames = nameKind{noun: "Trait", words: "trait", table: "traits",
		update: func(name string) placement.Names { return placement.Names{Traits: []string{name}} }}
	classNames = nameKind{noun: "ResourceClass", words: "resource class", table: "resource_classes",
		update: func(name string) placement.Names { return placement.Names{ResourceClasses: []string{name}} }}
)

func (s *PlacementStore) createName(ctx context.Context, kind nameKind, name string) error {
	if err := problemsOf(placement.ValidateCustomName("input.name", name)).Err(); err != nil {
		return err
	}
	err := s.Write(ctx, "create"+kind.noun, func(tx *sqldb.Tx) error {
		return s.addName(ctx, tx, kind, name, ownCommit{added: kind.update(name)})
	})
	if sqldb.IsDuplicate(err) {
		return problem.Refuse(problem.ErrAlreadyExists, "%s %q already exists", kind.words, name).On("input.name").
			Because(err)
	}
	if err != nil {
		return fmt.Errorf("create a %s: %w", kind.words, err)
	}
	return nil
}

// addName inserts a custom name and publishes the commit.
func (s *PlacementStore) addName(ctx context.Context, tx *sqldb.Tx, kind nameKind,
	name string, commit ownCommit) error {
	err := s.Execute(ctx, tx, `INSERT INTO `+kind.table+
		` (name, standard, created_at, updated_at) VALUES ($1, $2, $3, $3)`, name, false, s.Now())
	if err != nil {
		return err
	}
	tx.Record(ctx, sqldb.Event{Kind: kind.noun, Key: name, After: sqldb.Fields{"name": name}})
	tx.Created(kind.noun, name)
	s.publish(tx, commit)
	return nil
}

// deleteName deletes a custom name. A foreign key prevents it while the name is
// in use.
func (s *PlacementStore) deleteName(ctx context.Context, kind nameKind, name string) error {
	if err := problemsOf(placement.ValidateCustomName("input.name", name)).Err(); err != nil {
		return err
	}
	err := s.Write(ctx, "delete"+kind.noun, func(tx *sqldb.Tx) error {
		if err := s.removeName(ctx, tx, kind, name); err != nil {
			return err
		}
		s.publish(tx, ownCommit{removed: kind.update(name)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete a %s: %w", kind.words, err)
	}
	return nil
}

// removeName deletes a custom name and records that, without publishing.
func (s *PlacementStore) removeName(ctx context.Context, tx *sqldb.Tx, kind nameKind, name string) error {
	deleted, err := sqldb.Column[int64](ctx, s.DB, tx, `DELETE FROM `+kind.table+` WHERE name = $1 RETURNING id`, name)
	if sqldb.IsReferred(err) {
		return problem.Refuse(problem.ErrInUse, "%s %q is in use by a resource provider", kind.words, name).
			On("input.name").Because(err)
	}
	if err != nil {
		return err
	}
	if len(deleted) == 0 {
		return problem.Refuse(problem.ErrNotFound, "%s %q does not exist", kind.words, name).On("input.name")
	}
	tx.Record(ctx, sqldb.Event{Kind: kind.noun, Key: name, Before: sqldb.Fields{"name": name}})
	tx.Deleted(kind.noun, name)
	return nil
}

// InsertTraits inserts the missing traits.
func (s *PlacementStore) InsertTraits(ctx context.Context, tx *sqldb.Tx, names []string, standard bool) error {
	_, err := s.insertNames(ctx, tx, traitNames, names, standard)
	return err
}

// InsertResourceClasses inserts the missing resource classes.
func (s *PlacementStore) InsertResourceClasses(ctx context.Context, tx *sqldb.Tx, names []string, standard bool) error {
	_, err := s.insertNames(ctx, tx, classNames, names, standard)
	return err
}

// insertNames inserts the missing names and returns them, sorted.
func (s *PlacementStore) insertNames(ctx context.Context, tx *sqldb.Tx, kind nameKind, names []string,
	standard bool) (inserted []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows := lists.Map(names, func(name string) []any { return []any{name, standard} })
	inserted, err = sqldb.Column[string](ctx, s.DB, tx, `INSERT INTO `+kind.table+` (name, standard, created_at, updated_at)
		SELECT d.name, d.standard, `+s.Time("$2")+`, `+s.Time("$2")+` FROM `+s.Rows("$1", "d", "name text", "standard boolean")+`
		WHERE true ON CONFLICT (name) DO NOTHING RETURNING name`, sqldb.JSONOf(rows), s.Now())
	if err != nil {
		return nil, err
	}
	slices.Sort(inserted)
	tx.Created(kind.noun, inserted...)
	return inserted, nil
}
