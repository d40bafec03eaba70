package metadefdb

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// UpdateNamespace changes the fields of a namespace itself. Editors may change
// its display name and description. The other fields require managing the
// namespace. It returns ErrAlreadyExists if the new name is taken.
func (s *MetadefStore) UpdateNamespace(ctx context.Context, input metadef.NamespaceChange) (*metadef.Namespace, error) {
	e := edit{mutation: "updateNamespace", namespace: input.Name, named: "input.name", revision: input.Revision}
	for _, managed := range []struct {
		field string
		given bool
	}{{"newName", input.NewName.Set}, {"visibility", input.Visibility.Set},
		{"protected", input.Protected.Set}, {"owner", input.Owner.Set}} {
		if managed.given && !e.manages {
			e.manages, e.because = true, managed.field
		}
	}
	if err := text.CheckAny("input.name", input.Name); err != nil {
		return nil, err
	}
	changed, err := s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		before := namespaceDocument(row)
		after, problems := input.Apply(before, "input")
		if *after.Owner != row.Owner {
			if err := metadef.MayGiveNamespace(access.ViewerFrom(ctx), *after.Owner); err != nil {
				return nil, err
			}
		}
		if err := cmp.Or(problems.Err(), e.admit(row)); err != nil {
			return nil, err
		}
		if *after.Owner != row.Owner {
			if err := s.checkNamespaceQuota(ctx, tx, *after.Owner); err != nil {
				return nil, err
			}
		}
		if after.Text() == before.Text() {
			return nil, nil
		}
		setFields(row, after)
		return &sqldb.Event{Kind: "Namespace", Key: before.Name, Before: namespaceFields(before),
			After: namespaceFields(after)}, writeNamespace(ctx, tx, row)
	})
	if sqldb.IsDuplicate(err) {
		return nil, refuseTaken(*input.NewName.Value, "input.newName").Because(err)
	}
	return changed, err
}

func refuseTaken(name, field string) *problem.Refusal {
	return problem.Refuse(problem.ErrAlreadyExists, "namespace %q already exists", name).On(field)
}

// setFields copies the fields of a document, without its contents, to a row.
func setFields(row *ent.Namespace, to *metadef.Document) {
	row.Name, row.Title, row.Description = to.Name, text.OrEmpty(to.DisplayName), to.Description
	row.DisplayName = cmp.Or(row.Title, row.Name)
	row.Visibility, row.Protected, row.Owner = string(*to.Visibility), *to.Protected, *to.Owner
	row.SearchKey = text.SearchKey(row.Name, row.Title, text.OrEmpty(row.Description))
}

// writeNamespace stores the fields of a row that setFields sets.
func writeNamespace(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace) error {
	update := tx.Namespace.Update().Where(namespace.ID(row.ID)).SetName(row.Name).
		SetTitle(row.Title).SetDisplayName(row.DisplayName).
		SetVisibility(row.Visibility).SetProtected(row.Protected).SetOwner(row.Owner).SetSearchKey(row.SearchKey).
		SetNillableDescription(row.Description)
	if row.Description == nil {
		update.ClearDescription()
	}
	return update.Exec(ctx)
}

// DeleteNamespace deletes a namespace with its contents, but not resource
// types, and returns the deleted namespace. It refuses a protected one.
func (s *MetadefStore) DeleteNamespace(ctx context.Context, name string, revision *int) (*metadef.Namespace, error) {
	e := edit{mutation: "deleteNamespace", namespace: name, named: "input.name", revision: revision, manages: true}
	if err := text.CheckAny("input.name", name); err != nil {
		return nil, err
	}
	return s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		if row.Protected {
			return nil, problem.Refuse(problem.ErrProtected, "namespace %q is protected", row.Name)
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		return nil, s.removeNamespaces(ctx, tx, []*ent.Namespace{row})
	})
}

// removeNamespaces deletes namespaces with their contents, and records each. It
// notes namespaces of the product's own bundle as unloaded.
func (s *MetadefStore) removeNamespaces(ctx context.Context, tx *sqldb.Tx, rows []*ent.Namespace) error {
	held, err := documents(ctx, tx.Client(), rows)
	if err != nil {
		return err
	}
	if err := s.sawNamespaces(ctx, tx, rows...); err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
		tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: row.Name, Before: documentFields(held[i])})
		tx.Deleted("Namespace", row.Name)
	}
	if _, err = tx.Namespace.Delete().Where(paging.Among(namespace.FieldID, ids)).Exec(ctx); err != nil {
		return err
	}
	return s.noteUnloaded(ctx, tx, rows)
}

// DeleteNamespaceContents deletes all contents of the given kinds from a
// namespace. Properties means the namespace's own properties. Deleting objects
// deletes their properties, too.
func (s *MetadefStore) DeleteNamespaceContents(ctx context.Context, name string, kinds []metadef.ContentKind,
	revision *int) (*metadef.Namespace, error) {
	e := edit{mutation: "deleteNamespaceContents", namespace: name, revision: revision, deletes: true}
	return s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		if err := cmp.Or(metadef.CheckContentKinds("input.kinds", kinds), e.admit(row)); err != nil {
			return nil, err
		}
		deleted, total := sqldb.Fields{}, 0
		for _, kind := range kinds {
			n, err := deleteContents(ctx, tx, row.ID, kind)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				deleted[string(kind)] = n
				total += n
			}
		}
		if total == 0 {
			return nil, nil
		}
		return &sqldb.Event{Kind: "Namespace", Key: row.Name, Before: deleted}, nil
	})
}

func deleteContents(ctx context.Context, tx *sqldb.Tx, namespaceID int64, kind metadef.ContentKind) (int, error) {
	switch kind {
	case metadef.ContentProperties:
		return tx.PropertyDefinition.Delete().
			Where(propertydefinition.NamespaceID(namespaceID), propertydefinition.ObjectIDIsNil()).Exec(ctx)
	case metadef.ContentObjects:
		return tx.ObjectDefinition.Delete().Where(objectdefinition.NamespaceID(namespaceID)).Exec(ctx)
	}
	return tx.Tag.Delete().Where(tag.NamespaceID(namespaceID)).Exec(ctx)
}
